"""Margin scores: every context that contains the record is a candidate, scored by how valid it is.

Private: the scores; public: the prices. A count-based detector calls the record an outlier where
``margin = share * n - c > 0`` (n people, c of them in the record's region), and one row moves the
margin of no context by more than a known amount. So instead of asking "valid or not", which one
person can change, the draw is over all contexts, by the smallest of utility, people beyond the
minimum, and margin times a public steepness: positive exactly where the context is valid and has
utility. The guarantee of one such draw holds between any two tables that differ by a row, whatever
happens to COE (docs/proofs/pure.md).

Scores are whole numbers: with the share a/b all of them are multiplied by b.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from pcor.detectors import CountDetector
from pcor.errors import ParameterError, plain
from pcor.mechanism.ordered_selection import Run
from pcor.public.context import Words
from pcor.public.schema import LARGEST_LIST
from pcor.public.space import clauses_and_items
from pcor.search.best_first import (
    FIRST_STEP,
    LARGEST_STEP,
    Descent,
    RankedCandidates,
    listed_members,
    stretches,
)
from pcor.search.validity import Validity
from pcor.support.arrays import NDArray, np

Numbers: TypeAlias = "NDArray[np.int64]"

# Where nobody says otherwise a context in which nobody else is in the record's region has a margin
# worth this many times its people; chosen on synthetic tables (docs/results/pure.md).
_MARGIN_TO_PEOPLE = 4

# Once one context in this many was visited the rest is listed: by then that costs about as much.
_LIST_AFTER = 64

# Steepness times the share's denominator, at most: scores of up to 2^31 rows, with a minimal
# population of up to 2^31, then differ by at most 2^62.
LARGEST_FACTOR = 1 << 30


class MarginOrder(RankedCandidates):
    """All contexts of a record by falling margin score; ``ordered_selection.Candidates``.

    Contexts are visited by falling utility, which bounds the score from above; each waits until
    nothing unvisited can be better. Most draws are decided after a few. If one is not, and the
    space can be listed, the scores of all that was not visited are computed and sorted.

    Args:
        validity: the rows, the queried record, and what was read of its region.
        detector: the rule.
        weights: what each cell adds to the utility of a context that covers it.
        steepness: how many people of utility one person of margin is worth.
        brevity: what each named item of a context's words takes off its utility.
    """

    def __init__(
        self,
        validity: Validity,
        detector: CountDetector,
        weights: Numbers,
        steepness: int,
        brevity: int = 0,
    ) -> None:
        cells = validity.table.cells
        self._cells, self._detector, self._steepness = cells, detector, steepness
        self._region = validity.region
        self._descent = Descent(validity.record, cells, weights)
        super().__init__(self._descent.space)
        self._step = FIRST_STEP
        self._weights, self._brevity = weights, brevity
        self._waiting: Numbers = np.zeros(0, dtype=np.int64)  # visited, and not ranked yet
        self._scores: Numbers = np.zeros(0, dtype=np.int64)  # theirs
        self._visited = 0
        self._listed = False
        if self._space.schema.limited or not self._descent.steps_fit:
            self.list_all()

    def list_all(self) -> bool:
        """Visit all that is left at once, unless the space is too large for that."""
        if not self._listed and not self._descent.steps_fit and self._space.size > LARGEST_LIST:
            self._list_members()
        if not self._listed and self._space.size <= LARGEST_LIST:
            totals, weights = self._descent.totals, self._weights
            utilities = totals(weights)
            if self._brevity:
                utilities -= self._brevity * self._space.every_clauses_and_items()[1]
            scores = self._score(utilities, totals(self._cells.cell_counts), totals(self._region))
            left = np.ones(len(scores), dtype=bool)
            if self._space.schema.limited:
                left = self._space.every_admitted()
            left[np.concatenate([self._waiting, *self._indices])] = False
            self._listed = True
            self._wait(np.flatnonzero(left), scores[left])
        return self._listed

    def _list_members(self) -> None:
        """Visit the contexts that the limits leave, of a space with too many others."""
        members = listed_members(self._space)
        words = self._space.words_of(members.astype(np.uint64))
        self._listed = True
        self._wait(members, self._scores_of(words, self._cells.totals(words, self._weights)))

    def _scores_of(self, words: Words, utilities: Numbers) -> Numbers:
        if self._brevity:
            named = clauses_and_items(self._space.schema, words)[1]
            utilities = utilities - self._brevity * named
        n, c = self._cells.populations(words), self._cells.totals(words, self._region)
        return self._score(utilities, n, c)

    @property
    def finished(self) -> bool:
        """Whether every context is ranked."""
        return self._nothing_unvisited and len(self._waiting) == 0

    @property
    def _nothing_unvisited(self) -> bool:
        return self._listed or self._descent.finished

    def remaining(self) -> Sequence[Run]:
        """Return bounds on all others: those that wait, and those not visited."""
        waiting = stretches(self._scores)
        if self._nothing_unvisited:
            return waiting
        scale = self._detector.share_exact.denominator
        unvisited = [Run(run.utility * scale, run.count) for run in self._descent.unvisited()]
        return [*waiting, *unvisited]

    def advance(self) -> None:
        """Visit more contexts, and rank those that nothing unvisited can beat."""
        if not self._nothing_unvisited and self._visited * _LIST_AFTER >= self._space.size:
            self.list_all()
        if self._nothing_unvisited:
            self._rank(min(self._step, len(self._waiting)))
        else:
            self._visit()
        self._step = min(2 * self._step, LARGEST_STEP)

    def _visit(self) -> None:
        """Visit the next contexts by falling utility."""
        indices, utilities = self._descent.visit(self._step)
        self._visited += len(indices)
        words = self._space.words_of(indices.astype(np.uint64))
        if self._space.schema.limited:
            members = self._space.admitted(words)
            indices, utilities, words = indices[members], utilities[members], words[members]
        self._wait(indices, self._scores_of(words, utilities))
        if self._nothing_unvisited:
            self._rank(len(self._waiting))
        else:
            ceiling = self._descent.ceiling * self._detector.share_exact.denominator
            self._rank(int(np.count_nonzero(self._scores >= ceiling)))

    def _rank(self, ready: int) -> None:
        """Rank the best of those that wait."""
        self._append(self._waiting[:ready], self._scores[:ready])
        self._waiting, self._scores = self._waiting[ready:], self._scores[ready:]

    @property
    def scores(self) -> Numbers:
        """The scores of all that waits, falling. Private."""
        return self._scores

    def populations(self) -> Numbers:
        """Return the populations of all that waits, in the same order. Private."""
        if self._space.size <= LARGEST_LIST:  # all at once, which is far faster than one by one
            return self._descent.totals(self._cells.cell_counts)[self._waiting]
        words = self._space.words_of(self._waiting.astype(np.uint64))
        return self._cells.populations(words)

    def _score(self, utilities: Numbers, n: Numbers, c: Numbers) -> Numbers:
        return margin_scores(self._detector, self._steepness, utilities, n, c)

    def _wait(self, indices: Numbers, scores: Numbers) -> None:
        """Insert visited contexts among those that wait to be ranked, by falling score."""
        indices = np.concatenate([self._waiting, indices])
        scores = np.concatenate([self._scores, scores])
        order = np.argsort(-scores, kind="stable")
        self._waiting, self._scores = indices[order], scores[order]


def margin_scores(
    detector: CountDetector, steepness: int, utilities: Numbers, n: Numbers, c: Numbers
) -> Numbers:
    """Return the margin scores of contexts from their utility, people, and people in the region."""
    share = detector.share_exact
    margin = share.numerator * n - share.denominator * c
    people = np.minimum(utilities, n - (detector.min_population - 1))
    scores: Numbers = np.minimum(share.denominator * people, steepness * margin)
    return scores


def score_range(detector: CountDetector, steepness: int) -> int:
    """Return how far apart the changes of any two scores are when one row is added, at most.

    A row in the record's region changes utility and people of a context by 0 or 1 and the margin by
    share - 1; one outside of it changes the margin by the share. In the units of the scores:
    """
    a, b = detector.share_exact.numerator, detector.share_exact.denominator
    return max(b + steepness * (b - a), steepness * a)


def default_steepness(detector: CountDetector) -> int:
    """Return how many people of utility one person of margin is worth if nobody says otherwise."""
    return math.ceil(_MARGIN_TO_PEOPLE / detector.share_exact)


@dataclass(frozen=True)
class Requirement:
    """What a context needs to win over all invalid ones; from public numbers alone.

    Attributes:
        chance: with at least this chance.
        people: so much utility.
        margin: so many fewer rows in the record's region than the share allows.
        rows: so many rows: ``people`` of them beyond what is too few for any outlier.
        overlap: whether so many have to be shared with a chosen context as well.
        brevity: how many rows more for each thing that the words for the context name: in it, or
            shared.
    """

    chance: Fraction
    people: int
    margin: int
    rows: int
    overlap: bool = False
    brevity: int = 0

    @property
    def condition(self) -> str:
        """Where the record must stand out, and by how much, to go on from "an outlier"."""
        return (
            f"in some context of at least {self.rows_in_words} by a margin of at least "
            f"{self.margin:,}"
        )

    @property
    def rows_in_words(self) -> str:
        """How many rows the context must cover, and share with a chosen one."""
        named = f", and {self.brevity:,} more for each thing that its words name,"
        more = named if self.brevity else ""
        if not self.overlap:
            return f"{self.rows:,} rows{more}"
        shared = f"{self.people:,} rows{more} with the chosen context"
        return f"{self.rows:,} rows that shares at least {shared}"

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, for programs and certificates."""
        return {
            "chance": plain(self.chance),
            "people": self.people,
            "margin": self.margin,
            "rows": self.rows,
            **({"brevity": self.brevity} if self.brevity else {}),
            "text": str(self),
        }

    def __str__(self) -> str:
        return (
            f"If the record is an outlier {self.condition} (the margin: how many fewer rows are as "
            "unusual as the record than the share allows), then it is an outlier in the context "
            f"drawn with a chance of at least {plain(self.chance)}; if not, nothing is said of it."
        )


def needed(
    eta: Fraction,
    detector: CountDetector,
    steepness: int,
    contexts: int,
    chance: object,
    *,
    overlap: bool = False,
    brevity: int = 0,
) -> Requirement:
    """Return what one context needs so that an invalid one is drawn with at most 1 - chance.

    An invalid context has a score of 0 or less. Against one of score u each of them succeeds (or
    weighs) at most exp(-eta * u), and there are fewer than ``contexts``: so
    u >= ln(contexts / (1 - chance)) / eta is enough, for either mechanism.
    """
    number = isinstance(chance, float | Fraction) and 0 < chance < 1
    wanted = Fraction(str(chance)) if number else Fraction(0)
    if not Fraction(1, 10**9) <= 1 - wanted < 1:
        raise ParameterError("chance must be a number above 0 and below 1, such as 0.99")
    # A certificate states it, so it must not be too small: by far more than float64 can be off.
    score = math.ceil((math.log(contexts) - math.log(1 - wanted)) / float(eta) * (1 + 1e-12))
    scale = detector.share_exact.denominator
    people, margin = -(-score // scale), -(-score // (steepness * scale))
    rows = people + detector.min_population - 1
    return Requirement(wanted, people, margin, rows, overlap, brevity)
