"""Nothing private shows: not in a release, an error, a log line, a repr or the certificate.

The table is made so that everything private in it can be recognised: metric values with seven
digits, ids and undeclared values of their own spelling, and cells so large that every population,
the number of rows and the number of valid contexts have at least four digits. ``leaks`` reads any
text for them. The last part lets a leak happen on purpose and sees ``leaks`` find it.
"""

from __future__ import annotations

import dataclasses
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import csv, parquet
from sklearn.neighbors import LocalOutlierFactor
from typer.testing import CliRunner

import pcor
from pcor.cli import app
from pcor.search.utility import Population
from pcor.search.validity import Validity
from tests.helpers.canary import (
    CELL,
    DETECTORS,
    EPSILON,
    KINDS,
    OTHER,
    OUTSIDE,
    SCHEMA,
    SEARCHES,
    SITES,
    START,
    UNDECLARED,
    V,
    leaks,
    pickled,
    private_things,
    world,
)


@pytest.fixture
def listening(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], str]]:
    """Collect every log line and warning of a test."""
    with warnings.catch_warnings(record=True) as warned, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        yield lambda: "\n".join([caplog.text, *(str(warning.message) for warning in warned)])


# -- a release ------------------------------------------------------------------------------------


def everything_of(released: pcor.Release) -> dict[str, str]:
    """Return every way in which a release can be looked at."""
    return {
        "str": str(released),
        "repr": repr(released),
        "dict": str(released.to_dict()),
        "json": released.to_json(),
        "html": released.to_html(),
        "letter": released.to_letter(),
        "explain": released.explain(),
        "promise": f"{released.promise} {released.promise!r}",
        "plan": f"{released.plan} {released.plan!r}",
        "context": f"{released.context} {released.context!r} {released.context.where()}",
        "notebook": "".join(
            shown._repr_html_()
            for shown in (released, released.context, released.plan, released.promise)
        ),
        "fields": str([getattr(released, f.name) for f in dataclasses.fields(released)]),
    }


def assert_nothing_private(released: pcor.Release, heard: str) -> None:
    """Look at a release in every way, at what it holds, and at what was said meanwhile."""
    views = everything_of(released) | {"pickle": pickled(released), "log and warnings": heard}
    assert {view: leaks(text) for view, text in views.items() if leaks(text)} == {}
    assert private_things(released) == []


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize("search", SEARCHES)
def test_no_search_and_no_detector_lets_anything_out(
    search: str, detector: str, listening: Callable[[], str]
) -> None:
    released = world().release(search=SEARCHES[search], detector=DETECTORS[detector])
    assert_nothing_private(released, listening())


