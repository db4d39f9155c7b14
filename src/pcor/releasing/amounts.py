"""Amounts of epsilon and delta as a ledger keeps them: exact fractions, written as text.

Public: everything here. A database's own numbers are floats or of limited length: a hundred times
0.002 is not 0.2 in them. Sums of arbitrary fractions are exact but can grow without end, so the
denominators are bounded: every sum then has a denominator that divides 10^30 * lcm(1..1000), which
has fewer than 470 digits.
"""

from __future__ import annotations

from fractions import Fraction

from pcor.errors import LedgerError, ParameterError
from pcor.public.accounting import exact

PLACES = 30
LARGEST_DENOMINATOR = 1000
LARGEST = 10**9

DAMAGED = (
    "the ledger's books are damaged, so it pays for nothing; `pcor ledger verify` says where. "
    "Restore them from a copy"
)


def amount(number: object, what: str = "epsilon") -> Fraction:
    """Return a positive amount exactly as it was written, or refuse what a ledger cannot keep.

    >>> amount("0.2"), amount("1/3")
    (Fraction(1, 5), Fraction(1, 3))
    """
    found = exact(number, what)
    if 10**PLACES % found.denominator and found.denominator > LARGEST_DENOMINATOR:
        raise ParameterError(
            f"a ledger keeps {what} as a decimal of at most {PLACES} places, or as a fraction with "
            f"a denominator of at most {LARGEST_DENOMINATOR:,}"
        )
    if found > LARGEST:
        raise ParameterError(f"{what} must be at most {LARGEST:,}")
    return found


def read_amount(text: object) -> Fraction:
    """Read an amount back; anything but what ``str`` of a fraction writes is damage.

    >>> read_amount("1/3")
    Fraction(1, 3)
    """
    try:
        found = Fraction(str(text))
    except (ValueError, ZeroDivisionError):
        raise LedgerError(DAMAGED) from None
    if str(found) != text:
        raise LedgerError(DAMAGED)
    return found
