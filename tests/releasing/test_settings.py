"""Settings: one value, one plan for each release, one place for each option."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner

import pcor
from pcor.cli import app
from pcor.cli.setting_flags import NO_SETTINGS, GivenSettings, with_settings
from pcor.errors import ParameterError
from pcor.public.guarantee import OCDP, PureDP
from pcor.releasing.options import Option
from pcor.releasing.plan import Plan
from pcor.releasing.request import Request
from pcor.releasing.settings import Settings
from pcor.search import SEARCHES
from pcor.service.api.models import DatasetBody, settings_fields
from pcor.service.page.html import fragment
from pcor.service.page.registration import EMPTY, body_of, setting_fields
from tests.helpers.service_world import ORDINARY, OUTLIER, SCHEMA, columns, world

SOURCE = Path(pcor.__file__).parent
GRUBBS = "grubbs:min_population=5"
NAMED = pcor.Schema(
    metric="pay", attributes={"job": ["clerk", "cook"], "city": ["Rome", "Oslo"]}, id="who"
)

FIELDS = [field.name for field in dataclasses.fields(Settings)]


# -- the value -------------------------------------------------------------------------------------


def test_the_functions_take_the_settings_by_name_with_the_same_defaults() -> None:
    declared = {field.name: field.default for field in dataclasses.fields(Settings)}
    for function in (pcor.plan, pcor.release):
        taken = inspect.signature(function).parameters
        assert {name: taken[name].default for name in declared} == declared


def test_release_and_plan_document_every_setting_once() -> None:
    arguments = inspect.getdoc(pcor.release) or ""
    assert [name for name in FIELDS if f"\n    {name}: " not in arguments] == []


REQUESTS: list[dict[str, Any]] = [
    {},
    {"search": "auto", "samples": 20},
    {"search": "depth_first", "samples": 5, "delta": "1e-6"},
    {"utility": "overlap", "start": pcor.Context(NAMED, {"job": ["cook"]})},
    {"limit": 100},
    {"detector": "tail", "guarantee": "dp"},
    {"detector": "tail", "guarantee": pcor.PureDP(), "steepness": 7},
    {"accounting": "paper", "selection": "exponential"},
]


@pytest.mark.parametrize("options", REQUESTS, ids=lambda options: ",".join(options) or "usual")
def test_the_settings_of_a_plan_give_the_same_plan_again(options: dict[str, Any]) -> None:
    planned = pcor.plan(NAMED, "0.2", **options)
    assert planned.settings.plan(NAMED, "0.2") == planned
    assert planned == Settings(**options).plan(NAMED, "0.2")


def test_settings_are_given_in_one_value_or_by_name_and_not_both() -> None:
    chosen = Settings(detector=GRUBBS, search="direct")
    table = pcor.Table(pa.table(columns()), SCHEMA)
    assert pcor.plan(SCHEMA, 1, settings=chosen) == pcor.plan(SCHEMA, 1, **vars(chosen))
    assert pcor.release(table, OUTLIER, 1, settings=chosen).plan.search == pcor.Direct()
    assert pcor.plan_many(SCHEMA, [1], 1, settings=chosen).each == chosen.plan(SCHEMA, 1)
    with pytest.raises(ParameterError, match="and not both"):
        pcor.release(table, OUTLIER, 1, search="direct", settings=chosen)


def test_settings_are_read_back_from_a_registration() -> None:
    given = Settings(detector=GRUBBS, guarantee="ocdp", delta=1e-6, limit=9)
    assert Settings.from_json(json.loads(json.dumps(given.to_json()))) == given
    # A registration may be older than an option.
    older = Settings.from_json({"detector": GRUBBS})
    assert older == Settings(detector=GRUBBS, show_metric=False)


def test_an_option_of_a_newer_version_is_refused_by_its_name() -> None:
    with pytest.raises(ParameterError, match="'modesty' is no option"):
        Settings.from_json({"modesty": 1})


def test_a_guarantee_may_be_given_as_an_object() -> None:
    by_name = pcor.plan(NAMED, 1, detector="tail", guarantee="dp")
    assert by_name == pcor.plan(NAMED, 1, detector="tail", guarantee=PureDP())
    assert (by_name.guarantee, pcor.plan(NAMED, 1).guarantee) == (PureDP(), OCDP())


# -- one release makes one plan --------------------------------------------------------------------


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the plans that are made, by either way to make one."""
    made: Counter[str] = Counter()
    plan, init = Settings.plan, Plan.__init__

    def counted_plan(self: Settings, schema: pcor.Schema, epsilon: object) -> Plan:
        made["asked"] += 1
        return plan(self, schema, epsilon)

    def counted_init(self: Plan, *parts: Any, **named: Any) -> None:
        made["made"] += 1
        init(self, *parts, **named)

    monkeypatch.setattr(Settings, "plan", counted_plan)
    monkeypatch.setattr(Plan, "__init__", counted_init)
    return made


