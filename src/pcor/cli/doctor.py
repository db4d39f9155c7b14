"""``pcor doctor``: is everything here that a release needs?"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version

import typer

from pcor.choosing import MECHANISMS
from pcor.cli import options
from pcor.cli.output import guarded, say, say_json
from pcor.detectors import detector_factory, detector_names
from pcor.selection import SystemChooser

NEEDED = (
    *("numpy", "scipy", "numba", "opendp", "narwhals", "pyarrow", "typer", "rich"),
    *("sqlalchemy", "alembic"),
)
OPTIONAL = (
    *("pandas", "polars", "duckdb", "scikit-learn", "pyod", "altair", "vl-convert-python"),
    *("psycopg", "fastapi", "uvicorn", "adbc-driver-postgresql", "adbc-driver-sqlite", "pyspark"),
)


@guarded
def doctor(as_json: options.AsJson = False) -> None:
    """Check the installation: versions, randomness, the private draw, detectors.

    Example: pcor doctor
    """
    checks: list[tuple[str, bool, str]] = [
        ("python", sys.version_info >= (3, 11), platform.python_version()),
        *((package, *_installed(package)) for package in NEEDED),
        ("system randomness", *_works(lambda: len(os.urandom(16)) == 16)),
        ("private draw (OpenDP)", *_works(_draws)),
        ("detectors", *_works(lambda: all(detector_factory(name) for name in detector_names()))),
    ]
    extras = {package: _installed(package)[1] for package in OPTIONAL}
    fine = all(ok for _, ok, _ in checks)
    if as_json:
        rows = [{"check": what, "ok": ok, "found": found} for what, ok, found in checks]
        say_json({"ok": fine, "checks": rows, "optional": extras})
    else:
        for what, ok, found in checks:
            say(f"{'ok  ' if ok else 'FAIL'}  {what}: {found}")
        for package, found in extras.items():
            say(f"      optional {package}: {found}")
        say("everything a release needs is here" if fine else "a release cannot run here")
    if not fine:
        raise typer.Exit(1)


def _installed(package: str) -> tuple[bool, str]:
    try:
        return True, version(package)
    except PackageNotFoundError:
        return False, "not installed"


def _works(check: Callable[[], bool]) -> tuple[bool, str]:
    try:
        return (True, "works") if check() else (False, "gives a wrong answer")
    except Exception as error:  # whatever it is, the answer is "does not work"
        return False, f"fails ({type(error).__name__})"


def _draws() -> bool:
    """Draw where one candidate is better by far: anything else has a chance below exp(-1000)."""
    chooser = SystemChooser()
    return all(
        chooser.select([0, 1_000_000], eta=Fraction(1, 1000), mechanism=name) == 1
        for name in MECHANISMS
    )
