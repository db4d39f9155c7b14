"""``make package``: build what users install, look inside, install it as they would, weigh it.

A wheel and a source archive are built from this tree and read; the wheel is then installed with
pip, as it is configured here, into an empty environment with no development dependencies, and
releases are made there through the library and the command line. Nothing of the tree can help:
every command runs in a folder of its own, without the variables that point Python elsewhere. Then
the same for ``pcor-client``, in an environment that has nothing else, against a service of this
tree.

Private: nothing; the only rows are made up here. How long it takes to begin is measured by
``python -m bench.startup``.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).parent.parent
CLIENT = ROOT / "packages" / "pcor-client"
LIMIT_MB = 700
CLIENT_LIMIT_MB = 5

# Folders of the tree that go into the wheel, and where.
PARTS = {"src/pcor": "pcor", "docs/errors": "pcor/error_pages"}
# What lies in those folders when the code has run, and is not a part of it.
LEFT_BEHIND = {".pyc", ".nbi", ".nbc"}

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

ASK = """
import sys, time
begin = time.perf_counter()
from pcor_client import Client
took = time.perf_counter() - begin
client = Client(sys.argv[1], sys.argv[2])
(dataset,) = client.datasets()
print(client.plan(dataset, 29876, preset="medium"))
released = client.release(dataset, 29876, preset="medium")
released.save("certificate.html")
question = client.history()[0]["id"]
assert client.certificate(question) == released and client.verify(released.to_dict(), question)
print(f"{released}\\n{1000 * took:.0f}")
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
    declared = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name = declared["name"].replace("-", "_")
    return next(out.glob(f"{name}-*.whl" if kind == "wheel" else f"{name}-*.tar.gz"))


def expected_files(tree: Path) -> set[str]:
    """Return the paths that the wheel of a tree should hold, beside its metadata."""
    return {
        (Path(target) / path.relative_to(tree / part)).as_posix()
        for part, target in PARTS.items()
        for path in (tree / part).rglob("*")
        if path.is_file() and path.suffix not in LEFT_BEHIND
    }


def wheel_problems(names: Iterable[str], expected: set[str]) -> list[str]:
    """Return what is wrong with the names in a wheel, one sentence each."""
    metadata = {name for name in names if name.partition("/")[0].endswith(".dist-info")}
    others = {*names} - metadata
    problems = [f"{name} is missing from the wheel" for name in expected - others]
    problems += [f"{name} is in the wheel, not in the tree" for name in others - expected]
    if not any(name.endswith("/licenses/LICENSE") for name in metadata):
        problems.append("the licence is missing from the wheel")
    return sorted(problems)


def contents(wheel: Path) -> dict[str, bytes]:
    """Return the files in a wheel: path -> bytes."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def build_and_check(tree: Path, out: Path, scratch: Path) -> tuple[Path, Path]:
    """Build both files, check them, rebuild the wheel from the source archive; return both."""
    wheel, sdist = build(tree, out, "wheel"), build(tree, out, "sdist")
    problems = wheel_problems(contents(wheel), expected_files(tree))
    if problems:
        raise Broken("\n".join(problems))
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist, cwd=out)
    if contents(wheel) != contents(_from_source(sdist, scratch)):
        raise Broken("the source archive builds another wheel than the tree")
    return wheel, sdist


def _from_source(sdist: Path, scratch: Path) -> Path:
    """Return the wheel that a source archive builds, in folders of its own."""
    with tarfile.open(sdist) as archive:
        archive.extractall(scratch / "source", filter="data")
    again = scratch / "again"
    again.mkdir()
    return build(next((scratch / "source").iterdir()), again, "wheel")


class Clean:
    """An environment with nothing but a wheel and what it requires, and a folder to work in."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        venv.create(folder / "env", with_pip=True)
        # bin and lib/python3.X/site-packages, on Windows Scripts and Lib/site-packages.
        inside = {"base": str(folder / "env")}
        self.bin = Path(sysconfig.get_path("scripts", "venv", inside))
        self._packages = Path(sysconfig.get_path("purelib", "venv", inside))
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PCOR", "COV"))}
        self.env = kept | {"PATH": f"{self.bin}{os.pathsep}{kept['PATH']}", "TERM": "dumb"}
        self.env.pop("VIRTUAL_ENV", None)
        pip = ("-m", "pip", "--disable-pip-version-check")
        self.python(*pip, "install", "--quiet", wheel)
        self.python(*pip, "check")

    def sizes(self) -> dict[str, int]:
        """Return the bytes that each package takes: name -> bytes."""
        packages = self._packages
        return {
            found.name: sum(packages.joinpath(file).stat().st_size for file in found.files or ())
            for found in distributions(path=[str(packages)])
            if found.name not in ("pip", "setuptools")  # came with the environment, not with pcor
        }

    def python(self, *words: str | Path) -> str:
        """Run its Python."""
        return run(self.bin / "python", *words, cwd=self.work, env=self.env)

    def pcor(self, *words: str, **variables: str) -> str:
        """Run its command line."""
        return run(self.bin / "pcor", *words, cwd=self.work, env=self.env | variables)


