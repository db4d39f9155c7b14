"""Price what a search does, in exact fractions.

Public: everything here. The user gives one number, the total epsilon; the exponent eta of every
draw follows from it. A draw costs eta times its *score range*: how far apart the changes of two
scores can be when one row is added or removed. For scores that one row moves by at most d that is
2*d, and d for a monotone utility under add/remove neighbours (docs/proofs/selection.md). Where all
rows of a person are added or removed at once, it is so many times that (docs/proofs/people.md). Two
price lists:

- ``tight``: what docs/proofs prove. A search with p paid choices makes p+1 draws. The final draw
  gets a public share of the budget, the choices before it the rest; with a delta all of them are
  composed by concentrated differential privacy (docs/proofs/accounting.md, concentrated.md).
- ``paper``: what the paper charges: 2*eta*d a draw, and n+1 draws for n samples of a steered
  search ((2n+2) eps_1, Theorems 5.5 and 5.7), though one less suffices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from pcor.errors import ParameterError, UnknownName, plain
from pcor.public.unit import ROW, PrivacyUnit
from pcor.public.zcdp import range_for, rho_for

ACCOUNTINGS = ("tight", "paper")

# The part of the budget that the final draw of a steered search gets where nobody says otherwise;
# chosen on synthetic tables (studies/split.py, docs/results/split.md).
FINAL_SHARE = Fraction(1, 5)


class PricedSearch(Protocol):
    """What a search declares about its draws; the accountant uses nothing else of it."""

    @property
    def name(self) -> str:
        """What the search is called."""
        ...

    @property
    def paid_choices(self) -> int:
        """The most paid choices made before the final draw."""
        ...

    @property
    def paper_calls(self) -> int:
        """The calls of the exponential mechanism that the paper charges for."""
        ...

    @property
    def share_of_final_draw(self) -> Fraction | None:
        """The part of the budget for the final draw; ``None`` leaves it to the accountant."""
        ...

    @property
    def where_it_starts(self) -> str:
        """Where the start context comes from, in words; empty where there is none."""
        ...


class DeclaredUtility(Protocol):
    """What a utility declares about its scores."""

    @property
    def sensitivity(self) -> int | Fraction:
        """The most that one added or removed row can change any score."""
        ...

    @property
    def monotonic(self) -> bool:
        """Whether an added row changes all scores in one direction."""
        ...


@dataclass(frozen=True)
class PricedStep:
    """One step of a release, and its privacy cost.

    Attributes:
        what: in words.
        calls: how many draws are paid for.
        each: the price of one.
        unit: epsilon, or rho where draws are composed by concentrated differential privacy.
    """

    what: str
    calls: int
    each: Fraction
    unit: str = "epsilon"

    @property
    def cost(self) -> Fraction:
        """What the step costs at most."""
        return self.calls * self.each

    @property
    def priced(self) -> str:
        """What the step costs, written out."""
        if self.calls == 0:
            return "0 (free)"
        return f"{self.calls} x {self.price(self.each)} = {self.price(self.cost)}"

    def price(self, amount: Fraction) -> str:
        """Write an amount with its unit; rho has no short decimals."""
        if self.unit == "epsilon":
            return plain(amount)
        return f"{float(amount):.3g} of rho (zCDP)"

    def to_dict(self) -> dict[str, Any]:
        """Return the step for a certificate."""
        return {
            "what": self.what,
            "calls": self.calls,
            "each": plain(self.each),
            "cost": plain(self.cost),
            "unit": self.unit,
        }


@dataclass(frozen=True)
class PrivacyCost:
    """The privacy cost of a release, step by step.

    Attributes:
        accounting: the price list.
        epsilon: the total, exactly what the user gave.
        delta: 0, or what the user gave.
        eta: the exponent of the final draw.
        step_eta: the exponent of the paid choices before it.
        steps: their costs add up to epsilon, or to the rho that epsilon and delta allow; with
            facts, to the rho that what is left of epsilon allows.
        facts: how much of epsilon pays for numbers about the context drawn.
    """

    accounting: str
    epsilon: Fraction
    delta: Fraction
    eta: Fraction
    step_eta: Fraction
    steps: tuple[PricedStep, ...]
    facts: Fraction = Fraction(0)

    @property
    def draw(self) -> Fraction:
        """What of epsilon pays for the context."""
        return self.epsilon - self.facts

    @property
    def total(self) -> str:
        """What all of it costs, in words."""
        slack = "" if self.delta == 0 else f", delta {plain(self.delta)}"
        return f"epsilon {plain(self.epsilon)}{slack}"


def release_cost(
    search: PricedSearch,
    utility: DeclaredUtility,
    epsilon: Fraction,
    accounting: str,
    delta: Fraction = Fraction(0),
    unit: PrivacyUnit = ROW,
) -> PrivacyCost:
    """Return the privacy cost of a search: the total, split over its draws."""
    if accounting not in ACCOUNTINGS:
        raise UnknownName("accounting", accounting, ACCOUNTINGS)
    doubled = 1 if utility.monotonic and accounting == "tight" else 2
    score_range = doubled * Fraction(utility.sensitivity) * changes_between(utility, unit)
    choices = search.paid_choices
    if delta > 0 and (choices == 0 or accounting == "paper"):
        raise ParameterError(
            "delta pays only where many draws add up (search 'depth_first' or 'breadth_first' with "
            "tight accounting); leave it out"
        )
    if accounting == "paper":
        if search.share_of_final_draw is not None:
            raise ParameterError("the paper's accounting splits evenly; leave final_share out")
        calls = max(choices + 1, search.paper_calls)
        final, each = epsilon / calls * (1 if choices else calls), epsilon / calls
        steps = _steps(search, calls - 1, each, final)
        return PrivacyCost(
            accounting, epsilon, delta, each / score_range, each / score_range, steps
        )
    total = rho_for(epsilon, delta) if delta > 0 else epsilon
    share = FINAL_SHARE if search.share_of_final_draw is None else search.share_of_final_draw
    final = total * share if choices else total
    each = (total - final) / max(choices, 1)
    paid_in = "rho" if delta > 0 else "epsilon"
    eta, step_eta = (
        range_for(x) / score_range if delta > 0 else x / score_range for x in (final, each)
    )
    return PrivacyCost(
        accounting, epsilon, delta, eta, step_eta, _steps(search, choices, each, final, paid_in)
    )


def changes_between(utility: object, unit: PrivacyUnit) -> int:
    """Return how often the sensitivity that a utility declares counts between two neighbours.

    Once for each row that is added or removed. A utility that says what all rows of one person
    change (``per_person``) is counted for each person.
    """
    return unit.changes if getattr(utility, "per_person", False) else unit.row_changes


def pure_dp_cost(epsilon: Fraction, score_range: int) -> PrivacyCost:
    """Price the one draw of a release under pure DP, among all contexts by margin score."""
    eta = epsilon / score_range
    # "soft" is what certificates have called it from the first on; their text stays.
    step = PricedStep(
        "one draw among all contexts that contain the record, by soft score", 1, epsilon
    )
    return PrivacyCost("tight", epsilon, Fraction(0), eta, eta, (step,))


def _steps(
    search: PricedSearch, choices: int, each: Fraction, final: Fraction, unit: str = "epsilon"
) -> tuple[PricedStep, ...]:
    free = Fraction(0)
    steps = []
    if search.where_it_starts:
        steps.append(PricedStep(f"the start context, {search.where_it_starts}", 0, free))
    if search.paid_choices:
        what = "choices of the next context, by utility, at most"
        steps.append(PricedStep(what, choices, each, unit))
    else:
        steps.append(
            PricedStep(f"search {search.name!r} for candidates, by validity alone", 0, free)
        )
    steps.append(PricedStep("the final draw among the candidates, by utility", 1, final, unit))
    return tuple(steps)


def exact(number: object, what: str = "epsilon") -> Fraction:
    """Read a positive number exactly as it was written: 0.2 is one fifth.

    >>> exact(0.2), exact("1e-3"), exact("1/3")
    (Fraction(1, 5), Fraction(1, 1000), Fraction(1, 3))
    """
    # One reader for all spellings. It bounds the exponent: 1e999999999 is a trap, not a number.
    text = "" if isinstance(number, bool | Fraction) else str(number).strip()
    fraction = Fraction(text) if _NUMBER.fullmatch(text) else Fraction(0)
    if isinstance(number, Fraction):
        fraction = Fraction(number)  # an Amount would write itself otherwise into a ledger
    if fraction <= 0:
        pointed = text.replace(",", ".")
        # A point in the place of a comma makes a number of it: that was meant.
        comma = pointed != text and _NUMBER.fullmatch(pointed)
        hint = f"; write a decimal point: {pointed}" if comma else ""
        raise ParameterError(f"{what} must be a positive, finite number such as 0.2{hint}")
    return fraction


_NUMBER = re.compile(
    r"\+?(\d{1,99}/0{0,9}[1-9]\d{0,99}|(\d{1,99}\.?\d{0,99}|\.\d{1,99})([eE][-+]?\d{1,3})?)",
    re.ASCII,
)
