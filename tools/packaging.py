"""``make package``: build what users install, look inside, install it as they would, measure.

A wheel and a source archive are built from this tree and read; the wheel is then installed with
pip, as it is configured here, into an empty environment with no development dependencies, and
releases are made there through the library and the command line. Nothing of the tree can help:
every command runs in a folder of its own, without the variables that point Python elsewhere.

Private: nothing; the only rows are made up here. Only an installed size over its limit is judged
by number: seconds depend on what else the machine does, so they are shown beside what is wanted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LIMIT_MB = 700
WANTED_SECONDS = 0.5
RUNS = 10
# `import pcor` alone loads next to nothing; the second is what a program that releases pays.
TIMED = {"import pcor": "import", "  Table and release": "names", "pcor --help": "help"}

# Folders of the tree that go into the wheel, and where.
PARTS = {"src/pcor": "pcor", "docs/errors": "pcor/error_pages"}
# A rule that dropped one of these would break a user's release, ledger or page, but no import.
NEEDED = (
    *("pcor/py.typed", "pcor/releasing/certificate.schema.json"),
    *("pcor/ledger/migrations/env.py", "pcor/service/core/migrations/s001.py"),
    *("pcor/service/templates/base.html", "pcor/service/static/page.js"),
    *("pcor/service/static/htmx.LICENSE.txt", "pcor/error_pages/index.md"),
)
UNWANTED = {"tests", "__pycache__", ".ipynb_checkpoints"}
UNWANTED_ENDINGS = {".pyc", ".nbi", ".nbc"}

SIZES = """
import json, sysconfig
from importlib.metadata import distributions
from pathlib import Path
def size(paths):
    return sum(path.stat().st_size for path in paths if path.is_file())
