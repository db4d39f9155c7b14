"""A context: a set of attribute values, at least one of every attribute.

Public: everything here; nothing reads a table. A context is a bit vector of length t (paper,
Section 3): bit j stands for the j-th value in schema order. It is kept as one Python integer, so
t may be any number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pcor.errors import ContextError
from pcor.public import sql, wording
from pcor.public.phrase import phrases
from pcor.public.schema import Schema, Value
from pcor.support import markup
from pcor.support.arrays import NDArray, np

# Contexts, or what they are compared with, as kernels read them: bits, 64 to a word.
Words: TypeAlias = "NDArray[np.uint64]"


class Context:
    """A set of values, at least one per attribute.

    Args:
        schema: what the values mean.
        values: attribute -> the values it may take, at least one. An attribute that is not named
            may have any of its values.

    Raises:
        ContextError: the schema does not have a name or value, or an attribute has no value.

    >>> schema = Schema(metric="salary", attributes={"job": ["CEO", "Lawyer"], "city": ["Ottawa"]})
    >>> context = Context(schema, {"job": ["CEO"], "city": ["Ottawa"]})
    >>> str(context), context.bits, context.mask
    ('job is CEO', '101', 5)
    """

    __slots__ = ("mask", "schema")

    schema: Schema
    mask: int

    def __init__(self, schema: Schema, values: Mapping[str, Iterable[Value]]) -> None:
        mask = 0
        for name, chosen in values.items():
            place = schema.index(name)
            attribute, offset = schema.attributes[place], schema.offsets[place]
            if isinstance(chosen, str | int | float) or not isinstance(chosen, Iterable):
                chosen = [chosen]
            for value in chosen:
                mask |= 1 << (offset + attribute.code(value))
        for attribute, own in zip(schema.attributes, schema.attribute_masks, strict=True):
            if attribute.name not in values:
                mask |= own
        self._set(schema, mask)

    def _set(self, schema: Schema, mask: int) -> None:
        if mask < 0 or mask >> schema.width:
            raise ContextError(
                f"a context of this schema has {schema.width} bits, one for each value"
            )
        for attribute, own in zip(schema.attributes, schema.attribute_masks, strict=True):
            if not mask & own:
                raise ContextError(
                    f"the context has no value of attribute {attribute.name!r}; every attribute "
                    f"needs at least one (leave it out, or write 'any {attribute.name}', for all)"
                )
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "mask", mask)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a context cannot be changed; flip() gives a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a context cannot be changed; flip() gives a new one")

    def __reduce__(self) -> tuple[Any, ...]:
        return Context.from_mask, (self.schema, self.mask)

    @classmethod
    def from_mask(cls, schema: Schema, mask: int) -> Context:
        """Build a context from its bits as an integer: bit j is the j-th value."""
        context = cls.__new__(cls)
        context._set(schema, int(mask))
        return context

    @classmethod
    def from_bits(cls, schema: Schema, bits: str) -> Context:
        """Build a context from its bits as the paper writes them, with or without ``<>``."""
        digits = bits.strip().removeprefix("<").removesuffix(">")
        if len(digits) != schema.width or set(digits) - {"0", "1"}:
            raise ContextError(
                f"bits must be {schema.width} zeros and ones, one per value of the schema"
            )
        return cls.from_mask(schema, int(digits[::-1], 2))

    @classmethod
    def full(cls, schema: Schema) -> Context:
        """Return the context with every value: the whole table."""
        return cls.from_mask(schema, (1 << schema.width) - 1)

    @classmethod
    def parse(cls, schema: Schema, text: str) -> Context:
        """Read a context from any of its printed forms: sentence, JSON object, or bits.

        An attribute that a sentence or an object leaves out may have any of its values. The end of
        a certificate's sentence, from "among" on, is read too.

        >>> schema = Schema(metric="pay", attributes={"job": ["CEO", "Lawyer"], "city": ["Rome"]})
        >>> Context.parse(schema, "job is CEO or Lawyer; any city").bits
        '111'
        >>> Context.parse(schema, "any job except CEO").bits
        '011'

        Raises:
            ContextError: the text cannot be read, or says what the schema does not have.
        """
        text = text.strip()
        if re.fullmatch(r"<?[01]+>?", text):
            return cls.from_bits(schema, text)
        if text.startswith("{"):
            return cls(schema, wording.read_json(text))
        return cls(schema, wording.read_sentence(schema, text))

    @classmethod
    def read(
        cls, schema: Schema, context: Context | str | Mapping[str, Iterable[Value]]
    ) -> Context:
        """Return a context given in any form: itself, a printed form, or attribute -> values.

        Raises:
            ContextError: it is none of these forms, or of another schema.
        """
        if isinstance(context, str):
            return cls.parse(schema, context)
        if isinstance(context, Mapping):
            return cls(schema, context)
        if not isinstance(context, Context):
            raise ContextError("give a context as a pcor.Context, a text or a mapping")
        if context.schema != schema:
            raise ContextError("the context belongs to another schema than the table's")
        return context

    @property
    def bits(self) -> str:
        """The bits in schema order, first value first, as the paper writes them."""
        return f"{self.mask:0{self.schema.width}b}"[::-1]

    @property
    def values(self) -> dict[str, list[Value]]:
        """Attribute -> the values it may take, in the order of the domain."""
        return {
            a.name: [v for code, v in enumerate(a.values) if self.mask >> (offset + code) & 1]
            for a, offset in zip(self.schema.attributes, self.schema.offsets, strict=True)
        }

    def where(self) -> str:
        """Return the context as the condition of an SQL WHERE clause.

        Names and texts are quoted and escaped, and bins that touch become one range. The condition
        is as short as it can be and selects exactly the population, given that the rows fit the
        schema: an attribute with all its values is left out, unless rows outside its domain are to
        be dropped, and rows without a metric are excepted where those are dropped. Columns of
        numbers must hold numbers, those of days texts, dates or moments.
        """
        return sql.where(self.schema, self.mask)

    @property
    def in_full(self) -> str:
        """The context as a text that stays the same in every version; requests are known by it.

        Every attribute is spoken of, and each of its values is listed.

        >>> schema = Schema(metric="pay", attributes={"job": ["CEO", "Lawyer"], "city": ["Rome"]})
        >>> Context(schema, {"job": ["CEO"]}).in_full
        'job is CEO; any city'
        """
        return wording.in_full(self.schema, self.mask)

    @property
    def named(self) -> int:
        """How many values, ranges and exceptions the sentence names."""
        return sum(len(phrase.items) for phrase in phrases(self.schema, self.mask))

    def flip(self, position: int) -> Context:
        """Return the context that differs in one bit; refuse if an attribute would be empty.

        Raises:
            ContextError: there is no such position, or its attribute would be left without a value.
        """
        if not 0 <= position < self.schema.width:
            raise ContextError(f"position must be from 0 to {self.schema.width - 1}")
        return Context.from_mask(self.schema, self.mask ^ (1 << position))

    def neighbours(self) -> Iterator[Context]:
        """Yield every context that differs in exactly one bit, in schema order."""
        for own in self.schema.attribute_masks:
            alone = (self.mask & own).bit_count() == 1
            for position in _positions(own):
                if not (alone and self.mask >> position & 1):
                    yield self.flip(position)

    def covers(self, values: Mapping[str, Value]) -> bool:
        """Tell whether a row with these attribute values is in the population."""
        for attribute in self.schema.attributes:
            if attribute.name not in values:
                raise ContextError(
                    f"a row has one value of every attribute; {attribute.name!r} is not given"
                )
        row = Context(self.schema, {name: [value] for name, value in values.items()})
        return row <= self

    def __le__(self, other: Context) -> bool:
        """Tell whether every value of this context is also one of the other's."""
        if self.schema != other.schema:
            raise ContextError("contexts of different schemas cannot be compared")
        return not self.mask & ~other.mask

    def __ge__(self, other: Context) -> bool:
        return other <= self

    def __len__(self) -> int:
        return self.mask.bit_count()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Context):
            return NotImplemented
        return self.mask == other.mask and self.schema == other.schema

    def __hash__(self) -> int:
        return hash((self.schema.sha256, self.mask))

    def __str__(self) -> str:
        return wording.sentence(self.schema, self.mask)

    def __repr__(self) -> str:
        return f"<Context {self}>"

    def _repr_html_(self) -> str:
        return markup.fragment(markup.chips(wording.marked(self.schema, self.mask)))


