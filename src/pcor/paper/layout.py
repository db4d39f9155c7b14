"""Results as plain tables: for the terminal, for Markdown and for the report.

Private: what is laid out. Nothing is computed here but the words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pcor.paper.experiment import ResultRow
from pcor.paper.published import PublishedResult

GROUPS = {
    "many": "records with many valid contexts",
    "all": "any outliers",
    "program": "as the authors' program asked",
}


@dataclass(frozen=True)
class Grid:
    """A table of texts.

    Attributes:
        title: above it.
        columns: the headings.
        cells: the rows.
    """

    title: str
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, title: str, rows: Sequence[Mapping[str, object]]) -> Grid:
        """Return the table of rows that have the same headings, of which there is at least one."""
        cells = tuple(tuple(map(str, row.values())) for row in rows)
        return cls(title, tuple(rows[0]), cells)

    def markdown(self) -> str:
        """Write it for Markdown."""
        lines = [self.columns, ("---",) * len(self.columns), *self.cells]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def text(self) -> str:
        """Write it for a terminal."""
        lines = [self.columns, *self.cells]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


def grids(summary: dict[str, Any]) -> list[Grid]:
    """Lay out the rows of a summary, a grid for each of its tables."""
    make = {"coe_match": _match, "ratio": _ratio, "locality": _locality}.get(
        summary["experiment"], _releases
    )
    tables = dict.fromkeys(row["table"] for row in summary["rows"])
    return [make(table, [r for r in summary["rows"] if r["table"] == table]) for table in tables]


def _releases(table: str, rows: Sequence[ResultRow]) -> Grid:
    """Lay out one line for each way to release, with a column for each group of records."""
    groups = list(dict.fromkeys(row["group"] for row in rows))
    lines: dict[str, dict[str, ResultRow]] = {}
    for row in rows:
        lines.setdefault(setting(row), {})[row["group"]] = row
    cells = [
        {
            "release": name,
            "paper": _paper(line["many"]),
            **{f"{GROUPS[g]} ({_repetitions(rows, g)})": _measured(line[g]) for g in groups},
            "against the paper": against(line["many"]),
            "paper's time, min / max / mean": _times(line["many"], "paper_t_", str),
            "our time": _times(line["many"], "t_", clock),
        }
        for name, line in lines.items()
    ]
    return Grid.of(table, cells)


def _repetitions(rows: Sequence[ResultRow], group: str) -> str:
    counts = sorted({row["repetitions"] for row in rows if row["group"] == group})
    return " to ".join(map(str, dict.fromkeys([counts[0], counts[-1]])))


def _times(row: ResultRow, prefix: str, write: Callable[[Any], str]) -> str:
    found = [row.get(f"{prefix}{which}") for which in ("min", "max", "avg")]
    return "" if None in found else " / ".join(map(write, found))


def against(row: ResultRow) -> str:
    """Say how a utility stands to the paper's: within its interval or 0.03 of it, or not.

    Only for the reading that the paper's number belongs to.
    """
    if "paper_utility" not in row or not row["real"] or row["utility"] is None:
        return ""
    published = PublishedResult(
        row["paper_utility"], row["paper_low"], row["paper_high"], ("", "", "")
    )
    if published.near(row["utility"]):
        return "within"
    return "higher" if row["utility"] > row["paper_utility"] else "lower"


def setting(row: ResultRow) -> str:
    """Say how a row was released."""
    samples = f", n = {row['samples']}" if row["samples"] and "n =" not in row["label"] else ""
    cost = f", epsilon {row['epsilon']}" if "epsilon" not in row["label"] else ""
    whose = "ours" if row["accounting"] == "tight" else "paper"
    return f"{row['label']}{samples}{cost} ({whose})"


def _paper(row: ResultRow) -> str:
    if "paper_utility" not in row:
        return ""
    mark = "" if row["real"] else "; not this reading"
    return f"{row['paper_utility']:.2f} ({row['paper_low']:.2f}, {row['paper_high']:.2f}{mark})"


def _measured(row: ResultRow) -> str:
    if row["utility"] is None:
        return "no such record"
    return f"{row['utility']:.3f} ({row['low']:.3f}, {row['high']:.3f})"


def clock(seconds: float) -> str:
    """Write a time in one short word.

    >>> clock(0.0123), clock(4.2), clock(90.0)
    ('12 ms', '4.2 s', '90 s')
    """
    return f"{seconds * 1000:.2g} ms" if seconds < 0.1 else f"{float(f'{seconds:.2g}'):g} s"


def _match(table: str, rows: Sequence[ResultRow]) -> Grid:
    sizes = list(dict.fromkeys(row["changed_rows"] for row in rows))
    columns = ("detector", "rows", "measure", *(f"{size} changed" for size in sizes))
    cells: list[tuple[str, ...]] = []
    for kind, detector in dict.fromkeys((row["kind"], row["detector"]) for row in rows):
        found = [row for row in rows if (row["kind"], row["detector"]) == (kind, detector)]
        if all("paper" in row for row in found):
            cells.append((detector, kind, "paper", *(f"{row['paper']:.1%}" for row in found)))
        for name in ("equal", "common"):
            cells.append((detector, kind, name, *_shares(found, name)))
    return Grid(table, columns, tuple(cells))


def _shares(rows: Iterable[ResultRow], name: str) -> Iterable[str]:
    for row in rows:
        if row[name] is None:
            yield ""
            continue
        yield f"{row[name]:.1%} ({row[f'{name}_low']:.1%}, {row[f'{name}_high']:.1%})"


def _ratio(table: str, rows: Sequence[ResultRow]) -> Grid:
    cells = [
        {
            "detector": row["detector"],
            "records": row["records"],
            "removals that change COE": (
                f"{row['changes_of_coe']} of {row['records'] * row['removals_per_record']}"
            ),
            "beyond e^epsilon": row["beyond_the_bound"],
            "records with one": row["records_beyond"],
            "largest log ratio": _unless_none(row["largest_log_ratio"], ".2f"),
            "no common context": row["nothing_common"],
            "paper: beyond": _unless_none(row["paper_beyond"]),
        }
        for row in rows
    ]
    return Grid.of(table, cells)


def _unless_none(number: float | None, form: str = "") -> str:
    return "" if number is None else format(number, form)


def _locality(table: str, rows: Sequence[ResultRow]) -> Grid:
    cells = [
        {
            "rule": row["rule"],
            "records": row["records"],
            "the start only": _beside_paper(row, "start_only"),
            "two": _beside_paper(row, "two"),
            "three": _beside_paper(row, "three"),
            "all 50": _beside_paper(row, "full_sets"),
            "mean": f"{row['mean_samples']:.1f}",
        }
        for row in rows
    ]
    return Grid.of(table, cells)


def _beside_paper(row: ResultRow, name: str) -> str:
    published = row.get(f"paper_{name}")
    return str(row[name]) if published is None else f"{row[name]} (paper: {published} of 200)"