own = {"pip", "setuptools"}  # came with the environment, not with pcor
sizes = {
    found.name: size(Path(found.locate_file(file)) for file in found.files or ())
    for found in distributions() if found.name not in own
}
print(json.dumps(sizes))
"""

RELEASE = """
import csv, random, pcor
with open("claims.csv", "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["claim", "amount", "region", "product"])
    for claim in range(400):
        amount = 100000 if claim == 17 else 1000 + random.randrange(200)
        rows.writerow([claim, amount, ["north", "south"][claim % 2], ["car", "home"][claim // 200]])
schema = pcor.Schema(
    metric="amount",
    attributes={"region": ["north", "south"], "product": ["car", "home"]},
    id="claim",
)
released = pcor.release(pcor.Table("claims.csv", schema), record=17, epsilon=1)
released.save("certificate.html")
print(released)
"""


class Broken(Exception):
    """A step of packaging did not hold; the message says which and why."""


def run(*words: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Return what a command prints; raise ``Broken`` with its last words if it fails."""
    command = [str(word) for word in words]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise Broken(f"`{' '.join(command)[:200]}` ended with {done.returncode}:\n{last}")
    return done.stdout


def build(tree: Path, out: Path, kind: str) -> Path:
    """Build the ``wheel`` or the ``sdist`` of a tree into a folder; return the file.

    No isolation: the backend is one of the development dependencies, so nothing is downloaded.
    """
    words = ("-m", "build", "--no-isolation", f"--{kind}", "--outdir", out, tree)
    run(sys.executable, *words, cwd=out)
    ending = "*.whl" if kind == "wheel" else "*.tar.gz"
    return next(out.glob(ending))


def expected_files(tree: Path) -> set[str]:
    """Return the paths that the wheel of a tree should hold, beside its metadata."""
    return {
        (Path(target) / path.relative_to(tree / part)).as_posix()
        for part, target in PARTS.items()
        for path in (tree / part).rglob("*")
        if path.is_file() and not _unwanted(path.relative_to(tree).as_posix())
    }


def _unwanted(name: str) -> bool:
    path = Path(name)
    return bool(UNWANTED & set(path.parts)) or path.suffix in UNWANTED_ENDINGS


def wheel_problems(names: set[str], expected: set[str]) -> list[str]:
    """Return what is wrong with the names in a wheel, one sentence each."""
    metadata = {name for name in names if name.partition("/")[0].endswith(".dist-info")}
    contents = names - metadata
    problems = [f"{name} does not belong in a wheel" for name in contents if _unwanted(name)]
    problems += [f"{name} is not a part of pcor" for name in contents if name[:5] != "pcor/"]
    problems += [f"{name} is missing from the wheel" for name in {*expected, *NEEDED} - names]
    problems += [f"{name} is in the wheel, not in the tree" for name in contents - expected]
    if not any(name.endswith("/licenses/LICENSE") for name in metadata):
        problems.append("the licence is missing from the wheel")
    return sorted(problems)


def names_in(wheel: Path) -> set[str]:
    """Return the paths of the files in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def metadata_of(wheel: Path) -> Message:
    """Return the METADATA of a wheel, as what it is: headers and a description."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def same_contents(one: Path, other: Path) -> bool:
    """Return whether two wheels hold the same files with the same bytes."""
    with zipfile.ZipFile(one) as first, zipfile.ZipFile(other) as second:
        if set(first.namelist()) != set(second.namelist()):
            return False
        return all(first.read(name) == second.read(name) for name in first.namelist())


def build_and_check(tree: Path, out: Path, scratch: Path) -> tuple[Path, Path]:
    """Build both files, check them, rebuild the wheel from the source archive; return both."""
    wheel, sdist = build(tree, out, "wheel"), build(tree, out, "sdist")
    problems = wheel_problems(names_in(wheel), expected_files(tree))
    if problems:
        raise Broken("\n".join(problems))
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist, cwd=out)
    with tarfile.open(sdist) as archive:
        archive.extractall(scratch / "source", filter="data")
    again = scratch / "again"
    again.mkdir()
    unpacked = next((scratch / "source").iterdir())
    if not same_contents(wheel, build(unpacked, again, "wheel")):
        raise Broken("the source archive builds another wheel than the tree")
    return wheel, sdist


class Clean:
    """An environment with nothing but the wheel and what it requires, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        venv.create(folder / "env", with_pip=True)
        self.bin = folder / "env" / "bin"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PCOR", "COV"))}
        self.env = kept | {"PATH": f"{self.bin}:{kept['PATH']}", "TERM": "dumb"}
        self.env.pop("VIRTUAL_ENV", None)

    def python(self, *words: str | Path) -> str:
        """Run its Python."""
        return run(self.bin / "python", *words, cwd=self.work, env=self.env)

    def pcor(self, *words: str, **variables: str) -> str:
        """Run its command line."""
        return run(self.bin / "pcor", *words, cwd=self.work, env=self.env | variables)

    def times(self, *words: str) -> dict[str, float]:
        """Return the medians of several runs: seconds on the clock, and of a processor for us."""
        clock, processor = [], []
        for _ in range(RUNS):
            start = time.perf_counter()
            child = subprocess.Popen(  # noqa: S603 (our own words)
                [self.bin / words[0], *words[1:]],
                cwd=self.work,
                env=self.env,
                stdout=subprocess.DEVNULL,
            )
            _, code, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(code)
            if child.returncode:
                raise Broken(f"`{' '.join(words)}` ended with {child.returncode}")
            clock.append(time.perf_counter() - start)
            processor.append(used.ru_utime)
        return {
            "seconds": round(statistics.median(clock), 3),
            "user_seconds": round(statistics.median(processor), 3),
        }


def install(wheel: Path, folder: Path) -> Clean:
    """Install a wheel with pip into an empty environment; check that what it needs fits."""
    clean = Clean(folder)
    pip = ("-m", "pip", "--disable-pip-version-check")
    clean.python(*pip, "install", "--quiet", wheel)
    clean.python(*pip, "check")
    return clean


def release_everywhere(clean: Clean) -> None:
    """Make releases as a newcomer would; raise ``Broken`` at the first that fails."""
    if "Record 17" not in clean.python("-c", RELEASE):
        raise Broken("the library released something else than was asked for")
    clean.pcor("demo")
    draft = ("--metric", "amount", "--attributes", "region,product", "--id", "claim")
    clean.pcor("schema", "init", "claims.csv", *draft, "--out", "claims.toml")
    draft_file = clean.work / "claims.toml"
    draft_file.write_text(draft_file.read_text().replace("# REVIEW", "# read"))
    asked = ("--schema", "claims.toml", "--record", "17", "--epsilon", "1")
    clean.pcor("release", "claims.csv", *asked, "--out", "certificate.json")
    clean.pcor("ledger", "budget", "books.db", "claims", "--epsilon", "3")
    clean.pcor("doctor")
    clean.pcor("explain", "budget_exceeded")
    completed = clean.pcor(_PCOR_COMPLETE="complete_bash", COMP_WORDS="pcor rel", COMP_CWORD="1")
    if completed.split() != ["release"]:
        raise Broken(f"the shell completes `pcor rel` to {completed!r}")


def measure(clean: Clean, wheel: Path, sdist: Path, sizes: dict[str, int]) -> dict[str, Any]:
    """Return the figures of an installed wheel."""
    largest = sorted(sizes, key=lambda name: -sizes[name])[:5]
    return {
        "python": clean.python("-c", "import platform; print(platform.python_version())").strip(),
        "wheel_kb": round(wheel.stat().st_size / 1e3),
        "sdist_kb": round(sdist.stat().st_size / 1e3),
        "packages": len(sizes),
        "installed_mb": round(sum(sizes.values()) / 1e6, 1),
        "largest_mb": {name: round(sizes[name] / 1e6, 1) for name in largest},
        "import": clean.times("python", "-c", "import pcor"),
        "names": clean.times("python", "-c", "from pcor import Schema, Table, release"),
        "help": clean.times("pcor", "--help"),
    }


def table(figures: dict[str, Any]) -> str:
    """Return the figures as lines of text."""
    wanted = f"user {{user_seconds}} s; median of {RUNS}, wanted under {WANTED_SECONDS} s"
    rows = [
        ("wheel, source archive", f"{figures['wheel_kb']} kB, {figures['sdist_kb']} kB", ""),
        ("installed", f"{figures['installed_mb']} MB", f"{figures['packages']} packages"),
        *((f"  {name}", f"{size} MB", "") for name, size in figures["largest_mb"].items()),
        *(
            (what, f"{figures[key]['seconds']} s", wanted.format(**figures[key]))
            for what, key in TIMED.items()
        ),
    ]
    return "\n".join(f"{what:<24}{found:>20}  {note}".rstrip() for what, found, note in rows)


def package(out: Path) -> dict[str, Any]:
    """Build, check, install, release, measure; return the figures."""
    out.mkdir(parents=True, exist_ok=True)
    for old in (*out.glob("pcor-*.whl"), *out.glob("pcor-*.tar.gz")):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="pcor-package-") as name:
        scratch = Path(name)
        wheel, sdist = build_and_check(ROOT, out, scratch)
        clean = install(wheel, scratch)
        # Before anything is run: later, Numba keeps its compiled kernels there.
        sizes = json.loads(clean.python("-c", SIZES))
        release_everywhere(clean)
        return measure(clean, wheel, sdist, sizes)


def main() -> int:
    """Package the tree and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m tools.packaging", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the files go")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    asked = parser.parse_args()
    try:
        figures = package(asked.out.resolve())
    except Broken as broken:
        print(f"packaging: {broken}", file=sys.stderr)
        return 1
    print(json.dumps(figures, indent=2) if asked.json else table(figures))
    if figures["installed_mb"] > LIMIT_MB:
        print(f"packaging: more than {LIMIT_MB} MB are installed", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
