"""Run the code blocks of a Markdown page as a reader would: from top to bottom, in one folder.

| block | what is done with it |
| --- | --- |
| ``python`` | executed; names live on down the page |
| ``console`` | each ``$ `` line is given to bash; the lines below it are what it prints |
| ``toml``, ``json``, ``yaml``, ``sql`` | parsed; TOML with a ``[metric]`` must be a schema |
| ``sh`` | long commands: each must exist (a make target, a command of pcor, a module); not run |
| ``text`` | what the ``python`` right above prints; anywhere else a picture: nothing |
| any with ``title="path"`` | a file: written; a ``diff`` changes the file that is there |

What is expected is what the command prints, or that with its messages (stderr) before or after it.
In expected output a ``...`` stands for anything, line breaks included, but not for a part of a word
that it stands apart from. "among claims where ..." to the end of its line stands for any context,
of whatever rows, or for all of them, because it is drawn. How words are spaced and
wrapped does not matter. A command without expected lines may print what it likes. ``# exit 3``
after a command says how it ends. A command that ends in `` &`` runs until the page ends. Variables
and folders carry over from one command to the next, and to Python.

A ``text`` block is what Python prints if it follows a ``python`` block at once, or after one line
that says so ("prints, for example:").

``<!-- not run: REASON -->`` before a block exempts it, ``<!-- needs: java -->`` leaves it out where
that is missing.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pcor
from pcor.detectors import registry
from tests.helpers import spark
from tests.helpers.doc_blocks import Block, Command, PageError, agrees, blocks, commands
from tests.helpers.quick_pcor import zygote

ROOT = Path(__file__).parents[2]


LONGEST = 600  # seconds for one command; machines may be busy

REQUIREMENTS: dict[str, Callable[[], bool]] = {
    "openssl": lambda: bool(shutil.which("openssl")),
    "java": lambda: bool(shutil.which("java") and importlib.util.find_spec("pyspark")),
    "PCOR_DATA": lambda: "PCOR_DATA" in os.environ,
}


@contextmanager
def one_server_at_a_time() -> Iterator[None]:
    """Hold a lock that all pages with servers share, because they name the same port."""
    with (Path(tempfile.gettempdir()) / f"pcor-pages-{os.getuid()}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class Output:
    """The two files that a command prints into."""

    printed: Path
    messages: Path

    def texts(self) -> list[str]:
        """Return the texts that a page may show for it; the last one is the fullest."""
        printed, messages = (
            file.read_text(encoding="utf-8", errors="replace").strip()
            for file in (self.printed, self.messages)
        )
        return [printed, f"{printed}\n{messages}".strip(), f"{messages}\n{printed}".strip()]

    def is_as(self, expected: str) -> bool:
        """Tell whether it is what a page expects; nothing expected allows anything."""
        return not expected or any(agrees(expected, text) for text in self.texts())


@dataclass
class Shell:
    """Bash for one page: where it stands and its variables carry over between commands."""

    folder: Path
    state: Path
    variables: dict[str, str] = field(default_factory=dict)
    servers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        programs = (zygote().folder, Path(sys.executable).parent, os.environ.get("PATH", ""))
        self.variables = os.environ | {
            "PATH": os.pathsep.join(map(str, programs)),
            "COLUMNS": "200",
            "no_proxy": "127.0.0.1,localhost",
            "LC_ALL": "C.UTF-8",
            **spark.VARIABLES,
        }

    def run(self, command: Command) -> None:
        """Run one command and compare; raise PageError with all that is needed to see why."""
        output = Output(self.state / f"out-{command.line}", self.state / f"err-{command.line}")
        if command.in_background:
            self.begin(command, output)
            return
        keep = 'trap \'code=$?; pwd > "$PAGE/folder"; env -0 > "$PAGE/variables"; exit $code\' EXIT'
        bash = self.start(f"set -a\n{keep}\n{command.text}\n", output)
        try:
            code = bash.wait(LONGEST)
        except subprocess.TimeoutExpired:
            stop(bash)
            raise PageError(report(command, f"did not end in {LONGEST} s", output)) from None
        self.recall()
        if code != command.code:
            raise PageError(report(command, f"ended with exit code {code}", output))
        if not output.is_as(command.expected):
            raise PageError(report(command, "printed something else", output))

    def begin(self, command: Command, output: Output) -> None:
        """Start a server; wait for what it is said to print."""
        server = self.start(command.text.removesuffix("&"), output)
        self.servers.append(server)
        until = time.monotonic() + LONGEST
        while not output.is_as(command.expected):
            if time.monotonic() > until or server.poll() is not None:
                raise PageError(report(command, "printed something else", output))
            time.sleep(0.05)

    def start(self, script: str, output: Output) -> subprocess.Popen[bytes]:
        """Start bash in a group of its own, so that all of it can be stopped."""
        with output.printed.open("wb") as printed, output.messages.open("wb") as messages:
            return subprocess.Popen(  # noqa: S603 (our own pages)
                ["bash", "-c", script],  # noqa: S607
                cwd=self.folder,
                env=self.variables | {"PAGE": str(self.state)},
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=messages,
                start_new_session=True,
            )

    def recall(self) -> None:
        """Take over the folder and the variables that the command left."""
        self.folder = Path((self.state / "folder").read_text(encoding="utf-8").removesuffix("\n"))
        pairs = (self.state / "variables").read_text(encoding="utf-8").split("\0")
        found = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        self.variables = {k: v for k, v in found.items() if k not in ("PAGE", "_", "SHLVL")}

    def close(self) -> None:
        """Stop the servers that still run."""
        for server in self.servers:
            stop(server)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it started; politely at first."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            process.wait(15)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def report(command: Command, what: str, output: Output) -> str:
    """Say which command did what, what was expected, and what came."""
    expected = command.expected or "(anything)"
    return (
        f"line {command.line}: {what}\n$ {command.text}\n"
        f"--- expected (exit code {command.code})\n{expected}\n--- got\n{output.texts()[-1]}"
    )


@dataclass
class Reader:
    """Somebody who follows one page word by word."""

    page: Path
    shell: Shell
    names: types.ModuleType
    printed: dict[int, str] = field(default_factory=dict)  # by Python, by the line of the block

    def follow(self, block: Block) -> None:
        """Do what a block asks for; raise PageError where it does not work."""
        known: dict[str, Callable[[Block], None]] = {
            "python": self.execute,
            "console": self.type_in,
            "toml": self.parse,
            "json": self.parse,
            "yaml": self.parse,
            "sql": self.parse,
            "sh": named_things_exist,
            "text": self.compare,
        }
        if block.title is not None:
            self.write(block, self.shell.folder / block.title)
            return
        if block.language not in known:
            language = block.language or "no language"
            raise PageError(f"line {block.line}: {language}: known are {', '.join(known)}")
        known[block.language](block)

    def write(self, block: Block, path: Path) -> None:
        """Write the file that a block is, or change one by its lines with ``+`` and ``-``."""
        text = block.text
        if block.language == "diff":
            lines = block.text.splitlines(keepends=True)
            before = "".join(line[1:] or "\n" for line in lines if line[0] != "+")
            after = "".join(line[1:] or "\n" for line in lines if line[0] != "-")
            now = path.read_text(encoding="utf-8")
            if f"\n{now}".count(f"\n{before}") != 1:
                raise PageError(f"line {block.line}: {block.title} has not these lines, once")
            text = f"\n{now}".replace(f"\n{before}", f"\n{after}")[1:]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def execute(self, block: Block) -> None:
        """Execute Python in the page's namespace, the shell's folder and its variables."""
        before = Path.cwd(), dict(os.environ)
        source = "\n" * block.line + block.text  # so that line numbers are those of the page
        printed = io.StringIO()
        os.chdir(self.shell.folder)
        os.environ.update(self.shell.variables)
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(source, str(self.page), "exec"), vars(self.names))  # noqa: S102
        except Exception:
            told = traceback.format_exc(limit=-4)
            raise PageError(f"line {block.line}: this Python fails\n{told}") from None
        finally:
            os.chdir(before[0])
            os.environ.clear()
            os.environ.update(before[1])
        self.printed[block.line] = printed.getvalue()

    def compare(self, block: Block) -> None:
        """Compare a text with what the Python above it printed, if it is shown as that and ran."""
        printed = self.printed.get(block.output_of or 0)
        if printed is not None and not agrees(block.text, printed):
            raise PageError(
                f"line {block.line}: the Python above prints something else\n"
                f"--- expected\n{block.text}--- got\n{printed}"
            )

    def type_in(self, block: Block) -> None:
        for command in commands(block):
            self.shell.run(command)

    def parse(self, block: Block) -> None:
        try:
            PARSERS[block.language](block.text)
        except Exception as wrong:
            raise PageError(f"line {block.line}: {block.language}: {wrong}") from None


def parse_toml(text: str) -> None:
    """Parse TOML; with a metric it is a schema file, and must load as one."""
    declared = tomllib.loads(text)
    if "metric" in declared:
        pcor.Schema.from_dict(declared)


def parse_yaml(text: str) -> None:
    import yaml  # type: ignore[import-untyped,unused-ignore]

    list(yaml.safe_load_all(text))


def parse_sql(text: str) -> None:
    import duckdb

    duckdb.extract_statements(text)


PARSERS: dict[str, Callable[[str], object]] = {
    "toml": parse_toml,
    "json": json.loads,
    "yaml": parse_yaml,
    "sql": parse_sql,
}


def named_things_exist(block: Block) -> None:
    """Check the commands of an ``sh`` block without running them."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        words = [word for word in line.split("#")[0].split() if "=" not in word]
        if not words:
            continue
        if words[0] == "make":
            missing = [word for word in words[1:] if word not in targets]
        elif words[0] == "pcor":
            missing = unknown_words(words[1:])
        elif words[:2] == ["python", "-m"]:
            missing = [] if importlib.util.find_spec(words[2]) else [words[2]]
        elif words[:2] == ["pip", "install"]:
            missing = [word for word in words[2:] if not can_be_installed(word.strip("'"))]
        elif words[0] == "source":  # of the shell
            missing = []
        else:
            missing = words[:1]
        if missing:
            raise PageError(f"line {number}: sh: there is no {missing[0]}: {line}")


