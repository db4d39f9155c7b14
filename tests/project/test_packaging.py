"""What users install: the wheel holds all of pcor and nothing else, and says what it needs.

The installation in an empty environment takes minutes and a network: `make package` does it.
"""

from __future__ import annotations

import tomllib
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import pcor
from tools.packaging import ROOT, Broken, build, contents, expected_files, run, wheel_problems

# A rule that dropped one of these would break a user's release, ledger or page, but no import.
NEEDED = (
    *("pcor/py.typed", "pcor/releasing/certificate.schema.json"),
    *("pcor/ledger/migrations/env.py", "pcor/service/core/migrations/s001.py"),
    *("pcor/service/templates/base.html", "pcor/service/static/page.js"),
    *("pcor/service/static/htmx.LICENSE.txt", "pcor/error_pages/index.md"),
)


def metadata_of(wheel: Path) -> Message:
    """Return the METADATA of a wheel, as what it is: headers and a description."""
    return message_from_bytes(contents(wheel)[f"pcor-{pcor.__version__}.dist-info/METADATA"])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def declared() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return found["project"]  # type: ignore[no-any-return]


def test_the_wheel_holds_all_of_pcor_and_nothing_else(wheel: Path) -> None:
    assert wheel_problems(contents(wheel), expected_files(ROOT)) == []


def test_the_wheel_needs_no_compiler_and_no_one_version_of_python(wheel: Path) -> None:
    assert wheel.name == f"pcor-{pcor.__version__}-py3-none-any.whl"


def test_the_metadata_is_what_the_project_declares(wheel: Path, declared: dict[str, Any]) -> None:
    found = metadata_of(wheel)
    assert found["Name"] == "pcor"
    assert found["Version"] == declared["version"]
    assert found["Requires-Python"] == declared["requires-python"]
    assert found["License-Expression"] == "Apache-2.0"
    assert found.get_all("Provides-Extra") == sorted(declared["optional-dependencies"])
    assert found["Description-Content-Type"] == "text/markdown"


def test_the_core_requires_exactly_the_declared_packages(
    wheel: Path, declared: dict[str, Any]
) -> None:
    required = map(Requirement, metadata_of(wheel).get_all("Requires-Dist") or [])
    core = {str(one) for one in required if one.marker is None}
    assert core == {str(Requirement(text)) for text in declared["dependencies"]}


def test_every_extra_that_users_can_ask_for_is_tested_in_the_same_versions(
    declared: dict[str, Any],
) -> None:
    extras = declared["optional-dependencies"]
    asked = {text for name, texts in extras.items() if name != "dev" for text in texts}
    assert asked - set(extras["dev"]) == set()


def test_the_command_and_the_detectors_are_announced(wheel: Path, declared: dict[str, Any]) -> None:
    files = contents(wheel)
    text = next(files[name] for name in files if name.endswith("/entry_points.txt")).decode()
    announced = declared["scripts"] | declared["entry-points"]["pcor.detectors"]
    lines = {line.replace(" ", "") for line in text.splitlines() if "=" in line}
    assert lines == {f"{name}={target}" for name, target in announced.items()}


def test_the_oldest_python_has_a_classifier_and_is_the_one_required(
    declared: dict[str, Any],
) -> None:
    prefix = "Programming Language :: Python :: 3."
    minors = sorted(int(c[len(prefix) :]) for c in declared["classifiers"] if c.startswith(prefix))
    assert minors == list(range(minors[0], minors[-1] + 1))
    assert declared["requires-python"] == f">=3.{minors[0]}"


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_file_is_noticed(name: str) -> None:
    assert name in expected_files(ROOT)
    names = {*expected_files(ROOT), "pcor-1.dist-info/licenses/LICENSE"}
    assert wheel_problems(names, expected_files(ROOT)) == []
    problems = wheel_problems(names - {name}, expected_files(ROOT))
    assert problems == [f"{name} is missing from the wheel"]


@pytest.mark.parametrize(
    "name",
    ["pcor/tests/test_a.py", "pcor/__pycache__/a.pyc", "pcor/a.nbc", "tests/a.py", "pcor/left.py"],
)
def test_a_file_too_many_is_noticed(name: str) -> None:
    names = {*expected_files(ROOT), "pcor-1.dist-info/licenses/LICENSE"}
    problems = wheel_problems({*names, name}, expected_files(ROOT))
    assert problems == [f"{name} is in the wheel, not in the tree"]


def test_what_a_run_leaves_behind_is_not_expected_in_a_wheel(tmp_path: Path) -> None:
    code = tmp_path / "src" / "pcor"
    (code / "__pycache__").mkdir(parents=True)
    for name in ("a.py", "py.typed", "__pycache__/a.pyc", "__pycache__/a.nbi", "__pycache__/a.nbc"):
        (code / name).touch()
    assert expected_files(tmp_path) == {"pcor/a.py", "pcor/py.typed"}


def test_a_missing_licence_is_noticed() -> None:
    problems = wheel_problems(expected_files(ROOT), expected_files(ROOT))
    assert problems == ["the licence is missing from the wheel"]


def test_wheels_differ_if_one_byte_differs(wheel: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.whl"
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(other, "w") as target:
        for name in source.namelist():
            changed = b"#" if name == "pcor/errors.py" else b""
            target.writestr(name, source.read(name) + changed)
    assert contents(wheel).keys() == contents(other).keys()
    assert contents(wheel) != contents(other)


def test_a_step_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(Broken, match=r"ended with 3:\nlast words"):
        run("sh", "-c", "echo last words >&2; exit 3", cwd=tmp_path)


def test_the_environment_of_make_demo_writes_letters_and_signs() -> None:
    """The README and the docs go on from there with ``pcor ledger keygen``."""
    core = (ROOT / "Makefile").read_text("utf-8").split("$(VENV)/core:")[1].split("\n\n")[0]
    assert "--editable '.[letter,sign]'" in core
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {"letter", "sign"} <= set(declared["optional-dependencies"])
