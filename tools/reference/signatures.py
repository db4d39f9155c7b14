"""Signatures as the source writes them, with nothing of this machine in them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

WIDEST = 88


def parameters(thing: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters that a caller gives."""
    found = inspect.signature(thing).parameters.values()
    return [one for one in found if one.name not in ("self", "cls")]


def written(
    name: str, thing: Callable[..., Any], *, returns: bool = True, widest: int = WIDEST
) -> str:
    """Return a call of a thing, on several lines where one would be too long.

    >>> def cut(what: str, *, times: int = 2) -> None: ...
    >>> written("cut", cut)
    'cut(what: str, *, times: int = 2) -> None'
    """
    given, marked = [], False
    for one in parameters(thing):
        if one.kind is one.KEYWORD_ONLY and not marked:
            given.append("*")
        marked = marked or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        given.append(_parameter(one))
    answer = inspect.signature(thing).return_annotation
    end = f" -> {annotation(answer)}" if returns and answer is not inspect.Signature.empty else ""
    line = f"{name}({', '.join(given)}){end}"
    if len(line) <= widest or not given:
        return line
    return "\n".join([f"{name}(", *(f"    {one}," for one in given), f"){end}"])


def _parameter(one: inspect.Parameter) -> str:
    stars = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
    given = f" = {default(one)}" if default(one) else ""
    return f"{stars}{one.name}: {annotation(one.annotation)}{given}"


def annotation(hint: object) -> str:
    """Return a type as it is written in the source."""
    text = hint if isinstance(hint, str) else inspect.formatannotation(hint)
    return re.sub(r"\b(?:typing|collections\.abc|pcor(?:\.\w+)*)\.", "", text)


def default(one: inspect.Parameter) -> str:
    """Return a default as a reader would write it; nothing where there is none."""
    given = one.default
    if given is one.empty:
        return ""
    if callable(given) and hasattr(given, "__qualname__"):
        return f"{given.__module__}.{given.__qualname__}"
    text = repr(given)
    return "..." if text.startswith("<") else text


def hint_of(owner: type, name: str) -> str:
    """Return how a class annotates an attribute; nothing where it does not."""
    hints = (inspect.get_annotations(above).get(name) for above in owner.__mro__)
    return next((annotation(hint) for hint in hints if hint is not None), "")
