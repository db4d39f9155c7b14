"""Rules of cleaning: what they mean, which are refused, and that they are part of a schema."""

from __future__ import annotations

import pickle
import tomllib
import unicodedata
from typing import Any

import pytest
from hypothesis import given

from pcor import Context, Schema
from pcor.errors import ContextError, SchemaError
from pcor.public.spellings import BLANKS, capitals, folded
from tests.helpers import spellings
from tests.helpers.spellings import ODD, Declared, declarations
from tests.helpers.strategies import many

BOTH = {"strip": True, "ignore_case": True}


def attribute(**declared: Any) -> Any:
    return schema(**declared).attributes[0]


def schema(**declared: Any) -> Schema:
    return Schema(metric="pay", attributes={"job": declared})


# -- what they mean -------------------------------------------------------------------------------


def test_rules_apply_in_their_order() -> None:
    job = attribute(
        values=["Private", "Public"],
        aliases={"Priv.": "Private"},
        merge={"Public": ["State", "Federal"]},
        missing_values=["?", "N/A"],
        **BOTH,
    )
    cells = [" private\u00a0", "PRIV.", "state\n", "Public", "?", " N/A", "n/a", "Privat", "", None]
    assert [job.cell_code(cell) for cell in cells] == [0, 0, 1, 1, -1, -1, -1, -1, -1, -1]


def test_without_rules_a_cell_is_a_value_to_the_letter() -> None:
    job = attribute(values=["Private", " x"])
    assert [job.cell_code(c) for c in ("Private", "private", "Private ", " x", "x")] == [
        *(0, -1, -1, 1, -1)
    ]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("STRASSE", "strasse", True),
        ("Straße", "STRASSE", False),
        ("straße", "STRAẞE", False),
        ("Istanbul", "istanbul", True),
        ("İstanbul", "istanbul", False),
        ("\u0131sparta", "ISPARTA", False),
        ("ΟΔΌΣ", "οδόσ", True),
        ("ΟΔΌΣ", "οδός", False),
        ("École", "éCOLE", True),
        ("\u00e9cole", "e\u0301cole", False),
        ("E\u0301cole", "e\u0301cole", True),
        ("\u212a", "k", False),
        ("ſ", "s", False),  # noqa: RUF001
        ("ǅ", "ǆ", False),
        ("Ǆ", "ǆ", True),
        ("Ж", "ж", True),
        ("\U00010400", "\U00010428", True),
        ("Ა", "ა", False),  # a pair since Unicode 11
    ],
)
def test_case_is_ignored_where_it_is_one_to_one(one: str, other: str, same: bool) -> None:
    for value, cell in ((one, other), (other, one)):
        assert (attribute(values=[value], ignore_case=True).cell_code(cell) == 0) == same


def test_folding_pairs_each_letter_with_one_other_and_moves_no_odd_one() -> None:
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    moved = {letter: folded(letter) for letter in every if folded(letter) != letter}
    assert len(set(moved.values())) == len(moved) > 700
    assert not set(moved) & set(moved.values())
    assert not set(ODD) & (set(moved) | set(moved.values()))
    assert capitals("".join(moved.values())) == moved
    for big, small in moved.items():
        kinds = [unicodedata.ucd_3_2_0.category(letter) for letter in (big, small)]
        assert "Cn" not in kinds  # so no later Unicode moves it


def test_blanks_are_those_that_the_documentation_names() -> None:
    assert BLANKS == spellings.BLANKS
    job = attribute(values=["x"], strip=True)
    assert all(job.cell_code(f"{blank}x{blank}") == 0 for blank in BLANKS)
    assert all(job.cell_code(f"x{other}") == -1 for other in spellings.NOT_BLANKS)


def test_merge_declares_the_values_where_they_are_left_out() -> None:
    merge = {"school": ["9th", "10th"], "HS-grad": [], "college": ["college", "BA", "MA"]}
    left_out = schema(merge=merge)
    assert left_out.attributes[0].values == ("school", "HS-grad", "college")
    cells = ["10th", "HS-grad", "MA", "college", "school", "PhD"]
    assert [left_out.attributes[0].cell_code(cell) for cell in cells] == [0, 1, 2, 2, 0, -1]
    assert left_out == schema(values=["school", "HS-grad", "college"], merge=merge)


def test_a_context_is_given_by_declared_values_only() -> None:
    declared = schema(values=["Private", "Public"], aliases={"Priv.": "Private"}, **BOTH)
    for word in ("Priv.", "private"):
        with pytest.raises(ContextError, match="has no value"):
            Context(declared, {"job": [word]})


