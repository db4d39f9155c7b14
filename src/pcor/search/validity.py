"""Is the record an outlier in these contexts? The one question a search may ask for free.

Private: the answers, which together are COE. Batches of contexts in, booleans out; verdicts are
remembered by context, so that no search asks the detector twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from pcor.detectors import Detector
from pcor.errors import others_code
from pcor.public.context import Words, pack
from pcor.support.arrays import NDArray, np

if TYPE_CHECKING:
    from pcor.detectors.context_block import BlockJudge
    from pcor.rows.cell_table import CellTable
    from pcor.rows.table import Record, Table


class Validity:
    """The verdicts on one record under one detector.

    Attributes:
        table: with the record among the rows that are counted.
        cells: all of it that can matter for this record under this detector.
    """

    def __init__(self, table: Table, record: Record, detector: Detector) -> None:
        self.table = table = table.holding(record)
        self.record = record
        self.detector = detector
        self._known: dict[int, bool] = {}
        with others_code(f"the detector {detector.name!r}"):
            self.cells = table.cells_for(record.value, detector)

    @property
    def asks_detector(self) -> bool:
        """Whether verdicts are the detector's. Whoever has its own is asked for each of them."""
        return type(self) is Validity

    @property
    def compiled(self) -> bool:
        """Whether a compiled kernel judges rows in memory: several threads may then ask at once."""
        return self.detector.has_kernel and self.cells.ask is None

    def __call__(self, masks: Sequence[int]) -> NDArray[np.bool_]:
        """Return, for each context, whether it is valid."""
        return self._remembered(masks)

    def of_words(self, words: Words) -> NDArray[np.bool_]:
        """Return the verdicts on contexts of the record's space, without remembering them."""
        return self.judge_members(self.cells, words)

    def judge_of_many(self) -> Callable[[Words], NDArray[np.bool_]]:
        """Return what gives the verdicts on very many contexts of the space, ready for them.

        It remembers none. Several threads may ask where ``compiled`` says so.
        """
        space = self.record.space
        # Limits leave contexts out.
        if not self.asks_detector or not self.compiled or space.schema.limited:
            return self.of_words
        free = pack([(1 << space.schema.width) - 1 & ~space.fixed], space.schema.width)[0]
        with others_code(f"the detector {self.detector.name!r}"):
            judge = self.detector.judge_of_many(self.cells, self.record.value, free)
        return self.of_words if judge is None else judge

    def judge_members(
        self, cells: CellTable, words: Words, moments: NDArray[np.float64] | None = None
    ) -> NDArray[np.bool_]:
        """Judge numbered contexts of the space; those that limits leave out are not valid."""
        space = self.record.space
        if not space.schema.limited:
            return self.judge(cells, words, moments)
        valid = space.admitted(words)
        columns = None if moments is None else np.ascontiguousarray(moments[:, valid])
        valid[valid] = self.judge(cells, np.ascontiguousarray(words[valid]), columns)
        return valid

    def judge(
        self, cells: CellTable, words: Words, moments: NDArray[np.float64] | None = None
    ) -> NDArray[np.bool_]:
        """Ask the detector about contexts whose rows are all in these cells."""
        if moments is None and self.detector.wants_moments:
            moments = cells.several_totals(words, self.cell_moments[:, cells.cell_numbers])
        with others_code(f"the detector {self.detector.name!r}"):
            return self.detector.batch(cells, self.record.value, words, moments)

    def read(self) -> None:
        """Read all that the detector asks of the rows of the table, for once and before a draw."""
        self.cell_moments  # noqa: B018 (remembered)
        if self.detector.count_rule is not None:
            self.region  # noqa: B018

    @cached_property
    def region(self) -> NDArray[np.int64]:
        """How many rows of each cell of the table a detector that counts finds in V's region."""
        rule = self.detector.count_rule
        if rule is None:
            raise RuntimeError("only a detector that counts has a region")
        with others_code(f"the detector {self.detector.name!r}"):
            return rule.region_counts(self.table.cells, self.record.value)

    @cached_property
    def cell_moments(self) -> NDArray[np.float64]:
        """What the detector wants to know of each cell: shape (kinds, cells of the table)."""
        with others_code(f"the detector {self.detector.name!r}"):
            return self.detector.cell_moments(self.table.cells, self.record.value)

    @cached_property
    def block_judge(self) -> BlockJudge | None:
        """What settles many contexts of a block at once, if the detector has such a thing."""
        # It may look at all pairs, and ``cells`` may lack some.
        if not self.asks_detector or self.cells is not self.table.cells:
            return None
        with others_code(f"the detector {self.detector.name!r}"):
            return self.detector.block_judge(self.cells, self.record.value)

    def of_neighbours(self, mask: int) -> NDArray[np.bool_]:
        """Return the verdicts on the neighbours of a context in the record's space.

        All of them together can cover only rows that miss at most one value of the context, so one
        pass over the table narrows it to those.
        """
        return self._remembered(self.record.space.neighbours(mask), around=mask)

    def _remembered(self, masks: Sequence[int], around: int | None = None) -> NDArray[np.bool_]:
        unknown = [m for m in dict.fromkeys(masks) if m not in self._known]
        inside = [mask for mask in unknown if mask in self.record.space]
        self._known.update(dict.fromkeys(unknown, False))
        if inside:
            cells, words, moments = self.cells, self.table.words(inside), None
            if around is not None:
                middle = self.table.words([around])[0]
                cells = cells.near(middle)
                if self.record.space.binary:
                    places = [(around ^ mask).bit_length() - 1 for mask in inside]
                    moments = self._moments(cells, middle, places, words)
            verdicts = self.judge(cells, words, moments)
            self._known.update(zip(inside, verdicts.tolist(), strict=True))
        return np.array([self._known[mask] for mask in masks], dtype=bool)

    def _moments(
        self, cells: CellTable, middle: Words, places: Sequence[int], words: Words
    ) -> NDArray[np.float64] | None:
        """Return the moments of the neighbours that differ in these places, from one pass.

        Each differs from the whole's by what one value adds or drops. Where the detector says that
        rounding would show, they are summed anew.
        """
        if not self.detector.has_kernel or self.detector.window_rows is not None:
            return None
        weights = self.cell_moments[:, cells.cell_numbers]
        whole, all_of_them = cells.neighbour_moments(middle, weights, self.table.schema.width)
        moments = all_of_them[:, places]
        with others_code(f"the detector {self.detector.name!r}"):
            lost = self.detector.lost_digits(moments, whole)
        moments[:, lost] = cells.several_totals(words[lost], weights)
        return np.ascontiguousarray(moments)
