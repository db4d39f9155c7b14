"""The program ``openssl``, which reads our keys and checks our signatures by itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

OPENSSL = shutil.which("openssl")

needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="the program openssl is not installed")


def openssl(*words: object) -> subprocess.CompletedProcess[bytes]:
    """Run it."""
    return subprocess.run(  # noqa: S603 (our own words)
        [str(OPENSSL), *map(str, words)], capture_output=True, check=False
    )


def accepts(public: Path, value: str, message: bytes) -> bool:
    """Whether it takes a signature, in hexadecimal digits, for one of this message."""
    beside = public.with_name
    beside("message").write_bytes(message)
    beside("value").write_bytes(bytes.fromhex(value))
    files = ("-in", beside("message"), "-sigfile", beside("value"))
    ran = openssl("pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", *files)
    return ran.returncode == 0
