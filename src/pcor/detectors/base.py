"""What a detector is: a rule on a multiset of numbers.

Private: the numbers that pass through. A detector is handed the distinct metric values of a
population in rising order with their counts, and answers for each distinct value. That shape makes
it a function of the multiset: no order of rows can leak into a verdict, and equal values cannot
get different ones. COE would not be well defined otherwise (paper, Section 3: "we only consider
deterministic outlier detection algorithms").
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pcor.errors import ParameterError
from pcor.view import View, Words

Values = NDArray[np.float64]
Counts = NDArray[np.int64]
Verdicts = NDArray[np.bool_]
Moments = NDArray[np.float64]


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
    wants_tail: ClassVar[bool] = False
    min_population: int = 21

    def __post_init__(self) -> None:
        whole = isinstance(self.min_population, int) and not isinstance(self.min_population, bool)
        if not whole or self.min_population < 1:
            raise ParameterError("min_population must be a whole number of at least 1")

    @property
    def reach(self) -> int | None:
        """How many rows on each side of a value its verdict looks at; ``None`` for all of them."""
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
        self, view: View, value: float, masks: Words, moments: Moments | None = None
    ) -> Verdicts:
        """Return the verdict on ``value`` in each of many contexts that cover the record.

        Detectors with a kernel answer all at once; the answers must be those of ``is_outlier``.
        ``moments``, where the caller has them, are the contexts' populations in row 0 and, for a
        detector that ``wants_tail``, the further rows of ``Validity.cell_moments``.
        """
        del moments  # of use to kernels only
        return np.array(
            [self.is_outlier(*view.distribution(mask), value) for mask in masks], dtype=bool
        )

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
