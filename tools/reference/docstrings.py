"""Google docstrings, read into prose, tables of names, and examples."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from textwrap import dedent

from tools.reference import markdown

# A heading with the indented lines that follow it; and a name with its meaning, among those.
_SECTION = re.compile(r"^(Args|Attributes|Raises):\n((?: .*\n?|\n)+)", re.MULTILINE)
_ITEM = re.compile(r"^(\w+): (.*(?:\n(?: .*)?)*)", re.MULTILINE)


@dataclass(frozen=True)
class Doc:
    """A docstring in parts.

    Attributes:
        prose: the paragraphs, as Markdown.
        named: section -> name -> meaning.
    """

    prose: str
    named: dict[str, dict[str, str]]

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
    text = inspect.cleandoc(text)
    named = {
        section: {name: inline(meaning) for name, meaning in _ITEM.findall(dedent(inside))}
        for section, inside in _SECTION.findall(text)
    }
    return Doc(_as_markdown(_SECTION.sub("", text)), named)


def inline(text: str) -> str:
    """Return a running text as Markdown: one backtick where Python's docs have two."""
    return re.sub(r"``(.+?)``", r"`\1`", " ".join(text.split()))


def _as_markdown(text: str) -> str:
    """Return paragraphs; examples and indented passages become blocks."""
    parts = []
    for part in re.split(r"\n{2,}", text.strip()):
        if part.startswith((">>> ", "    ")):
            parts.append(markdown.block(dedent(part)))
        else:
            parts.append(inline(part.removesuffix("::") + (":" if part.endswith("::") else "")))
    return "\n\n".join(parts)
