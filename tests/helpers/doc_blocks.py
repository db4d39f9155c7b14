"""The code blocks of a page, their commands, and whether what was printed is what is expected."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>`{3,})\s*(?P<language>[^\s`]*)( +title=\"(?P<title>[^\"]+)\")?"
)
EXEMPT = re.compile(r"^\s*<!-- not run: (?P<reason>.+?) -->\s*$")
NEEDS = re.compile(r"^\s*<!-- needs: (?P<name>\S+) -->\s*$")
HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
EXIT = re.compile(r"#\s*exit (\d+)\s*$")
# A context in expected output: to a full stop at the end of a line; lines may break after ";".
DRAWN = re.compile(
    r"among \w+ where\s+(\.\.\.|(?:(?!\.\.\.)[^\n]|(?<=;)\n)+?\.)[ \t]*$", re.MULTILINE
)
PRINTS = re.compile(r"|[^\n]*\bprints\b[^\n]*:")  # what may stand between Python and its output


class PageError(AssertionError):
    """A block of a page does not do what the page says."""


@dataclass(frozen=True)
class Block:
    """One fenced block: where it is, what it is written in, and whether it is exempt."""

    line: int  # of the fence, counted from 1
    language: str
    text: str
    not_run: str | None = None
    needs: str | None = None
    title: str | None = None  # the path of a block that is a file
    output_of: int | None = None  # the line of the Python block that prints this


@dataclass(frozen=True)
class Command:
    """One ``$`` line with what it is said to print and how it is said to end."""

    line: int
    text: str
    expected: str
    code: int = 0

    @property
    def in_background(self) -> bool:
        return self.text.endswith(" &")


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page; raise PageError for one that never ends."""
    lines = text.splitlines()
    remark: dict[str, str | None] = {}
    python: int | None = None  # the line of the block before, if that is Python
    between: list[str] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if found := FENCE.match(line):
            begin = number
            end = re.compile(rf"^ *{found['ticks']}`*\s*$")
            while number < len(lines) and not end.match(lines[number]):
                number += 1
            if number == len(lines):
                raise PageError(f"line {begin}: this block never ends")
            inside = "\n".join(lines[begin:number]) + "\n"
            language, text = found["language"], textwrap.dedent(inside)
            follows = language == "text" and PRINTS.fullmatch("\n".join(between).strip())
            shown = python if follows else None
            yield Block(begin, language, text, title=found["title"], output_of=shown, **remark)
            python = begin if language == "python" else None
            number += 1
            remark, between = {}, []
        elif found := EXEMPT.match(line):
            remark = {"not_run": found["reason"]}
        elif found := NEEDS.match(line):
            remark = {"needs": found["name"]}
        else:
            between.append(line)
            if line.strip():
                remark = {}


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a console block; heredocs and lines that end in a backslash belong."""
    lines = block.text.splitlines()
    if lines and not lines[0].startswith("$ "):
        raise PageError(f"line {block.line + 1}: a console block begins with a `$ ` line")
    number = 0
    while number < len(lines):
        begin = number
        parts = [lines[number][2:]]
        number += 1
        while parts[-1].endswith("\\") and number < len(lines):
            parts.append(lines[number].removeprefix("> "))
            number += 1
        ending = EXIT.search(parts[-1])
        if found := HEREDOC.search("\n".join(parts)):
            while number < len(lines):
                parts.append(lines[number])
                number += 1
                if parts[-1].strip() == found[2]:
                    break
            else:
                raise PageError(f"line {block.line + 1 + begin}: no line {found[2]} ends this text")
        expected = []
        while number < len(lines) and not lines[number].startswith("$ "):
            expected.append(lines[number])
            number += 1
        yield Command(
            block.line + 1 + begin,
            "\n".join(parts).strip(),
            "\n".join(expected).strip(),
            int(ending[1]) if ending else 0,
        )


def agrees(expected: str, got: str) -> bool:
    """Tell whether an output is the expected one, where ``...`` stands for anything.

    >>> agrees("1 left of ...", "1 left of 17"), agrees("1 left of 1 ...", "1 left of 17")
    (True, False)
    """
    first, *rest = patterns(expected.strip())
    got = got.strip()
    if not rest:
        return re.fullmatch(first, got) is not None
    found = re.match(first, got)
    for pattern in (*rest[:-1], rf"{rest[-1]}\Z"):
        if found is None:
            return False
        found = re.compile(pattern).search(got, found.end())
    return found is not None


def patterns(expected: str) -> list[str]:
    """Return a pattern for each piece between dots; words are not cut where dots stand apart."""
    contexts: list[str] = []

    def mark(found: re.Match[str]) -> str:
        contexts.append(drawn(found[1]))
        return f" \0{len(contexts) - 1}"

    made = []
    for piece in DRAWN.sub(mark, expected).split("..."):
        words = [contexts[int(w[1:])] if w[0] == "\0" else re.escape(w) for w in piece.split()]
        before = r"(?<!\S)" if words and piece[0].isspace() else ""
        after = r"(?!\S)" if words and piece[-1].isspace() else ""
        made.append(before + r"\s+".join(words) + after)
    return made


def drawn(context: str) -> str:
    """Return the pattern of any context that ends its line.

    Which attributes it names is drawn too: one that may have any value is left out.

    >>> pattern = re.compile(drawn("job is cook."))
    >>> bool(pattern.fullmatch("among rows where any job except cook; city is Oslo or Rome."))
    True
    >>> bool(pattern.fullmatch("among all rows.")), bool(pattern.fullmatch("among any job."))
    (True, False)
    >>> bool(pattern.fullmatch("among claims where job is cook."))
    True
    """
    said = r"\S[^\n]*"
    if context != "...":
        values = r"\S(?:(?!\. )[^\n;])*?"
        clause = rf"(?:any [^\n;]+? except {values}|(?!any )[^\n;]+? is {values})"
        said = rf"{clause}(?:; {clause})*"
    return rf"among (?:all \w+|\w+ where {said})\.(?=[ \t]*(?m:$))"
