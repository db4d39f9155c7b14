"""What a detector is: a rule on a multiset of numbers.

Private: the numbers that pass through. A detector is handed the distinct metric values of a
population in rising order with their counts, and answers for each distinct value. That shape makes
it a function of the multiset: no order of rows can leak into a verdict, and equal values cannot
get different ones. COE would not be well defined otherwise (paper, Section 3: "we only consider
deterministic outlier detection algorithms").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from pcor.errors import ParameterError, check_whole
from pcor.public.context import Words
from pcor.public.window import Window
from pcor.support.arrays import ArrayLike, NDArray, np

if TYPE_CHECKING:
    from pcor.detectors.all_records import Judge, SortedRows
    from pcor.detectors.context_block import BlockJudge
    from pcor.detectors.counting import CountDetector
    from pcor.rows.cell_table import CellTable
    from pcor.rows.cells import Cells

# More rows than this are beyond what whole numbers of 64 bits are multiplied with here.
LARGEST_POPULATION = 1 << 31

Values: TypeAlias = "NDArray[np.float64]"
Counts: TypeAlias = "NDArray[np.int64]"
Verdicts: TypeAlias = "NDArray[np.bool_]"
Moments: TypeAlias = "NDArray[np.float64]"


class FactorRule(NamedTuple):
    """A local outlier factor by exactly k neighbours, lower values first at a tie.

    Attributes:
        k: the number of neighbours.
        threshold: what the factor must exceed.
        smallest: in a smaller population nothing is an outlier.
    """

    k: int
    threshold: float
    smallest: int


@dataclass(frozen=True, kw_only=True)
class Detector:
    """A rule that calls some values of a population outliers.

    Subclasses are frozen dataclasses whose fields are the rule's public parameters. They give
    ``name`` and ``verdicts``; ``verdict`` only where one answer is cheaper than all.

    Attributes:
        min_population: in a smaller population nothing is an outlier. The authors' rule is "more
            than 20".
    """

    name: ClassVar[str] = ""
    has_kernel: ClassVar[bool] = False
    wants_moments: ClassVar[bool] = False
    wants_tails: ClassVar[bool] = False  # whether its moments are also those above a value
    documents_its_rule: ClassVar[bool] = True  # whether its docstring begins with the rule
    min_population: int = 21

    def __post_init__(self) -> None:
        check_whole("min_population", self.min_population, LARGEST_POPULATION)

    @property
    def count_rule(self) -> CountDetector | None:
        """The rule as one that counts rows in a region; ``None`` for one that does not."""
        return None

    @property
    def side(self) -> str | None:
        """On which side its outliers lie: "high" or "low"; ``None`` where both are possible.

        A release may say it, so it must follow from the settings alone: on which side of the others
        a record lies depends on their rows.
        """
        return None

    @property
    def in_words(self) -> str:
        """When a value is unusual by this rule, for a reader without mathematics.

        It goes on from "a value is unusual if"; "" where there are no such words. Public: it
        follows from the settings alone. A class derived from one of ours may have another rule, so
        it has only words of its own.
        """
        return ""

    @property
    def caution(self) -> str:
        """What whoever plans a release should hear of this rule; public, and "" where nothing."""
        return ""

    @property
    def factor_rule(self) -> FactorRule | None:
        """The rule as a local outlier factor; ``None`` for any other."""
        return None

    @property
    def window_rows(self) -> int | None:
        """How many rows on each side of a value its verdict looks at; ``None`` for all of them."""
        return None

    def window_on(self, value: float, low: float, high: float) -> Window:
        """Return which pairs of rows that lie elsewhere are needed to judge a value.

        Args:
            value: the metric to judge, in any context.
            low: the least metric of all rows.
            high: the largest.
        """
        del value, low, high  # used by rules that look at a range
        return Window(rows=self.window_rows)

    def region_ends(self, value: float) -> tuple[float, float] | None:
        """Return the least and the largest metric of the rows that it counts to judge a value.

        Rows that lie elsewhere are then counted there. ``None`` if it counts none, or not those of
        a range.
        """
        del value
        return None

    def verdicts(self, values: Values, counts: Counts) -> Verdicts:
        """Return, for each distinct value, whether it is an outlier among all.

        ``values`` rise strictly; ``counts`` say how often each occurs. The population is not
        empty and not smaller than ``min_population``.
        """
        raise NotImplementedError(f"{type(self).__name__} must define verdicts()")

    def verdict(self, values: Values, counts: Counts, place: int) -> bool:
        """Return the verdict on ``values[place]`` alone; it must equal ``verdicts(...)[place]``."""
        return bool(self.verdicts(values, counts)[place])

    def is_outlier(self, values: Values, counts: Counts, value: float) -> bool:
        """Tell whether ``value`` is an outlier; a value that is not there never is."""
        place = int(np.searchsorted(values, value))
        present = place < len(values) and values[place] == value
        if not present or int(counts.sum()) < self.min_population:
            return False
        return self.verdict(values, counts, place)

    def batch(
        self, cells: CellTable, value: float, masks: Words, moments: Moments | None = None
    ) -> Verdicts:
        """Return the verdict on ``value`` in each of many contexts that cover the record.

        Detectors with a kernel answer all at once; the answers must be those of ``is_outlier``.
        ``moments``, where the caller has them, are ``cell_moments`` summed over the cells that
        each context covers: populations in row 0. A detector that ``wants_moments`` gets them
        from ``Validity`` always.
        """
        del moments  # used by kernels only
        return np.array(
            [self.is_outlier(*cells.distribution(mask), value) for mask in masks], dtype=bool
        )

    def judge_of_many(
        self, cells: CellTable, value: float, free: Words
    ) -> Callable[[Words], Verdicts] | None:
        """Return what judges a value in very many contexts, if getting ready for them pays.

        The verdicts must be those of ``is_outlier``. Several threads may ask at once. A class
        derived from one of ours may have another rule, so ours give theirs to no other class than
        their own.

        Args:
            cells: what the contexts may cover.
            value: the metric to judge.
            free: the positions in which the contexts differ; all others are in them.
        """
        del cells, value, free
        return None

    def cell_moments(self, cells: Cells, value: float) -> Moments:
        """Return what ``batch`` wants summed over cells: shape (kinds, cells).

        Row 0 is the rows of each cell; a detector that ``wants_moments`` adds rows of its own.
        """
        del value  # the rows of a cell are the same for everybody
        return cells.cell_counts[np.newaxis].astype(np.float64)

    def block_judge(self, cells: CellTable, value: float) -> BlockJudge | None:
        """Return what settles many contexts of a block at once; ``None`` where there is nothing.

        It is asked where all pairs of the table are in memory. What it settles must be settled as
        ``is_outlier`` does. A class derived from one of ours may have another rule, so ours give
        theirs to no other class than their own.
        """
        del cells, value
        return None

    def lost_digits(self, moments: Moments, whole: Moments) -> Verdicts:
        """Tell which contexts' moments must be summed anew.

        They were got by subtracting from those of a ``whole``, which rounds by its size. Counts
        do not round.
        """
        del whole
        return np.zeros(moments.shape[1], dtype=bool)

    def changed_verdicts(
        self,
        cells: CellTable,
        value: float,
        masks: Words,
        moments: Moments,
        metrics: Values,
        rows: int,
    ) -> tuple[Verdicts, Verdicts] | None:
        """Return the verdicts after each of many one-row changes, where that is quick.

        Args:
            cells: the rows before the change.
            value: the metric to judge.
            masks: contexts that cover the record and the changed row.
            moments: ``cell_moments`` summed over each context, before the change.
            metrics: the metric of the row, one for each change.
            rows: 1 if it is added, -1 if it is removed.

        Returns:
            The verdicts and whether each is sure, both of shape (changes, contexts); ``None`` where
            there is no quick way.
        """
        del cells, value, masks, moments, metrics, rows
        return None

    def all_records(self, rows: SortedRows) -> Judge | None:
        """Return a kernel that judges all records of many contexts; ``None`` where there is none.

        Its outliers must be those of ``verdicts``. A class derived from one of ours may have
        another rule, so ours give theirs to no other class than their own.
        """
        del rows
        return None

    def flags(self, population: ArrayLike) -> Verdicts:
        """Return, for each number of a population in any order, whether it is an outlier.

        >>> from pcor import Grubbs
        >>> Grubbs(min_population=3).flags([1, 2, 1, 2, 1, 2, 50]).tolist()
        [False, False, False, False, False, False, True]
        """
        numbers = np.asarray(population, dtype=np.float64)
        values, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        if len(numbers) < self.min_population or len(numbers) == 0:
            return np.zeros(len(numbers), dtype=bool)
        flagged: Verdicts = self.verdicts(values, counts.astype(np.int64))[places]
        return flagged

    def describe(self) -> dict[str, Any]:
        """Return the public parameters, for a certificate."""
        return {"name": self.name} | {f.name: getattr(self, f.name) for f in fields(self)}


def check_positive(what: str, value: object) -> None:
    """Refuse a parameter that is not a positive, finite number."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < float("inf"):  # type: ignore[operator]
        raise ParameterError(f"{what} must be a positive number")
