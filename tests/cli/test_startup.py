"""Start-up: what is not imported, names that are found late, completion, and an early Ctrl-C.

Times belong to the machine, so none is tested; ``python -m bench.startup`` measures them. What a
short start needs is that the heavy packages stay out, and that is the same everywhere.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest
import typer
from typer.testing import CliRunner

import pcor
from pcor.cli.commands import COMMANDS, Commands, LazyCommand, app
from tests.helpers.waiting import DEADLINE

PROGRAM = Path(sys.executable).with_name("pcor")

# Each of these takes as long to import as all that is left, or longer.
HEAVY = {
    *("scipy", "numba", "pandas", "polars", "duckdb", "opendp", "sqlalchemy", "alembic", "sklearn"),
    *("altair", "fastapi", "uvicorn", "rich", "pyarrow.dataset"),
}
ROWS = {"numpy", "pyarrow", "narwhals"}  # needed for any row, but not for a page of help

LOADED = "\nimport sys; print('LOADED', *sys.modules)"


def python(code: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 (our own code)
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
        env={**os.environ, **env},
    )


def loaded(code: str) -> set[str]:
    """Return the modules that a new interpreter has loaded after the code."""
    ran = python(code + LOADED)
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.rpartition("LOADED ")[2].split())


def test_importing_pcor_imports_no_other_package() -> None:
    found = loaded("import pcor")
    assert found & (HEAVY | ROWS) == set()
    assert {name for name in found if name.startswith("pcor")} == {"pcor"}


def test_what_a_release_is_asked_with_needs_nothing_heavy() -> None:
    """Numba and the private draw come in when a draw needs them, scipy when a detector does."""
    found = loaded("import pcor; pcor.release, pcor.plan, pcor.Table, pcor.Schema, pcor.audit")
    assert found & HEAVY == set()


def test_a_client_and_a_plan_need_no_other_package() -> None:
    """They are what ``pcor-client`` is made of."""
    code = "from pcor import Client, Schema, plan\n"
    code += "str(plan(Schema(metric='pay', attributes={'job': ['cook']}), 1))"
    assert loaded(code) & (HEAVY | ROWS) == set()


RUN = """
import sys
sys.argv = ["pcor", *{words}]
from pcor.cli import run
try:
    run()
except SystemExit:
    pass
