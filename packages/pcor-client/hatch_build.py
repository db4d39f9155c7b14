"""Put the modules of pcor that its client needs beside the client's package, as they are.

They are found from ``pcor/client.py`` by its imports, and theirs, so no list can be out of date.
What is imported within a function is left out: that is for rows, which a client does not have.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FIRST = "pcor.client"
# Files that are no modules, and that the modules read or type checkers look for.
DATA = ("pcor/py.typed", "pcor/releasing/certificate.schema.json")


class Library(BuildHookInterface[Any]):
    """Adds the modules to a wheel, and to a source archive where it is built from one."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Say which files go where."""
        del version
        unpacked = Path(self.root, "library")  # in a source archive
        tree = unpacked if unpacked.is_dir() else Path(self.root).parents[1] / "src"
        target = "pcor_client/library" if self.target_name == "wheel" else "library"
        for name in needed(tree):
            build_data["force_include"][str(tree / name)] = f"{target}/{name}"


def needed(tree: Path) -> list[str]:
    """Return the files that the client needs, as paths from a folder that has ``pcor`` in it."""
    met: set[str] = set()
    waiting = [FIRST]
    while waiting:
        module = waiting.pop()
        path = _file(tree, module)
        if path is not None and path not in met:
            met.add(path)
            waiting += _imported((tree / path).read_text(encoding="utf-8"))
            waiting += [module.rpartition(".")[0]] if "." in module else []
    return sorted([*met, *DATA])


def _file(tree: Path, module: str) -> str | None:
    """Return the file of a module; None for what is not a module of pcor but a name in one."""
    place = module.replace(".", "/")
    found = [f"{place}.py", f"{place}/__init__.py"]
    return next((path for path in found if (tree / path).is_file()), None)


def _imported(code: str) -> Iterator[str]:
    """Yield what a module imports as it is loaded; ``if TYPE_CHECKING`` is not."""
    for node in ast.parse(code).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pcor":
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