def mask_of(schema: Schema, codes: Iterable[int]) -> int:
    """Return the bits of a row, given by the place of each of its values in the domain.

    >>> schema = Schema(metric="pay", attributes={"job": ["CEO", "Lawyer"], "city": ["Rome"]})
    >>> mask_of(schema, [1, 0])
    6
    """
    return sum(1 << (o + int(code)) for o, code in zip(schema.offsets, codes, strict=True))


def unpack(masks: Sequence[int], width: int) -> NDArray[np.bool_]:
    """Return the bits of many masks as one row each."""
    rows = pack(masks, width).astype("<u8").view(np.uint8)
    return np.unpackbits(rows, axis=1, count=width, bitorder="little").astype(bool)


def pack(masks: Sequence[int], width: int) -> Words:
    """Return many masks as 64-bit words, bit 0 first: shape (count, words)."""
    words = (width + 63) // 64
    if words == 1:
        return np.fromiter(masks, np.uint64, len(masks)).reshape(-1, 1)
    packed = b"".join(mask.to_bytes(words * 8, "little") for mask in masks)
    return np.frombuffer(packed, dtype="<u8").reshape(len(masks), words).astype(np.uint64)


def _positions(mask: int) -> Iterator[int]:
    return (p for p in range(mask.bit_length()) if mask >> p & 1)
