"""Errors: each of them survives a copy and a pickle, as a process pool needs."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

from pcor.client import ServiceError
from pcor.errors import (
    BudgetExceeded,
    CapExceeded,
    NoAllotment,
    PcorError,
    UnknownName,
)
from pcor.service.core.sources import SourceChanged

# Those that are made from more than their words.
ARGUMENTS: dict[type[PcorError], dict[str, Any]] = {
    BudgetExceeded: {"asked": Fraction(1, 3), "left": Fraction(1, 5), "of": "the budget of 'a'"},
    CapExceeded: {"asked": Fraction(1, 3), "cap": Fraction(1, 5), "of": "dataset 'a'"},
    NoAllotment: {"asked": Fraction(1), "delta": Fraction(0), "analyst": "a b", "dataset": "c"},
    UnknownName: {"what": "detector", "name": "loff", "known": ["lof", "grubbs"]},
    ServiceError: {"detail": "not now", "kind": "busy", "status": 503},
    SourceChanged: {},
}


def kinds(above: type[PcorError] = PcorError) -> Iterator[type[PcorError]]:
    """Yield every error of the library, the client and the service; not those of tests."""
    if above.__module__.startswith("pcor."):
        yield above
    for below in above.__subclasses__():
        yield from kinds(below)


def made(kind: type[PcorError]) -> PcorError:
    """Return an error of a kind, with a note."""
    given = ARGUMENTS.get(kind)
    error = kind("that cannot be") if given is None else kind(**given)
    error.add_note("only the owner reads this")
    return error


def pickled(error: PcorError) -> PcorError:
    again: PcorError = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own)
    return again


@pytest.mark.parametrize("through", [pickled, copy.copy, copy.deepcopy], ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", list(kinds()), ids=lambda kind: kind.__name__)
def test_an_error_is_the_same_after_a_copy_or_a_pickle(
    kind: type[PcorError], through: Callable[[PcorError], PcorError]
) -> None:
    error = made(kind)
    again = through(error)
    assert again is not error
    assert type(again) is kind
    assert (str(again), again.args) == (str(error), error.args)
    assert vars(again) == vars(error)
    assert again.__notes__ == ["only the owner reads this"]


def _refuse(_: int) -> None:
    raise made(BudgetExceeded)


def test_a_process_pool_hands_on_the_refusal_of_a_budget() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        waiting = pool.map_async(_refuse, [1])
        with pytest.raises(BudgetExceeded, match="short by 2/15") as caught:
            waiting.get(timeout=60)
    assert caught.value.short_by == Fraction(2, 15)
