"""``make image``: build the image of the service, start it, and ask it for a release.

With buildah, and without a daemon or a kernel's help (``--isolation chroot``), so it can be done in
a container too. The base image is ``PCOR_BASE``, or the Containerfile's own where a registry can be
reached; with ``PCOR_BASE=debian`` one is made of the system's packages by mmdebstrap. Everything is
kept in a temporary folder and goes with it. What pip is told here (a certificate, an index) it is
told during the build, by a file that does not stay in the image.

Private: nothing; the rows are the demo's.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pcor.client import Client, ServiceError
from tools.packaging import ROOT, Broken, run

IMAGE = "pcor-service"
USER = "10001"
PACKAGES = "python3-venv,python-is-python3,ca-certificates"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CERTIFICATES = "/etc/ssl/certs"
SECONDS = 120


class Builder:
    """buildah, with images and containers of its own in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        stored = ("--root", f"{folder}/root", "--runroot", f"{folder}/run")
        self.words = ("buildah", *stored, "--storage-driver", "vfs")

    def __call__(self, *words: str | Path) -> str:
        """Run a command of buildah; return what it prints."""
        return run(*self.words, *words, cwd=ROOT).strip()

    def debian(self) -> str:
        """Make a base image of the system's own packages; return its name."""
        made = self._folder / "base.tar"
        suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
        words = ("--variant=minbase", f"--include={PACKAGES}", suite, made)
        run("mmdebstrap", *words, cwd=self._folder)
        container = self("from", "scratch")
        self("add", "--quiet", container, made, "/")
        self("config", "--env", f"PATH={PATH}", container)
        self("commit", "--quiet", container, "pcor-base")
        made.unlink()
        return "localhost/pcor-base"

    def build(self, base: str) -> None:
        """Build the image from the Containerfile; ``base`` is empty for its own."""
        chosen = ("--build-arg", f"BASE={base}") if base else ()
        mounts = ["--volume", f"{self._pip_settings()}:/etc/pip.conf:ro"]
        if Path(CERTIFICATES).is_dir():
            mounts += ["--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro"]
        # The older format is the one that has health checks.
        words = ("--isolation", "chroot", "--format", "docker", *mounts, *chosen)
        self("build", *words, "--tag", IMAGE, ".")

    def _pip_settings(self) -> Path:
        """Write what pip is told here by variables, for the build."""
        told = {
            name: os.environ[variable]
            for name in ("cert", "index-url", "proxy")
            if (variable := f"PIP_{name.upper().replace('-', '_')}") in os.environ
        }
        path = self._folder / "pip.conf"
        lines = ["[global]", *(f"{name} = {value}" for name, value in told.items())]
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
        return path


def check_image(builder: Builder) -> None:
    """Check what the image says of itself: who runs in it, what is run, how it is asked."""
    config = json.loads(builder("inspect", "--type", "image", IMAGE))["OCIv1"]["config"]
    expected = {"User": USER, "Entrypoint": ["pcor"], "Cmd": ["serve", "--host", "0.0.0.0"]}  # noqa: S104
    wrong = {key: config.get(key) for key in expected if config.get(key) != expected[key]}
    if wrong:
        raise Broken(f"the image says {wrong}")


@contextmanager
def started(builder: Builder) -> Iterator[tuple[str, Client]]:
    """Start the demo in a container; yield the container and an analyst's client."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    container = builder("from", f"localhost/{IMAGE}")
    inside = (*builder.words, "run", "--isolation", "chroot", container, "--")
    words = (*inside, "pcor", "serve", "--demo", "--port", str(port))
    with subprocess.Popen(  # noqa: S603
        words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            lines = iter(process.stdout or ())
            key = next((line.split()[1] for line in lines if line.split()[:1] == ["analyst"]), "")
            if not key:
                raise Broken("the container ended before it served")
            yield container, Client(f"http://127.0.0.1:{port}", key, patience=SECONDS)
        finally:
            process.terminate()


def ask(builder: Builder, container: str, client: Client) -> str:
    """Look at the running container from within, and release through it; return the sentence."""
    within = ("run", "--isolation", "chroot", container, "--")
    if builder(*within, "id", "-u") != USER:
        raise Broken("the service runs as somebody else than its own user")
    if "ok" in builder(*within, "sh", "-c", "touch /pcor/changed 2>/dev/null && echo ok || true"):
        raise Broken("whoever runs the service can change its program")
    until = time.monotonic() + SECONDS
    while True:
        try:
            (dataset,) = client.datasets()
            return str(client.release(dataset, 29876, preset="medium"))
        except ServiceError as error:
            if time.monotonic() > until:
                raise Broken(f"the container does not answer: {error}") from None


def main() -> int:
    """Build, start, ask; print what was released and how large the image is."""
    missing = [one for one in ("buildah",) if shutil.which(one) is None]
    if missing:
        print(f"image: needs {missing[0]}; apt-get install buildah", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="pcor-image-") as name:
        builder = Builder(Path(name))
        try:
            base = os.environ.get("PCOR_BASE", "")
            builder.build(builder.debian() if base == "debian" else base)
            check_image(builder)
            with started(builder) as (container, client):
                print(ask(builder, container, client))
            print(builder("images", "--format", "{{.Name}} {{.Size}}", IMAGE))
        except Broken as broken:
            print(f"image: {broken}", file=sys.stderr)
            return 1
        finally:
            subprocess.run((*builder.words, "rm", "--all"), capture_output=True, check=False)  # noqa: S603
    return 0


if __name__ == "__main__":
    sys.exit(main())