@pytest.mark.parametrize(
    ("declared", "values", "condition"),
    [
        ({"merge": {"a": ["x"], "b": ["y", "z"]}}, ["a"], "\"job\" IN ('a', 'x')"),
        ({"merge": {"a": ["x"], "b": ["y", "z"]}}, ["b"], "\"job\" NOT IN ('a', 'x')"),
        (
            {"values": ["1a", "2"], "strip": True},
            ["2"],
            f"TRIM(\"job\", '{BLANKS}') = '2'",
        ),
        (
            {"values": ["1a", "2"], **BOTH, "outside": "drop"},
            ["1a"],
            f"REPLACE(TRIM(\"job\", '{BLANKS}'), 'A', 'a') = '1a'",
        ),
        ({"values": ["1A", "2"], "ignore_case": True}, ["2"], "\"job\" = '2'"),
        (
            {"edges": [0, 9, 99], "outside": "drop", "missing_values": ["0", "50", "100"]},
            ["[0, 9)"],
            '("job" >= 0 AND "job" < 9) AND CAST("job" AS VARCHAR) NOT IN (\'NaN\', \'nan\') '
            'AND "job" <> 0.0',
        ),
        ({"edges": [0, 9, 99], "missing_values": ["0"]}, ["[0, 9)"], '"job" < 9'),
    ],
)
def test_a_condition_is_as_short_as_it_can_be(
    declared: Declared, values: list[str], condition: str
) -> None:
    assert Context(schema(**declared), {"job": values}).where() == condition


# -- part of the schema ---------------------------------------------------------------------------


@many
@given(declared=declarations())
def test_rules_come_back_from_a_file_a_mapping_and_a_pickle(declared: Declared) -> None:
    words = declared.get("missing_values", [])
    made = Schema(metric={"column": "pay", "missing_values": words}, attributes={"a job": declared})
    ways = [
        Schema.from_dict(made.to_dict()),
        Schema.from_dict(tomllib.loads(made.to_toml())),
        pickle.loads(pickle.dumps(made)),  # noqa: S301 (our own)
    ]
    for again in ways:
        assert again == made
        assert again.attributes == made.attributes
        assert again.metric == made.metric
    for key in ("strip", "ignore_case", "aliases", "merge", "missing_values"):
        assert made.to_dict()["attributes"]["a job"].get(key) == declared.get(key)


@pytest.mark.parametrize(
    "rule",
    [
        {"strip": True},
        {"ignore_case": True},
        {"aliases": {"x": "a"}},
        {"aliases": {"x": "b"}},
        {"merge": {"a": ["x"]}},
        {"missing_values": ["x"]},
    ],
    ids=str,
)
def test_every_rule_is_part_of_the_fingerprint(rule: Declared) -> None:
    assert schema(values=["a", "b"], **rule) != schema(values=["a", "b"])


def test_rules_that_are_not_given_leave_the_fingerprint_alone() -> None:
    off: Declared = {"strip": False, "ignore_case": False, "aliases": {}, "merge": {}}
    plain = schema(values=["a", "b"])
    assert schema(values=["a", "b"], missing_values=[], **off).sha256 == plain.sha256
    assert set(plain.to_dict()["attributes"]["job"]) == {"values"}
    assert set(plain.to_dict()["metric"]) == {"column", "missing"}


def test_the_order_of_tables_is_not_part_of_the_fingerprint() -> None:
    rules: list[Declared] = [
        {"aliases": {"x": "a", "y": "b"}, "merge": {"a": ["v"], "b": ["w"]}},
        {"aliases": {"y": "b", "x": "a"}, "merge": {"b": ["w"], "a": ["v"]}},
    ]
    assert len({schema(values=["a", "b"], **rule).sha256 for rule in rules}) == 1


def test_rules_and_a_family_are_declared_together() -> None:
    merge = {"school": ["9th"], "college": ["BA"], "PhD": ["Dr."]}
    job = attribute(merge=merge, groups={"higher": ["college", "PhD"]}, strip=True)
    assert job.cell_code("BA ") == 1
    assert dict(job.groups) == {"higher": frozenset({1, 2})}


# -- bad rules ------------------------------------------------------------------------------------