"""


@pytest.mark.parametrize("words", [[], ["--help"], ["--version"]], ids=str)
def test_the_program_itself_answers_without_the_library(words: list[str]) -> None:
    found = loaded(RUN.format(words=words))
    assert found & (HEAVY | ROWS) == set()
    ours = {name for name in found if name.startswith("pcor")}
    version = {"pcor.support", "pcor.support.version"} if "--version" in words else set()
    assert ours == {"pcor", "pcor.cli", "pcor.cli.commands", "pcor.cli.interrupts"} | version


def helps(names: Iterable[str]) -> str:
    """Return code that asks commands for their help."""
    asked = (
        f"assert CliRunner().invoke(app, [{name!r}, '--help']).exit_code == 0" for name in names
    )
    return "\n".join(["from typer.testing import CliRunner", "from pcor.cli import app", *asked])


def test_the_help_of_every_command_needs_nothing_heavy() -> None:
    assert loaded(helps(COMMANDS)) & HEAVY == set()


def test_commands_that_read_no_table_show_their_help_without_what_rows_need() -> None:
    assert loaded(helps(["serve", "ledger", "experiment", "doctor", "explain"])) & ROWS == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_in_the_list_of_commands_is_the_first_sentence_of_its_own_help(name: str) -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, Commands)
    later = group.commands[name]
    assert isinstance(later, LazyCommand)
    assert later.get_short_help_str(1000) == later.load().get_short_help_str(1000)


@pytest.mark.parametrize("words", [(), ("schema",), ("ledger",)], ids=str)
def test_every_line_in_a_list_of_commands_fits_a_terminal(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80"}).stdout
    listed = shown.partition("Commands:\n")[2]
    assert listed
    assert "..." not in listed


# -- names that are found late ---------------------------------------------------------------------

ORDERS = [
    "import pcor.releasing.run",
    "from pcor.releasing.run import draw",
    "import pcor.audit",
    "from pcor import release; import pcor.releasing.run",
    "import pcor; pcor.Ledger",
    "from pcor import *",
]


@pytest.mark.parametrize("first", ORDERS)
def test_pcor_release_is_the_function_whatever_was_imported_first(first: str) -> None:
    ran = python(
        f"{first}\nimport sys, pcor\nfrom pcor import release\n"
        "assert pcor.release is release is sys.modules['pcor.releasing.run'].release\n"
        "assert callable(release)"
    )
    assert ran.stderr == ""


def test_only_these_four_names_are_modules() -> None:
    modules = {name for name in pcor.__all__ if isinstance(getattr(pcor, name), ModuleType)}
    assert modules == {"audit", "demo", "errors", "testing"}


def test_the_names_of_the_package_are_the_same_for_python_and_for_type_checkers() -> None:
    tree = ast.parse(Path(pcor.__file__).read_text(encoding="utf-8"))
    (checked,) = (
        node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
    )
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    found = {name: f"pcor.{module}" for name, module in pcor._MODULE_OF.items()}
    assert seen == {**found, **dict.fromkeys(("audit", "demo", "errors", "testing"), "pcor")}
    assert sorted(seen) == sorted(pcor.__all__)


def test_a_star_import_brings_every_name() -> None:
    names: dict[str, object] = {}
    exec("from pcor import *", names)  # noqa: S102 (a star import is for a module's top)
    assert set(pcor.__all__) <= set(names)


def test_dir_lists_names_before_they_are_asked_for() -> None:
    found = python("import pcor; print(*dir(pcor))").stdout.split()
    assert set(pcor.__all__) <= set(found)


def test_a_module_of_the_package_is_found_by_its_name() -> None:
    assert python("import pcor; print(pcor.search.SEARCHES['direct'])").returncode == 0


def test_the_version_is_that_of_the_installed_package() -> None:
    assert pcor.__version__ == version("pcor")


@pytest.mark.parametrize("name", ["Relase", "_hidden", "__wrapped__"])
def test_a_name_that_is_not_there_is_refused_as_python_does(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'pcor' has no attribute '{name}'"):
        getattr(pcor, name)
    with pytest.raises(ImportError, match=f"cannot import name '{name}'"):
        exec(f"from pcor import {name}")  # noqa: S102


def test_a_package_that_a_module_misses_is_named_and_not_hidden() -> None:
    ran = python("import sys, pcor; sys.modules['sqlalchemy'] = None; pcor.ledger")
    assert "ModuleNotFoundError" in ran.stderr
    assert "sqlalchemy" in ran.stderr


# -- completion ------------------------------------------------------------------------------------


def completed(line: str) -> list[str]:
    """Return what bash would be offered at the end of a line."""
    words = line.split(" ")
    asked = {"_PCOR_COMPLETE": "complete_bash", "COMP_WORDS": line}
    ran = CliRunner().invoke(
        app, [], prog_name="pcor", env={**asked, "COMP_CWORD": str(len(words) - 1)}
    )
    assert (ran.exit_code, ran.stderr) == (0, "")
    return ran.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("pcor rel", ["release"]),
        ("pcor ", list(COMMANDS)),
        ("pcor schema ", ["init", "check"]),
        ("pcor release --de", ["--detector", "--delta", "--decimal"]),
        ("pcor release --search wi", ["widest_first"]),
        ("pcor plan --detector l", ["lof"]),
    ],
)
def test_the_shell_is_offered_what_can_come_next(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


def test_completing_a_command_s_name_imports_no_command() -> None:
    code = (
        "import os; os.environ.update(_PCOR_COMPLETE='complete_bash', COMP_WORDS='pcor ',"
        "COMP_CWORD='1')"
    )
    found = loaded(code + RUN.format(words=[]))
    assert found & (HEAVY | ROWS) == set()
    assert "pcor.cli.releases" not in found


BASH = shutil.which("bash")


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_bash_completes_with_the_script_that_the_program_shows() -> None:
    shown = subprocess.run(  # noqa: S603 (our own program)
        [PROGRAM],
        env={**os.environ, "_PCOR_COMPLETE": "source_bash"},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=True,
    ).stdout
    script = f"{shown}\nCOMP_WORDS=(pcor rel); COMP_CWORD=1\n_pcor_completion pcor\n"
    ran = subprocess.run(  # noqa: S603 (our own script)
        [str(BASH), "--norc", "-c", script + 'echo "${COMPREPLY[@]}"'],
        env={**os.environ, "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=True,
    )
    assert ran.stdout == "release\n"


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_completion_can_be_installed(tmp_path: Path) -> None:
    """For the shell that it is called from, whichever shell the tests are called from."""
    ran = subprocess.run(  # noqa: S603 (our own program)
        [str(BASH), "--norc", "-c", f"'{PROGRAM}' --install-completion; exit $?"],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=True,
    )
    assert "bash completion installed" in ran.stdout
    assert "_pcor_completion" in (tmp_path / ".bash_completions" / "pcor.sh").read_text()


# -- Ctrl-C ----------------------------------------------------------------------------------------

# Sends the signal that Ctrl-C sends, at the moment when a module is about to be imported.
INTERRUPTED = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv[1:] = {words!r}
from pcor.cli import run
run()
"""


@pytest.mark.parametrize(
    ("module", "words", "said"),
    [
        ("pcor.cli.interrupts", ["demo"], ""),
        ("typer", ["demo"], "pcor: interrupted; nothing was begun\n"),
        ("pcor.cli.demo", ["demo"], "pcor: interrupted; nothing was begun\n"),
        ("pcor.cli.releases", ["release", "--help"], "pcor: interrupted; nothing was begun\n"),
        (
            "sqlalchemy",
            ["ledger", "show", "no.db"],
            "pcor: interrupted; no file was left half-written\n",
        ),
    ],
)
def test_an_interrupt_at_the_start_ends_the_program_without_a_traceback(
    module: str, words: list[str], said: str
) -> None:
    ran = python(INTERRUPTED.format(module=module, words=words))
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", said)


def test_an_interrupt_inside_a_callback_ends_the_program_too() -> None:
    """Python would print what is raised there and go on."""
    code = INTERRUPTED.format(module="typer", words=["demo"]).replace(
        "os.kill(os.getpid(), signal.SIGINT)",
        "import weakref; it = Interrupt(); ref = weakref.ref(it, lambda _: "
        "os.kill(os.getpid(), signal.SIGINT)); del it",
    )
    ran = python(code)
    assert (ran.returncode, ran.stderr) == (130, "pcor: interrupted; nothing was begun\n")


def test_an_interrupt_that_the_caller_ignores_stays_ignored() -> None:
    """As for a program that a script has put into the background."""
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    ran = python(code + INTERRUPTED.format(module="typer", words=["--version"]))
    assert (ran.returncode, ran.stdout) == (0, f"pcor {version('pcor')}\n")
