"""What a package index says of pcor: the README, so that it reads there, and where the project is.

An index shows no file of the repository. Where a release is built, PCOR_REPOSITORY may name the
repository's address; links of the README then lead there, to the files of this version, and the
index links to its pages. Without it no address is known and none is made up: pictures are left out
and links are their words alone.

Public: everything here. Hatchling runs it when it builds (``[tool.hatch.metadata.hooks.custom]``).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

ADDRESS = "PCOR_REPOSITORY"
# Of the project's own pages only the paper's address is the same whoever publishes.
PAPER = "https://doi.org/10.1145/3448016.3452812"

_PICTURE = re.compile(r"<picture>.*?<img src=\"([^\"]+)\" alt=\"([^\"]+)\">.*?</picture>\n+", re.S)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?![a-z]+:|#)([^)]+)\)")


class PackageIndex(MetadataHookInterface):
    """Writes the description and the addresses into the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add what depends on whether an address is known."""
        address = os.environ.get(ADDRESS, "").rstrip("/")
        if address and not address.startswith("https://"):
            raise ValueError(f"{ADDRESS} must begin with https://, and is {address!r}")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        shown = described(text, address, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": shown}
        metadata["urls"] = addresses(address, metadata["version"])


def described(text: str, address: str, version: str) -> str:
    """Return the README for an index.

    Args:
        text: the README.
        address: of the repository, or nothing.
        version: whose files the links lead to.
    """
    if not address:
        return _LINK.sub(r"\1", _PICTURE.sub("", text))
    pictures = _PICTURE.sub(rf"![\2]({address}/raw/v{version}/\1)\n\n", text)
    return _LINK.sub(rf"[\1]({address}/blob/v{version}/\2)", pictures)


def addresses(address: str, version: str) -> dict[str, str]:
    """Return the links beside a package on an index: label -> address."""
    if not address:
        return {"Paper": PAPER}
    files = f"{address}/blob/v{version}"
    return {
        "Homepage": address,
        "Documentation": f"{files}/docs/index.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{address}/issues",
        "Source": address,
        "Paper": PAPER,
    }
