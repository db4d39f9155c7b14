"""What a sentence about a context names: for each attribute, the fewest items that say it.

Public: everything here; nothing reads a table. The definition, which brevity and limits on the
length of a sentence count by:

- Of an attribute that may take any of its values nothing is named.
- A set of values that has a name (``Attribute.groups``) is one item: that name.
- An item is one value; in an attribute whose order means something (``Attribute.ordered``) it is an
  unbroken run of values in the declared order, of one or more, as long as it can be.
- Otherwise named are the items of the values that the context has, or else of those that it lacks
  ("any city except Rome"), whichever are fewer. As many of each: those that it has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from pcor.public.schema import Attribute, Schema


class Item(NamedTuple):
    """One thing that is named: the values from one place of the domain to another.

    Attributes:
        first: the place of the first value.
        last: the place of the last one; the same for a single value.
        group: the name that a set of values was declared with, if it is one.
    """

    first: int
    last: int
    group: str | None = None


class Phrase(NamedTuple):
    """What is named of one attribute.

    Attributes:
        attribute: of which.
        items: what is named, in the declared order; nothing where any value will do.
        excepted: whether the items are what the context lacks.
    """

    attribute: Attribute
    items: tuple[Item, ...]
    excepted: bool = False


def phrase(attribute: Attribute, codes: Collection[int]) -> Phrase:
    """Return what is named of an attribute of which a context has the values at these places.

    >>> year = Attribute("year", (2005, 2006, 2007, 2008, 2009))
    >>> phrase(year, [1, 2, 3]).items
    (Item(first=1, last=3, group=None),)
    >>> phrase(Attribute("city", ("Oslo", "Rome", "Bern")), [0, 2])[1:]
    ((Item(first=1, last=1, group=None),), True)
    """
    every, own = range(len(attribute.values)), set(codes)
    for name, members in attribute.groups:
        if own == members:
            return Phrase(attribute, (Item(min(own), max(own), name),))
    has = _items(attribute, [code for code in every if code in own])
    lacks = _items(attribute, [code for code in every if code not in own])
    if not lacks:
        return Phrase(attribute, ())
    return Phrase(attribute, has) if len(has) <= len(lacks) else Phrase(attribute, lacks, True)


def _items(attribute: Attribute, codes: list[int]) -> tuple[Item, ...]:
    """Return a set of values as items."""
    if not attribute.ordered:
        return tuple(Item(code, code) for code in codes)
    return tuple(runs(codes))


def runs(codes: list[int]) -> Iterator[Item]:
    """Yield rising places as unbroken runs, each as long as it can be.

    >>> list(runs([0, 2, 3]))
    [Item(first=0, last=0, group=None), Item(first=2, last=3, group=None)]
    """
    place = 0
    while place < len(codes):
        start = place
        while place + 1 < len(codes) and codes[place + 1] == codes[place] + 1:
            place += 1
        yield Item(codes[start], codes[place])
        place += 1


def phrases(schema: Schema, mask: int) -> tuple[Phrase, ...]:
    """Return what is named of each attribute that a context, given by its bits, restricts."""
    return tuple(
        phrase(attribute, chosen(mask, attribute, offset))
        for attribute, offset, own in zip(
            schema.attributes, schema.offsets, schema.attribute_masks, strict=True
        )
        if mask & own != own
    )


def chosen(mask: int, attribute: Attribute, offset: int) -> list[int]:
    """Return the places of the values that a context has, of the attribute at this offset."""
    return [code for code in range(len(attribute.values)) if mask >> (offset + code) & 1]