BAD: list[tuple[Declared, str]] = [
    (
        {"values": ["Private"], "aliases": {"Priv.": "Privat"}},
        "aliases has 'Priv.' for 'Privat', which is none of its values; did you mean 'Private'?",
    ),
    (
        {"values": ["a"], "merge": {"b": ["x"]}},
        "merge has 'x' for 'b', which is none of its values",
    ),
    ({"values": ["a"], "merge": {"b": []}}, "merge has 'b', which is none of its values"),
    (
        {"merge": {"a": ["x"], "b": ["x"]}},
        "aliases and merge have 'x' twice, or as another spelling that is the same",
    ),
    (
        {"merge": {"a": ["x"], "b": ["X "]}, **BOTH},
        "aliases and merge have 'X ' twice, or as another spelling",
    ),
    ({"merge": {"a": ["x"]}, "aliases": {"x": "a"}}, "aliases and merge have 'x' twice"),
    (
        {"values": ["a", "b"], "aliases": {"a": "b"}},
        "aliases has 'a' for 'b', but it is read as the declared value 'a'; declare only one",
    ),
    (
        {"values": ["a", "b"], "aliases": {" A": "a"}, **BOTH},
        "aliases has ' A' for 'a', but it is read as the declared value 'a'; leave it out",
    ),
    ({"merge": {"a": ["b"], "b": []}}, "merge has 'b' for 'a', but it is read as the declared"),
    (
        {"values": ["Private", "private"], "ignore_case": True},
        "the values 'Private' and 'private' are the same by its rules",
    ),
    ({"values": ["a", "a "], "strip": True}, "the values 'a' and 'a ' are the same by its rules"),
    ({"values": ["a"], "strip": "yes"}, "strip must be true or false"),
    ({"values": ["a"], "ignore_case": 1}, "ignore_case must be true or false"),
    ({"values": ["a"], "aliases": ["x"]}, "aliases must be a table of texts"),
    ({"values": ["a"], "aliases": {1: "a"}}, "aliases must be a table of texts"),
    ({"values": ["a"], "aliases": {"x": ["a"]}}, "aliases must have one value for each spelling"),
    (
        {"values": [1], "aliases": {"one": 1}},
        "aliases must have one value for each spelling, a text",
    ),
    ({"merge": {"a": "x"}}, "merge must have a list of spellings for 'a'"),
    ({"merge": {"a": [9]}}, "a spelling must be a text, not 9; put it in quotes"),
    ({"merge": {"a": ["\x1b"]}}, "a character that cannot be printed"),
    ({"values": ["a"], "missing_values": "?"}, "missing_values must be a list of texts"),
    ({"values": ["a"], "missing_values": [-1]}, 'write "-1" for a number, not -1'),
    ({"values": ["a"], "missing_values": [" "]}, "must be a text that is not empty"),
    (
        {"values": ["a"], "missing_values": [" EUR"]},
        "missing_values has ' EUR', with a blank at an end; blanks at the ends of cells are "
        "passed over, so write 'EUR'",
    ),
    ({"values": ["a"], "missing_values": ["?", "?"]}, "missing_values has '?' twice"),
    (
        {"values": ["a"], "missing_values": ["A"], "ignore_case": True},
        "'A' cannot be in missing_values, because it is read as the value 'a'",
    ),
    ({"values": [1, 2], "missing_values": ["1.0"]}, "because it is read as the value 1"),
    ({"edges": [0, 9], "strip": True}, "its values are bins of numbers; leave it out"),
    ({"edges": [0, 9], "merge": {"a": ["1"]}}, "its values are bins of numbers; leave it out"),
    (
        {"date": {"by": "year", "from": "2018-01-01", "to": "2019-12-31"}, "ignore_case": True},
        "ignore_case is a rule for values that are texts, and its values are bins of dates",
    ),
    (
        {"values": [1, 2], "aliases": {"one": "1"}},
        "its values are numbers; leave it out, or write its values as texts",
    ),
    ({"values": [True, False], "strip": True}, "its values are true and false; leave it out, or"),
]


@pytest.mark.parametrize(("declared", "said"), BAD, ids=[said for _, said in BAD])
def test_a_rule_that_cannot_be_is_refused_in_a_sentence(declared: Declared, said: str) -> None:
    with pytest.raises(SchemaError) as refused:
        schema(**declared)
    assert str(refused.value).startswith("attribute 'job': ")
    assert said in str(refused.value)


def test_words_of_the_metric_are_checked_too() -> None:
    for words in ("?", ["?", "?"], [1], [""]):
        with pytest.raises(SchemaError, match=r"metric 'pay': .*missing_values"):
            Schema(
                metric={"column": "pay", "missing_values": words}, attributes={"job": ["a", "b"]}
            )