class Here:
    """This environment, as it is, and a folder to work in: for versions that somebody chose."""

    def __init__(self, folder: Path) -> None:
        self.work = folder

    def python(self, *words: str | Path) -> str:
        """Run this Python."""
        return run(sys.executable, *words, cwd=self.work)

    def pcor(self, *words: str, **variables: str) -> str:
        """Run the command line."""
        env = os.environ | variables
        return run(sys.executable, "-m", "pcor", *words, cwd=self.work, env=env)


def release_everywhere(clean: Clean | Here) -> None:
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
    if isinstance(clean, Here):
        return  # a shell completes the script, not `python -m pcor`
    completed = clean.pcor(_PCOR_COMPLETE="complete_bash", COMP_WORDS="pcor rel", COMP_CWORD="1")
    if completed.split() != ["release"]:
        raise Broken(f"the shell completes `pcor rel` to {completed!r}")


def weighed(wheel: Path, sdist: Path, sizes: dict[str, int]) -> str:
    """Return what users download and install, as lines of text."""
    largest = sorted(sizes, key=lambda name: -sizes[name])[:5]
    rows = [
        ("wheel", f"{wheel.stat().st_size / 1e3:.0f} kB"),
        ("source archive", f"{sdist.stat().st_size / 1e3:.0f} kB"),
        (f"{len(sizes)} packages installed", f"{sum(sizes.values()) / 1e6:.1f} MB"),
        *((f"  {name}", f"{sizes[name] / 1e6:.1f} MB") for name in largest),
    ]
    return "\n".join(f"{what:<24}{size:>10}" for what, size in rows)


def package(out: Path) -> str:
    """Build, check, install, release; return what was weighed."""
    out.mkdir(parents=True, exist_ok=True)
    for old in (*out.glob("pcor-*.whl"), *out.glob("pcor-*.tar.gz")):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="pcor-package-") as name:
        scratch = Path(name)
        wheel, sdist = build_and_check(ROOT, out, scratch)
        clean = Clean(scratch, wheel)
        # Before anything is run: later, Numba keeps its compiled kernels there.
        sizes = clean.sizes()
        release_everywhere(clean)
        if sum(sizes.values()) > LIMIT_MB * 1e6:
            raise Broken(f"more than {LIMIT_MB} MB are installed:\n{weighed(wheel, sdist, sizes)}")
        return weighed(wheel, sdist, sizes)


def package_client(out: Path) -> str:
    """Build the client, install it in an empty environment, release there; return its weight."""
    for old in out.glob("pcor_client-*"):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="pcor-package-") as name:
        scratch = Path(name)
        wheel, sdist = build(CLIENT, out, "wheel"), build(CLIENT, out, "sdist")
        run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist, cwd=out)
        if contents(wheel) != contents(_from_source(sdist, scratch)):
            raise Broken("the client's source archive builds another wheel than the tree")
        clean = Clean(scratch, wheel)
        sizes = clean.sizes()
        if sum(sizes.values()) > CLIENT_LIMIT_MB * 1e6 or set(sizes) != {"pcor-client"}:
            raise Broken(f"the client is too much:\n{weighed(wheel, sdist, sizes)}")
        if os.name == "nt":  # no service runs there
            clean.python("-c", "import pcor_client")
            return weighed(wheel, sdist, sizes)
        with demo_service(scratch) as (url, key):
            printed = clean.python("-c", ASK, url, key)  # also compiles, as pip does not always
            printed = clean.python("-c", ASK, url, key)
        if "Record 29876" not in printed:
            raise Broken("the client released something else than was asked for")
        took = printed.split()[-1]
        return f"{weighed(wheel, sdist, sizes)}\n{'import':<24}{took:>7} ms"


@contextmanager
def demo_service(folder: Path) -> Iterator[tuple[str, str]]:
    """Serve the demo from this tree; yield where, and an analyst's key."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "pcor", "serve", "--demo", "--port", str(port)]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            lines = iter(process.stdout or ())
            key = next((line.split()[1] for line in lines if line.split()[:1] == ["analyst"]), "")
            if not key:
                raise Broken("`pcor serve --demo` ended before it began")
            yield f"http://127.0.0.1:{port}", key
        finally:
            process.terminate()


def main() -> int:
    """Package the tree and print what was found; with ``--here``, release in this environment."""
    try:
        if sys.argv[1:] == ["--here"]:
            with tempfile.TemporaryDirectory(prefix="pcor-package-") as name:
                release_everywhere(Here(Path(name)))
            print("released, by the library and by the command line")
            return 0
        print(package(ROOT / "dist"))
        print(package_client(ROOT / "dist"))
    except Broken as broken:
        print(f"packaging: {broken}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
