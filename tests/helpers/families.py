"""Families by their definition, and random schemas that mix them."""

from __future__ import annotations

import random
from itertools import combinations, product
from typing import Any

from pcor import Context, Schema
from pcor.public.schema import Attribute


def sets_of(attribute: Attribute, own: int) -> list[frozenset[int]]:
    """Return the sets of places that a family allows with a record's own value."""
    places = range(len(attribute.values))
    every = [frozenset(s) for n in places for s in combinations(places, n + 1) if own in s]
    return [chosen for chosen in every if allowed(attribute, chosen, own)]


def allowed(attribute: Attribute, chosen: frozenset[int], own: int) -> bool:
    """Tell whether a set is in the family, by what DESIGN says of each kind."""
    if len(chosen) == len(attribute.values):
        return True
    if attribute.groups:
        return chosen == {own} or any(chosen == group for _, group in attribute.groups)
    if attribute.contexts == "one":
        return chosen == {own}
    if attribute.contexts == "range":
        return max(chosen) - min(chosen) == len(chosen) - 1
    return True


def items(attribute: Attribute, chosen: frozenset[int]) -> int:
    """Return how many items the words for a set name."""
    rest = frozenset(range(len(attribute.values))) - chosen
    if not rest:
        return 0
    if any(chosen == group for _, group in attribute.groups):
        return 1
    return min(_listed(attribute, chosen), _listed(attribute, rest))


def _listed(attribute: Attribute, places: frozenset[int]) -> int:
    if not attribute.ordered:
        return len(places)
    return sum(place - 1 not in places for place in places)


def members(schema: Schema, codes: tuple[int, ...]) -> list[int]:
    """Return the contexts of the family with a record's values, as masks."""
    found = []
    of_each = [sets_of(a, own) for a, own in zip(schema.attributes, codes, strict=True)]
    for chosen in product(*of_each):
        named = [items(a, s) for a, s in zip(schema.attributes, chosen, strict=True)]
        clauses = sum(n > 0 for n in named)
        if schema.max_clauses is not None and clauses > schema.max_clauses:
            continue
        if schema.max_named is not None and sum(named) > schema.max_named:
            continue
        found.append(
            Context(
                schema,
                {
                    a.name: [a.values[place] for place in s]
                    for a, s in zip(schema.attributes, chosen, strict=True)
                },
            ).mask
        )
    return found


def random_schema(numbers: random.Random, largest: int = 5, *, limits: bool = True) -> Schema:
    """Return a schema of two to four attributes in families of every kind, perhaps with limits."""
    count = numbers.randint(2, 4)
    attributes = {f"a{n}": _domain(numbers, largest) for n in range(count)}
    if not limits:
        return Schema(metric="metric", attributes=attributes)
    return Schema(
        metric="metric",
        attributes=attributes,
        max_clauses=numbers.choice([None, None, *range(count + 1)]),
        max_named=numbers.choice([None, None, 0, 1, 2, 4]),
    )


def with_steps(count: int) -> Schema:
    """Return a schema in which so many values may come or go."""
    return Schema(metric="metric", attributes={"a": [f"v{n}" for n in range(count + 1)]})


def _domain(numbers: random.Random, largest: int) -> dict[str, Any]:
    size = numbers.randint(1, largest)
    words: list[Any] = [f"v{n}" for n in range(size)]
    values = numbers.choice([words, list(range(2000, 2000 + size))])
    kind = numbers.choice(["any", "any", "range", "one", "groups"])
    if kind == "groups":
        groups = _groups(numbers, values)
        return {"values": values, "groups": groups} if groups else {"values": values}
    return {"values": values, "contexts": kind}


def _groups(numbers: random.Random, values: list[Any]) -> dict[str, list[Any]]:
    """Return some groups, of which one may be inside another."""
    if len(values) < 3:
        return {}
    shuffled = numbers.sample(values, len(values))
    large = shuffled[: numbers.randint(2, len(values) - 1)]
    groups: dict[str, list[Any]] = {"large": large}
    if len(large) > 2:
        groups["inner"] = large[: numbers.randint(1, len(large) - 1)]
    if len(values) - len(large) > 1:
        groups["rest"] = shuffled[len(large) :]
    return groups