ONCE = {"asked": 1, "made": 1}


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Return how the small table is named on the command line."""
    people = columns()
    rows = zip(*people.values(), strict=True)
    lines = [",".join(people), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "people.toml").write_text(SCHEMA.to_toml())
    ledger = pcor.Ledger(tmp_path / "books.db")
    ledger.set_budget(SCHEMA.name, 10)
    ledger.close()
    return [str(tmp_path / "people.csv"), "--schema", str(tmp_path / "people.toml")]


def run(*words: object) -> int:
    """Release at the command line; return the exit code."""
    asked = ["release", *words, "--epsilon", 1, "--detector", GRUBBS]
    return CliRunner().invoke(app, [str(word) for word in asked], catch_exceptions=False).exit_code


def test_a_release_of_the_library_is_planned_once(planned: Counter[str]) -> None:
    pcor.release(pcor.Table(pa.table(columns()), SCHEMA), OUTLIER, 1, GRUBBS, budget=pcor.Budget(1))
    assert planned == ONCE


def test_a_release_from_a_ledger_is_planned_once(planned: Counter[str], tmp_path: Path) -> None:
    ledger = pcor.Ledger(tmp_path / "books.db")
    ledger.set_budget("people", 1)
    ledger.release(
        pcor.Table(pa.table(columns()), SCHEMA), OUTLIER, 1, dataset="people", detector=GRUBBS
    )
    assert planned == ONCE


def test_a_release_for_many_records_is_planned_once(planned: Counter[str]) -> None:
    pcor.release_many(pcor.Table(pa.table(columns()), SCHEMA), [OUTLIER, 1, 2], 1, detector=GRUBBS)
    assert planned == ONCE


def test_a_release_of_the_command_line_with_a_ledger_is_planned_once(
    planned: Counter[str], files: list[str], tmp_path: Path
) -> None:
    assert run(*files, "--record", OUTLIER, "--ledger", tmp_path / "books.db") == 0
    assert planned == ONCE


def test_a_list_of_the_command_line_with_a_ledger_is_planned_once(
    planned: Counter[str], files: list[str], tmp_path: Path
) -> None:
    (tmp_path / "list.txt").write_text(f"{OUTLIER}\n{ORDINARY}\n")
    listed = ("--records", tmp_path / "list.txt", "--out", tmp_path / "all.jsonl")
    assert run(*files, *listed, "--ledger", tmp_path / "books.db") == 4  # one is an outlier nowhere
    assert planned == ONCE


def test_a_release_of_the_service_is_planned_once(planned: Counter[str], tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        planned.clear()  # what the owner registered was tried out
        done = place.wait(place.ask().json()["id"])
        assert done["release"]["record"] == OUTLIER
        assert planned == ONCE
        place.wait(place.ask(draw=2).json()["id"])
        assert planned == ONCE  # nor is it for another draw at the same cost


# -- an option is declared once --------------------------------------------------------------------

# A construct that names so many of the settings hands them on by name.
LOOSE = 5
# Words that mean nothing else here: each spelling counts, as a keyword, an attribute, a literal or
# a flag. The others are also words of the field: a context has a start, a ledger a limit, a plan
# and a validity have a detector; they count only where settings are handed on.
OWN_WORDS = ("steepness",)
MOST = 5


def names_in(node: ast.AST) -> Iterator[str]:
    """Yield what one construct names: a call, a signature, a display, the body of a class."""
    if isinstance(node, ast.Call):
        yield from (keyword.arg or "" for keyword in node.keywords)
    elif isinstance(node, ast.FunctionDef):
        yield from (one.arg for one in (*node.args.args, *node.args.kwonlyargs))
    elif isinstance(node, ast.Dict):
        yield from (str(key.value) for key in node.keys if isinstance(key, ast.Constant))
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        yield from (str(one.value) for one in node.elts if isinstance(one, ast.Constant))
    elif isinstance(node, ast.ClassDef):
        yield from (
            one.target.id
            for one in node.body
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        )


def is_spelled(word: str, node: ast.AST) -> bool:
    """Whether a node spells a word that means nothing else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value == word or f"--{word}" in node.value
    return (isinstance(node, ast.keyword) and node.arg == word) or (
        isinstance(node, ast.Attribute) and node.attr == word
    )


def spelled(text: str, suffix: str) -> set[str]:
    """Return the settings that a file spells."""
    if suffix != ".py":
        found = {name for name in FIELDS if re.search(rf"[\"'.]{name}\b", text)}
        return found if len(found) >= LOOSE else found & set(OWN_WORDS)
    nodes = list(ast.walk(ast.parse(text)))
    together = [set(names_in(node)) & set(FIELDS) for node in nodes]
    loose = set().union(*(names for names in together if len(names) >= LOOSE))
    return loose | {word for word in OWN_WORDS if any(is_spelled(word, node) for node in nodes)}


