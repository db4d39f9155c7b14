"""How a context is written as a sentence, and how a sentence is read.

Public: everything here; nothing reads a table. A sentence names what ``pcor.public.phrase`` says,
in the words of the schema: "region is urban; year is 2006 to 2008; any employer except York". What
is written can be read again and means the same, because whatever could be mistaken for a word of
the sentence stands in quotes. Sentences of older versions, which spoke of every attribute and
listed all of its values, are read too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from datetime import date
from typing import Any

from pcor.errors import ContextError
from pcor.public.phrase import Item, Phrase, phrases
from pcor.public.schema import Attribute, Schema, Value, find_code

# A value is written bare in a sentence where it cannot be mistaken for the sentence's own words.
# A brace would open a JSON object.
_BARE = re.compile(r"[^\s;\"{]+( [^\s;\"{]+)*")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|;|[^\s;"]+')

_OLD_WORDS = re.compile(r"\b(or|is|any)\b", re.IGNORECASE)
_WORDS = re.compile(r"\b(or|is|any|except)\b", re.IGNORECASE)
_WORDS_OF_NAMES = re.compile(r"\b(or|is|any|except|all|among)\b", re.IGNORECASE)
_WORDS_OF_RANGES = re.compile(r"\b(or|is|any|except|to|under|more)\b", re.IGNORECASE)

# What follows the context in the sentence of a certificate with facts (releasing/facts.py).
_FACTS = re.compile(
    r": (about [\d,]+ |(half|[\d.]+ %) are below about "
    r"|the (median|[\d.]+ % quantile) (and the [\d.]+ % quantile )*could not be told )[^:]*$"
)

_READS_LIKE = (
    "a context reads like 'job is CEO or Lawyer; year is 2006 to 2008; any city except Rome', "
    'or is a JSON object {"job": ["CEO"], ...}, or bits'
)

# Of a longer list a page shows so many items first.
SHOWN = 8


# -- writing --------------------------------------------------------------------------------------


def sentence(schema: Schema, mask: int, *, most: int | None = None) -> str:
    """Write a context, given by its bits, as a sentence.

    Args:
        schema: gives the words.
        mask: the bits.
        most: the most items of an attribute, to be read by people only; by default all.
    """
    said = phrases(schema, mask)
    return "; ".join(_clause(schema, one, most) for one in said) or f"all {schema.noun}"


def among(schema: Schema, mask: int, *, most: int | None = None) -> str:
    """Write whom a context covers, to go on from "among": some rows, or all of them."""
    said = sentence(schema, mask, most=most)
    return f"{schema.noun} where {said}" if phrases(schema, mask) else said


def clauses(schema: Schema, mask: int, *, most: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield each attribute that a context restricts with what it may be, to be read by people."""
    for said in phrases(schema, mask):
        listed = _list([_item(said.attribute, item) for item in said.items], most)
        yield said.attribute.spoken, f"any except {listed}" if said.excepted else listed


def in_full(schema: Schema, mask: int) -> str:
    """Write a context so that it never changes, whatever the words of sentences become.

    Every attribute is spoken of by its column, every value is listed.
    """
    return "; ".join(
        _in_full(attribute, [v for c, v in enumerate(attribute.values) if mask >> (offset + c) & 1])
        for attribute, offset in zip(schema.attributes, schema.offsets, strict=True)
    )


def value_text(attribute: Attribute, code: int) -> str:
    """Write one value of a domain as a table or a list shows it.

    >>> value_text(Attribute("age", edges=(18, 25, 65)), 0)
    '18 to under 25'
    """
    by_edges = attribute.edges is not None and attribute.labels is None
    return _interval(attribute, Item(code, code)) if by_edges else str(attribute.said[code])


def marked(schema: Schema, mask: int) -> dict[str, list[tuple[str, bool]]]:
    """Return every value of each attribute, as it is written, with whether a context has it."""
    return {
        attribute.spoken: [
            (value_text(attribute, code), bool(mask >> (offset + code) & 1))
            for code in range(len(attribute.values))
        ]
        for attribute, offset in zip(schema.attributes, schema.offsets, strict=True)
    }


