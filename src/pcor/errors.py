"""Everything that can be refused, and how it is said.

Every message is built from the request and the schema alone, both public. No message quotes a row,
a count, a score or a draw, so an error can be shown to the analyst and written to a log. That there
is one can depend on rows: docs/proofs/README.md says which do, and how. What only the owner may
read besides, such as the columns of a file, is a note (``add_note``): Python and the command line
show it, the service and the ledger do not. Each kind has a page, ``docs/errors``.

    PcorError                 exit 2, kind "bad_input"
      SchemaError             the schema contradicts itself
      ContextError            a context that the schema does not allow
      SourceError             a file or frame that cannot be read, a missing column
        DomainError           a value outside its declared domain
        MetricError           a metric that is not a finite number
        Unfinished            a source that failed after the charge, before there was an answer
        NotAsked              a record of a list, after the source failed: not charged
      RecordError             no such record, or more than one
      ParameterError          epsilon, samples, alpha, ...
        UnknownName           a detector, search, utility that nobody registered
      StartError              a start context that cannot be one
      TooLarge                a space, or a table, too large for what was asked
      WriteError              an output that cannot be written
      SignatureError          a certificate without a signature, by another key, or changed
      BudgetExceeded          exit 3, the budget cannot pay
        CapExceeded           one release asks for more than any release may
        NoAllotment           an analyst has no part of the budget
      NoValidContext          exit 4, nothing to release
      QuestionClosed          a paid question that its owner has closed
      KeyConflict             a key that another request has used
      LedgerError             exit 5, the ledger cannot be used
        StillRunning          the same request is being answered elsewhere
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, ClassVar


class PcorError(Exception):
    """Something that was asked for cannot be done; the message says what and how to go on."""

    exit_code: ClassVar[int] = 2
    kind: ClassVar[str] = "bad_input"

    def at(self, interface: str) -> str:
        """Return what is said at an interface, "cli" or "service"; ``str`` is for Python."""
        del interface
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # A process pool that cannot read an error waits for ever.
        return remade, (type(self), self.args), self.__dict__


def remade(kind: type[PcorError], args: tuple[Any, ...]) -> PcorError:
    """Return an error with its words; its attributes and notes are set by who copies it."""
    # Not by calling it: some build their message from other arguments.
    return kind.__new__(kind, *args)


class SchemaError(PcorError):
    """The schema is incomplete or contradicts itself."""

    kind = "schema"


class ContextError(PcorError):
    """A context names something the schema does not have, or leaves an attribute empty."""

    kind = "context"


class SourceError(PcorError):
    """The data cannot be read as the schema says."""

    kind = "source"


class DomainError(SourceError):
    """A column holds a value outside its declared domain. The value itself is not named."""

    kind = "domain"


class MetricError(SourceError):
    """The metric column holds something that is not a finite number."""

    kind = "metric"


class Unfinished(SourceError):
    """The source failed while an answer was drawn. It is no answer: nothing is stored."""


class NotAsked(SourceError):
    """The source failed before this record of a list was asked for. Nothing was charged for it."""


class RecordError(PcorError):
    """The queried record does not exist, or its id is not unique."""

    kind = "record"


class ParameterError(PcorError):
    """A parameter is outside what is allowed."""

    kind = "parameter"


class UnknownName(ParameterError):
    """A name nobody registered; the message offers the nearest one that exists."""

    kind = "unknown_name"

    def __init__(self, what: str, name: object, known: Iterable[str]) -> None:
        names = sorted(known)
        super().__init__(
            f"unknown {what} {name!r}{did_you_mean(name, names)}; allowed: {', '.join(names)}"
        )


class StartError(PcorError):
    """The start context does not contain the record, or the record is no outlier there."""

    kind = "start"


class TooLarge(PcorError):
    """The space of contexts, or the table as a whole, is beyond a public limit.

    What can be done about it depends on the interface: Python has arguments, the command line has
    flags, the service has what a dataset is registered with.

    Args:
        what: what is too large, in public words.
        python: what to do in Python.
        cli: what to do on the command line, where that is something else.
        service: what to do at the service and its page.
    """

    kind = "too_large"

    def __init__(self, what: str, *, python: str = "", cli: str = "", service: str = "") -> None:
        super().__init__(f"{what}; {python}" if python else what)
        self._what, self._advice = what, {"cli": cli, "service": service}

    def at(self, interface: str) -> str:
        """Return what is too large, and what to do about it at this interface."""
        advice = self._advice[interface]
        return f"{self._what}; {advice}" if advice else str(self)


class WriteError(PcorError):
    """The output cannot be written; what was there is untouched."""

    kind = "write"


class SignatureError(PcorError):
    """A certificate is not signed, was signed with another key, or was changed since."""

    kind = "signature"


class BudgetExceeded(PcorError):
    """The budget cannot pay for this release. Nothing was spent."""

    exit_code = 3
    kind = "budget_exceeded"

    def __init__(
        self, *, asked: Fraction, left: Fraction, what: str = "epsilon", of: str = "the budget"
    ) -> None:
        self.asked, self.left, self.short_by = Amount(asked), Amount(left), Amount(asked - left)
        super().__init__(
            f"this release asks for {what} {plain(asked)}, {of} has {plain(left)} left: "
            f"short by {plain(self.short_by)}; nothing was spent"
        )


class CapExceeded(BudgetExceeded):
    """One release asks for more than any single release may. Nothing was spent."""

    def __init__(self, *, asked: Fraction, cap: Fraction, of: str) -> None:
        super().__init__(asked=asked, left=cap)
        self.args = (
            f"this release asks for epsilon {plain(asked)}, {of} allows one release {plain(cap)} "
            f"at most: short by {plain(self.short_by)}; nothing was spent",
        )


class NoAllotment(BudgetExceeded):
    """An analyst has nothing of a dataset's budget, spent or not. Nothing was spent."""

    def __init__(self, *, asked: Fraction, delta: Fraction, analyst: str, dataset: str) -> None:
        super().__init__(asked=asked, left=Fraction(0))
        also = f" --delta {plain(delta)}" if delta else ""
        self.args = (
            f"{analyst!r} has no allotment in dataset {dataset!r}; its owner gives one, such as "
            f"`pcor ledger allot LEDGER {shlex.quote(dataset)} {shlex.quote(analyst)} --epsilon "
            f"{plain(asked)}{also}`, or allot in Python; nothing was spent",
        )


