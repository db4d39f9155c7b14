"""What kernels may do with arrays: only makers make them, since nobody counts elsewhere."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import pcor._kernels

FOLDER = Path(pcor._kernels.__file__).parent
# What makes no array; anything else that is asked of a module or an array is taken to make one. An
# operation on whole arrays makes one too, which Numba refuses.
MAKES_NONE = {"np.uint64", "np.int64", "np.int32", "np.float64", "np.sqrt", "np.floor", "np.log"}
MAKES_NONE |= {"np.exp", "math.floor"}
Function = tuple[str, str]


class Compiled(NamedTuple):
    decorator: str
    returns: str
    calls: set[Function]
    makes: bool


def compiled_functions(modules: dict[str, ast.Module]) -> dict[Function, Compiled]:
    """Return every compiled function of some modules, with what it calls of theirs."""
    found = {}
    for name, tree in modules.items():
        known = {
            alias.asname or alias.name: (str(part.module).rpartition(".")[2], alias.name)
            for part in tree.body
            if isinstance(part, ast.ImportFrom)
            for alias in part.names
        }
        for part in tree.body:
            if isinstance(part, ast.FunctionDef) and part.decorator_list:
                calls = [node.func for node in ast.walk(part) if isinstance(node, ast.Call)]
                names = [call.id for call in calls if isinstance(call, ast.Name)]
                found[name, part.name] = Compiled(
                    ast.unparse(part.decorator_list[0]),
                    ast.unparse(part.returns) if part.returns else "",
                    {known.get(called, (name, called)) for called in names},
                    any(ast.unparse(c) not in MAKES_NONE for c in calls if type(c) is not ast.Name),
                )
    return found


def tuples_of_arrays(modules: dict[str, ast.Module]) -> set[str]:
    """Return the names of tuples that hold arrays, or such tuples."""
    classes = [part for tree in modules.values() for part in tree.body]
    fields = {
        part.name: {word.id for word in ast.walk(part) if isinstance(word, ast.Name)}
        for part in classes
        if isinstance(part, ast.ClassDef)
    }
    found = {"Array"}
    while more := {name for name, words in fields.items() if words & found} - found:
        found |= more
    return found


def wrong_kernels(modules: dict[str, ast.Module]) -> list[Function]:
    """Return the kernels that make arrays, return them, or call a maker."""
    functions, arrays = compiled_functions(modules), tuples_of_arrays(modules)
    makers = {
        place
        for place, one in functions.items()
        if one.decorator == "maker" or one.makes or any(name in one.returns for name in arrays)
    }
    while more := {p for p, one in functions.items() if one.calls & makers} - makers:
        makers |= more
    return sorted(place for place in makers if functions[place].decorator == "kernel")


def parsed() -> dict[str, ast.Module]:
    return {file.stem: ast.parse(file.read_text("utf-8")) for file in FOLDER.glob("*.py")}


def test_a_kernel_makes_no_array_and_calls_no_maker() -> None:
    assert len(compiled_functions(parsed())) > 150
    assert wrong_kernels(parsed()) == []


@pytest.mark.parametrize(
    "body",
    [
        "def f(n: int) -> None:\n    room = np.empty(n)",
        "def f(x: Array) -> None:\n    x.copy()",
        "def f(room: Room) -> Room:\n    return room",
        "def f(n: int) -> None:\n    made(n)",
        "def f(n: int) -> None:\n    part(n)",
    ],
)
def test_a_kernel_that_does_is_found(body: str) -> None:
    text = (
        "class Room(NamedTuple):\n    x: Array\n"
        "@maker\ndef made(n: int) -> Room:\n    return Room(np.empty(n))\n"
        "@inlined\ndef part(n: int) -> None:\n    made(n)\n"
        f"@kernel\n{body}\n"
    )
    assert wrong_kernels({"module": ast.parse(text)}) == [("module", "f")]


def test_an_array_that_a_kernel_would_make_is_refused_when_it_is_compiled() -> None:
    from numba.core.errors import NumbaError

    def sums(x: Any, y: Any) -> None:
        x[0] = (x + y)[0]

    with pytest.raises(NumbaError, match="NRT required"):
        pcor._kernels.kernel(sums)(np.ones(2), np.ones(2))
