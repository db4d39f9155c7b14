"""An experiment that releases in several ways: what is compared with which number of the paper.

Private: the rows it makes. Every line of the paper's tables is measured at the paper's settings, at
other readings where the paper contradicts itself, and as the library would by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pcor.paper.experiment import Experiment, Found, ResultRow
from pcor.paper.measurement import KIND, Measured, measurement_order
from pcor.paper.published import PublishedResult
from pcor.paper.subjects import GROUPS
from pcor.paper.summary import times, utilities
from pcor.paper.tables import LARGE, REDUCED, SPARSE
from pcor.paper.ways import Way

REPETITIONS = 200
QUICK = 10

PAPER = "the paper's settings"
OTHER = "another reading of the paper"
OURS = "our defaults"


@dataclass(frozen=True)
class ComparisonLine:
    """A way to release, and the number of the paper to hold it against.

    Attributes:
        label: what the paper calls it.
        way: the settings.
        reading: ``PAPER``, ``OTHER`` or ``OURS``.
        published: the paper's number, if it has one.
        real: whether this reading is the one that the paper's number is known to belong to.
        detector: the name of the detector.
    """

    label: str
    way: Way
    reading: str
    published: PublishedResult | None = None
    real: bool = True
    detector: str = "lof"


@dataclass(frozen=True)
class Comparison(Experiment):
    """An experiment of releases.

    Attributes:
        lines: what is compared.
    """

    usual: tuple[str, ...] = (*REDUCED, *LARGE, *SPARSE)
    fallback: str = "synthetic"
    kind: str = KIND
    lines: tuple[ComparisonLine, ...] = ()

    def repetitions(self, *, quick: bool) -> int:
        """Return how many records are asked about."""
        return QUICK if quick else REPETITIONS

    def detectors(self) -> Iterable[str]:
        """Return the detectors of the lines."""
        return dict.fromkeys(line.detector for line in self.lines)

    def parts(self, detector: str) -> tuple[str, ...]:
        """Return the ways to release."""
        ways = [line.way for line in self.lines if line.detector == detector]
        return tuple(way.key for way in measurement_order(ways))

    def table_rows(self, table: str, found: Found) -> Iterator[ResultRow]:
        """Yield a row for every line and group of records."""
        for line in self.lines:
            for group in GROUPS:
                if group != "program" or table in REDUCED:
                    by_group = (unit.get(line.way.key, {}) for unit in found[line.detector])
                    measured = [one[group] for one in by_group if group in one]
                    yield _row(line, group, measured) | _published(line, table)


def _row(line: ComparisonLine, group: str, measured: Sequence[Measured]) -> ResultRow:
    return {
        "label": line.label,
        "reading": line.reading,
        "real": line.real,
        "group": group,
        "detector": line.detector,
        **line.way.row(),
        "repetitions": len(measured),
        **utilities([one["utility"] for one in measured]),
        **times([one["seconds"] for one in measured if "seconds" in one]),
        "nothing_found": sum("nothing" in one for one in measured),
    }


def _published(line: ComparisonLine, table: str) -> ResultRow:
    given = line.published
    if given is None or "salary" not in table:  # where its numbers are from
        return {}
    names = ("paper_t_min", "paper_t_max", "paper_t_avg")
    return {
        "paper_utility": given.utility,
        "paper_low": given.low,
        "paper_high": given.high,
        **dict(zip(names, given.times, strict=True)),
    }
