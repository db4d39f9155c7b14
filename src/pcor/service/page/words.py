"""Words: what the books and the plans say, put so that people can read it.

Public: everything here, except what is made from an exposure audit. Nothing is computed but sums
and roundings of public numbers, and a rounded number never promises more than the exact one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from pcor.errors import plain
from pcor.ledger import Account
from pcor.ledger.entries import amount_in_words
from pcor.public.context import Context
from pcor.public.schema import Schema
from pcor.public.wording import marked
from pcor.releasing.plan import Plan
from pcor.releasing.settings import Settings

# Beyond this a factor says nothing to anybody but that it is large.
_LARGEST_FACTOR = 1000
# Values of one attribute that are shown at once; more are folded.
SHOWN_VALUES = 60


def moment(at: int | str) -> str:
    """Write a time, given in seconds since 1970 or as the books write it.

    >>> moment(0), moment("2026-03-01T09:05:00Z"), moment("")
    ('1 Jan 1970, 00:00 UTC', '1 Mar 2026, 09:05 UTC', '')
    """
    if at == "":
        return ""
    when = datetime.fromisoformat(at) if isinstance(at, str) else datetime.fromtimestamp(at, UTC)
    return f"{when.day} {when:%b %Y, %H:%M} UTC"


def day(at: int) -> str:
    """Write the day of a time in seconds since 1970.

    >>> day(0)
    '1 Jan 1970'
    """
    return moment(at).partition(",")[0]


def factor(epsilon: Fraction) -> str:
    """Write exp(epsilon), rounded up; a large one as a power of e.

    >>> factor(Fraction(1, 10)), factor(Fraction(20))
    ('1.11', 'e^20')
    """
    if epsilon > math.log(_LARGEST_FACTOR):
        return f"e^{plain(epsilon)}"
    return f"{math.ceil(math.exp(epsilon) * 100) / 100:.2f}"


def releases(number: int) -> str:
    """Write how many releases something pays for.

    >>> releases(1), releases(1200)
    ('1 release', '1,200 releases')
    """
    return "1 release" if number == 1 else f"{number:,} releases"


# -- a plan ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlanView:
    """A plan in plain words.

    Attributes:
        cost: epsilon, and delta where there is one.
        protects: what is promised, in a sentence or two.
        kind: which kind of promise that is.
        is_relaxed: whether it is the weaker kind.
        returns: what comes back.
        definition: the guarantee's full name.
        not_protected: who or what it does not speak of.
        details: name -> setting, for those who want to know.
        steps: what is done, and the cost of each.
    """

    cost: str
    protects: str
    kind: str
    is_relaxed: bool
    returns: str
    definition: str
    not_protected: tuple[str, ...]
    details: tuple[tuple[str, str], ...]
    steps: tuple[str, ...]


def plan_in_words(plan: Plan, record: int | str) -> PlanView:
    """Return a plan as people read it; from public knowledge alone."""
    promise, metric = plan.promise, plan.schema.metric.spoken
    settings = plan.to_dict()
    possible = settings["possible_contexts"]
    return PlanView(
        cost=plan.bill.total,
        protects=_protects(plan, record),
        kind=plan.guarantee.kind,
        is_relaxed=plan.guarantee.relaxed,
        returns=plan.guarantee.returned(record, metric, promise.validity),
        definition=promise.definition,
        not_protected=promise.not_protected,
        details=(
            *(
                (option.label, _setting(settings[name]))
                for name, _, option in Settings.options("service")
                if name in plan.settings.described() and name in settings
            ),
            ("Possible groups", f"{possible:,}" if isinstance(possible, int) else str(possible)),
        ),
        steps=tuple(f"{step.what}: {step.priced}" for step in plan.bill.steps),
    )


def _protects(plan: Plan, record: int | str) -> str:
    promise = plan.promise
    slack = "" if promise.delta == 0 else f", but for a slack of {plain(promise.delta)}"
    bound = (
        "By being in the table or not, any one other person changes the chance of any answer by a "
        f"factor of at most {factor(promise.epsilon)}{slack}"
    )
    return plan.guarantee.plainly(bound, record)


def _setting(described: Mapping[str, Any] | str | int) -> str:
    """Write a setting; a detector, a search or a utility with its own.

    >>> _setting({"name": "grubbs", "alpha": 0.05}), _setting("permute_and_flip")
    ('grubbs (alpha 0.05)', 'permute and flip')
    """
    if not isinstance(described, Mapping):
        return str(described).replace("_", " ")
    rest = ", ".join(f"{name} {value}" for name, value in described.items() if name != "name")
    name = str(described["name"]).replace("_", " ")
    return f"{name} ({rest.replace('_', ' ')})" if rest else name


# -- a context -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GridRow:
    """One attribute of a context.

    Attributes:
        name: of the attribute.
        values: each value of its domain, and whether the context has it.
    """

    name: str
    values: tuple[tuple[str, bool], ...]

    @property
    def is_any(self) -> bool:
        """Whether the attribute may take any value."""
        return all(chosen for _, chosen in self.values)

    @property
    def is_long(self) -> bool:
        """Whether there are too many values to show at once."""
        return len(self.values) > SHOWN_VALUES

    @property
    def summary(self) -> str:
        """How many values of how many; both are in the released context."""
        if self.is_any:
            return f"any of {len(self.values)}"
        return f"{sum(chosen for _, chosen in self.values)} of {len(self.values)}"


def grid(schema: Schema, bits: str) -> tuple[GridRow, ...]:
    """Return a released context as rows of attributes and values.

    >>> schema = Schema(metric="pay", attributes={"job": ["CEO", "Cook"], "city": ["Rome"]})
    >>> [(row.name, row.summary) for row in grid(schema, "101")]
    [('job', '1 of 2'), ('city', 'any of 1')]
    """
    mask = Context.from_bits(schema, bits).mask
    return tuple(GridRow(name, tuple(values)) for name, values in marked(schema, mask).items())


# -- the books -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AccountView:
    """An account with a bar.

    Attributes:
        name: whose.
        left: what can still be spent.
        total: of how much.
        percent: what is left of it, in percent.
        spent_ocdp: on releases with the relaxed guarantee.
        spent_dp: on releases that protect everyone but the record.
        cap: the most for one release, if there is such a limit.
        closed: whether it was taken back.
        spent: on all releases.
    """

    name: str
    left: str
    total: str
    percent: float
    spent_ocdp: str
    spent_dp: str
    cap: str | None
    closed: bool
    spent: str


def account_in_words(account: Account) -> AccountView:
    """Return an account as it is shown."""
    share = float(account.left / account.epsilon) if account.epsilon else 0.0
    return AccountView(
        account.analyst or account.dataset,
        amount_in_words(account.left),
        amount_in_words(account.epsilon),
        round(100 * share, 2),
        amount_in_words(account.spent_ocdp),
        amount_in_words(account.spent_dp),
        None if account.cap is None else amount_in_words(account.cap),
        account.closed,
        amount_in_words(account.spent),
    )