class Talkative:
    """An estimator that says how many rows it has, as scikit-learn's LocalOutlierFactor does."""

    def fit(self, column: NDArray[np.float64]) -> None:
        size = len(column)
        warnings.warn(f"n_neighbors is greater than the number of samples ({size})", stacklevel=2)

    def score_samples(self, column: NDArray[np.float64]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = -np.abs(column - np.median(column)).ravel()
        return scores


ESTIMATORS = {
    "scikit-learn": pcor.Estimator(LocalOutlierFactor(n_neighbors=20), threshold=1.5),
    "talkative": pcor.Estimator(Talkative(), threshold=1_000_000),
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_no_estimator_lets_anything_out(estimator: str, listening: Callable[[], str]) -> None:
    """Whatever the estimator of somebody else says while it works."""
    how = {"search": "random_walk", "start": START, "samples": 2}
    released = world().release(detector=ESTIMATORS[estimator], **how)
    assert_nothing_private(released, listening())


@pytest.mark.parametrize("accounting", ["tight", "paper"])
@pytest.mark.parametrize("selection", ["exponential", "permute_and_flip"])
@pytest.mark.parametrize("utility", ["population", pcor.Overlap(START)], ids=["size", "overlap"])
def test_no_utility_accounting_or_selection_lets_anything_out(
    utility: object, accounting: str, selection: str, listening: Callable[[], str]
) -> None:
    how = {"utility": utility, "accounting": accounting, "selection": selection}
    released = world().release(search="random_walk", samples=3, start=START, **how)
    assert_nothing_private(released, listening())


@pytest.mark.parametrize("ending", ["json", "html"])
def test_a_saved_certificate_holds_nothing_private(ending: str, tmp_path: Path) -> None:
    released = world().release(search="random_walk", samples=3, start=START)
    released.save(tmp_path / f"certificate.{ending}")
    assert leaks((tmp_path / f"certificate.{ending}").read_text(encoding="utf-8")) == set()


# -- what else can be printed ---------------------------------------------------------------------


def printed() -> dict[str, object]:
    table = world().table
    record = table.record(V)
    budget = pcor.Budget(1)
    world().release(search="random_walk", samples=2, start=START, budget=budget)
    return {
        "table": table,
        "rows": table.rows,
        "the record of another": table.record(OTHER),
        "matching contexts": pcor.matching_contexts(table, V, "grubbs"),
        "validity": Validity(table, record, pcor.Grubbs()),
        "population": Population(START, table),
        "budget": budget,
        "plan": pcor.plan(SCHEMA, EPSILON),
        "promise": pcor.plan(SCHEMA, EPSILON).promise,
        "schema": SCHEMA,
        "context": START,
        "detectors": list(DETECTORS.values()),
        "searches": list(SEARCHES.values()),
    }


@pytest.mark.parametrize("show", [str, repr, format])
def test_nothing_that_can_be_printed_shows_anything_private(show: Callable[[object], str]) -> None:
    shown = {name: show(thing) for name, thing in printed().items()}
    assert {name: leaks(text) for name, text in shown.items() if leaks(text)} == {}


def test_the_record_that_is_asked_for_is_public() -> None:
    assert leaks(repr(world().table.record(V))) == set()


# -- errors ---------------------------------------------------------------------------------------


def told(error: BaseException) -> str:
    """Return all that an error says when it is printed, logged or shown with its traceback."""
    return "\n".join([str(error), repr(error), *map(str, error.args), *_traceback(error)])


def _traceback(error: BaseException) -> list[str]:
    """Format the traceback, chained errors included, without the lines of this file."""
    lines = traceback.format_exception(error)
    return [line for line in lines if Path(__file__).name not in line]


def replaced(column: str, value: object, *, rows: int = 1, schema: pcor.Schema = SCHEMA) -> Any:
    """Build a table whose first rows of one column hold something else."""
    source = world().source
    cells = source[column].to_pylist()
    mixed = [value] * rows + [str(cell) for cell in cells[rows:]]
    place = source.column_names.index(column)
    return pcor.Table(source.set_column(place, column, pa.array(mixed, pa.string())), schema)


STRICT = pcor.Schema(metric="amount", attributes={"site": SITES, "kind": KINDS}, id="key")


def fails(*_: object) -> NDArray[np.bool_]:
    """Fail the way people's code does: with the data in the message."""
    raise ValueError(f"cannot handle {UNDECLARED} among {world().source.num_rows} rows")


class Broken:
    """A utility whose own code fails."""

    sensitivity, monotonic = 1, True

    def score(self, population: Population) -> int:
        raise ValueError(f"cannot score {population.size} rows like {UNDECLARED}")


class Fractional:
    """A utility that returns something other than whole numbers."""

    sensitivity, monotonic = 1, True

    def score(self, population: Population) -> Any:
        return population.size + 0.5


class Chatty:
    """A frame whose own error quotes a cell."""

    def __arrow_c_stream__(self, _: object = None) -> object:
        raise ValueError(f"bad cell {UNDECLARED}")


WALK: dict[str, Any] = {"search": "random_walk", "samples": 3}
ELSEWHERE = pcor.Context(SCHEMA, {"site": SITES[1:], "kind": KINDS})
MOST = pcor.Context.full(SCHEMA)


@dataclass(frozen=True)
class Gossip(pcor.Detector):
    """A third-party detector that warns and fails with rows in its words."""

    name: ClassVar[str] = "gossip"

    def verdicts(self, values: Any, counts: Any) -> Any:
        warnings.warn(f"{UNDECLARED} among {int(counts.sum())}", stacklevel=1)
        raise ValueError(f"cannot handle {values[:3]} of {int(counts.sum())} rows")


BAD_REQUESTS: dict[str, Callable[[], object]] = {
    "a value outside the domain": lambda: pcor.Table(world().source, STRICT),
    "a metric in letters": lambda: replaced("amount", UNDECLARED),
    "an infinite metric": lambda: replaced("amount", "-inf", rows=OUTSIDE),
    "a missing metric": lambda: replaced("amount", "", rows=OUTSIDE),
    "no row that fits": lambda: replaced("site", UNDECLARED, rows=world().source.num_rows),
    "a missing column": lambda: pcor.Table(world().source.drop_columns(["site"]), SCHEMA),
    "a frame that fails": lambda: pcor.Table(Chatty(), SCHEMA),
    "a pandas column of many kinds": lambda: pcor.Table(
        pd.DataFrame({"key": [1, OTHER], "site": [1, UNDECLARED], "kind": 0, "amount": [0, b"x"]}),
        SCHEMA,
    ),
    "a polars metric in letters": lambda: pcor.Table(
        pl.DataFrame({"key": [OTHER], "site": SITES[:1], "kind": ["red"], "amount": [UNDECLARED]}),
        SCHEMA,
    ),
    "bins over letters": lambda: pcor.Table(
        world().source, pcor.Schema(metric="amount", attributes={"site": {"edges": [0, 1]}})
    ),
    "an id that is not unique": lambda: replaced("key", V, rows=OUTSIDE).record(V),
    "an unknown record": lambda: world().table.record("nobody"),
    "a record of no kind": lambda: world().table.record(2.5),  # type: ignore[arg-type]
    "no valid context": lambda: pcor.release(world().table, V, EPSILON, pcor.LOF(threshold=1e90)),
    "no valid context found": lambda: world().release(**WALK, detector=pcor.LOF(threshold=1e90)),
    "a start without V": lambda: world().release(**WALK, start=ELSEWHERE),
    "a start that is not valid": lambda: world().release(
        **WALK, start=MOST, detector=pcor.Grubbs(min_population=10**9)
    ),
    "a start of another schema": lambda: world().release(
        **WALK, start=pcor.Context.full(pcor.demo.ten_people_schema())
    ),
    "a context of another schema": lambda: pcor.outliers(
        world().table, pcor.Context.full(pcor.demo.ten_people_schema())
    ),
    "a spent budget": lambda: world().release(budget=pcor.Budget(0.1)),
    "a space above the limit": lambda: world().release(search=pcor.Direct(limit=7)),
    "contexts above the limit": lambda: pcor.matching_contexts(world().table, V, limit=7),
    "too many paths": lambda: pcor.audit.exact_distribution(
        world().table, V, EPSILON, limit=3, search=pcor.RandomWalk(samples=2, start=START)
    ),
    "epsilon 0": lambda: world().release(epsilon=0),
    "an unknown detector": lambda: world().release(detector="lov"),
    "an unknown search": lambda: world().release(search="brute"),
    "an unknown utility": lambda: world().release(utility="size"),
    "an unknown accounting": lambda: world().release(accounting="none"),
    "an unknown selection": lambda: world().release(selection="best"),
    "samples 0": lambda: world().release(search="uniform", samples=0),
    "overlap with nothing": lambda: world().release(search="uniform", utility="overlap"),
    "a utility that fails": lambda: world().release(**WALK, start=START, utility=Broken()),
    "a utility with fractions": lambda: world().release(**WALK, start=START, utility=Fractional()),
    "a detector that fails": lambda: world().release(
        **WALK, start=START, detector=pcor.Estimator(fails)
    ),
    "a detector of somebody else's that fails": lambda: world().release(
        **WALK, start=START, detector=Gossip()
    ),
    "a detector that answers too little": lambda: world().release(
        **WALK, start=START, detector=pcor.Estimator(lambda rows: rows[:1] > 0)
    ),
    "a detector without a threshold": lambda: world().release(
        **WALK, start=START, detector=pcor.Estimator(lambda rows: rows * 1.0)
    ),
}


@pytest.mark.parametrize("request_", BAD_REQUESTS)
def test_no_error_tells_anything_private(request_: str, listening: Callable[[], str]) -> None:
    world()
    with pytest.raises(pcor.PcorError) as caught:
        BAD_REQUESTS[request_]()
    assert leaks(told(caught.value)) == set()
    assert leaks(listening()) == set()


def test_a_row_that_was_left_out_is_refused_like_one_that_never_was() -> None:
    """Only the request's own key differs, so nobody learns who is in the table but dropped."""
    said = []
    for key in ("ZZ-ID-out-3", "nobody"):
        with pytest.raises(pcor.errors.RecordError) as caught:
            world().table.record(key)
        said.append(str(caught.value).replace(repr(key), "..."))
    assert said[0] == said[1]


# -- the command line -----------------------------------------------------------------------------


class Files(NamedTuple):
    """The same table in files, sound and broken."""

    good: Path
    letters: Path
    ragged: Path
    headless: Path
    torn: Path
    schema: Path
    strict: Path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("canary")
    names = ("good.parquet", "letters.csv", "ragged.csv", "headless.csv", "torn.parquet")
    found = Files(*(folder / name for name in (*names, "schema.toml", "strict.toml")))
    source = world().source
    parquet.write_table(source, found.good)
    some = source.slice(0, 3).to_pylist()
    some[2]["amount"] = UNDECLARED
    csv.write_csv(pa.table({k: [str(row[k]) for row in some] for k in some[0]}), found.letters)
    header = "key,site,kind,amount\n"
    found.ragged.write_text(f"{header}{OTHER},{UNDECLARED}\n", encoding="utf-8")
    found.headless.write_text(f"{OTHER},{UNDECLARED},red,7134459.25\n", encoding="utf-8")
    found.torn.write_bytes(found.good.read_bytes()[:-100])
    found.schema.write_text(SCHEMA.to_toml(), encoding="utf-8")
    found.strict.write_text(STRICT.to_toml(), encoding="utf-8")
    return found


WALKING = "--detector grubbs:tail=upper --search random_walk --samples 3"
HERE = "--start 'site is site A; kind is blue'"
COMMANDS = {
    "release": f"release {{good}} {{request}} {WALKING} {HERE}",
    "release, seeded": f"release {{good}} {{request}} {WALKING} {HERE} --seed 3",
    "release, auto": "release {good} {request} --detector grubbs:tail=upper",
    "plan": "plan {good} {request}",
    "a value outside the domain": "release {good} --schema {strict} --record V-one --epsilon 1",
    "a metric in letters": "release {letters} {request}",
    "a torn line": "release {ragged} {request}",
    "no header": "release {headless} {request}",
    "a torn file": "release {torn} {request}",
    "an unknown record": "release {good} --schema {schema} --record nobody --epsilon 1",
    "no valid context": "release {good} {request} --detector lof:threshold=1e90",
    "a start without V": f"release {{good}} {{request}} {WALKING} --start 0111111111111",
    "a start that is not valid": (
        "release {good} {request} --search random_walk --detector grubbs:min_population=999999999 "
        + HERE
    ),
    "a space above the limit": "contexts {good} --schema {schema} --record V-one --limit 7",
    "epsilon 0": "release {good} --schema {schema} --record V-one --epsilon 0",
    "an unknown detector": "release {good} {request} --detector lov",
}


@pytest.mark.parametrize("as_json", ["", " --json"], ids=["text", "json"])
@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_line_lets_nothing_out(
    command: str, as_json: str, files: Files, listening: Callable[[], str]
) -> None:
    paths = {name: str(path) for name, path in files._asdict().items()}
    request = "--schema {schema} --record V-one --epsilon 0.2".format(**paths)
    words = COMMANDS[command].format(**paths, request=request) + as_json
    result = CliRunner().invoke(app, words, env={"PCOR_DEBUG": None})
    assert result.exit_code == (0 if command.split(",")[0] in ("release", "plan") else 2) or (
        command == "no valid context" and result.exit_code == 4
    )
    # The names of temporary folders carry numbers of their own.
    said = (result.stdout + result.stderr).replace(str(files.good.parent), "")
    assert said
    assert leaks(said) == set()
    assert leaks(listening()) == set()


# -- the check can say no -------------------------------------------------------------------------


class LeakyTable(pcor.Table):
    def __repr__(self) -> str:
        return f"<Table of {len(self.rows.metric):,} rows>"


class LeakyRelease(pcor.Release):
    def to_dict(self, *, key: pcor.SigningKey | None = None) -> dict[str, Any]:
        population = int(world().table.populations([self.context.mask])[0])
        return super().to_dict(key=key) | {"population": population}


def released(kind: type[pcor.Release] = pcor.Release) -> Any:
    sound = world().release(search="random_walk", samples=2, start=START)
    return kind(*(getattr(sound, field.name) for field in dataclasses.fields(sound)))


def test_a_repr_with_the_number_of_rows_is_caught() -> None:
    assert leaks(repr(LeakyTable(world().source, SCHEMA)))
    assert not leaks(repr(world().table))


def test_a_certificate_with_a_population_is_caught_in_every_form() -> None:
    leaky, sound = released(LeakyRelease), released()
    for form in ("to_dict", "to_json", "to_html", "to_letter"):
        assert leaks(str(getattr(leaky, form)())), form
        assert not leaks(str(getattr(sound, form)())), form


@pytest.mark.parametrize(
    "text",
    [
        *("1238", "1,238", "1_238", "n=1238.", "[3,1238,5]", "1238rows", "x1238", '"1238"'),
        *("7134459.25", "7,134,459.25", "np.float64(7134459.25)", f"bad cell {UNDECLARED!r}"),
        *("no record 'ZZ-ID-31'", "{'note': 'ZZ-NOTE x'}"),
    ],
)
def test_a_canary_is_caught_however_it_is_written(text: str) -> None:
    assert CELL in world().forbidden
    assert leaks(text)


def test_what_is_public_is_not_called_a_leak() -> None:
    assert leaks(f"{SCHEMA.sha256} {START.bits} epsilon 0.2, 100,000 tries, V 9000000.0") == set()
    assert leaks("<pcor.search.validity.Validity object at 0x7fa1238b2c90>") == set()


def test_a_table_that_can_be_reached_is_caught() -> None:
    sound = released()
    for hidden in (world().table, world().table.rows.metric, world().source, 7134459.25, CELL):
        leaky = released()
        object.__setattr__(leaky, "cache", {"deep": [(hidden,)]})
        assert private_things(leaky)
    assert not private_things(sound)


def test_a_table_behind_a_function_is_caught() -> None:
    table = world().table
    leaky = released()
    object.__setattr__(leaky, "later", lambda: table)
    assert private_things(leaky)
    object.__setattr__(leaky, "later", table.record)
    assert private_things(leaky)


def test_a_count_in_a_pickle_is_caught() -> None:
    leaky = released()
    object.__setattr__(leaky, "seen", CELL)
    assert leaks(pickled(leaky)) == {"1238"}


def test_a_chained_error_that_quotes_a_cell_is_caught() -> None:
    """An error raised ``from None`` hides its cause; one that forgets to is found."""

    def refuse(*, hide: bool) -> None:
        try:
            fails()
        except ValueError as cause:
            raise pcor.errors.SourceError("cannot read") from (None if hide else cause)

    for hide in (True, False):
        with pytest.raises(pcor.PcorError) as caught:
            refuse(hide=hide)
        assert bool(leaks(told(caught.value))) != hide


def test_a_log_line_and_a_warning_are_caught(listening: Callable[[], str]) -> None:
    assert leaks(listening()) == set()
    logging.getLogger("pcor").debug("looked at %d rows", CELL)
    assert leaks(listening()) == {"1238"}
    warnings.warn(f"bad cell {UNDECLARED}", stacklevel=1)
    assert leaks(listening()) == {"1238", "ZZ-CANARY"}