def amount(value: float, unit: str | None) -> str:
    """Write a number of the metric, with its unit if it has one.

    >>> amount(7480.0, None), amount(37.5, "hours a week")
    ('7,480', '37.5 hours a week')
    """
    whole = abs(value) < 1e15 and value == int(value)
    text = f"{int(value):,}" if whole else f"{value:,}"
    return text if unit is None else f"{text} {unit}"


def _in_full(attribute: Attribute, values: Sequence[Value]) -> str:
    name = _word(attribute.name, _OLD_WORDS)
    if len(values) == len(attribute.values):
        return f"any {name}"
    return f"{name} is {' or '.join(_word(value, _OLD_WORDS) for value in values)}"


def _word(text: object, words: re.Pattern[str] | None) -> str:
    """Write a text bare if no word of a sentence is in it; without ``words`` in quotes."""
    text = str(text)
    if words is not None and _BARE.fullmatch(text) and not words.search(text):
        return text
    return json.dumps(text, ensure_ascii=False)


def _clause(schema: Schema, said: Phrase, most: int | None) -> str:
    attribute = said.attribute
    listed = _list([_item(attribute, item) for item in said.items], most)
    unit = "" if any(item.group for item in said.items) else _unit(attribute)
    listed = f"{listed} {unit}" if unit else listed
    name = _word(attribute.spoken, _WORDS_OF_NAMES)
    if not said.excepted:
        return f"{name} is {listed}"
    said_bare = f"{name} except {listed}"
    if any(_known(schema, text) is not None for text in (said_bare, f"{said_bare}.")):
        name = _word(attribute.spoken, None)  # or it would read like an attribute of this name
    return f"any {name} except {listed}"


def _list(items: list[str], most: int | None) -> str:
    if most is None or len(items) <= most + 1:  # "and 1 more" is no shorter than the one
        return " or ".join(items)
    return f"{' or '.join(items[:most])} ... and {len(items) - most} more"


def _item(attribute: Attribute, item: Item) -> str:
    if item.group is not None:
        return _value(attribute, item.group, _words_of(attribute))
    if attribute.edges is not None and attribute.labels is None:
        return _interval(attribute, item)
    first, last = attribute.said[item.first], attribute.said[item.last]
    # A range must not read like a value of its own.
    ranges = f"{first} to {last}", f"{first} to {last}."
    words = None if any(_is_name(attribute, text) for text in ranges) else _words_of(attribute)
    if item.first == item.last:
        return _value(attribute, first, _words_of(attribute))
    return f"{_value(attribute, first, words)} to {_value(attribute, last, words)}"


def _value(attribute: Attribute, value: Value, words: re.Pattern[str] | None) -> str:
    # The full stop behind a sentence must not make another value of its last one.
    return _word(value, None if _is_name(attribute, f"{value}.") else words)


def _is_name(attribute: Attribute, text: str) -> bool:
    """Tell whether a value or a group has this name."""
    return text in attribute.codes or text in dict(attribute.groups)


def _words_of(attribute: Attribute) -> re.Pattern[str]:
    return _WORDS_OF_RANGES if attribute.ordered else _WORDS


def _interval(attribute: Attribute, item: Item) -> str:
    """Write bins that touch by their outer edges; the last one is closed."""
    assert attribute.edges is not None  # noqa: S101 (the callers branch on it)
    low, high = attribute.edges[item.first], attribute.edges[item.last + 1]
    if isinstance(low, date) or isinstance(high, date):
        first, last = attribute.days[item.first][0], attribute.days[item.last][1]
        return str(first) if first == last else f"{first} to {last}"
    if high == float("inf"):
        return "any number" if low == float("-inf") else f"{_number(low)} or more"
    if low == float("-inf"):
        return f"under {_number(high)}"
    closed = item.last == len(attribute.values) - 1
    return f"{_number(low)} to {'' if closed else 'under '}{_number(high)}"


