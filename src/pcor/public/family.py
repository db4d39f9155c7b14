"""Families: which sets of values a context may have, so that people would say it.

Public: everything here. The paper allows every set of values. A schema may allow less, attribute by
attribute: ``"any"`` set, a ``"range"`` (an unbroken run in the declared order), ``"one"`` value, or
declared groups, which may nest. F(V), the contexts of the family that contain the values of a
record V, is public given V; COE is then the valid contexts in F(V), and every proof holds with it
(docs/proofs/families.md).

Each of these is a product of chains. Whoever starts from V's own value of an attribute adds values
in steps: any other value on its own (chains of one step each), all others at once (one chain of one
step), the next value below or above (two chains), or what a group has beyond the smaller one (one
chain). A member of the family is how far up each chain goes, so members are numbered, counted and
summed over without being listed.

What a schema limits beyond that (``max_clauses``, ``max_named``) is a condition on members.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations, pairwise, product
from math import comb, prod
from typing import TYPE_CHECKING, Any

from pcor.errors import SchemaError, did_you_mean, is_printable
from pcor.support.arrays import NDArray, np

if TYPE_CHECKING:
    from pcor.public.domain import Attribute, Value

KINDS = ("any", "range", "one")

# How bins that touch are written: "18 to under 65", "under 18", "65 or more"; a day is one, too.
_LIKE_BINS = re.compile(r"^under |\bto\b| or more$|^\d{4}-\d{2}-\d{2}$", re.IGNORECASE)

# Declared groups: the name of each, and the places of its values in the domain.
Groups = tuple[tuple[str, frozenset[int]], ...]

# For each chain the values that each of its steps adds, as bits of the attribute.
Chains = tuple[tuple[int, ...], ...]

# Where limits hold, contexts are listed if no attribute has more sets with a record's value.
MOST_SETS = 1 << 16

# How many sets there are of so many clauses (0 or 1) and so many named items.
Sizes = Mapping[tuple[int, int], int]


# -- what is declared -----------------------------------------------------------------------------


def check_kind(name: str, kind: object) -> str:
    """Return the family of an attribute, or refuse a word that is none.

    Raises:
        SchemaError: there is no such family.
    """
    if kind not in KINDS:
        raise SchemaError(
            f"attribute {name!r}: contexts must be one of {', '.join(KINDS)}, not {kind!r}"
            f"{did_you_mean(kind, KINDS)}"
        )
    return str(kind)


def read_groups(attribute: Attribute, declared: object) -> Groups:
    """Return the groups of an attribute, smallest first; members are values or other groups.

    Raises:
        SchemaError: a group is empty, has the name of a value, names what is not there, or overlaps
            with another without one being inside the other.
    """
    who = f"attribute {attribute.name!r}"
    if not isinstance(declared, Mapping) or not declared:
        raise SchemaError(
            f'{who}: groups must map each name to its values: {{ Ontario = ["Ottawa", "Toronto"] }}'
        )
    for name in declared:
        _check_group_name(attribute, name)
    found = {name: _members(attribute, declared, name, ()) for name in declared}
    everything = frozenset(range(len(attribute.values)))
    for name, members in found.items():
        if members == everything:
            raise SchemaError(f"{who}: the group {name!r} has all values; leave it out")
    for (one, some), (other, others) in combinations(found.items(), 2):
        if some == others:
            raise SchemaError(f"{who}: the groups {one!r} and {other!r} have the same values")
        if some & others and not (some < others or others < some):
            raise SchemaError(
                f"{who}: the groups {one!r} and {other!r} overlap; of two groups one must be "
                "inside the other, or they must have no value in common"
            )
    # In one order however they are declared: it is part of the schema's fingerprint.
    return tuple(sorted(found.items(), key=lambda group: (len(group[1]), sorted(group[1]))))


def _check_group_name(attribute: Attribute, name: object) -> None:
    from pcor.public.domain import find_code  # it declares families, with this module

    who = f"attribute {attribute.name!r}"
    if not isinstance(name, str) or not name or not is_printable(name):
        raise SchemaError(f"{who}: a group needs a name: a text that can be printed")
    if find_code(attribute, name) >= 0:
        raise SchemaError(f"{who}: the group {name!r} is named like a value; give it another name")
    if attribute.edges is not None and _LIKE_BINS.search(name):
        raise SchemaError(
            f"{who}: the group {name!r} is named like a range of bins, which a context may have "
            "too; give it a name of its own"
        )


def _members(
    attribute: Attribute, declared: Mapping[str, Any], name: str, inside: tuple[str, ...]
) -> frozenset[int]:
    """Return the places of a group's values; ``inside`` are the groups that led here."""
    who, members = f"attribute {attribute.name!r}", declared[name]
    if name in inside:
        raise SchemaError(f"{who}: the group {name!r} is inside itself")
    if isinstance(members, str) or not isinstance(members, Sequence):
        raise SchemaError(f"{who}: the group {name!r} must be a list of values")
    if not members:
        raise SchemaError(f"{who}: the group {name!r} is empty")
    found: set[int] = set()
    for member in members:
        if isinstance(member, str) and member in declared:
            places = _members(attribute, declared, member, (*inside, name))
        else:
            places = frozenset([_place(attribute, name, member)])
        if found & places:
            raise SchemaError(f"{who}: the group {name!r} has {member!r} twice")
        found |= places
    return frozenset(found)


