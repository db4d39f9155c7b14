"""``python -m tools.notebooks`` writes notebooks from pages of the documentation.

A page with a notebook beside it (the same name, ``.ipynb``) is its source: what is rendered in the
site, run by the tests and opened in Jupyter is one text. Python blocks become cells; what they
print, as the page shows it, is left out, because the notebook prints it itself. ``--pictures``
draws anew what the tutorial's page shows of its notebook.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$\n?", re.DOTALL | re.MULTILINE)
# The link to the notebook itself, what announces an output, and pictures of outputs.
LEFT_OUT = re.compile(
    r" \(\[as a notebook\]\(\w+\.ipynb\)\)|^prints[^\n]*:\n|^!\[[^\n]*\]\([^\n]*\)\n", re.MULTILINE
)
DRAWN = DOCS / "tutorial" / "notebook.ipynb"


def sources() -> list[Path]:
    """Return the pages that have a notebook."""
    return [note.with_suffix(".md") for note in sorted(DOCS.rglob("*.ipynb"))]


def notebook(page: Path) -> str:
    """Return the notebook of a page, as the text of its file."""
    cells = [
        {"id": f"cell-{number:02}", "metadata": {}, **cell}
        for number, cell in enumerate(_cells(page.read_text(encoding="utf-8")), 1)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    book = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def _cells(text: str) -> Iterator[dict[str, Any]]:
    prose, *rest = BLOCK.split(LEFT_OUT.sub("", text))
    yield from _markdown(prose)
    for language, block, after in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if language == "python":
            source = block.rstrip("\n").splitlines(keepends=True)
            yield {"cell_type": "code", "execution_count": None, "outputs": [], "source": source}
        yield from _markdown(after)


def _markdown(prose: str) -> Iterator[dict[str, Any]]:
    if prose.strip():
        yield {"cell_type": "markdown", "source": prose.strip().splitlines(keepends=True)}


def stale() -> list[Path]:
    """Return the notebooks that do not say what their pages say."""
    notes = {page.with_suffix(".ipynb"): notebook(page) for page in sources()}
    return [note for note, text in notes.items() if note.read_text(encoding="utf-8") != text]


def draw() -> None:
    """Run the notebook that draws, and write its pictures where its page shows them."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(DRAWN, as_version=4)  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(book, resources={"metadata": {"path": folder}}).execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    drawn = [o.data["image/png"] for o in outputs if "image/png" in o.get("data", {})]
    for number, picture in enumerate(drawn, 1):
        target = DOCS / "pictures" / f"notebook-{number}.png"
        target.write_bytes(base64.b64decode(picture))
        print(f"written: {target.relative_to(DOCS)}")


def main() -> None:
    """Write the notebooks that are stale, or draw what one shows."""
    if sys.argv[1:] == ["--pictures"]:
        draw()
        return
    for note in stale():
        note.write_text(notebook(note.with_suffix(".md")), encoding="utf-8")
        print(f"written: {note.relative_to(DOCS)}")


if __name__ == "__main__":
    main()
