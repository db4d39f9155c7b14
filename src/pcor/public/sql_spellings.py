"""Which texts of a raw column are meant, as a condition that DuckDB, SQLite and PostgreSQL share.

Public: everything here; nothing reads a table. The functions are those that all three have and
agree on: ``TRIM`` with the characters to trim, and ``REPLACE``, one inside the other, for each
letter whose case is ignored. ``LOWER`` is none of them: what it does to letters beyond ASCII is
different in each, and depends on the locale. Only letters of the spellings that are listed need to
be replaced: a text with any other is none of them, whatever the case of that letter.

SQLite parses only so many functions inside one another. Spellings are therefore listed in groups
that have few letters between them; and one that has more letters by itself is compared twice, with
some of its letters each time and any character in the place of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pcor.public.spellings import BLANKS, Spellings, capitals

# SQLite before 3.46 parses 27 functions inside one another, fewer behind brackets of their own.
MOST_REPLACED = 18


def listed(column: str, spellings: Spellings, texts: Sequence[str], *, but: bool = False) -> str:
    """Write that a column holds one of these spellings; or with ``but`` none of them."""
    column = stripped(column) if spellings.strip else column
    if not spellings.ignore_case:
        return among(column, list(map(text_literal, texts)), but=but)
    ways = [_ignoring_case(column, group, but=but) for group in _groups(texts)]
    return ways[0] if len(ways) == 1 else f"({(' AND ' if but else ' OR ').join(ways)})"


def stripped(column: str) -> str:
    """Write a column of texts without blanks at their ends."""
    return f"TRIM({column}, {text_literal(BLANKS)})"


def as_text(column: str) -> str:
    """Write a column of any kind as texts."""
    return f"CAST({column} AS VARCHAR)"


def among(column: str, literals: Sequence[str], *, but: bool = False) -> str:
    """Write that a column is one of these, or none of them."""
    if len(literals) == 1:
        return f"{column} {'<>' if but else '='} {literals[0]}"
    return f"{column} {'NOT IN' if but else 'IN'} ({', '.join(literals)})"


def text_literal(text: str) -> str:
    """Write a text."""
    return "'" + text.replace("'", "''") + "'"


def _groups(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield texts together while few enough letters are to be replaced for all of them."""
    group: list[str] = []
    letters: set[str] = set()
    for text in texts:
        letters |= set(capitals(text))
        if group and len(letters) > MOST_REPLACED:
            yield group
            group, letters = [], set(capitals(text))
        group.append(text)
    yield group


def _ignoring_case(column: str, texts: list[str], *, but: bool) -> str:
    letters = capitals("".join(texts))
    if len(letters) <= MOST_REPLACED:
        return among(_replaced(column, letters), list(map(text_literal, texts)), but=but)
    (text,) = texts
    pairs = list(letters.items())
    parts = [
        dict(pairs[start : start + MOST_REPLACED]) for start in range(0, len(pairs), MOST_REPLACED)
    ]
    alike = " AND ".join(
        f"{_replaced(column, part)} LIKE {text_literal(_pattern(text, part, letters))} ESCAPE '!'"
        for part in parts
    )
    return f"NOT ({alike})" if but else f"({alike})"


def _replaced(column: str, letters: dict[str, str]) -> str:
    for big, small in letters.items():
        column = f"REPLACE({column}, {text_literal(big)}, {text_literal(small)})"
    return column


def _pattern(text: str, shown: dict[str, str], letters: dict[str, str]) -> str:
    """Return a pattern of LIKE with some of the letters, and any character for the others.

    SQLite's own LIKE ignores the case of ASCII, which changes nothing: the letters that are shown
    have been replaced in what is compared.
    """
    hidden = set(letters.values()) - set(shown.values())
    return "".join(
        "_" if letter in hidden else f"!{letter}" if letter in "%_!" else letter for letter in text
    )
