"""Is a certificate in the books? Its entry is found in a chain that is verified as a whole."""

from __future__ import annotations

import pytest
from sqlalchemy import text

import pcor
from pcor.errors import LedgerError, SignatureError
from pcor.ledger import Ledger
from tests.helpers.books import release


def test_a_certificate_is_found_by_what_it_says(ledger: Ledger) -> None:
    first, second = release(ledger), release(ledger, key="another draw")
    key = pcor.SigningKey.generate()
    for released in (first, second):
        found = ledger.find(released.to_dict(key=key))
        assert found.answer.content["answer"] == released.to_dict()
        assert found.head == ledger.head()
    assert first.receipt is not None
    assert ledger.find(first.to_dict()).charge.hash == first.receipt.entry
    assert str(found.head) in str(found)
    assert found.charge.hash in str(found)


def test_a_repeated_answer_has_the_same_signed_bytes(ledger: Ledger) -> None:
    key = pcor.SigningKey.generate()
    first, again = release(ledger), release(ledger)
    assert again.to_json(key=key) == first.to_json(key=key)
    assert again.to_html(key=key) == first.to_html(key=key)


@pytest.mark.parametrize(
    "change", [{"record": 18}, {"bits": "none"}, {"epsilon_exact": "0.02"}, {"engine": "other 1"}]
)
def test_a_certificate_that_says_something_else_is_in_no_entry(
    ledger: Ledger, change: dict[str, str]
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
    told = pcor.Release.from_dict(released.to_dict(), hiding).to_dict()
    assert "metric_value" not in told
    assert ledger.find(told).charge == ledger.find(released.to_dict()).charge


def test_books_that_are_not_whole_prove_nothing(ledger: Ledger) -> None:
    certificate = release(ledger).to_dict()
    with ledger.database.writing() as connection:
        connection.execute(text("UPDATE pcor_entries SET at = '2001-01-01' WHERE number = 1"))
    with pytest.raises(LedgerError, match="nothing is proved by these books"):
        ledger.find(certificate)
