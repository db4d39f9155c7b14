"""Guarantees: each says in one place what it promises, and its name is written in one place."""

from __future__ import annotations

import ast
import json
import pickle
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import pcor
from pcor.errors import UnknownName
from pcor.public.guarantee import (
    GUARANTEES,
    OCDP,
    USUAL,
    Guarantee,
    Promise,
    PureDP,
    get_guarantee,
)
from pcor.releasing.certificate import JSON_SCHEMA
from pcor.releasing.terms import terms_of

SOURCE = Path(pcor.__file__).parent

# Where a guarantee's name may be written: where it is declared; what describes certificates to
# programs in other languages; and the program's own help, which is shown before anything is loaded.
ALLOWED = {"public/guarantee.py", "releasing/certificate.schema.json", "cli/commands.py"}

_NAME = re.compile(r"(?<![\w.])(ocdp|dp)(?!\w)")


def literals(path: Path) -> Iterator[str]:
    """Yield the texts of a file: of a module its literals without the documentation."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield text
        return
    nodes = list(ast.walk(ast.parse(text)))
    documentation = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and id(node) not in documentation:
            yield str(node.value)


def test_the_name_of_a_guarantee_is_written_in_its_module_alone() -> None:
    paths = [p for p in SOURCE.rglob("*") if p.suffix in (".py", ".html", ".json")]
    found = {
        str(path.relative_to(SOURCE))
        for path in paths
        if any(_NAME.search(text) for text in literals(path))
    }
    assert found <= ALLOWED
    assert "public/guarantee.py" in found


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ('guarantee == "dp"', True),
        ("""raise ValueError(f"guarantee 'ocdp' of {who}")""", True),
        ('help = "--guarantee dp"', True),
        ('"""Under dp nothing changes."""', False),
        ("spent_dp = PureDP.name", False),
    ],
)
def test_the_scan_sees_names_in_code_only(tmp_path: Path, code: str, seen: bool) -> None:
    (tmp_path / "module.py").write_text(code)
    assert any(_NAME.search(text) for text in literals(tmp_path / "module.py")) == seen


def test_the_certificates_schema_has_the_names_of_all_guarantees() -> None:
    schema = json.loads(JSON_SCHEMA.read_text())["properties"]
    for place in (schema, schema["promise"]["properties"]):
        assert place["guarantee"]["enum"] == list(GUARANTEES)


def test_guarantees_are_values() -> None:
    assert (OCDP(), PureDP()) == (OCDP(), PureDP())
    assert len({OCDP(), PureDP(), OCDP()}) == 2
    assert pickle.loads(pickle.dumps(PureDP())) == PureDP()  # noqa: S301 (our own)
    assert get_guarantee(PureDP()) == get_guarantee("dp") == PureDP()
    assert OCDP() == USUAL
    with pytest.raises(UnknownName, match="unknown guarantee 'pd'; allowed: dp, ocdp"):
        get_guarantee("pd")


@pytest.mark.parametrize("guarantee", GUARANTEES.values(), ids=str)
def test_every_guarantee_has_terms(guarantee: Guarantee) -> None:
    assert terms_of(guarantee) is terms_of(type(guarantee)())


def test_pure_dp_admits_the_detectors_that_it_names() -> None:
    schema = pcor.Schema(metric="pay", attributes={"job": ["a", "b"]}, id="who")
    settings = {"tail": "", "neighbourhood": ":radius=5", "rare_bin": ":edges=0|10"}
    assert set(PureDP.detectors) == set(settings)
    for name in PureDP.detectors:
        rule = name + settings[name]
        assert pcor.plan(schema, 1, detector=rule, guarantee="dp").guarantee == PureDP()


def test_only_the_relaxed_guarantee_leaves_people_out() -> None:
    assert [one.relaxed for one in GUARANTEES.values()] == [True, False]
    assert all(bool(one.left_out) == one.relaxed for one in GUARANTEES.values())
    relaxed, pure = (Promise(Fraction(1), guarantee=one) for one in GUARANTEES.values())
    assert relaxed.claim.startswith("Relaxed guarantee, (epsilon, COE)-OCDP")
    assert pure.claim.startswith("(epsilon)-differential privacy for everyone but the queried")
    assert relaxed.bound in relaxed.claim
    assert pure.bound in pure.claim
