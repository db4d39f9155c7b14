"""``pcor doctor``: is everything here that a release needs, and which optional parts are?"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, requires, version

import typer

from pcor.cli.output import AsJson, guarded, say, say_json, waiting
from pcor.errors import ParameterError

_REINSTALL = "pip install --upgrade pcor"

# What an optional part is for.
PURPOSES = {
    "duckdb": "files larger than memory, patterns, folders",
    "excel": "Excel files",
    "databases": "tables in PostgreSQL and SQLite",
    "spark": "tables on a Spark cluster",
    "sklearn": "detectors of scikit-learn",
    "pyod": "detectors of PyOD",
    "plots": "charts",
    "postgres": "a ledger in PostgreSQL",
    "sign": "signed certificates",
    "letter": "letters",
    "service": "pcor serve",
}

# A line of a package's metadata: name, bounds, the optional part it belongs to.
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[\w+\])? *([^; ]*)(?: *; *extra == ['\"]([\w-]+)['\"])?")


@dataclass(frozen=True)
class InstallationCheck:
    """One line: what was looked at, whether it is fine, what was found, and what to do."""

    what: str
    ok: bool
    found: str
    fix: str = ""

    def __str__(self) -> str:
        todo = f"; {self.fix}" if self.fix and not self.ok else ""
        return f"{'ok  ' if self.ok else 'FAIL'}  {self.what}: {self.found}{todo}"


@guarded
def doctor(as_json: AsJson = False) -> None:
    """Check the installation: versions, randomness, detectors.

    The private draw is tried, and releases from made-up rows by each built-in detector. The first
    time that compiles their loops, up to a minute, for which no release then has to wait.

    Ends with exit code 0 if a release can run here, and 1 if not. What is optional may be missing.

    Example: pcor doctor
    """
    checks = [
        InstallationCheck(
            "python", sys.version_info >= (3, 11), platform.python_version(), "use 3.11 or newer"
        ),
        *(_package(name, bounds, _REINSTALL) for name, bounds in declared().items()),
        _works(
            "system randomness", lambda: len(os.urandom(16)) == 16, "the system must provide it"
        ),
        _works("private draw", _draws, _REINSTALL),
        _detectors(),
        _releases(quiet=as_json),
    ]
    optional = [_extra(name, purpose) for name, purpose in PURPOSES.items()]
    fine = all(check.ok for check in checks)
    if as_json:
        say_json({"ok": fine, "checks": _rows(checks), "optional": _rows(optional)})
    else:
        for check in checks:
            say(str(check))
        say("\noptional, none of it needed for a release:")
        for check in optional:
            say(str(check).replace("FAIL", "--  "))
        wrong = "a release cannot run here; the lines marked FAIL say what to do"
        say("\n" + ("everything a release needs is here" if fine else wrong))
    if not fine:
        raise typer.Exit(1)


def _rows(checks: Iterable[InstallationCheck]) -> list[dict[str, object]]:
    return [
        {"check": c.what, "ok": c.ok, "found": c.found} | ({} if c.ok else {"fix": c.fix})
        for c in checks
    ]


def declared(extra: str | None = None) -> dict[str, str]:
    """Return what the installation says that it needs, or one optional part of it, and the bounds.

    >>> declared("duckdb")
    {'duckdb': '>=1.1'}
    """
    found = (_REQUIREMENT.fullmatch(line) for line in requires("pcor") or ())
    return {one[1]: one[2] for one in found if one is not None and one[3] == extra}


def _package(name: str, bounds: str, fix: str) -> InstallationCheck:
    """Look for a package in a version that is fine."""
    try:
        found = version(name)
    except PackageNotFoundError:
        return InstallationCheck(name, False, "not installed", fix)
    if not fits(found, bounds):
        return InstallationCheck(name, False, f"{found}, and {bounds} is needed", fix)
    return InstallationCheck(name, True, found)


def _extra(name: str, purpose: str) -> InstallationCheck:
    """Look for all packages of an optional part."""
    fix = f"pip install 'pcor[{name}]'"
    found = [_package(package, bounds, fix) for package, bounds in declared(name).items()]
    listed = ", ".join(f"{check.what} {check.found}" for check in found)
    return InstallationCheck(f"{name} ({purpose})", all(check.ok for check in found), listed, fix)


def fits(found: str, bounds: str) -> bool:
    """Tell whether a version is within bounds, in any order, such as ">=0.16,<0.17".

    >>> fits("0.16.1", "<0.17,>=0.16"), fits("0.17.0", "<0.17,>=0.16"), fits("2.0.30", ">=2.0.4")
    (True, False, True)
    """
    here = _numbers(found)
    return all((here >= _numbers(bound)) == bound.startswith(">=") for bound in bounds.split(","))


def _numbers(text: str) -> tuple[int, ...]:
    """Return the numbers a version begins with; zeros at its end mean nothing."""
    begin = re.search(r"\d+(\.\d+)*", text)
    parts = [int(part) for part in begin[0].split(".")] if begin else []
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def _works(what: str, check: Callable[[], bool], fix: str) -> InstallationCheck:
    try:
        works = check()
    except Exception as error:  # whatever it is, the answer is "does not work"
        return InstallationCheck(what, False, f"fails ({type(error).__name__})", fix)
    return InstallationCheck(what, works, "works" if works else "is wrong", fix)


def _detectors() -> InstallationCheck:
    """Name every detector, those of other packages too, or the first that cannot be loaded."""
    try:
        from pcor.detectors import detector_factory, detector_names

        names = detector_names()
        for name in names:
            detector_factory(name)
    except ParameterError as error:
        return InstallationCheck("detectors", False, str(error))
    except ImportError as error:
        return InstallationCheck(
            "detectors", False, f"cannot be loaded without {error.name}", _REINSTALL
        )
    return InstallationCheck("detectors", True, ", ".join(names))


def _releases(*, quiet: bool) -> InstallationCheck:
    """Release from made-up rows, which compiles what that needs."""
    from pcor.demo.warm_up import warm_up  # brings Numba along

    what = "releases from made-up rows"
    try:
        with waiting("releasing from made-up rows; the first time compiles", quiet=quiet):
            seconds, compiled = warm_up()
    except Exception as error:  # whatever it is, the answer is "does not work"
        return InstallationCheck(what, False, f"fail ({type(error).__name__})", _REINSTALL)
    compiling = f"; compiling their loops, once, took {seconds} s" if compiled else ""
    return InstallationCheck(what, True, f"work{compiling}")


def _draws() -> bool:
    """Draw where one candidate is better by far: anything else has a chance below exp(-1000)."""
    from pcor.mechanism.randomness import MECHANISMS
    from pcor.mechanism.selection import SystemRandomSource

    chooser = SystemRandomSource()
    return all(
        chooser.select([0, 1_000_000], eta=Fraction(1, 1000), mechanism=name) == 1
        for name in MECHANISMS
    )
