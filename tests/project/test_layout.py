"""The shape of the project: one-way imports, documented names, nothing private in its files."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import pcor

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "pcor"
TESTS = ROOT / "tests"

# From public knowledge through private rows to the interfaces for people. A folder (or a module
# beside the folders) imports only from its own line or from lines above it; within a line, Python
# itself refuses circles.
LAYERS: list[set[str]] = [
    {"errors", "support"},
    {"public"},
    {"mechanism", "_kernels"},
    {"rows"},
    {"detectors"},
    {"search"},
    {"releasing"},
    {"ledger", "client", "testing", "demo"},
    {"audit"},
    {"paper"},
    {"service"},
    {"cli", "__main__"},
]

# What is settled before any row is looked at must not import from where rows are.
PUBLIC = ["errors.py", "support", "public", "mechanism", "releasing/plan.py"]
PUBLIC += ["releasing/options.py", "releasing/settings.py", "releasing/terms.py", "client.py"]


def modules() -> Iterator[tuple[str, Path]]:
    """Yield each module with the name of its folder."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts != ("__init__",):
            yield parts[0], path


@cache
def text(path: Path) -> str:
    """Return what is in a file; many tests look at each."""
    return path.read_text(encoding="utf-8")


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(text(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return every node of the syntax tree of a file."""
    return tuple(ast.walk(tree(path)))


def imported(path: Path) -> Iterator[str]:
    """Yield the folders that a module imports from."""
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pcor"):
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (
                alias.name.partition(".")[2].partition(".")[0] or "__init__"
                for alias in node.names
                if alias.name.partition(".")[0] == "pcor"
            )


def level(layer: str) -> int:
    return next(i for i, group in enumerate(LAYERS) if layer in group)


# A schema is drafted from rows and checked against them by its own methods, for the owner; what
# does it is loaded when they are called.
DOORS = {("public/schema.py", "audit")}


def misplaced(layer: str, path: Path) -> list[str]:
    """Return the folders below its own that a module imports from."""
    # The command line and the demo are users of the library like any other.
    whole = {"__init__", "__version__"}
    return [
        other
        for other in imported(path)
        if (layer != "cli" if other in whole else level(other) > level(layer))
    ]


def test_a_module_imports_only_from_layers_above_it() -> None:
    found = {
        (path.relative_to(SOURCE).as_posix(), other)
        for layer, path in modules()
        for other in misplaced(layer, path)
    }
    assert found == DOORS


def test_the_import_test_sees_a_wrong_direction(tmp_path: Path) -> None:
    wrong = tmp_path / "schema.py"
    wrong.write_text("from pcor.rows.table import Table\nimport pcor.releasing.run\nimport pcor\n")
    assert misplaced("public", wrong) == ["rows", "releasing", "__init__"]
    assert misplaced("cli", wrong) == []


def test_the_folders_show_the_architecture() -> None:
    assert len(LAYERS) <= 12
    modules = {path.stem for path in SOURCE.glob("*.py")}
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert (modules | packages) - {"__init__"} == set().union(*LAYERS)
    assert len(modules) <= 6


@pytest.mark.parametrize("place", PUBLIC)
def test_what_is_settled_before_any_row_imports_nothing_of_rows(place: str) -> None:
    paths = [SOURCE / place] if place.endswith(".py") else sorted((SOURCE / place).rglob("*.py"))
    for path in paths:
        assert "rows" not in set(imported(path)), path


def test_a_plan_and_a_client_load_nothing_of_rows() -> None:
    """Also not through what they import: in an interpreter of its own."""
    program = (
        "import sys, pcor.client, pcor.releasing.plan;"
        "print(*(name for name in sys.modules if name.startswith('pcor.rows')))"
    )
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == []


# Classes that others tell apart by what they declare: only their own modules ask for the class.
DECLARED = {
    "detectors": "LOF Grubbs Histogram Estimator CountDetector Tail Neighbourhood RareBin",
    "search": "Direct Uniform RandomWalk DepthFirst BreadthFirst WidestFirst SamplingSearch "
    "GraphSearch SteeredSearch PopulationSize Overlap",
    "rows": "Cells CellTable RemoteCellTable",
}


def class_tests(found: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names of the classes that code tests for with isinstance or type."""
    for node in found:
        tested: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            tested = node.args[1:] if node.func.id in {"isinstance", "issubclass"} else []
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Call):
            of_type = isinstance(node.left.func, ast.Name) and node.left.func.id == "type"
            tested = node.comparators if of_type else []
        for part in (inner for one in tested for inner in ast.walk(one)):
            if isinstance(part, ast.Name | ast.Attribute):
                yield part.id if isinstance(part, ast.Name) else part.attr


def test_searches_utilities_detectors_and_cells_are_told_apart_by_what_they_declare() -> None:
    names = {name for listed in DECLARED.values() for name in listed.split()}
    for _, path in modules():
        own = set(re.findall(r"^class (\w+)", text(path), re.MULTILINE))
        assert not {*class_tests(nodes(path))} & names - own, path


def test_the_test_for_classes_sees_each_way_to_ask() -> None:
    ways = "isinstance(x, LOF)", "isinstance(x, (A, pcor.LOF))", "isinstance(x, A | LOF)"
    more = "type(x) is LOF", "type(x) is not LOF", "type(x) in (A, LOF)", "issubclass(x, LOF)"
    assert all("LOF" in {*class_tests(ast.walk(ast.parse(way)))} for way in (*ways, *more))


def test_no_two_classes_have_one_name() -> None:
    classes = [
        node.name.lstrip("_")
        for _, path in modules()
        for node in tree(path).body
        if isinstance(node, ast.ClassDef)
    ]
    assert {name for name in classes if classes.count(name) > 1} == set()


# Nouns of the field that end like a verb.
NOUNS = {
    "accounting",
    "closing",
    "counting",
    "encoding",
    "sampling",
    "setting",
    "testing",
    "wording",
}


def test_modules_are_nouns() -> None:
    words = {word for _, path in modules() for word in path.stem.split("_")}
    assert {word for word in words if word.endswith("ing")} <= NOUNS


def test_no_object_is_made_or_copied_behind_the_back_of_its_class() -> None:
    for _, path in modules():
        behind = r"object\.__new__|__dict__ *\|?=|vars\(\w+\) *\|?="
        assert not re.search(behind, text(path)), path


def documented(path: Path) -> Iterator[tuple[str, str | None]]:
    """Yield the public definitions of a module with their docstrings."""
    yield "module", ast.get_docstring(tree(path))
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, ast.get_docstring(node)
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
                    yield f"{node.name}.{inner.name}", ast.get_docstring(inner)


def test_every_public_name_is_documented() -> None:
    found = {
        path: [name for name, said in documented(path) if not said] for path in SOURCE.rglob("*.py")
    }
    assert {path: names for path, names in found.items() if names} == {}


def test_every_exported_name_exists_and_is_in_the_reference_of_the_contract() -> None:
    contract = (
        "Schema Table release matching_contexts is_outlier outliers Context audit LOF Grubbs "
        "Histogram Estimator Direct Uniform RandomWalk DepthFirst BreadthFirst WidestFirst "
        "PopulationSize Overlap Tail Neighbourhood RareBin Budget testing plan"
    )
    assert set(contract.split()) <= set(pcor.__all__)
    assert all(hasattr(pcor, name) for name in pcor.__all__)


def test_every_search_has_a_proof_page() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "proofs").glob("*.md")}
    assert {*pcor.search.SEARCHES, "selection", "accounting"} <= pages


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split("\n")
    files = [ROOT / name for name in listed if name] or list(SOURCE.rglob("*.py"))
    return [path for path in files if path.is_file() and path.suffix in {".py", ".md", ".toml"}]