def _place(attribute: Attribute, group: str, value: Value) -> int:
    from pcor.public.domain import find_code  # it declares families, with this module

    place = find_code(attribute, value)
    if place < 0:
        raise SchemaError(
            f"attribute {attribute.name!r}: the group {group!r} has {value!r}, which is no value "
            f"or group of it{did_you_mean(value, attribute.values)}"
        )
    return place


# -- chains ---------------------------------------------------------------------------------------


def chains(attribute: Attribute, own: int) -> Chains:
    """Return the chains that start from one value: what each step adds, as bits.

    >>> from pcor.public.domain import Attribute
    >>> chains(Attribute("year", (2006, 2007, 2008, 2009), contexts="range"), 1)
    ((1,), (4, 8))
    """
    count = len(attribute.values)
    everything, start = (1 << count) - 1, 1 << own
    if attribute.groups:
        return _ladder([start, *_groups_with(attribute, own), everything])
    if attribute.contexts == "range":
        down = tuple(1 << place for place in range(own - 1, -1, -1))
        up = tuple(1 << place for place in range(own + 1, count))
        return tuple(chain for chain in (down, up) if chain)
    if attribute.contexts == "one":
        return _ladder([start, everything])
    return tuple((1 << place,) for place in range(count) if place != own)


def _groups_with(attribute: Attribute, own: int) -> list[int]:
    return [sum(1 << place for place in group) for _, group in attribute.groups if own in group]


def _ladder(sets: Sequence[int]) -> Chains:
    """Return one chain through sets, each inside the next; sets that are the same once."""
    steps = tuple(larger & ~smaller for smaller, larger in pairwise(sets) if larger & ~smaller)
    return (steps,) if steps else ()


def every_set(attribute: Attribute) -> Sequence[int]:
    """Return the sets that the family allows with one value or another, as rising bits.

    Whichever of them contains a value is one that the family allows with it.

    >>> from pcor.public.domain import Attribute
    >>> every_set(Attribute("year", (2006, 2007, 2008), contexts="range"))
    [1, 2, 3, 4, 6, 7]
    """
    count = len(attribute.values)
    if attribute.groups or attribute.contexts == "one":
        named = (sum(1 << place for place in group) for _, group in attribute.groups)
        return sorted({*(1 << place for place in range(count)), *named, (1 << count) - 1})
    if attribute.contexts == "range":
        ends = combinations(range(count + 1), 2)
        return sorted((1 << last) - (1 << first) for first, last in ends)
    return range(1, 1 << count)


# -- what a sentence names ------------------------------------------------------------------------