def can_be_installed(required: str) -> bool:
    """Tell whether this is a package of the project, or its folder, with extras that it has."""
    found = re.fullmatch(r"(pcor|\.)(?:\[([\w,]+)\])?", required)
    if found is None:
        return required == "pcor-client"
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {*(found[2] or "").split(",")} - {""} <= {*declared["optional-dependencies"]}


def unknown_words(words: list[str]) -> list[str]:
    """Return the commands and options of pcor, in what follows its name, that it does not have."""
    import typer

    from pcor.cli import app

    command: Any = typer.main.get_command(app)
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        name, *words = words
        if name not in command.commands:
            return [name]
        command = command.commands[name]
        command = command.load() if hasattr(command, "load") else command  # imported when used
    options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    return [word for word in words if word.startswith("--") and word not in options]


def run_page(page: Path, folder: Path) -> list[str]:
    """Follow a page in an empty folder; return what had to be left out, and why.

    Raises:
        PageError: With the page, the line, and what was expected and came.
    """
    __tracebackhide__ = True  # the error says it all
    work, state = folder / "work", folder / "state"
    work.mkdir()
    state.mkdir()
    names = types.ModuleType("page")
    vars(names)["pcor"] = pcor
    reader = Reader(page, Shell(work, state), names)
    left_out = []
    with ExitStack() as stack:
        sys.modules["page"] = names  # classes of a page can be pickled and looked up
        stack.callback(sys.modules.pop, "page")
        stack.enter_context(patch.dict(registry._registered))  # what it registers goes with it
        try:
            found = list(blocks(page.read_text(encoding="utf-8")))
            console = (block for block in found if block.language == "console")
            if any(c.in_background for block in console for c in commands(block)):
                stack.enter_context(one_server_at_a_time())
            # What is entered last ends first: the lock is held until the servers are gone.
            stack.callback(reader.shell.close)
            for block in found:
                if block.needs is not None and not REQUIREMENTS[block.needs]():
                    left_out.append(f"line {block.line} needs {block.needs}, which is not here")
                elif block.not_run is None:
                    reader.follow(block)
        except PageError as wrong:
            raise PageError(f"{page.name}, {wrong}") from None
    return left_out
