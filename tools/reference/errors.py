"""The errors: class, kind, exit code, HTTP status, meaning."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from pcor import client, errors, service
from pcor.service.core import problems
from tools.reference import docstrings, markdown

PAGES = Path(__file__).parents[2] / "docs" / "errors"


def of_library() -> str:
    """Return the errors of the library, each below the one that it is a kind of."""
    rows = [_row(kind, depth) for kind, depth in family()]
    return markdown.table(["class", "kind", "exit code", "HTTP", "meaning"], rows)


def of_service() -> str:
    """Return what the service refuses before it reaches the library."""
    rows = [[str(status), _page_of(kind), said] for status, kind, said in service_problems()]
    return markdown.table(["HTTP", "kind", "detail"], rows)


def family(
    above: type[errors.PcorError] = errors.PcorError, depth: int = 0
) -> Iterator[tuple[type[errors.PcorError], int]]:
    """Yield every error of the library below one, with its depth."""
    yield above, depth
    for below in above.__subclasses__():
        if below.__module__ in (errors.__name__, client.__name__):
            yield from family(below, depth + 1)


def _row(kind: type[errors.PcorError], depth: int) -> list[str]:
    status = next(status for one, status in problems._STATUSES if issubclass(kind, one))
    return [
        "·" * depth + markdown.code(kind.__name__),
        _page_of(kind.kind),
        str(kind.exit_code),
        str(status) if kind.__module__ == errors.__name__ else "",
        docstrings.read(kind).first,
    ]


def _page_of(kind: str) -> str:
    """Return a kind, with a link to its page where there is one."""
    known = (PAGES / f"{kind}.md").exists()
    return markdown.link(f"`{kind}`", f"../errors/{kind}.md") if known else f"`{kind}`"


def service_problems() -> list[tuple[int, str, str]]:
    """Return what the service's own code refuses: status, kind and the sentence."""
    found = set()
    for path in Path(service.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Problem":
                given = [_text(one) for one in node.args[:3]]
                if len(given) == 3 and given[0].isdigit() and given[1] and given[2]:
                    found.add((int(given[0]), given[1], given[2]))
    found |= {(status, kind, said) for status, (kind, said) in problems._BY_STATUS.items()}
    return sorted(found)


def _text(node: ast.expr) -> str:
    """Return a constant, or a sentence with its holes as {…}; nothing for anything else."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{...}" for part in node.values
        )
    return ""