def named_items(attribute: Attribute, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many items the words for each set of values name; one row for each set.

    Nothing where all values are chosen; one for a declared group. Otherwise the values, or those
    left out ("any employer except York"), whichever are fewer; in a declared order an unbroken run
    is one item ("2006 to 2008"). ``phrase.phrase`` says the same of one set.
    """
    if attribute.ordered:
        listed, left_out = _runs(chosen), _runs(~chosen)
    else:
        listed = chosen.sum(axis=1)
        left_out = chosen.shape[1] - listed
    named: NDArray[np.int64] = np.where(left_out == 0, 0, np.minimum(listed, left_out))
    for _, group in attribute.groups:
        members = np.zeros(chosen.shape[1], dtype=bool)
        members[list(group)] = True
        named[(chosen == members).all(axis=1)] = 1
    return named


def _runs(chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many unbroken runs each row has."""
    begins = chosen.copy()
    begins[:, 1:] &= ~chosen[:, :-1]
    runs: NDArray[np.int64] = begins.sum(axis=1)
    return runs


# -- how many -------------------------------------------------------------------------------------

# Attributes with more values are counted without looking at each of them.
_LOOKED_AT = 64


@cache
def most_sets(attribute: Attribute) -> int:
    """Return how many sets of the family contain a value, for the value that has most."""
    return max(prod(len(chain) + 1 for chain in chains(attribute, own)) for own in _owns(attribute))


@cache
def most_steps(attribute: Attribute) -> int:
    """Return how many steps there are from a value to all of them, for the value with most."""
    return max(sum(map(len, chains(attribute, own))) for own in _owns(attribute))


@cache
def most_sizes(attribute: Attribute, max_named: int | None) -> Sizes:
    """Return how many sets there are by clauses and named items, at most for any value.

    Without a limit on items they are not told apart: they count as none.
    """
    restricted = most_sets(attribute) - 1
    if max_named is None:
        return {(0, 0): 1, (1, 0): restricted}
    if not attribute.takes_any_set:  # a range, a value, a group: one item
        return {(0, 0): 1, (1, 1): restricted}
    by_items = (
        _by_runs(attribute, max_named)
        if attribute.ordered
        else _by_values(len(attribute.values), max_named)
    )
    return {(0, 0): 1} | {(1, items): sets for items, sets in by_items.items()}


def every_size(attribute: Attribute, max_named: int | None) -> Sizes:
    """Return the same for the sets with one value or another."""
    count = len(attribute.values)
    if not attribute.takes_any_set:
        sets = count * (count + 1) // 2 if attribute.contexts == "range" else None
        restricted = (len(every_set(attribute)) if sets is None else sets) - 1
        return {(0, 0): 1, (1, 0 if max_named is None else 1): restricted}
    if max_named is None:
        return {(0, 0): 1, (1, 0): (1 << count) - 2}
    by_items = (
        _runs_around(count, -1, max_named)
        if attribute.ordered
        else _by_values(count, max_named, given=0)
    )
    return {(0, 0): 1} | {(1, items): sets for items, sets in by_items.items()}


def _owns(attribute: Attribute) -> Sequence[int]:
    """Return places to look at, of which one has most of whatever is counted."""
    last = len(attribute.values) - 1
    if attribute.groups:
        return range(last + 1)
    # In the middle there are most ranges; otherwise all are alike.
    return [last // 2] if attribute.contexts == "range" else [0]


def _by_values(count: int, most: int, *, given: int = 1) -> dict[int, int]:
    """Return how many sets with one given value, but not all values, name so many values."""
    found: dict[int, int] = {}
    for size in {*range(1, min(most + 1, count)), *range(max(1, count - most), count)}:
        items = min(size, count - size)
        found[items] = found.get(items, 0) + comb(count - given, size - given)
    return found


def _by_runs(attribute: Attribute, most: int) -> dict[int, int]:
    """Return the same for values in order, where a run is one item: most for any value."""
    count = len(attribute.values)
    found: dict[int, int] = {}
    # A bound where there are many values: sets of whatever values.
    for own in range(count) if count <= _LOOKED_AT else [-1]:
        for items, sets in _runs_around(count, own, most).items():
            found[items] = max(found.get(items, 0), sets)
    return found


def _runs_around(count: int, own: int, most: int) -> dict[int, int]:
    """Count sets with the value at a place (-1: any), value by value.

    A state is whether the last value is in, the runs of values that are in, and of those out.
    """
    states: dict[tuple[bool | None, int, int], int] = {(None, 0, 0): 1}
    for place in range(count):
        after: dict[tuple[bool | None, int, int], int] = {}
        for (last, runs, gaps), sets in states.items():
            for now in (True,) if place == own else (True, False):
                key = (now, runs + (now and not last), gaps + (not now and last is not False))
                if min(key[1:]) <= most:  # runs never become fewer
                    after[key] = after.get(key, 0) + sets
        states = after
    found: dict[int, int] = {}
    for (_, runs, gaps), sets in states.items():
        if runs and gaps:
            items = min(runs, gaps)
            found[items] = found.get(items, 0) + sets
    return found


def combined(sizes: Sequence[Sizes], max_clauses: int | None, max_named: int | None) -> int:
    """Return how many members there are within the limits, given the sets of each attribute."""
    totals: dict[tuple[int, int], int] = {(0, 0): 1}
    for one in sizes:
        after: dict[tuple[int, int], int] = {}
        for ((clauses, named), count), ((more, items), sets) in product(
            totals.items(), one.items()
        ):
            key = (clauses + more, named + items)
            if within(key[0], max_clauses) and within(key[1], max_named):
                after[key] = after.get(key, 0) + count * sets
        totals = after
    return sum(totals.values())


def within(number: int, limit: int | None) -> bool:
    """Tell whether a number is within a limit, where there is one."""
    return limit is None or number <= limit
