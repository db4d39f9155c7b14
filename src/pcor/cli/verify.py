"""``pcor verify``: was this certificate signed with that key, and is it as it was then?

Public: everything here; neither rows nor a schema are needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import pcor
from pcor.cli import options
from pcor.cli.output import guarded, say, say_json


@guarded
def verify(
    file: Annotated[
        Path, typer.Argument(help="The certificate: .json, or the page as .html.", metavar="FILE")
    ],
    key: Annotated[
        Path, typer.Option("--key", help="The file with the public key of who should have signed.")
    ],
    ledger: Annotated[
        str | None,
        typer.Option(help="Also find it in this ledger: a file or a postgresql:// URL."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Check a signed certificate: by which key, and unchanged since. No byte may differ.

    With --ledger also that it is in the chain of entries, which is verified as a whole. Example:

    pcor verify certificate.html --key owner.key.pub
    """
    public = pcor.PublicKey.load(key)
    certificate = pcor.verify(file, public)
    found = None if ledger is None else pcor.Ledger(ledger, create=False).find(certificate)
    if as_json:
        proved: dict[str, Any] = {"ok": True, "key": str(public), "certificate": certificate}
        where = {} if found is None else {"entry": found.charge.hash, "head": str(found.head)}
        say_json(proved | where)
        return
    say(f"{certificate['sentence']}\n")
    say(f"signed with the key {public}; no byte was changed since")
    if found is not None:
        say(f"in the ledger: {found}")
