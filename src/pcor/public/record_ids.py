"""Ids: which texts can name a record, where a schema declares it.

Public: everything here. A declaration is the owner's word, and a refusal quotes it and the request.
Patterns are matched by RE2, which Arrow brings along: in time proportional to the text, whatever
the pattern, so that neither can keep a service busy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pcor.errors import SchemaError

# What each type of id looks like; "007" is a name, not a number.
TYPES = {"integer": "-?(0|[1-9][0-9]*)"}
LONGEST_PATTERN = 200


def check_declared(column: str | None, kind: object, pattern: object) -> None:
    """Refuse what a schema cannot say about its ids."""
    for name, given in (("id_type", kind), ("id_pattern", pattern)):
        if given is not None and column is None:
            raise SchemaError(f"{name} needs an id: name the column that holds the ids")
    if kind is not None and kind not in TYPES:
        raise SchemaError('id_type must be "integer", or left out')
    if pattern is not None and not _is_pattern(pattern):
        raise SchemaError(
            "id_pattern must be a regular expression that whole ids match, such as "
            f'"C-[0-9]{{6}}": a text of at most {LONGEST_PATTERN} characters, in the syntax of '
            "RE2, which has no backreferences and no looking around"
        )


def matching(texts: Any, patterns: Sequence[str]) -> Any:
    """Return which texts of an Arrow array match all patterns as a whole; a missing one does not.

    >>> import pyarrow as pa
    >>> matching(pa.array(["C-12", "C-123", None]), ["C-[0-9]{2}"]).to_pylist()
    [True, False, False]
    """
    import pyarrow as pa
    from pyarrow import compute as pc  # takes a while to import; few schemas need it

    fits = pc.is_valid(texts)
    for pattern in patterns:
        found = pc.match_substring_regex(texts.cast(pa.string()), rf"\A(?:{pattern})\z")
        fits = pc.and_(fits, pc.fill_null(found, False))
    return fits


def matches(text: str, patterns: Sequence[str]) -> bool:
    """Whether one text matches all patterns as a whole."""
    import pyarrow as pa

    try:
        return bool(matching(pa.array([text], pa.string()), patterns)[0].as_py())
    except UnicodeEncodeError:  # half of a pair of characters, which no column of text holds
        return False


def _is_pattern(given: object) -> bool:
    if not isinstance(given, str) or not 0 < len(given) <= LONGEST_PATTERN:
        return False
    try:
        import pyarrow as pa
        from pyarrow import compute as pc
    except ModuleNotFoundError:  # in pcor-client, which has schemas from services: they have
        return True
    try:
        # By itself too: "a)|(b" would close a bracket of ours.
        for whole in (given, rf"\A(?:{given})\z"):
            pc.match_substring_regex(pa.array([""]), whole)
    except (pa.ArrowException, UnicodeEncodeError):
        return False
    return True