def _number(edge: float) -> str:
    return str(int(edge)) if edge == int(edge) and abs(edge) < 1e15 else repr(edge)


def _unit(attribute: Attribute) -> str:
    """Return what follows the numbers of an attribute; nothing where bins have names."""
    unit = attribute.unit
    if unit is None or attribute.labels is not None:
        return ""
    numbers = any(_is_number(token) for token in unit.split())
    return _word(unit, None if numbers else _WORDS_OF_RANGES)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# -- reading --------------------------------------------------------------------------------------


def read_sentence(schema: Schema, text: str) -> dict[str, list[Value]]:
    """Return what a sentence says of each attribute that it speaks of.

    The end of a certificate's sentence, from "among" on, is read too; facts at its end say nothing
    of the context.

    Raises:
        ContextError: the text cannot be read, or says what the schema does not have.
    """
    for noun in (schema.noun, "rows"):
        text = text.removeprefix(f"among {noun} where ")
    facts = _FACTS.search(text)
    # A value may end in a full stop, a sentence does.
    context = text.removesuffix(".") if facts is None else text[: facts.start()]
    try:
        return _read(schema, text)
    except ContextError:
        if context == text:
            raise
    return _read(schema, context)


def read_json(text: str) -> dict[str, Any]:
    """Return what a JSON object says of each attribute."""
    try:
        values: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        raise ContextError(
            'the context is not well-formed JSON such as {"job": ["CEO"], "city": ["Ottawa"]}'
        ) from None
    return values


def _read(schema: Schema, text: str) -> dict[str, list[Value]]:
    plain = _plain(text).removeprefix("among ")
    if plain in (f"all {_plain(schema.noun)}", "all rows"):
        return {attribute.name: list(attribute.values) for attribute in schema.attributes}
    chosen: dict[str, list[Value]] = {}
    for attribute, codes in _clauses(schema, text):
        if attribute.name in chosen:
            raise ContextError(f"the context speaks of attribute {attribute.name!r} twice")
        chosen[attribute.name] = [attribute.values[code] for code in sorted(codes)]
    if not chosen:  # nothing at all is a mistake; whoever means every row says so
        raise ContextError(_READS_LIKE)
    return chosen


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _clauses(schema: Schema, text: str) -> Iterator[tuple[Attribute, Collection[int]]]:
    """Split a sentence into its attributes and the places of their values, minding quotes."""
    tokens = _TOKEN.findall(text)
    if _TOKEN.sub("", text).strip():
        raise ContextError(
            'a quoted text in the context is not closed; a value in quotes needs one " at each end'
        )
    while tokens:
        stop = tokens.index(";") if ";" in tokens else len(tokens)
        clause, tokens = tokens[:stop], tokens[stop + 1 :]
        words = [token.lower() for token in clause]
        if words[:1] == ["any"]:
            yield _read_any(schema, clause[1:], words[1:])
        elif "is" in words:
            cut = words.index("is")
            attribute = _attribute(schema, _text(clause[:cut]))
            yield attribute, _read_items(attribute, clause[cut + 1 :])
        else:
            raise ContextError(_READS_LIKE)


def _read_any(
    schema: Schema, clause: list[str], words: list[str]
) -> tuple[Attribute, Collection[int]]:
    """Read what follows "any": an attribute, and perhaps what is excepted."""
    attribute = _known(schema, _one_text(clause))
    if attribute is None and "except" in words:
        cut = words.index("except")
        attribute = _attribute(schema, _text(clause[:cut]))
        left_out = _read_items(attribute, clause[cut + 1 :])
        return attribute, set(range(len(attribute.values))) - set(left_out)
    attribute = attribute or _attribute(schema, _text(clause))
    return attribute, range(len(attribute.values))


