"""The trade-off: its numbers, how it is printed, and the files it leaves."""

from __future__ import annotations

import json
import math
import random
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from typer.testing import CliRunner

import pcor
from pcor.audit import tradeoff as module
from pcor.audit.charts import UTILITY, VALIDITY, tradeoff_chart
from pcor.audit.exact import exact_distribution, selection_chances
from pcor.audit.tradeoff import (
    LINES,
    PURE_DP,
    Point,
    ScoredContexts,
    TradeoffLine,
    expected,
    random_outliers,
    tradeoff,
)
from pcor.cli import app
from pcor.cli.output import OWNER_ONLY
from pcor.errors import NoValidContext, ParameterError, TooLarge, WriteError
from pcor.support.pictures import save_picture

POINT = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        **{name: {"type": "string"} for name in ("line", "search", "detector")},
        **{n: {"type": "number", "minimum": 0, "maximum": 1} for n in ("utility", "validity")},
        **{n: {"type": "number", "minimum": 0, "maximum": 1} for n in ("low", "high")},
        "epsilon": {"type": "number", "exclusiveMinimum": 0},
        "delta": {"type": "number", "minimum": 0},
        "guarantee": {"enum": ["ocdp", "dp"]},
        "accounting": {"enum": ["tight", "paper"]},
        "records": {"type": "integer", "minimum": 1},
    },
}
POINT["required"] = list(POINT["properties"])  # type: ignore[call-overload]
REPORT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["private", "dataset", "seed", "interval", "points"],
    "properties": {
        "owner_only": {"const": OWNER_ONLY},
        "private": {"const": False},
        "dataset": {"type": "string"},
        "seed": {"type": "integer"},
        "interval": {"type": "string"},
        "points": {"type": "array", "items": POINT, "minItems": 1},
    },
}
GRUBBS = "grubbs:min_population=5"


def people(rows: int = 300) -> pa.Table:
    """Return made-up people, a few of whom earn far more than all others."""
    numbers = random.Random(3)  # noqa: S311 (test data)
    pay = [round(numbers.gauss(100, 5), 3) for _ in range(rows)]
    for place in range(0, rows, 50):
        pay[place] = 400.0 + place
    return pa.table(
        {
            "key": list(range(rows)),
            "job": [numbers.choice(["clerk", "cook", "pilot"]) for _ in range(rows)],
            "city": [numbers.choice(["Rome", "Oslo", "Bern"]) for _ in range(rows)],
            "pay": pay,
        }
    )


def schema(**more: list[str]) -> pcor.Schema:
    domains = {"job": ["clerk", "cook", "pilot"], "city": ["Rome", "Oslo", "Bern"], **more}
    return pcor.Schema(metric="pay", attributes=domains, id="key", name="pay")


@pytest.fixture(scope="module")
def table() -> pcor.Table:
    return pcor.Table(people(), schema())


@pytest.fixture
def files(tmp_path: Path) -> tuple[object, ...]:
    csv.write_csv(people(), tmp_path / "pay.csv")
    (tmp_path / "pay.toml").write_text(schema().to_toml(), encoding="utf-8")
    return (tmp_path / "pay.csv", "--schema", tmp_path / "pay.toml", "--detector", GRUBBS)


def pcor_(*words: object) -> tuple[int, str, str]:
    """Run a command; return its exit code, its results and its messages."""
    result = CliRunner().invoke(app, ["tradeoff", *map(str, words)])
    return result.exit_code, result.stdout, result.stderr


# -- numbers --------------------------------------------------------------------------------------


