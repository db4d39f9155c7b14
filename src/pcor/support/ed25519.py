"""Ed25519 keys (RFC 8032) in files, in the form that OpenSSL reads and writes.

Private: a signing key, which is in no repr, message, log or copy; its file is made for its owner's
eyes alone, never over another, and refused where others can read it. Public: everything else. The
arithmetic is that of the package ``cryptography``, an extra: what needs it says so.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pcor.errors import ParameterError, WriteError
from pcor.support.files import write_new

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ALGORITHM = "Ed25519"
# No file of a key is longer; a table that is named by mistake is not read whole.
_LONGEST = 100_000


def needed(module: str) -> Any:
    """Import what signatures need, or say how to get it."""
    try:
        return import_module(module)
    except ModuleNotFoundError:
        package = module.partition(".")[0]
        raise ParameterError(
            f"signatures need {package}, which is not installed: pip install 'pcor[sign]'"
        ) from None


@dataclass(frozen=True)
class PublicKey:
    """The half of a key that everybody may have: it checks signatures and cannot make any.

    Attributes:
        key: its 32 bytes as 64 hexadecimal digits.

    Raises:
        ParameterError: this is not such a key.
    """

    key: str

    def __post_init__(self) -> None:
        if not isinstance(self.key, str) or not re.fullmatch("[0-9a-f]{64}", self.key):
            raise ParameterError(
                "a public key is written as 64 hexadecimal digits; pcor.PublicKey.load(path) reads "
                "the file of one"
            )

    @classmethod
    def load(cls, path: str | Path) -> PublicKey:
        """Read a public key from its file (PEM), which ``pcor ledger keygen`` or OpenSSL wrote.

        Raises:
            ParameterError: the file cannot be read, or holds no public Ed25519 key.
        """
        content = _read(path, "public")
        if b"PRIVATE KEY" in content:
            raise ParameterError(
                f"the file {str(path)!r} holds a private key; signatures are checked with the "
                "public one, and a private one is shown to nobody"
            )
        serialization = needed("cryptography.hazmat.primitives.serialization")
        ed25519 = needed("cryptography.hazmat.primitives.asymmetric.ed25519")
        try:
            key = serialization.load_pem_public_key(content)
        except Exception:  # of many kinds, and its words are OpenSSL's
            key = None
        if not isinstance(key, ed25519.Ed25519PublicKey):
            raise ParameterError(f"the file {str(path)!r} holds no public {ALGORITHM} key (PEM)")
        return cls(key.public_bytes_raw().hex())

    def save(self, path: str | Path) -> None:
        """Write the key to a new file (PEM); one that is there is never replaced.

        Raises:
            WriteError: there is such a file, or it cannot be written.
        """
        _write(path, self.pem.encode("ascii"), "public", mode=0o644)

    @property
    def pem(self) -> str:
        """The key as OpenSSL reads it."""
        serialization = needed("cryptography.hazmat.primitives.serialization")
        encoded: bytes = self._loaded().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return encoded.decode("ascii")

    def fits(self, value: str, message: bytes) -> bool:
        """Whether a signature, in hexadecimal digits, is of this message and by this key."""
        invalid = needed("cryptography.exceptions").InvalidSignature
        try:
            self._loaded().verify(bytes.fromhex(value), message)
        except (invalid, ValueError):
            return False
        return True

    def _loaded(self) -> Any:
        ed25519 = needed("cryptography.hazmat.primitives.asymmetric.ed25519")
        return ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.key))

    def __str__(self) -> str:
        return self.key


class SigningKey:
    """A private key, which signs; ``generate`` makes one and ``load`` reads one from its file."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def generate(cls) -> SigningKey:
        """Make a key, from the operating system's randomness."""
        ed25519 = needed("cryptography.hazmat.primitives.asymmetric.ed25519")
        return cls(ed25519.Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: str | Path) -> SigningKey:
        """Read a key from its file (PEM), which only its owner may be able to read.

        Raises:
            ParameterError: the file cannot be read, can be read by others, or holds no private
                Ed25519 key; or it has a passphrase.
        """
        content = _read(path, "private", alone=True)
        needed("rfc8785")  # for what is signed: said now, and not once something is paid for
        serialization = needed("cryptography.hazmat.primitives.serialization")
        ed25519 = needed("cryptography.hazmat.primitives.asymmetric.ed25519")
        try:
            key = serialization.load_pem_private_key(content, password=None)
        except TypeError:
            raise ParameterError(
                f"the key in {str(path)!r} has a passphrase, for which nobody can be asked here; "
                f"give one without, in a file that its owner alone can read"
            ) from None
        except Exception:  # its words may be of the file's content
            key = None
        if not isinstance(key, ed25519.Ed25519PrivateKey):
            raise ParameterError(_no_private_key(str(path)))
        return cls(key)

    def save(self, path: str | Path) -> None:
        """Write the key to a new file (PEM, mode 0600); one that is there is never replaced.

        Raises:
            WriteError: there is such a file, or it cannot be written.
        """
        serialization = needed("cryptography.hazmat.primitives.serialization")
        encoded = self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        _write(path, encoded, "private", mode=0o600)

    @property
    def public(self) -> PublicKey:
        """The half that everybody may have."""
        return PublicKey(self._key.public_key().public_bytes_raw().hex())

    def sign(self, message: bytes) -> str:
        """Return the signature of a message in hexadecimal digits; the same whenever it is made."""
        return self._key.sign(message).hex()

    def __repr__(self) -> str:
        return f"<SigningKey of {self.public}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a signing key is not copied to another process; load it there")


def _read(path: str | Path, what: str, *, alone: bool = False) -> bytes:
    """Read the file of a key; ``alone``: refuse one that others than its owner can read."""
    try:
        with Path(path).open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            content = stream.read(_LONGEST)
            if alone:
                _check_private(content, str(path))
            if alone and os.name == "posix" and stat.S_IMODE(mode) & 0o077:
                raise ParameterError(
                    f"others can read the private key in {str(path)!r}, and could sign with it: "
                    f"chmod 600 {str(path)!r}"
                )
            return content
    except OSError as error:
        raise ParameterError(
            f"the {what} key {str(path)!r} cannot be read: {error.strerror}"
        ) from None


def _check_private(content: bytes, path: str) -> None:
    """Say that a file holds no private key before anything is said of who can read it."""
    if b"PRIVATE KEY" in content:
        return
    if b"PUBLIC KEY" in content:
        raise ParameterError(
            f"the file {path!r} holds a public key, and no private one: signatures are made with "
            "the private one, and checked with this"
        )
    raise ParameterError(_no_private_key(path))


def _no_private_key(path: str) -> str:
    return (
        f"the file {path!r} holds no private {ALGORITHM} key (PEM); `pcor ledger keygen` makes one"
    )


def _write(path: str | Path, content: bytes, what: str, *, mode: int) -> None:
    try:
        write_new(Path(path), content, mode=mode)
    except FileExistsError:
        raise WriteError(
            f"{str(path)!r} is there already, and a key is never replaced: what it has signed "
            "could not be checked any more; name another file"
        ) from None
    except OSError as error:
        raise WriteError(
            f"the {what} key cannot be written to {str(path)!r}: {error.strerror}"
        ) from None
