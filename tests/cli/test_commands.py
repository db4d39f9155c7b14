"""What every command does: help, version, the ways in which the real program ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pcor
from tests.helpers.command_line import (
    GRUBBS,
    OUTLIER,
    Files,
    Ran,
    assert_certificate,
    changed,
    pcor_,
)
from tests.helpers.waiting import DEADLINE

# -- what every command does ----------------------------------------------------------------------


COMMANDS = (
    *(["demo"], ["schema", "init"], ["schema", "check"], ["plan"], ["release"], ["contexts"]),
    *(["outliers"], ["tradeoff"], ["doctor"], ["audit"], ["reference"], ["ledger", "budget"]),
    *(
        ["ledger", "allot"],
        ["ledger", "close"],
        ["ledger", "show"],
        ["ledger", "history"],
        ["ledger", "export"],
    ),
    ["ledger", "verify"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_has_an_example_and_nothing_of_this_machine(
    command: list[str],
) -> None:
    ran = pcor_(*command, "--help")
    assert ran.code == 0
    assert ran.err == ""
    assert f"pcor {' '.join(command)}" in ran.out.split("Options:")[0].split("\n", 1)[1]
    assert "Example:" in ran.out
    for private in (str(Path.home()), os.getcwd(), os.environ.get("USER") or str(Path.home())):
        assert private not in ran.out
    assert "--json" in ran.out


@pytest.mark.parametrize("command", [[], ["schema"]])
def test_a_bare_command_shows_its_help(command: list[str]) -> None:
    ran = pcor_(*command)
    assert "Usage: pcor" in ran.out + ran.err
    assert "Commands:" in ran.out + ran.err
    assert "pcor explain usage" not in ran.err


def test_the_help_of_pcor_names_every_command_and_says_which_are_for_the_owner() -> None:
    ran = pcor_("--help")
    assert "Try: pcor demo" in ran.out
    said = " ".join(ran.out.split())
    steps = [said.index(step) for step in ("schema init", "delete the marks", "pcor release")]
    assert steps == sorted(steps)
    for name in ("demo", "schema", "plan", "release", "contexts", "outliers", "doctor"):
        assert f"\n  {name} " in ran.out
    owner = [line.split()[0] for line in ran.out.splitlines() if "OWNER ONLY" in line]
    assert owner == ["contexts", "outliers", "reference", "calibrate", "audit"]


def test_version_prints_the_version() -> None:
    assert pcor_("--version") == Ran(0, f"pcor {pcor.__version__}\n", "")


# -- the real program -----------------------------------------------------------------------------


PROGRAM = Path(sys.executable).with_name("pcor")


def program(*words: object, cwd: Path) -> Ran:
    done = subprocess.run(  # noqa: S603 (our own program)
        [str(PROGRAM), *(str(word) for word in words)],
        capture_output=True,
        cwd=cwd,
        env={key: value for key, value in os.environ.items() if key != "PCOR_DEBUG"},
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def test_the_installed_program_releases_and_prints_one_json_object(files: Files) -> None:
    ran = program("release", *files.request, "--detector", GRUBBS, "--json", cwd=files.folder)
    assert (ran.code, ran.err) == (0, "")
    assert_certificate(ran.json)


def test_the_installed_program_refuses_on_stderr_with_exit_2(files: Files) -> None:
    table = changed("job", 5, "ZZ-CANARY")(files)
    ran = program("release", table, *files.request[1:], "--json", cwd=files.folder)
    assert ran.code == 2
    assert ran.json["kind"] == "domain"
    assert ran.err == f"pcor: {ran.json['error']}\n(more: pcor explain domain)\n"
    assert "ZZ-CANARY" not in ran.out + ran.err


def test_the_installed_program_exits_with_4_where_there_is_no_valid_context(files: Files) -> None:
    ran = program("release", *files.request_for(3), cwd=files.folder)
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith("pcor: there is no context")


# What one machine's environment happens to hold cannot hide here how the program ends.
BUFFERED = {"PATH": os.environ["PATH"]}
ENVIRONMENTS = pytest.mark.parametrize(
    "environment", [BUFFERED, BUFFERED | {"PYTHONUNBUFFERED": "1"}], ids=["buffered", "unbuffered"]
)


def unread(*words: object, environment: dict[str, str]) -> Ran:
    """Run the program for somebody who reads nothing of its result, as ``pcor ... | true`` does."""
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(  # noqa: S603 (our own program)
        [str(PROGRAM), *(str(word) for word in words)],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as running:
        os.close(writing)
        _, err = running.communicate()
    return Ran(running.returncode, "", err)


@ENVIRONMENTS
@pytest.mark.parametrize(
    "words",
    [
        ("contexts", "--record", OUTLIER),
        ("plan", "--record", OUTLIER, "--epsilon", 1),
        ("explain", "usage"),
    ],
    ids=lambda words: words[0],
)
def test_a_reader_that_goes_away_is_no_error(
    files: Files, words: tuple[object, ...], environment: dict[str, str]
) -> None:
    command, *more = words
    table = () if command == "explain" else files.table_and_schema
    ran = unread(command, *table, *more, environment=environment)
    assert (ran.code, ran.err) == (0, "")


@ENVIRONMENTS
@pytest.mark.parametrize("words", [["--version"], ["--help"], ["plan", "--help"]], ids=str)
def test_a_page_of_help_that_nobody_reads_is_no_error(
    words: list[str], environment: dict[str, str]
) -> None:
    assert unread(*words, environment=environment).err == ""


@ENVIRONMENTS
def test_a_refusal_that_nobody_reads_is_still_a_refusal(
    files: Files, environment: dict[str, str]
) -> None:
    refused = unread("release", *files.request_for(3), "--json", environment=environment)
    assert refused.code == 4
    assert refused.err.startswith("pcor: there is no context")
    misspelt = unread("plan", "--nonsense", "--json", environment=environment)
    assert misspelt.code == 2
    assert misspelt.err.endswith("\n(more: pcor explain usage)\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, where no byte fits")
def test_a_result_that_cannot_be_written_is_said_in_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(  # noqa: S603 (our own program)
            [str(PROGRAM), "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=BUFFERED,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "pcor: the result cannot be written: No space left on device\n"
