"""Bins of dates: what is declared, what is refused, how they are said, read and written in SQL."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcor import Context, Schema
from pcor.errors import SchemaError
from pcor.public.dates import DAY_TEXT, PERIODS, Span
from pcor.public.schema import Attribute
from pcor.public.wording import sentence, value_text
from tests.helpers.strategies import METRIC, bins_of_dates, contexts, few, near

EDGES = ["2018-01-01", "2018-09-01", "2019-12-31"]
QUARTERS = {"by": "quarter", "from": "2018-01-01", "to": "2019-06-30"}


def schema_of(**declared: Any) -> Schema:
    return Schema(metric=METRIC, attributes={"day": declared})


def attribute_of(**declared: Any) -> Attribute:
    return schema_of(**declared).attributes[0]


# -- what is declared -----------------------------------------------------------------------------


def label(day: dt.date, by: str) -> str:
    """The slow, obvious name of the period that a day is in."""
    quarter = {1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2, 7: 3, 8: 3, 9: 3, 10: 4, 11: 4, 12: 4}
    return {
        "year": day.strftime("%Y"),
        "quarter": f"{day.strftime('%Y')} Q{quarter[day.month]}",
        "month": day.strftime("%Y-%m"),
    }[by]


@few
@given(near, st.integers(0, 800), st.sampled_from(list(PERIODS)))
def test_each_day_of_a_span_is_in_the_bin_that_is_named_like_its_period(
    first: dt.date, more: int, by: str
) -> None:
    span = [first + dt.timedelta(days=place) for place in range(more + 1)]
    attribute = attribute_of(date={"by": by, "from": first, "to": span[-1]})
    assert list(attribute.values) == list(dict.fromkeys(label(day, by) for day in span))
    bins = dict(zip(attribute.values, attribute.days, strict=True))
    for day in span:
        low, high = bins[label(day, by)]
        assert low <= day <= high
    assert attribute.days[0][0] == first
    assert attribute.days[-1][1] == span[-1]


def test_edges_are_dates_of_toml_or_texts_and_bins_are_half_open_but_the_last() -> None:
    text = (
        '[metric]\ncolumn = "m"\n[attributes.day]\nedges = [2018-01-01, 2018-09-01, 2019-12-31]\n'
    )
    written = Schema.from_dict(tomllib.loads(text))
    assert written == Schema(metric="m", attributes={"day": {"edges": EDGES}})
    attribute = written.attributes[0]
    assert attribute.values == ("[2018-01-01, 2018-09-01)", "[2018-09-01, 2019-12-31]")
    assert attribute.days == (
        (dt.date(2018, 1, 1), dt.date(2018, 8, 31)),
        (dt.date(2018, 9, 1), dt.date(2019, 12, 31)),
    )
    assert attribute.kind == "dates"


@few
@given(bins_of_dates())
def test_a_schema_with_dates_is_read_back_from_its_own_file(declared: dict[str, Any]) -> None:
    schema = schema_of(**declared, contexts="range", outside="drop")
    again = Schema.from_dict(tomllib.loads(schema.to_toml()))
    assert again == schema
    assert again.attributes == schema.attributes


def test_the_fingerprint_covers_every_part_of_a_span() -> None:
    others = [{"by": "month"}, {"from": "2018-01-02"}, {"to": "2019-06-29"}]
    found = {schema_of(date=QUARTERS | other).sha256 for other in [{}, *others]}
    assert len(found) == 4
    assert schema_of(edges=EDGES).sha256 != schema_of(edges=[*EDGES[:2], "2019-12-30"]).sha256


def test_bins_of_dates_may_have_names_and_groups() -> None:
    halves = {"before": ["2018 Q1", "2018 Q2", "2018 Q3"], "after": ["2018 Q4", "2019 Q1"]}
    grouped = schema_of(date=QUARTERS, groups=halves)
    assert str(Context(grouped, {"day": ["2018 Q4", "2019 Q1"]})) == "day is after"
    named = schema_of(edges=EDGES, labels=["old terms", "new terms"])
    assert str(Context(named, {"day": ["new terms"]})) == "day is new terms"
    assert attribute_of(date=QUARTERS | {"by": "year"}, labels=["a", "b"]).values == ("a", "b")


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"edges": ["2018-01-01", 3]}, "edges must be all numbers or all dates, not some of each"),
        ({"edges": ["2018-01-01", float("inf")]}, "edges must be all numbers or all dates"),
        ({"edges": ["2019-01-01", "2018-01-01"]}, "edges must rise strictly from each date to"),
        ({"edges": ["2019-01-01", "2019-01-01"]}, "edges must rise strictly"),
        ({"edges": ["2019-01-01"]}, "edges must be at least two dates"),
        ({"edges": ["2019-02-29", "2020-01-01"]}, "'2019-02-29' is not a date; write a day as"),
        ({"edges": ["2019", "2020"]}, "'2019' is not a date; write a day as 2019-03-14"),
        ({"edges": ["20190101", "2020-01-01"]}, "'20190101' is not a date"),
        ({"edges": ["0000-01-01", "2020-01-01"]}, "'0000-01-01' is not a date"),
        ({"edges": [dt.datetime(2019, 1, 1), "2020-01-01"]}, "2019-01-01 00:00:00 is not a date"),
        ({"edges": ["2019-01-01", "9999-12-31"]}, "dates go up to 9999-12-30"),
        ({"edges": EDGES, "unit": "days"}, "a unit follows numbers"),
        ({"edges": EDGES, "other": "x"}, "widen the outer edges or use outside"),
        ({"edges": EDGES, "date": QUARTERS}, "give its values, its edges or its date, only one"),
        ({"values": ["x"], "date": QUARTERS}, "give its values, its edges or its date, only one"),
        ({"date": "quarter"}, 'date must be a table, such as date = { by = "quarter"'),
        ({"date": {"by": "year"}}, "date has no 'from'; the span is declared, never read off"),
        ({"date": QUARTERS | {"form": 1}}, "unknown key 'form'; did you mean 'from'?"),
        ({"date": QUARTERS | {"by": "quater"}}, "not 'quater'; did you mean 'quarter'?"),
        ({"date": QUARTERS | {"by": "week"}}, "divided by one of year, quarter, month, not 'week'"),
        ({"date": QUARTERS | {"by": ["year"]}}, "divided by one of year, quarter, month, not ["),
        ({"date": QUARTERS | {"to": "2017-12-31"}}, "ends on 2017-12-31, before it starts on 2018"),
        ({"date": QUARTERS | {"to": "soon"}}, "'soon' is not a date"),
        ({"date": QUARTERS, "labels": ["a"]}, "labels must be 6 different names"),
        ({"edges": EDGES, "groups": {"2018-01-01": ["[2018-01-01, 2018-09-01)"]}}, "named like a"),
        (
            {"date": QUARTERS | {"by": "month"}, "groups": {"March 2018": ["2018-04"]}},
            "the group 'March 2018' is named like a value",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(declared: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(said)) as refused:
        schema_of(**declared)
    assert str(refused.value).startswith("attribute 'day': ")


# -- words and SQL --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "codes", "said", "condition"),
    [
        (
            {"date": QUARTERS},
            [1],
            "2018 Q2",
            """("day" >= '2018-04-01' AND "day" < '2018-07-01')""",
        ),
        (
            {"date": QUARTERS},
            [1, 2, 3, 4],
            "2018 Q2 to 2019 Q1",
            """("day" >= '2018-04-01' AND "day" < '2019-04-01')""",
        ),
        ({"date": QUARTERS}, [0, 1], "2018 Q1 to 2018 Q2", """"day" < '2018-07-01'"""),
        ({"date": QUARTERS}, [4, 5], "2019 Q1 to 2019 Q2", """"day" >= '2019-01-01'"""),
        (
            {"date": QUARTERS, "outside": "drop"},
            [4, 5],
            "2019 Q1 to 2019 Q2",
            """("day" >= '2019-01-01' AND "day" < '2019-07-01')""",
        ),
        (
            {"date": QUARTERS | {"by": "month"}},
            [2, 3, 4],
            "March 2018 to May 2018",
            """("day" >= '2018-03-01' AND "day" < '2018-06-01')""",
        ),
        ({"date": QUARTERS | {"by": "year"}}, [1], "2019", """"day" >= '2019-01-01'"""),
        ({"edges": EDGES}, [0], "2018-01-01 to 2018-08-31", """"day" < '2018-09-01'"""),
        (
            {"edges": EDGES, "outside": "drop"},
            [1],
            "2018-09-01 to 2019-12-31",
            """("day" >= '2018-09-01' AND "day" < '2020-01-01')""",
        ),
        (
            {"edges": ["2018-12-24", "2018-12-25", "2018-12-26", "2018-12-31"]},
            [1],
            "2018-12-25",
            """("day" >= '2018-12-25' AND "day" < '2018-12-26')""",
        ),
    ],
)
def test_dates_are_said_as_people_say_them_and_selected_exactly(
    declared: dict[str, Any], codes: list[int], said: str, condition: str
) -> None:
    schema = schema_of(**declared)
    values = schema.attributes[0].values
    context = Context(schema, {"day": [values[code] for code in codes]})
    assert str(context) == f"day is {said}"
    assert context.where() == condition
    assert Context.parse(schema, str(context)) == context
    assert Context.parse(schema, f"day is {said}.") == context


def test_a_month_is_known_by_its_name_and_by_its_number() -> None:
    schema = schema_of(date=QUARTERS | {"by": "month"})
    assert Context.parse(schema, "day is 2018-03 to 2018-05") == Context(
        schema, {"day": ["March 2018", "April 2018", "2018-05"]}
    )
    assert value_text(schema.attributes[0], 11) == "December 2018"


@few
@given(st.data(), bins_of_dates())
def test_every_context_over_dates_is_read_back(data: st.DataObject, bins: dict[str, Any]) -> None:
    schema = schema_of(**bins, contexts=data.draw(st.sampled_from(["any", "range"])))
    context = data.draw(contexts(schema))
    assert Context.parse(schema, sentence(schema, context.mask)) == context
    assert Context(schema, context.values) == context


# -- texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("year", [1, 4, 100, 400, 1900, 2000, 2019, 2020, 2100, 9999])
def test_a_text_is_a_day_exactly_where_the_calendar_has_it(year: int) -> None:
    days = {str(dt.date(year, 1, 1) + dt.timedelta(days=place)) for place in range(365)}
    days |= {f"{year:04}-12-31"}
    for month in range(15):
        for day in range(35):
            text = f"{year:04}-{month:02}-{day:02}"
            assert (re.fullmatch(DAY_TEXT, text) is not None) == (text in days)


def test_a_span_of_one_day_is_one_bin() -> None:
    day = dt.date(2018, 4, 1)
    assert Span("month", day, day).edges == (day, day)
    assert attribute_of(date={"by": "month", "from": day, "to": day}).days == ((day, day),)