def test_no_file_names_a_path_of_one_machine() -> None:
    machine = re.compile(r"(?<![\w.])/(home|root|work|Users)/")
    found = [str(path) for path in tracked() if machine.search(text(path))]
    assert found == []


@pytest.mark.parametrize("folder", ["search", "mechanism/selection.py", "releasing/run.py"])
def test_no_weights_or_generators_of_floating_point_in_what_releases(folder: str) -> None:
    paths = [SOURCE / folder] if folder.endswith(".py") else (SOURCE / folder).rglob("*.py")
    for path in paths:
        if path.name == "guess.py":  # numbers from a public seed: no draw, and no secret
            continue
        random = r"np\.exp|math\.exp|np\.random|random\.random|import random"
        assert not re.search(random, text(path))


# -- tests mirror the source ----------------------------------------------------------------------

# Longer than this, a test file has a second subject.
LONGEST = 550

# What is tested besides the package, and what tests share.
BESIDE_THE_SOURCE = {"docs", "project", "helpers"}

# A text that is a program: it imports something of the tests.
PROGRAM = re.compile(r"^(from|import) tests\.", re.MULTILINE)


def place_of_tests(folder: Path) -> Path:
    """Return where the tests of a folder are: under its own name, but kernels for _kernels."""
    parts = folder.relative_to(SOURCE).parts
    return TESTS.joinpath(*("kernels" if part == "_kernels" else part for part in parts))


def mirrored() -> set[Path]:
    """Return the folders with modules; what only Alembic runs is tested with its database."""
    folders = {path.parent for path in SOURCE.rglob("*.py") if path.name != "__init__.py"}
    return {folder for folder in folders if "migrations" not in folder.parts} - {SOURCE}


def imported_tests(found: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the test files that code imports, itself or in a program that it starts."""
    for node in found:
        names = []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and PROGRAM.search(str(node.value)):
            yield from imported_tests(ast.walk(ast.parse(str(node.value))))
        for name in names:
            if name.startswith("tests.") and any(
                part.startswith("test_") for part in name.split(".")
            ):
                yield name


def test_every_folder_has_its_tests_in_a_folder_of_the_same_name() -> None:
    missing = [f for f in mirrored() if not any(place_of_tests(f).glob("test_*.py"))]
    assert missing == []


def test_every_folder_of_tests_is_that_of_a_folder_or_of_something_beside_the_source() -> None:
    folders = {path.parent for path in TESTS.rglob("*.py")} - {TESTS}
    expected = {place_of_tests(folder) for folder in mirrored()}
    expected |= {TESTS / name for name in BESIDE_THE_SOURCE}
    assert folders == expected


def test_no_test_file_imports_another() -> None:
    files = {path: [*imported_tests(ast.walk(tree(path)))] for path in TESTS.rglob("*.py")}
    assert {path: found for path, found in files.items() if found} == {}


def test_no_test_file_is_long() -> None:
    long = [path for path in TESTS.rglob("*.py") if text(path).count("\n") > LONGEST]
    assert long == []


@pytest.mark.parametrize(
    "form", ["import {0}", "from {0} import f", 'PROGRAM = "from {0} import f"']
)
def test_an_import_of_a_test_file_is_seen_wherever_it_is_written(form: str) -> None:
    def found(name: str) -> list[str]:
        return list(imported_tests(ast.walk(ast.parse(form.format(name)))))

    assert len(found("tests.search.test_coe")) == 1
    assert found("tests.helpers.naive") == []