def test_the_direct_mechanism_has_the_utility_worked_out_by_hand() -> None:
    # Twelve people in two cities: the record is an outlier among all 12 (10 in Rome, 2 in Oslo)
    # and in Rome alone. One row moves a population by one, so eta is epsilon.
    rows = {"city": ["Rome"] * 10 + ["Oslo"] * 2, "pay": [1.0, 2.0] * 4 + [1.0, 50.0, 1.0, 2.0]}
    cities = pcor.Schema(metric="pay", attributes={"city": ["Rome", "Oslo"]})
    table = pcor.Table(pa.table(rows), cities)
    detector = pcor.Grubbs(min_population=3)
    assert sorted(pcor.matching_contexts(table, 9, detector).populations) == [10, 12]
    [point] = tradeoff(table, [9], detector=detector, epsilons=["0.5"], lines=[LINES[0]])
    # Permute-and-flip: the larger always succeeds, the smaller with chance q = exp(-0.5 * 2); it is
    # taken if it also came first, in one half of the orders.
    smaller = math.exp(-1) / 2
    assert point.utility == pytest.approx((1 - smaller) + smaller * 10 / 12, abs=1e-12)
    assert point.low == point.high == pytest.approx(point.utility)
    assert point.validity == 1


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "2"])
def test_the_direct_mechanism_agrees_with_the_exact_distribution(
    table: pcor.Table, epsilon: str
) -> None:
    detector = pcor.Grubbs(min_population=5)
    chances = exact_distribution(table, 50, epsilon, detector=detector, search="direct")
    sizes = table.populations([context.mask for context in chances])
    wanted = float(np.array(list(chances.values())) @ sizes) / int(sizes.max())
    [point] = tradeoff(table, [50], detector=detector, epsilons=[epsilon], lines=[LINES[0]])
    assert point.utility == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("epsilon", ["0.1", "5"])
def test_validity_under_dp_agrees_with_the_exact_distribution(
    table: pcor.Table, epsilon: str
) -> None:
    detector = pcor.Tail(0.02)  # with which this record is no outlier in some contexts
    chances = exact_distribution(table, 150, epsilon, detector=detector, guarantee="dp")
    valid = {c: p for c, p in chances.items() if pcor.is_outlier(table, 150, c, detector)}
    assert 0 < len(valid) < len(chances)
    [point] = tradeoff(table, [150], detector=detector, epsilons=[epsilon], lines=[PURE_DP])
    assert point.validity == pytest.approx(sum(valid.values()), abs=1e-4)
    sizes = table.populations([context.mask for context in valid])
    wanted = float(np.array(list(valid.values())) @ sizes) / int(sizes.max())
    assert point.utility == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("mechanism", ["exponential", "permute_and_flip"])
@pytest.mark.parametrize("eta", [Fraction(1, 1000), Fraction(1, 20), Fraction(3)])
def test_expectations_are_those_of_the_mechanism(mechanism: str, eta: Fraction) -> None:
    numbers = random.Random(5)  # noqa: S311 (test data)
    for size in (1, 2, 3, 60):
        scores = np.sort([numbers.randint(1, 100) for _ in range(size)])[::-1]
        valid = np.array([numbers.random() < 0.5 for _ in range(size)])
        chances = selection_chances(scores.tolist(), eta=eta, mechanism=mechanism)
        found = expected(ScoredContexts(scores, scores * valid), 100, float(eta), mechanism)
        assert found.validity == pytest.approx(float(chances @ valid), abs=1e-9)
        assert found.utility == pytest.approx(float(chances @ (scores * valid)) / 100, abs=1e-9)


