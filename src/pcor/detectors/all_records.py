"""All records of a context judged together, in one context after the other. For the owner only.

Private: everything here. ``search.every_context`` asks for the contexts of a schema. A detector
with a kernel for that gives it in ``Detector.all_records``; any other is asked context by context
(``by_rule``). Contexts are walked without filtering any from scratch
(``pcor._kernels.every_context``), over rows that were sorted once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pcor.errors import others_code
from pcor.public.context_list import ListedContexts
from pcor.support.arrays import NDArray, np

if TYPE_CHECKING:
    from pcor.detectors.base import Detector, Verdicts

Places: TypeAlias = "NDArray[np.int32]"


class ContextOutliers(NamedTuple):
    """Consecutive contexts, with the outliers of each. Private.

    Attributes:
        populations: how many rows each covers.
        ends: how many outliers there are up to and with each.
        places: the outliers of all, those of a context by rising metric; a row is named by its
            place in the order of the metric.
    """

    populations: NDArray[np.int64]
    ends: NDArray[np.int64]
    places: Places

    def part(self, start: int, stop: int) -> ContextOutliers:
        """Return some of the contexts."""
        before = int(self.ends[start - 1]) if start else 0
        ends = self.ends[start:stop]
        until = int(ends[-1]) if len(ends) else before
        return ContextOutliers(
            self.populations[start:stop], ends - before, self.places[before:until]
        )

    @classmethod
    def joined(cls, parts: list[ContextOutliers]) -> ContextOutliers:
        """Put consecutive contexts together."""
        if len(parts) == 1:
            return parts[0]
        before = np.cumsum([0, *(len(part.places) for part in parts)])
        return cls(
            np.concatenate([part.populations for part in parts]),
            np.concatenate([p.ends + done for p, done in zip(parts, before[:-1], strict=True)]),
            np.concatenate([part.places for part in parts]),
        )


# Judges consecutive contexts.
Judge = Callable[[ListedContexts], ContextOutliers]


def judged_by(kernel: Callable[..., Places], *columns: object) -> Judge:
    """Return a judge that asks a kernel, which is always sure."""

    def judge(contexts: ListedContexts) -> ContextOutliers:
        populations, ends = np.empty((2, len(contexts.bits)), dtype=np.int64)
        places = kernel(*contexts, *columns, populations, ends)
        return ContextOutliers(populations, ends, places)

    return judge


@dataclass(frozen=True, repr=False)
class SortedRows:
    """The rows of a table by rising metric, as kernels read them. Private.

    Attributes:
        codes: the values of each row as positions among a context's bits, one line per attribute.
        values: the metrics.
        centre: what sums are measured from.
    """

    codes: NDArray[np.unsignedinteger[Any]]
    values: NDArray[np.float64]
    centre: float

    def __len__(self) -> int:
        return len(self.values)

    def walk(self, contexts: ListedContexts) -> Iterator[Places]:
        """Yield the places that each of some contexts covers."""
        from pcor._kernels.every_context import begin, step

        kept, sizes = begin(self.codes)
        for bits, changed in zip(*contexts, strict=True):
            yield step(bits, changed, self.codes, kept, sizes)


def by_rule(detector: Detector, rows: SortedRows, contexts: ListedContexts) -> ContextOutliers:
    """Ask the detector itself, once for each context."""
    covered = [0] * len(contexts.bits)
    outliers = [np.zeros(0, dtype=np.int32)] * len(covered)
    for number, own in enumerate(rows.walk(contexts)):
        covered[number] = len(own)
        if len(own) >= max(1, detector.min_population):
            outliers[number] = own[_verdicts(detector, rows.values[own])]
    ends = np.cumsum([len(places) for places in outliers], dtype=np.int64)
    return ContextOutliers(np.array(covered, dtype=np.int64), ends, np.concatenate(outliers))


def _verdicts(detector: Detector, population: NDArray[np.float64]) -> Verdicts:
    """Return the verdict on each row of a population, which rises."""
    starts = np.flatnonzero(np.concatenate([[True], population[1:] != population[:-1]]))
    counts = np.diff(np.append(starts, len(population)))
    with others_code(f"the detector {detector.name!r}"):
        verdicts = detector.verdicts(population[starts], counts)
        return np.repeat(verdicts, counts)
