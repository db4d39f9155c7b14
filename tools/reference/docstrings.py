"""Google docstrings, read into prose, tables of names, and examples."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

from tools.reference import markdown

_HEADING = re.compile(r"^(Args|Attributes|Raises):$")
_ITEM = re.compile(r"^(\*{0,2}\w+)(?: \([^)]*\))?: ?(.*)$")


@dataclass
class Doc:
    """A docstring in parts.

    Attributes:
        prose: the paragraphs, as Markdown.
        named: section -> name -> meaning.
    """

    prose: str = ""
    named: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def first(self) -> str:
        """The first paragraph, on one line."""
        return " ".join(self.prose.split("\n\n")[0].split())


def read(thing: object) -> Doc:
    """Return the docstring of a thing, which must have one of its own."""
    return parse(inspect.getdoc(thing) or "")


def parse(text: str) -> Doc:
    r"""Return a docstring in parts.

    >>> doc = parse("Do it.\n\nArgs:\n    what: the ``thing``\n        to do.")
    >>> doc.prose, doc.named["Args"]
    ('Do it.', {'what': 'the `thing` to do.'})
    """
    doc, prose, lines = Doc(), [], inspect.cleandoc(text).splitlines()
    while lines:
        line = lines.pop(0)
        found = _HEADING.match(line)
        if found is None:
            prose.append(line)
            continue
        inside = []
        while lines and (not lines[0].strip() or lines[0].startswith(" ")):
            inside.append(lines.pop(0))
        _keep(doc, found[1], inspect.cleandoc("\n" + "\n".join(inside)))
    doc.prose = _as_markdown(prose)
    return doc


def _keep(doc: Doc, section: str, text: str) -> None:
    names: dict[str, str] = {}
    for line in text.splitlines():
        found = None if line.startswith(" ") else _ITEM.match(line)
        if found is not None:
            names[found[1]] = found[2]
        elif names:
            names[list(names)[-1]] += f" {line.strip()}"
    doc.named[section] = {name: inline(meaning) for name, meaning in names.items()}


def inline(text: str) -> str:
    """Return a running text as Markdown: one backtick where Python's docs have two."""
    return re.sub(r"``(.+?)``", r"`\1`", " ".join(text.split()))


def _as_markdown(lines: list[str]) -> str:
    """Return paragraphs; examples and indented passages become blocks."""
    parts = []
    for part in re.split(r"\n{2,}", "\n".join(lines).strip()):
        if part.startswith(">>> "):
            parts.append(markdown.block(part))
        elif part.startswith("    "):
            parts.append(markdown.block(inspect.cleandoc("\n" + part)))
        else:
            parts.append(inline(part.removesuffix("::") + (":" if part.endswith("::") else "")))
    return "\n\n".join(parts)
