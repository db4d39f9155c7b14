"""What a release leaves in files: its certificate and its letter, signed or not.

Public: everything here but the signing key. All that could only fail once a release is paid for is
tried before: the places, the template, the key.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pcor
from pcor.cli.output import tell
from pcor.errors import ParameterError
from pcor.support.files import check_new, check_target

if TYPE_CHECKING:
    from pcor.releasing.letter import LetterTemplate

PAGE = (".html", ".htm")


@dataclass(frozen=True)
class Papers:
    """What is to be written for one record.

    Attributes:
        out: where the certificate goes.
        letter: where the letter goes.
        template: of the letter.
        key: signs both.
    """

    out: Path | None
    letter: Path | None
    template: LetterTemplate | None = field(default=None, repr=False)
    key: pcor.SigningKey | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        out: Path | None,
        letter: Path | None,
        template: Path | None,
        sign: Path | None,
        records: Path | None,
        *,
        as_json: bool,
        force: bool,
    ) -> Papers:
        """Return what the flags ask for, or refuse what cannot be done."""
        if records is not None and (letter is not None or sign is not None):
            raise ParameterError("--letter and --sign go with --record: they are for one record")
        if template is not None and letter is None:
            raise ParameterError(
                "--letter-template goes with --letter: it says how that is written"
            )
        if sign is not None and out is None and letter is None and not as_json:
            raise ParameterError("--sign signs a file: give --out or --letter too, or --json")
        if out is not None and records is None:
            check_target(out, (".json", *PAGE))
            check_new(out, force=force)  # before anything is drawn or charged
        if letter is not None:
            check_target(letter, PAGE, "--letter")
            check_new(letter, "--letter", force=force)
        if letter is not None and out is not None and letter.absolute() == out.absolute():
            raise ParameterError("--letter and --out name the same file; give each its own")
        key = None if sign is None else pcor.SigningKey.load(sign)
        return cls(out, letter, None if letter is None else _template(template), key)

    def write(self, released: pcor.Release) -> None:
        """Write the files, and say where they are."""
        if self.out is not None:
            released.save(self.out, key=self.key)
            tell(f"certificate written to {self.out}")
        if self.letter is not None and self.template is not None:
            released.save(self.letter, key=self.key, letter=self.template)
            tell(f"letter written to {self.letter}")


def _template(path: Path | None) -> LetterTemplate:
    from pcor.releasing.letter import LetterTemplate  # brings a template engine along

    return LetterTemplate(path)