NO_CONTEXT = (
    "there is no context in which the record is an outlier by this detector; try another detector "
    "or other settings"
)


class NoValidContext(PcorError):
    """No context was found in which the record is an outlier; there is nothing to release."""

    exit_code = 4
    kind = "no_valid_context"


class QuestionClosed(PcorError):
    """The owner of a dataset has closed a question whose file was replaced after its charge."""

    kind = "closed"


def paid_words(error: PcorError) -> str:
    """Return what an error says that came after the charge: it is an answer too.

    A source that failed gave none; but a budget of this process does not know that it was paid for.
    """
    if isinstance(error, SourceError):
        return f"{error}. There is no answer, but the charge stays; asking again is charged again"
    return f"{error}. This answer is paid for like any other"


class KeyConflict(PcorError):
    """A key stands for one request, and this one is another."""

    kind = "key_conflict"


class LedgerError(PcorError):
    """The ledger cannot be read or written, or its books are damaged."""

    exit_code = 5
    kind = "ledger"


class StillRunning(LedgerError):
    """The same request is being answered by somebody else at this moment."""

    kind = "still_running"


class _Silence:
    """Suppresses warnings while any thread is inside.

    Python keeps its warning filters once per process. Were each thread to set and restore them by
    itself, the first one out would let the others be heard, and the last would leave them silenced
    for good. So the first one in sets them, and the last one out restores them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                # Recorded and thrown away: scikit-learn resets the filters for a moment inside.
                self._caught = warnings.catch_warnings(record=True)
                self._caught.__enter__()
                warnings.simplefilter("ignore")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._caught.__exit__(None, None, None)

    def forget(self) -> None:
        """Begin anew in a forked process, where none of the other threads came along."""
        self._lock = threading.Lock()
        if self._inside:
            self._inside = 0
            self._caught.__exit__(None, None, None)


_silence = _Silence()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_silence.forget)


@contextmanager
def others_code(what: str) -> Iterator[None]:
    """Run code that is not ours; what it says when it warns or fails can hold private rows.

    Any number of threads may be inside, and inside one another.
    """
    try:
        with _silence:
            yield
    except PcorError:
        raise
    except Exception as error:
        raise ParameterError(
            f"{what} failed with a {type(error).__name__}; try it on a table that is not private"
        ) from None


def check_whole(what: str, number: object, most: int | None = None, *, least: int = 1) -> None:
    """Refuse a parameter that is not a whole number, or below or above a limit."""
    whole = isinstance(number, int) and not isinstance(number, bool)
    if not whole or number < least or (most is not None and number > most):  # type: ignore[operator]
        allowed = f"of at least {least}" if most is None else f"from {least} to {most:,}"
        raise ParameterError(f"{what} must be a whole number {allowed}")


def counted(number: int) -> str:
    """Write a public count; huge ones as a power of two.

    >>> counted(4194304), counted(2**200)
    ('4,194,304', '2^200')
    """
    return f"{number:,}" if number < 1 << 64 else f"2^{number.bit_length() - 1}"


# Control characters but the tab and the line breaks, which real headers have; signs that turn the
# order of the text around them; halves of surrogate pairs, which UTF-8 cannot hold.
_ODD_CHARACTER = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)

UNPRINTABLE = (
    "holds a character that cannot be printed: a control character, a sign that reverses the "
    "order of text, or half of a surrogate pair. Leave it out"
)


def is_printable(text: str) -> bool:
    r"""Whether a text can be shown, stored and sent.

    >>> is_printable("S\u00e3o Paulo\t"), is_printable("\ud800"), is_printable("\x1b")
    (True, False, False)
    """
    return _ODD_CHARACTER.search(text) is None


def sendable(text: str) -> str:
    r"""Return a text as UTF-8 can hold it; what it cannot is written as JSON escapes it.

    >>> sendable("\ud800")
    '\\ud800'
    """
    return text.encode("utf-8", "backslashreplace").decode()


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return ``; did you mean 'city'?`` for the nearest public name, or nothing; case is ignored.

    >>> did_you_mean("CTIY", ["city", "job"])
    "; did you mean 'city'?"
    """
    written = {str(k).casefold(): str(k) for k in known}
    near = difflib.get_close_matches(str(name).casefold(), written, n=1)
    return f"; did you mean {written[near[0]]!r}?" if near else ""


class Amount(Fraction):
    """An exact fraction that is shown the way people write it.

    >>> print(Amount(14, 5), Amount(1, 3))
    2.8 1/3
    """

    __slots__ = ()

    def __str__(self) -> str:
        return plain(self)

    def __repr__(self) -> str:
        return f"Amount('{self}')"

    def __format__(self, how: str) -> str:
        return super().__format__(how) if how else str(self)


def plain(number: Fraction) -> str:
    """Write an exact fraction the way people do: as a decimal where it ends, else as a/b.

    >>> plain(Fraction(1, 5)), plain(Fraction(1, 3)), plain(Fraction(2))
    ('0.2', '1/3', '2')
    """
    places = next((p for p in range(31) if 10**p % number.denominator == 0), None)
    if places is None:
        return f"{number.numerator}/{number.denominator}"
    digits = f"{abs(number.numerator) * 10**places // number.denominator:0{places + 1}d}"
    sign = "-" if number < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"