def test_no_setting_is_spelled_in_more_than_five_files() -> None:
    files: dict[str, set[str]] = {name: set() for name in FIELDS}
    for path in sorted(SOURCE.rglob("*")):
        if path.suffix in (".py", ".html", ".json"):
            for name in spelled(path.read_text(encoding="utf-8"), path.suffix):
                files[name].add(str(path.relative_to(SOURCE)))
    assert {name: found for name, found in files.items() if len(found) > MOST} == {}
    assert all("releasing/settings.py" in found for found in files.values())


def test_the_count_sees_settings_that_are_handed_on_by_name() -> None:
    loose = ", ".join(f"{name}={name}" for name in FIELDS)
    assert spelled(f"plan(schema, {loose})", ".py") == set(FIELDS)
    assert spelled(f"OPTIONS = {tuple(FIELDS)}", ".py") == set(FIELDS)
    assert spelled("plan.steepness, plan.detector", ".py") == {"steepness"}
    assert spelled("{{ fields.steepness }} {{ fields.detector }}", ".html") == {"steepness"}


@pytest.fixture
def modesty(monkeypatch: pytest.MonkeyPatch) -> Option:
    """Declare one more option, as a later version will, and nothing else."""
    option = Option(
        "How short.", kind="whole", most=9, label="Modesty", describe=lambda n: n, later=True
    )
    more = dataclasses.make_dataclass(
        "More", [("modesty", int, dataclasses.field(default=0, metadata={"option": option}))]
    )
    known = (*dataclasses.fields(Settings), *dataclasses.fields(more))
    monkeypatch.setattr("pcor.releasing.settings.fields", lambda _: known)
    monkeypatch.setattr(Settings, "modesty", 0, raising=False)
    return option


def offered(command: Callable[..., None]) -> dict[str, Any]:
    return {name: hint.__metadata__[0] for name, hint in hints(command).items()}


def hints(command: Callable[..., None]) -> dict[str, Any]:
    every = get_type_hints(command, include_extras=True)
    return {name: hint for name, hint in every.items() if hasattr(hint, "__metadata__")}


def test_a_declared_option_has_a_flag_a_field_and_a_place_in_the_body(modesty: Option) -> None:
    @with_settings("release")
    def command(given: GivenSettings = NO_SETTINGS) -> None:
        """Do nothing."""

    flag = offered(command)["modesty"]
    assert (flag.default, flag.help) == ("--modesty", modesty.help)
    body = dict(settings_fields())
    assert body["modesty"][1] == 0
    assert [option.label for _, _, option, _ in setting_fields(first=False)][-1] == modesty.label


@pytest.mark.usefixtures("modesty")
def test_a_declared_option_is_in_certificates_and_changes_no_earlier_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def request() -> Request:
        return Request.of(pcor.plan(NAMED, 1), 17, dataset="people", analyst="ana")

    assert pcor.plan(NAMED, 1).to_dict()["modesty"] == 0
    assert "modesty" not in request().to_dict()
    usual = request().fingerprint
    monkeypatch.setattr(Settings, "modesty", 2)
    assert request().to_dict()["modesty"] == 2
    assert request().fingerprint != usual


def test_every_door_offers_what_is_declared_for_it() -> None:
    group = typer.main.get_command(app)
    context = typer.Context(group)
    for name, interface in (("release", "release"), ("plan", "release"), ("audit", "audit")):
        later: Any = group.get_command(context, name)  # type: ignore[attr-defined]
        flags = {flag for one in later.load().params for flag in one.opts}
        offered = [name for name, _, _ in Settings.options(interface)]  # type: ignore[arg-type]
        assert {f"--{name.replace('_', '-')}" for name in offered} <= flags
    served = {name for name, _, _ in Settings.options("service")}
    assert served == set(FIELDS) - {"start"}
    assert served <= set(DatasetBody.model_fields)
    assert served <= set(EMPTY)


def test_a_switch_is_one_of_two_words_in_the_form() -> None:
    offered = {name: choices for name, _, _, choices in setting_fields(first=False)}
    assert offered["show_metric"] == ("no", "yes")
    assert EMPTY["show_metric"] == "no"
    for word, given in (("yes", True), ("no", False), ("", False)):
        form = EMPTY | {"name": "n", "source": "s", "records": "any", "show_metric": word}
        assert body_of(form | {"schema": SCHEMA.to_toml()})[1]["show_metric"] is given


def test_a_new_search_shows_in_the_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SEARCHES, "spiral", pcor.Direct)
    form = fragment(
        "register.html",
        fields=EMPTY,
        settings=setting_fields(first=True),
        more_settings=setting_fields(first=False),
        **{"guarantees": {}, "known": False, "said": "", "following": None},
        **{"key": None, "token": "", "menu": (), "path": "/register"},
        **{"found": None, "files": ()},
    )
    assert '<option value="spiral">' in form


def test_the_certificates_schema_has_every_setting_that_is_described() -> None:
    schema = json.loads((SOURCE / "releasing" / "certificate.schema.json").read_text())
    described = [name for name, _, option in Settings.options() if option.describe is not None]
    assert set(described) <= set(schema["properties"])