def _known(schema: Schema, name: str | None) -> Attribute | None:
    return next((a for a in schema.attributes if name in (a.name, a.spoken)), None)


def _attribute(schema: Schema, name: str) -> Attribute:
    return _known(schema, name) or schema.attribute(name)


def _read_items(attribute: Attribute, tokens: list[str]) -> set[int]:
    unit = _TOKEN.findall(_unit(attribute))
    if unit and tokens[-len(unit) :] == unit:
        tokens = tokens[: -len(unit)]
    by_edges = attribute.edges is not None and attribute.labels is None
    codes: set[int] = set()
    for part in _parts(tokens, or_more=by_edges):
        codes.update(_read_item(attribute, part))
    return codes


def _parts(tokens: Sequence[str], *, or_more: bool) -> list[list[str]]:
    """Split at "or", but not in "65 or more" where that is an item."""
    parts: list[list[str]] = [[]]
    for place, token in enumerate(tokens):
        more = or_more and [one.lower() for one in tokens[place + 1 : place + 2]] == ["more"]
        if token.lower() == "or" and not more:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _read_item(attribute: Attribute, tokens: list[str]) -> Collection[int]:
    """Return the places of a value, or of the values from one to another."""
    whole = _one_text(tokens)
    code = -1 if whole is None else find_code(attribute, whole)
    if code >= 0:
        return [code]
    group = dict(attribute.groups).get(whole or "")
    if group is not None:
        return group
    if attribute.edges is not None and attribute.labels is None and whole is not None:
        interval = _read_days if attribute.days else _read_interval
        bins = interval(attribute, whole.lower())
        if bins:
            return bins
    for cut in [place for place, token in enumerate(tokens) if token.lower() == "to"]:
        ends = [_one_text(tokens[:cut]), _one_text(tokens[cut + 1 :])]
        codes = [find_code(attribute, end) for end in ends]
        if attribute.ordered and min(codes) >= 0:
            return range(min(codes), max(codes) + 1)
    return [attribute.code(_text(tokens))]


_INTERVAL = re.compile(
    r"under (?P<below>\S+)|(?P<low>\S+) (?:or more|to (?P<under>under )?(?P<high>\S+))"
)


def _read_days(attribute: Attribute, text: str) -> range:
    """Return the bins from one day to another; none where these do not begin and end bins."""
    begin, _, end = text.partition(" to ")
    starts, ends = ([str(day) for day in days] for days in zip(*attribute.days, strict=True))
    if begin not in starts or (end or begin) not in ends:
        return range(0)
    return range(starts.index(begin), ends.index(end or begin) + 1)


def _read_interval(attribute: Attribute, text: str) -> range:
    """Return the bins that an interval consists of; none where it is not made of whole bins."""
    found = _INTERVAL.fullmatch(text)
    if found is None:
        return range(0)
    ends = list(attribute.thresholds)
    last = len(ends) - 1
    first = 0 if found["low"] is None else _place(ends, found["low"])
    upper = found["high"] or found["below"]
    stop = last if upper is None else _place(ends, upper)
    closed = found["high"] is not None and found["under"] is None
    if first < 0 or stop < 0 or closed != (stop == last and upper is not None):
        return range(0)
    return range(first, stop)


def _place(ends: list[float], text: str) -> int:
    number = float(text) if _is_number(text) else float("nan")
    return ends.index(number) if number in ends else -1


def _one_text(tokens: Sequence[str]) -> str | None:
    """Return a text that is one in quotes, or bare; ``None`` for a mixture of both."""
    quoted = any(token.startswith('"') for token in tokens)
    return None if quoted and len(tokens) > 1 else _text(tokens)


def _text(tokens: Sequence[str]) -> str:
    words = []
    for token in tokens:
        if token.startswith('"'):
            try:
                token = json.loads(token)
            except json.JSONDecodeError:
                raise ContextError(
                    'a quoted text in the context is not well formed; write \\" for a quote in it'
                ) from None
        words.append(token)
    return " ".join(words)
