"""File fingerprints: know a registered file again, and keep nothing that could be guessed at.

Private: the secret, and the plain hash of a file, which is never kept: whoever has all of a file
but one row could try out guesses at that row against it. A fingerprint is an HMAC of that hash
under 256 random bits. The secret is in a file of its own, by default beside the tables, where
whoever can read it can read the rows; the fingerprints are in the database (under the name
``mark``), where without the secret they say no more than which registrations were of the same file.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from pathlib import Path

from pcor.errors import LedgerError, ParameterError
from pcor.support.files import write_new

NAME = ".pcor-secret"


class FileFingerprints:
    """Makes the fingerprints of files.

    Args:
        path: the file with the secret.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def make_secret(self) -> None:
        """Make the secret, unless there is one; of several processes that begin, one does."""
        if self._path.exists():
            return
        try:
            write_new(self._path, f"{secrets.token_hex(32)}\n".encode("ascii"), mode=0o600)
        except FileExistsError:
            pass  # another process was faster
        except OSError:
            raise ParameterError(
                "the file with the service's secret cannot be made; let the service write into its "
                "data folder once, or give it another place: --secret"
            ) from None

    def of_file(self, path: Path) -> str:
        """Return the fingerprint of a file."""
        with path.open("rb") as stream:
            return self._under_secret(hashlib.file_digest(stream, "sha256").hexdigest())

    def of_bytes(self, content: bytes) -> str:
        """Return the fingerprint that a file with this content has."""
        return self._under_secret(hashlib.sha256(content).hexdigest())

    def _under_secret(self, sha256: str) -> str:
        return hmac.new(self._secret(), sha256.encode("ascii"), hashlib.sha256).hexdigest()

    def _secret(self) -> bytes:
        try:
            found = self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            found = ""
        if not re.fullmatch("[0-9a-f]{64}", found):
            raise LedgerError(
                "the service's secret is missing or damaged, so no file can be known again and "
                "nothing is charged or drawn; its owner restores the secret, or removes what is "
                "left of it and registers the dataset again"
            )
        return bytes.fromhex(found)

    def __repr__(self) -> str:
        return "<FileFingerprints>"
