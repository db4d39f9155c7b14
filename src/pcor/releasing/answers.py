"""Answers: what is stored for a charge, and given again whenever the same is asked.

Public: everything here. An answer is a released certificate, or an error that the draw ended in:
"there is no valid context" is an output like any other (docs/proofs/README.md, "Errors are
outputs"), so it is paid for, stored and repeated. A source that fails is none: nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pcor.errors import ParameterError, PcorError, SourceError, paid_words, remade
from pcor.releasing.certificate import Release
from pcor.releasing.plan import Plan

ERROR_FORMAT = "pcor-error/1"

# What a draw ends in.
Outcome = Release | PcorError
# A certificate, or an error in its own public words; as JSON has it.
Answer = Mapping[str, Any]


def answer_from(draw: Callable[[], Release]) -> Outcome:
    """Draw; return the release, or the error that is its answer.

    A source that fails raises ``SourceError``: whether a line drops or a disk is full says nothing
    about the request, so the claim stays open and a later draw answers it (docs/proofs/ledger.md).
    """
    try:
        return draw()
    except SourceError:
        raise
    except PcorError as error:
        return error


def write_answer(outcome: Outcome, *, paid: bool = False) -> dict[str, Any]:
    """Return what is stored: the certificate, or the error in its own public words.

    An error that somebody has paid for says so.
    """
    if isinstance(outcome, Release):
        return outcome.to_dict()
    return {
        "format": ERROR_FORMAT,
        "kind": outcome.kind,
        "error": paid_words(outcome) if paid else str(outcome),
        "exit_code": outcome.exit_code,
    }


def read_answer(answer: Answer | None, plan: Plan) -> Release:
    """Return the stored release, or raise the stored error."""
    if not isinstance(answer, Mapping):
        raise ParameterError("this is no answer of pcor: neither a certificate nor an error")
    if answer.get("format") != ERROR_FORMAT:
        return Release.from_dict(answer, plan)
    kinds = {kind.kind: kind for kind in _kinds(PcorError)}
    kind = kinds.get(str(answer.get("kind")), PcorError)
    raise remade(kind, (str(answer.get("error")),))


def _kinds(above: type[PcorError]) -> Iterator[type[PcorError]]:
    # The most general last: a subclass may share its parent's kind.
    for below in above.__subclasses__():
        yield from _kinds(below)
    yield above
