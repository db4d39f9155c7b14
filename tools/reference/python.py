"""The Python library: every name in ``pcor.__all__``."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Iterator
from typing import Any

import pcor
from tools.reference import docstrings, markdown, signatures

# In the order in which somebody meets them. A name that is in no group still gets its place.
GROUPS = {
    "Describe a table": "Schema Attribute Metric Table Context",
    "Make a release": "plan release Settings Plan Release Promise OCDP PureDP plan_many "
    "release_many",
    "Pay": "Budget Ledger Client",
    "Detectors": "LOF Grubbs Histogram Tail Neighbourhood RareBin Estimator Detector CountDetector "
    "get_detector register_detector",
    "Searches": "Direct WidestFirst Uniform RandomWalk DepthFirst BreadthFirst Search",
    "Utilities": "PopulationSize Overlap People Utility Population",
    "For the owner only": "matching_contexts MatchingContexts is_outlier outliers",
    "Refusals": "PcorError",
}
MODULES = "Modules"
OTHERS = "Other names"


def overview() -> str:
    """Return the names, by what they are for."""
    rows = [[title, ", ".join(map(linked, named))] for title, named in groups().items()]
    return markdown.table(["group", "names"], rows)


def names() -> str:
    """Return every name with what it takes, has and does."""
    parts = [
        markdown.section(2, title, *(_name(name, getattr(pcor, name)) for name in named))
        for title, named in groups().items()
        if title != MODULES
    ]
    parts += [_module(name, getattr(pcor, name)) for name in groups()[MODULES]]
    return "\n\n".join(parts)


def groups() -> dict[str, list[str]]:
    """Return the groups with every public name in exactly one of them."""
    found = {title: named.split() for title, named in GROUPS.items()}
    grouped = {name for named in found.values() for name in named}
    others = [name for name in pcor.__all__ if name not in grouped]
    modules = [one for one in others if isinstance(getattr(pcor, one), types.ModuleType)]
    others = [name for name in others if name not in modules]
    return found | ({OTHERS: others} if others else {}) | {MODULES: modules}


def heading(name: str) -> str:
    """Return the heading of a name; an anchor does not tell ``Plan`` from ``plan``.

    >>> heading("plan"), heading("Plan"), heading("audit")
    ('plan', 'Plan (class)', 'pcor.audit')
    """
    if isinstance(getattr(pcor, name, None), types.ModuleType):
        return f"pcor.{name}"
    place, _, last = name.rpartition(".")
    known = dir(getattr(pcor, place)) if place else pcor.__all__
    same = [one for one in known if one.lower() == last.lower()]
    return f"{name} (class)" if len(same) > 1 and last[0].isupper() else name


def linked(name: str) -> str:
    """Return a link to the place of a name."""
    return markdown.link(f"`{name}`", f"#{markdown.anchor(heading(name))}")


def _module(name: str, module: types.ModuleType) -> str:
    """Return the part of a module: what it is, and its public names."""
    about, title = docstrings.read(module).prose, heading(name)
    if name == "errors":
        about = "\n\n".join([about.split("\n\n```")[0], "All of them: [errors](errors.md)."])
        return markdown.section(2, title, about)
    named = getattr(module, "__all__", None) or _defined(module)
    things = {f"{name}.{one}": getattr(module, one) for one in named}
    constants = [
        [markdown.code(key), markdown.code(repr(one))]
        for key, one in things.items()
        if not callable(one)
    ]
    return markdown.section(
        2,
        title,
        about,
        markdown.table(["constant", "value"], constants),
        *(_name(key, one) for key, one in things.items() if callable(one)),
    )


def _defined(module: types.ModuleType) -> list[str]:
    """Return what a module without ``__all__`` defines for others."""
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and getattr(thing, "__module__", "") == module.__name__
        and (inspect.isclass(thing) or inspect.isfunction(thing))
    ]


def _name(name: str, thing: Any) -> str:
    return _class(name, thing) if inspect.isclass(thing) else _function(3, name, thing)


def _function(level: int, name: str, thing: Any) -> str:
    doc = docstrings.read(thing)
    signature = markdown.block(signatures.written(name, thing))
    return markdown.section(level, name, signature, doc.prose, _arguments(doc, thing), _raises(doc))


def _arguments(doc: docstrings.Doc, thing: Any) -> str:
    """Return the table of arguments, if the docstring speaks of them."""
    told = doc.named.get("Args", {})
    rows = [
        [
            markdown.code(one.name),
            markdown.either(signatures.annotation(one.annotation)),
            markdown.code(signatures.default(one)),
            told.get(one.name, ""),
        ]
        for one in signatures.parameters(thing)
    ]
    return markdown.table(["argument", "type", "default", "meaning"], rows) if told else ""


def _raises(doc: docstrings.Doc) -> str:
    """Return what is refused."""
    raised = doc.named.get("Raises", {})
    return "\n\n".join(f"Raises `{name}`: {meaning}" for name, meaning in raised.items())


def _class(name: str, thing: type) -> str:
    doc = docstrings.read(thing)
    given = getattr(thing, "_is_protocol", False) or issubclass(thing, Exception)
    signature = "" if given else signatures.written(name, thing, returns=False)
    above = [linked(base.__name__) for base in thing.__bases__ if base.__name__ in pcor.__all__]
    kind = f"A kind of {', '.join(above)}, and has all that it has." if above else ""
    return markdown.section(
        3,
        heading(name),
        markdown.block(signature) if signature else "",
        doc.prose,
        kind,
        _arguments(doc, thing) if signature else "",
        _attributes(thing, doc),
        _raises(doc),
        *_calls(name.split(".")[-1], thing),
    )


def _calls(name: str, thing: type) -> list[str]:
    """Return the methods: those with one sentence in a table, the others each in full."""
    rows, parts = [], []
    for key, one in _methods(thing):
        doc = docstrings.read(one)
        if doc.named or "\n\n" in doc.prose:
            parts.append(_function(4, f"{name}.{key}", one))
        else:
            signature = signatures.written(key, one, widest=1000)
            rows.append([markdown.code(signature), doc.first])
    return [markdown.table(["method", "what it does"], rows), *parts]


def _attributes(thing: type, doc: docstrings.Doc) -> str:
    """Return the table of attributes and properties."""
    given = {} if issubclass(thing, Exception) else _defaults(thing)
    rows = [
        [
            markdown.code(name),
            markdown.either(signatures.hint_of(thing, name)),
            markdown.code(given.get(name, "")),
            meaning,
        ]
        for name, meaning in doc.named.get("Attributes", {}).items()
    ]
    rows += [
        [markdown.code(name), markdown.either(_answer(one)), "", docstrings.read(one).first]
        for name, one in _properties(thing)
    ]
    return markdown.table(["attribute", "type", "default", "meaning"], rows)


def _defaults(thing: type) -> dict[str, str]:
    return {one.name: signatures.default(one) for one in signatures.parameters(thing)}


def _answer(one: object) -> str:
    function = one.fget if isinstance(one, property) else getattr(one, "func", None)
    return signatures.annotation(inspect.signature(function).return_annotation) if function else ""


def _properties(thing: type) -> Iterator[tuple[str, object]]:
    for name, one in vars(thing).items():
        if not name.startswith("_") and isinstance(one, property | functools.cached_property):
            yield name, one


def _methods(thing: type) -> Iterator[tuple[str, Any]]:
    for name, one in vars(thing).items():
        if name.startswith("_"):
            continue
        if isinstance(one, classmethod | staticmethod) or inspect.isfunction(one):
            yield name, getattr(thing, name)
