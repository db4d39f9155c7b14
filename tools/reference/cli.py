"""The command line: every command, its arguments and options."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer

from pcor.cli import app
from tools.reference import markdown

_WORDS = {str: "TEXT", int: "INTEGER", float: "NUMBER", Path: "PATH"}

# How typer offers these depends on what is installed beside it.
_SHELL = ("help", "install_completion", "show_completion")


def overview() -> str:
    """Return a line for each command."""
    rows = []
    for words, one in commands(_program(), ("pcor",)):
        title = " ".join(words)
        first = _paragraphs(one)[0].split(". ")[0]
        ended = first if first.endswith((".", "?")) else f"{first}."
        rows.append([markdown.link(f"`{title}`", f"#{markdown.anchor(title)}"), ended])
    return markdown.table(["command", "what it does"], rows)


def details() -> str:
    """Return the program and every command with all that it takes."""
    program = _program()
    whole = markdown.section(2, "pcor", *_help(program), _options(program))
    found = commands(program, ("pcor",))
    return "\n\n".join([whole, *(_command(words, one) for words, one in found)])


def _program() -> Any:
    return typer.main.get_command(app)


def commands(group: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command below a group, in the order of its help."""
    context = group.make_context(words[-1], [], resilient_parsing=True)
    for name in group.list_commands(context):
        one = group.get_command(context, name)
        one = one.load() if hasattr(one, "load") else one  # pcor imports a command when it is used
        if hasattr(one, "list_commands"):
            yield from commands(one, (*words, name))
        else:
            yield (*words, name), one


def _command(words: tuple[str, ...], one: Any) -> str:
    needed = [_usage(p, _hints(one)) for p in one.params]
    usage = " ".join([*words, *filter(None, needed), "[OPTIONS]"])
    return markdown.section(
        2, " ".join(words), markdown.block(usage), *_help(one), _arguments(one), _options(one)
    )


def _usage(one: Any, hints: Mapping[str, Any]) -> str:
    if one.param_type_name == "argument":
        name = one.metavar or one.name.upper()
        many = "..." if one.nargs == -1 else ""
        return f"{name}{many}" if one.required else f"[{name}{many}]"
    return f"{one.opts[0]} {_value(one, hints)}" if one.required else ""


def _paragraphs(one: Any) -> list[str]:
    """Return the help text as its author wrote it, whatever the width of a terminal."""
    text = (one.help or "").replace("\b\n", "").split("\f")[0]
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


def _help(one: Any) -> list[str]:
    """Return the paragraphs; those that are a command line become blocks."""
    parts = []
    for paragraph in _paragraphs(one):
        words = " ".join(paragraph.removeprefix("Example: ").split())
        # Commands stand on a line each.
        shown = markdown.block(re.sub(r" (?=pcor [a-z]+ )", "\n", words))
        parts.append(shown if words.startswith("pcor ") else words)
    return parts


def _arguments(one: Any) -> str:
    rows = [
        [markdown.code(p.metavar or p.name.upper()), _default(p), _said(p)]
        for p in one.params
        if p.param_type_name == "argument"
    ]
    return markdown.table(["argument", "default", "meaning"], rows)


def _options(one: Any) -> str:
    rows = [
        [
            ", ".join(
                markdown.code(f"{name} {_value(p, _hints(one))}")
                for name in (*p.opts, *p.secondary_opts)
            ),
            _default(p),
            _said(p),
        ]
        for p in one.params
        if p.param_type_name == "option" and not p.hidden and p.name not in _SHELL
    ]
    return markdown.table(["option", "default", "meaning"], rows)


def _value(one: Any, hints: Mapping[str, Any]) -> str:
    """Return the word for an option's value; from the function, which typer's versions share."""
    if getattr(one, "is_flag", False):
        return ""
    return next((_WORDS[kind] for kind in _kinds(hints.get(one.name, str)) if kind in _WORDS), "")


def _kinds(hint: Any) -> Iterator[Any]:
    """Yield the types in a hint: ``list[int] | None`` has list, int and None."""
    yield hint
    for inside in get_args(hint):
        yield from _kinds(inside)


def _hints(command: Any) -> dict[str, Any]:
    # What makes options of declared settings has a signature of its own; the function has not.
    return get_type_hints(
        inspect.unwrap(command.callback, stop=lambda one: hasattr(one, "__signature__"))
    )


def _default(one: Any) -> str:
    if one.required:
        return "required"
    given = one.default
    if given is None or given is False or callable(given) or given in ((), []):
        return ""
    return markdown.code(given)


def _said(one: Any) -> str:
    """Return the help; an asterisk or a bracket of it is not Markdown's."""
    return re.sub(r"([*<\[\]])", r"\\\1", " ".join((one.help or "").split()))