@pytest.mark.parametrize("mechanism", ["exponential", "permute_and_flip"])
def test_bins_change_an_expectation_by_less_than_is_said(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = np.random.default_rng(2)
    scores = np.sort(numbers.integers(1, 50_000, 20_000))[::-1]
    candidates = ScoredContexts(scores, scores * (scores % 3 > 0))
    for eta in (0.0001, 0.001, 0.1):
        binned = expected(candidates, 50_000, eta, mechanism)
        with monkeypatch.context() as patch:
            patch.setattr(module, "_BINS", 10**9)
            assert binned == pytest.approx(expected(candidates, 50_000, eta, mechanism), abs=1e-4)


def test_every_line_has_its_points_and_the_same_seed_gives_the_same(table: pcor.Table) -> None:
    records = random_outliers(table, "lof", 3)

    def run(seed: int) -> list[Point]:
        return tradeoff(table, records, epsilons=["0.1", "1"], seed=seed)

    points = run(0)
    assert [(p.line, p.epsilon) for p in points] == [
        (line.name, epsilon) for line in LINES for epsilon in (0.1, 1.0)
    ]
    assert all(0 < p.low <= p.utility <= p.high <= 1 and p.validity == 1 for p in points)
    assert run(0) == points
    assert run(1) != points


def test_a_line_with_facts_draws_with_what_they_leave(table: pcor.Table) -> None:
    paid = TradeoffLine("with facts", pcor.Settings(search="direct", facts="count"))
    how: dict[str, Any] = {"records": [50], "detector": pcor.Grubbs(min_population=5)}
    [with_facts] = tradeoff(table, epsilons=["0.15"], lines=[paid], **how)
    [alone] = tradeoff(table, epsilons=["0.1"], lines=[LINES[0]], **how)
    assert with_facts.epsilon == 0.15
    assert with_facts.utility == pytest.approx(alone.utility, abs=1e-9)


def test_more_epsilon_buys_more_of_the_direct_mechanism(table: pcor.Table) -> None:
    records = random_outliers(table, "lof", 3)
    points = tradeoff(table, records, epsilons=["0.01", "0.1", "1"], lines=[LINES[0]])
    utilities = [point.utility for point in points]
    assert utilities == sorted(utilities)
    assert utilities[0] < utilities[-1]


def test_a_search_that_comes_back_with_nothing_counts_as_nothing() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert expected(ScoredContexts(nothing, nothing), 5, 0.1, "exponential") == (0, 0)


def test_progress_reaches_the_end(table: pcor.Table) -> None:
    seen: list[tuple[int, int]] = []
    lines = [TradeoffLine(name, pcor.Settings(search=name)) for name in ("direct", "uniform")]
    records = random_outliers(table, "lof", 2)
    tradeoff(table, records, epsilons=[1], lines=lines, progress=lambda *done: seen.append(done))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_random_outliers_are_different_records_and_outliers_somewhere(table: pcor.Table) -> None:
    found = random_outliers(table, pcor.Grubbs(min_population=5), 4)
    assert len(set(found)) == len(found) == 4
    for record in found:
        assert len(pcor.matching_contexts(table, record, pcor.Grubbs(min_population=5))) > 0


# -- what is refused ------------------------------------------------------------------------------


def test_the_library_refuses_what_cannot_be_compared(table: pcor.Table) -> None:
    with pytest.raises(ParameterError, match="at least one record"):
        tradeoff(table, [])
    with pytest.raises(ParameterError, match="dp"):
        tradeoff(table, [50], lines=[PURE_DP])
    ordinary = pcor.Grubbs(alpha=1e-9)
    with pytest.raises(NoValidContext, match="give outliers only"):
        tradeoff(table, [1], detector=ordinary, epsilons=[1])
    with pytest.raises(NoValidContext, match="try another detector"):
        random_outliers(table, pcor.Grubbs(min_population=10_000), 2)


def test_a_space_without_a_largest_valid_context_to_compare_with_is_refused() -> None:
    large = schema(team=[str(n) for n in range(30)])
    with pytest.raises(TooLarge, match=r"largest valid context.*raise limit=") as refused:
        module.check_space(large)
    assert "raise --limit" in refused.value.at("cli")
    module.check_space(large, 1 << 40)


def test_dp_on_a_space_that_is_not_listed_has_the_same_points(
    table: pcor.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    detector, options = pcor.Tail(0.02), {"epsilons": ["0.1", "5"], "lines": [PURE_DP]}
    listed = tradeoff(table, [150], detector=detector, **options)  # type: ignore[arg-type]
    monkeypatch.setattr("pcor.search.margin.LARGEST_LIST", -1)
    found = tradeoff(table, [150], detector=detector, **options)  # type: ignore[arg-type]
    for one, other in zip(listed, found, strict=True):
        assert other.utility == pytest.approx(one.utility, abs=1e-4)
        assert other.validity == pytest.approx(one.validity, abs=1e-4)


# -- the command ----------------------------------------------------------------------------------


def test_the_command_prints_for_the_owner_only_where_a_table_is_given(
    files: tuple[object, ...],
) -> None:
    code, out, _ = pcor_(*files, "--quick")
    assert code == 0
    assert out.splitlines()[0] == OWNER_ONLY
    assert "NOT PRIVATE" in out
    for line in (*LINES, PURE_DP):
        assert f"\n  {line.name} " in out


def test_the_command_prints_one_json_object(files: tuple[object, ...]) -> None:
    code, out, _ = pcor_(*files, "--outliers", 2, "--epsilons", "1,0.5,1", "--json")
    assert code == 0
    report: dict[str, Any] = json.loads(out)
    jsonschema.validate(report, REPORT)
    assert next(iter(report)) == "owner_only"
    points = report["points"]
    assert len(points) == 2 * (len(LINES) + 1)
    assert {(p["guarantee"], p["detector"]) for p in points} == {
        *(("ocdp", "grubbs"), ("dp", "tail"))
    }


def test_without_a_table_the_command_takes_synthetic_salaries() -> None:
    code, out, err = pcor_("--outliers", 1, "--epsilons", "0.2", "--json")
    assert code == 0, err
    report = json.loads(out)
    jsonschema.validate(report, REPORT)
    assert "owner_only" not in report
    assert report["dataset"] == "synthetic-salaries"


def test_a_detector_that_counts_serves_both_guarantees(files: tuple[object, ...]) -> None:
    table_and_schema = files[:3]
    asked = ("--detector", "tail:share=0.1", "--outliers", 1, "--epsilons", "1", "--json")
    _, out, _ = pcor_(*table_and_schema, *asked)
    assert {point["detector"] for point in json.loads(out)["points"]} == {"tail"}


def test_the_help_has_an_example() -> None:
    code, out, _ = pcor_("--help")
    assert code == 0
    assert "Example: pcor tradeoff" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--out", "chart.pdf"), "must end in .png or .svg or .html or .json"),
        (("--schema", "pay.toml"), "FILE and --schema go together"),
        (("--outliers", "0"), "--outliers must be at least 1"),
        (("--records", "2"), "No such option: --records"),  # a file in every other command
        (("--epsilons", "0.1,much"), "epsilon must be a positive, finite number"),
        (("--detector", "lop"), "did you mean 'lof'?"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(words: tuple[str, ...], message: str) -> None:
    code, out, err = pcor_(*words)
    assert (code, out) == (2, "")
    assert message in err


# -- files ----------------------------------------------------------------------------------------


@pytest.fixture
def asked(files: tuple[object, ...]) -> tuple[object, ...]:
    return (*files, "--outliers", 2, "--epsilons", "0.1,1")


def written(folder: Path, name: str, asked: tuple[object, ...]) -> Path:
    path = folder / name
    before = set(folder.iterdir())
    code, _, err = pcor_(*asked, "--out", path)
    assert code == 0, err
    assert f"{OWNER_ONLY} Written to {path}" in err
    assert set(folder.iterdir()) - before == {path}
    return path


def test_a_png_is_one(tmp_path: Path, asked: tuple[object, ...]) -> None:
    png = written(tmp_path, "chart.png", asked).read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    assert width > height > 500


def test_an_svg_has_both_panels_a_description_and_the_warning(
    tmp_path: Path, asked: tuple[object, ...]
) -> None:
    text = written(tmp_path, "chart.svg", asked).read_text(encoding="utf-8")
    root = ET.fromstring(text)  # noqa: S314 (our own file)
    words = list(root.itertext())
    assert {UTILITY, VALIDITY, OWNER_ONLY} <= set(words)
    assert {line.name for line in (*LINES, PURE_DP)} <= set(words)
    assert root.get("role") == "img"
    assert "breadth_first, paper's price" in str(root.get("aria-label"))


def test_a_chart_of_another_kind_is_refused(tmp_path: Path, table: pcor.Table) -> None:
    chart = tradeoff_chart(tradeoff(table, [50], epsilons=[1], lines=[LINES[0]]))
    with pytest.raises(WriteError, match=r"must end in \.png or \.svg or \.html"):
        save_picture(chart, tmp_path / "chart.pdf")
    assert list(tmp_path.iterdir()) == []


def test_a_page_loads_nothing_and_offers_to_send_nothing(
    tmp_path: Path, asked: tuple[object, ...]
) -> None:
    text = written(tmp_path, "chart.HTML", asked).read_text(encoding="utf-8")
    assert "<script src" not in text
    assert "<link" not in text
    assert "cdn." not in text
    assert '"editor": false' in text
    assert OWNER_ONLY in text
    assert '<html lang="en">' in text


def test_a_json_file_is_what_is_printed(tmp_path: Path, asked: tuple[object, ...]) -> None:
    path = tmp_path / "points.json"
    _, out, _ = pcor_(*asked, "--json", "--out", path)
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(out)


def test_without_altair_a_chart_is_refused_before_the_work_and_json_works(
    tmp_path: Path, asked: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    monkeypatch.delitem(sys.modules, "pcor.support.pictures", raising=False)
    monkeypatch.setattr("pcor.cli.tradeoff.random_outliers", None)  # would fail if reached
    code, out, err = pcor_(*asked, "--out", tmp_path / "chart.png")
    assert (code, out) == (2, "")
    assert "pip install 'pcor[plots]'" in err
    assert "--json" in err
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "altair", None)
    assert pcor_(*asked, "--json")[0] == 0
