"""What a draft notices of a column, and what it makes of it."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import pcor
from pcor.audit.column_draft import MOST_VALUES, MOST_WORDS, draft_column, round_edges
from pcor.audit.known_words import in_order
from pcor.audit.schema_draft import SchemaDraft, draft
from pcor.audit.schema_fit import misfits
from pcor.errors import MetricError, SourceError
from pcor.public.source_format import SourceFormat
from pcor.search.blocks import ENUMERATION_LIMIT


def drafted(cells: list[Any], name: str = "a") -> tuple[dict[str, Any], str]:
    """Return what is declared of a column, and all that was noticed; its own rows must fit."""
    table = pa.table({"m": [1.0] * len(cells), name: cells})
    found = draft(table, metric="m", attributes=[name])
    assert misfits(table, found.schema) == []
    one = draft_column(table[name], name, SourceFormat())
    return one.declared, "; ".join(one.noticed)


@pytest.mark.parametrize(
    ("cells", "values", "rules"),
    [
        (["10th", "10th ", "hs"], ["10th", "hs"], {"strip": True}),
        (["Private"] * 3 + ["PRIVATE", "State"], ["Private", "State"], {"ignore_case": True}),
        ([" a", "A", "a", "b"], ["a", "b"], {"strip": True, "ignore_case": True}),
        (["a", "b"], ["a", "b"], {}),
        (["ß", "SS", "ẞ"], ["SS", "ß", "ẞ"], {}),  # no case of one another by our rules
    ],
)
def test_spellings_that_differ_by_blanks_or_case_alone_are_one_value(
    cells: list[str], values: list[str], rules: dict[str, bool]
) -> None:
    declared, noticed = drafted(cells)
    assert declared == {"values": values, **rules, "contexts": "one"}
    assert all(rule in noticed for rule in rules)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["?", "a", "b"], ["?"]),
        (["N/A", "n/a", "a", None], ["N/A", "n/a"]),
        (["none", "unknown", "a"], None),  # these may be answers
        ([-1, 3, 4, 5], ["-1"]),
        ([-1, -2, 3, 4], None),
        ([999, 3, 4, 5], ["999"]),
        ([999, 800, 700, 600], None),
        (["-1", "?", "3", "4", "5"], ["-1", "?"]),
    ],
)
def test_words_and_numbers_that_mean_no_value_are_named_and_such_rows_left_out(
    cells: list[Any], words: list[str] | None
) -> None:
    declared, noticed = drafted(cells)
    assert declared.get("missing_values") == words
    assert ("outside" in declared or "other" in declared) == (words is not None)
    assert ("no value" in noticed) == (words is not None)


def test_many_rows_without_a_value_count_as_a_value_and_a_few_are_left_out() -> None:
    many, noticed = drafted(["a", "b", "?"] * 50)
    assert (many["values"], many["other"]) == (["a", "b", "unknown"], "unknown")
    assert "outside" not in many
    assert "50 rows have no value (or '?'), and count as 'unknown'" in noticed
    assert drafted(["a", "Unknown", "?"])[0]["other"] == "Unknown"
    few, _ = drafted(["a", "b"] * 100 + ["?"])
    assert (few["values"], few["outside"]) == (["a", "b"], "drop")


@pytest.mark.parametrize(
    "words",
    [
        ["Jan", "February", "mar"],
        ["XS", "S", "M", "XXL"],
        ["low", "Medium", "HIGH"],
        ["Low", "Medium", "High", "Critical"],
        ["minor", "major", "critical"],
        ["1st-4th", "9th", "10th", "HS-grad", "Some-college", "Bachelors", "Doctorate"],
        ["under 18", "18-24", "25-64", "65+"],
        ["<10", "10 to 19", "20+"],
        ["0-1 years", "2-5 years", "6+ years"],
    ],
)
def test_words_that_people_put_in_an_order_are_declared_in_it(words: list[str]) -> None:
    assert in_order(sorted(words)) == words
    declared, noticed = drafted(sorted(words) * 2)
    assert (declared["values"], declared["contexts"]) == (words, "range")
    assert "an order" in noticed


@pytest.mark.parametrize(
    "words", [["red", "green", "blue"], ["Jan", "Feb"], ["1a", "1b", "2a"], ["3M", "Acme", "Bolt"]]
)
def test_words_without_an_order_are_given_none(words: list[str]) -> None:
    assert in_order(words) is None


def test_too_many_words_leave_the_most_frequent_and_one_for_all_others() -> None:
    cells = [f"w{i:03}" for i in range(MOST_WORDS + 1) for _ in range(1 + (i < MOST_VALUES))]
    declared, noticed = drafted(cells)
    assert declared["values"] == [f"w{i:03}" for i in range(MOST_VALUES)] + ["other"]
    assert declared["other"] == "other"
    assert "too many to speak of" in noticed


def test_a_value_called_other_is_not_the_word_for_all_others() -> None:
    declared, _ = drafted([*(f"w{i}" for i in range(MOST_WORDS)), "Other"])
    assert declared["other"] == "others"


@pytest.mark.parametrize(
    ("cells", "name", "sentence"),
    [
        ([f"n{i}" for i in range(50)], "note", "names rows"),
        (list(range(50)), "policy_no", "names rows"),
        (["x"] * 50, "flag", "the same value in every row"),
        (["x"] * 400 + ["R9"], "region", "values of very few rows ('R9')"),
    ],
)
def test_columns_that_say_nothing_or_name_rows_are_noticed(
    cells: list[Any], name: str, sentence: str
) -> None:
    assert sentence in drafted(cells, name)[1]


def test_many_numbers_that_are_called_no_id_are_no_identifier() -> None:
    assert "names rows" not in drafted(list(range(50)), "age")[1]
    assert "names rows" not in drafted([i + 0.5 for i in range(50)], "measured no")[1]


def test_amounts_and_days_that_are_texts_name_no_rows() -> None:
    paid = pa.chunked_array([[f"${i},{i + 100}.50" for i in range(1, 51)]])
    days = pa.chunked_array([[f"{1990 + i}-01-01" for i in range(50)]])
    written = SourceFormat(currency="$", thousands=",")
    for column, name in ((paid, "paid"), (paid, "deposit no"), (days, "day")):
        assert "names rows" not in "".join(draft_column(column, name, written).noticed)


@pytest.mark.parametrize(
    ("values", "inner"),
    [
        ([0.001 * i for i in range(100)], [0.02, 0.04, 0.06, 0.08]),
        ([5.0 * i for i in range(200)], [200, 400, 600, 800]),
        ([-50.0 + i for i in range(100)], [-40, -20, 0, 20, 40]),
        ([0.0, 1e6], [200_000, 400_000, 600_000, 800_000]),
        ([7.0], []),
        ([-1e308, 1e308], [-5e307, 0, 5e307]),
    ],
)
def test_edges_are_round_and_open(values: list[float], inner: list[float]) -> None:
    assert round_edges(values) == [-math.inf, *inner, math.inf]


# -- whole drafts ---------------------------------------------------------------------------------


def forty_columns() -> pa.Table:
    rows = 200
    table: dict[str, list[Any]] = {
        "pay": [float(i) for i in range(rows)],
        "customer": [f"c{i // 2}" for i in range(rows)],
        "note": [f"text {i}" for i in range(rows)],
        "flag": ["x"] * rows,
        "region": ["north", "South", "south ", "?"] * (rows // 4),
        "codes": [f"k{i % 100}" for i in range(rows)],
    }
    table |= {f"a{i}": [f"v{(i + j) % (2 + i % 9)}" for j in range(rows)] for i in range(33)}
    table["spare one"] = [f"v{j % 12}" for j in range(rows)]
    return pa.table(table)


def propose() -> SchemaDraft:
    return draft(forty_columns(), metric="pay")


def test_without_attributes_a_few_columns_are_proposed_and_the_others_explained() -> None:
    found = propose()
    names = [attribute.name for attribute in found.schema.attributes]
    assert "region" in names
    assert len(names) == 6
    for name, sentence in {
        "customer": "seems to name people, 100 of whom",
        "note": "names rows; left out",
        "flag": "the same value in every row; left out",
        "codes": "100 different values, too many to speak of; left out",
    }.items():
        assert name not in names
        assert sentence in "; ".join(found.noticed[name])
    (enough,) = [note for note in found.notes if "there are enough" in note]
    listed = enough.partition(":")[0].strip("'").split(",")
    assert len(listed) + len(names) == 35
    assert {"spare one", "a6"} <= set(listed)  # in quotes: a shell parts words at blanks
    assert enough.startswith("'")


def test_a_proposal_fits_its_table_and_can_be_drawn_exactly() -> None:
    found = propose()
    assert misfits(forty_columns(), found.schema) == []
    assert found.schema.drawable(ENUMERATION_LIMIT)
    pcor.Table(forty_columns(), found.schema)


def test_so_many_attributes_that_contexts_must_be_limited_get_a_limit() -> None:
    attributes = [f"a{i}" for i in range(33)]
    found = draft(forty_columns(), metric="pay", attributes=attributes)
    assert found.schema.max_clauses == 3
    assert "max_clauses" in found.noticed[""][0]
    assert "[contexts]  # REVIEW" in found.text


def test_a_table_in_which_nothing_can_be_an_attribute_is_refused_with_what_to_do() -> None:
    table = pa.table({"m": [float(i) for i in range(60)], "note": [f"t{i}" for i in range(60)]})
    with pytest.raises(SourceError, match="name one yourself if you know better"):
        draft(table, metric="m")


@pytest.mark.parametrize("cells", [[[1.0], [2.0]], [{"n": 1}, {"n": 2}]])
def test_what_holds_no_single_values_is_refused_as_metric_and_names_nobody(
    cells: list[Any],
) -> None:
    odd = pa.table({"m": [1.0, 2.0], "a": ["x", "y"], "customer": cells})
    assert "customer" not in draft(odd, metric="m", attributes=["a"]).noticed
    assert draft(odd, metric="m").noticed["customer"] == ["no single values; left out"]
    with pytest.raises(MetricError, match="the metric 'customer' is not numeric"):
        draft(odd, metric="customer", attributes=["a"])


def test_words_for_no_value_in_the_metric_are_named_and_such_rows_left_out() -> None:
    table = pa.table({"m": ["1", "n/a", "3", None], "a": ["x", "y", "x", "y"]})
    found = draft(table, metric="m", attributes=["a"])
    assert found.schema.metric.missing_values == ("n/a",)
    assert found.schema.metric.missing == "drop"
    assert found.noticed["m"] == ["2 rows without a number, which are left out"]
    one = draft(table.slice(0, 2), metric="m", attributes=["a"]).noticed["m"]
    assert one == ["1 row without a number, which is left out"]
    assert misfits(table, found.schema) == []
