"""Words: what the books and the plans say, put so that people can read it.

Public: everything here, except what is made from an exposure audit. Nothing is computed but sums
and roundings of public numbers, and a rounded number never promises more than the exact one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from pcor.errors import counted, plain
from pcor.public.context import Context
from pcor.public.guarantee import PureDP
from pcor.public.schema import Schema
from pcor.public.wording import marked
from pcor.releasing.plan import Plan
from pcor.releasing.settings import Settings
from pcor.search.blocks import ENUMERATION_LIMIT

# Beyond this a factor says nothing to anybody but that it is large.
_LARGEST_FACTOR = 1000


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


def returns(plan: Plan, record: int | str) -> str:
    """Write what comes back."""
    context = plan.guarantee.returned(record, plan.schema.metric.spoken, plan.promise.validity)
    numbers = "; ".join(plan.accuracy)
    return f"{context} With it come numbers about the group: {numbers}." if numbers else context


def details(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield the settings of a plan, each with its name, for those who want to know."""
    settings = plan.to_dict()
    for name, _, option in Settings.options("service"):
        if name in plan.settings.described() and name in settings:
            yield option.label, _setting(settings[name])
    possible = settings["possible_contexts"]
    yield "Possible groups", f"{possible:,}" if isinstance(possible, int) else str(possible)


def protects(plan: Plan, record: int | str) -> str:
    """Write what is promised, in a sentence or two."""
    promise = plan.promise
    slack = "" if promise.delta == 0 else f", but for a slack of {plain(promise.delta)}"
    unit = promise.unit
    who = "being in the table or not, any one other person"
    if unit.is_person:
        who = f"having their rows in the table or not (up to {unit.rows:,}), any one person"
    bound = (
        f"By {who} changes the chance of any answer by a "
        f"factor of at most {factor(promise.epsilon)}{slack}"
    )
    return plan.guarantee.plainly(bound, record)


def _setting(described: Mapping[str, Any] | list[Any] | str | int) -> str:
    """Write a setting; a detector, a search or a utility with its own, facts by their names.

    >>> _setting({"name": "grubbs", "alpha": 0.05}), _setting("permute_and_flip")
    ('grubbs (alpha 0.05)', 'permute and flip')
    """
    if isinstance(described, list):
        return ", ".join(str(one["name"]) for one in described)
    if not isinstance(described, Mapping):
        return str(described).replace("_", " ")
    rest = ", ".join(f"{name} {value}" for name, value in described.items() if name != "name")
    name = str(described["name"]).replace("_", " ")
    return f"{name} ({rest.replace('_', ' ')})" if rest else name


# -- a schema --------------------------------------------------------------------------------------


def size_of(schema: Schema) -> str:
    """Write how many contexts a record can have by a schema.

    >>> size_of(Schema(metric="pay", attributes={"job": ["CEO", "Cook"], "city": ["Rome"]}))
    'A record can have up to 2 contexts: 3 values of 2 attributes.'
    """
    return (
        f"A record can have up to {counted(schema.most_contexts)} contexts: {schema.width} values "
        f"of {len(schema.attributes)} attributes."
    )


def allowed_by(schema: Schema) -> str:
    """Write what the size of a schema allows, and what would help where it does not."""
    if schema.most_numbered <= ENUMERATION_LIMIT:
        return (
            f"Few enough for everything: the search direct, the guarantee {PureDP.name}, and the "
            "exposure audit of a record."
        )
    if schema.drawable(ENUMERATION_LIMIT):
        return (
            f"Few enough for the search direct and the guarantee {PureDP.name}, and too many for "
            "the exposure audit of a record, which looks at all that there are before the limit "
            "on clauses. Fewer values help."
        )
    return (
        f"Too many for the search direct, the guarantee {PureDP.name} and the exposure audit of a "
        "record; the search that the plan chooses takes any number. Fewer values help, and so do "
        "contexts of one value or of an unbroken run, and a limit on the attributes they restrict."
    )


# -- a context -------------------------------------------------------------------------------------


def grid(schema: Schema, bits: str) -> Iterator[tuple[str, list[tuple[str, bool]]]]:
    """Yield a released context: each attribute, its values, and whether the context has them.

    >>> schema = Schema(metric="pay", attributes={"job": ["CEO", "Cook"], "city": ["Rome"]})
    >>> list(grid(schema, "101"))
    [('job', [('CEO', True), ('Cook', False)]), ('city', [('Rome', True)])]
    """
    yield from marked(schema, Context.from_bits(schema, bits).mask).items()
