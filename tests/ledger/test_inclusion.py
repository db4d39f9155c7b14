"""Is a certificate in the books? Its entry is found in a chain that is verified as a whole."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

import pcor
from pcor.errors import LedgerError, SignatureError
from pcor.ledger import Ledger
from pcor.public.wording import amount
from pcor.releasing.certificate import without_metric
from tests.helpers.books import release

KEY = pcor.SigningKey.generate()


def test_a_certificate_is_found_by_what_it_says(ledger: Ledger) -> None:
    first, second = release(ledger), release(ledger, key="another draw")
    for released in (first, second):
        found = ledger.find(released.to_dict(key=KEY))
        assert found.answer.content["answer"] == released.to_dict()
        assert found.head == ledger.head()
    assert first.receipt is not None
    assert ledger.find(first.to_dict()).charge.hash == first.receipt.entry
    assert str(found.head) in str(found)
    assert found.charge.hash in str(found)


def test_a_repeated_answer_has_the_same_signed_bytes(ledger: Ledger) -> None:
    first, again = release(ledger), release(ledger)
    assert again.to_json(key=KEY) == first.to_json(key=KEY)
    assert again.to_html(key=KEY) == first.to_html(key=KEY)


@pytest.mark.parametrize(
    "change",
    [
        {"record": 18},
        {"bits": "none"},
        {"epsilon_exact": "0.02"},
        {"engine": "other 1"},
        {"sentence": "Record 17 is a thief."},
        {"software": "pcor 99"},
        {"metric_value": 999.0},
        {"facts": [{"name": "count", "value": 2}]},
        {"note": "checked by us"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_certificate_that_says_something_else_is_in_no_entry(
    ledger: Ledger, change: dict[str, Any]
) -> None:
    certificate = release(ledger).to_dict()
    with pytest.raises(SignatureError, match="is in no entry of the ledger"):
        ledger.find(certificate | change)
    with pytest.raises(SignatureError, match="is in no entry of the ledger"):
        ledger.find({"format": "pcor-release/1"})


def test_an_answer_whose_metric_is_no_longer_told_is_found(ledger: Ledger) -> None:
    released = release(ledger, show_metric=True)
    hiding = pcor.plan(
        released.plan.schema, released.plan.bill.epsilon, detector="grubbs:min_population=5",
        show_metric=False,
    )  # fmt: skip
    told = pcor.Release.from_dict(released.to_dict(), hiding).to_dict(key=KEY)
    assert "metric_value" not in told
    assert "(" + amount(released.to_dict()["metric_value"], None) not in told["sentence"]
    assert ledger.find(told).charge == ledger.find(released.to_dict()).charge
    for other in (
        told | {"sentence": told["sentence"] + " It was fraud."},
        told | {"sentence": released.to_dict()["sentence"]},
        told | {"metric_value": 999.0},
        told | {"software": "pcor 99"},
        released.to_dict() | {"metric_value": 999.0},
    ):
        with pytest.raises(SignatureError, match="is in no entry of the ledger"):
            ledger.find(other)


@pytest.mark.parametrize("unit", ["", " dollars", " points (of 100)"])
@pytest.mark.parametrize("side", ["an outlier by", "unusually high in"])
def test_the_metric_is_cut_out_of_a_sentence_and_nothing_else(unit: str, side: str) -> None:
    rest = 'pay (tail) among all rows where job is ") is an outlier by ".'
    for head in ("Record 3", "If record 3"):
        stored = {"record": 3, "sentence": f"{head} (7,480{unit}) is {side} {rest}"}
        assert without_metric(stored, 7480.0) == f"{head} is an outlier by {rest}"
        assert without_metric(stored, 748.0) is None
        assert without_metric(stored | {"record": 30}, 7480.0) is None


def test_books_that_are_not_whole_prove_nothing(ledger: Ledger) -> None:
    certificate = release(ledger).to_dict()
    with ledger.database.writing() as connection:
        connection.execute(text("UPDATE pcor_entries SET at = '2001-01-01' WHERE number = 1"))
    with pytest.raises(LedgerError, match="nothing is proved by these books"):
        ledger.find(certificate)
