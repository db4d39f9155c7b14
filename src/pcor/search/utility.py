"""How good a context is.

Private: the scores. A utility declares what one added or removed row can change it by
(``sensitivity``) and whether an added row never lowers it (``monotonic``); the accountant prices
by what is declared, so an undeclared utility is refused. Where a person has several rows, what is
declared counts for each of them, unless the utility says that it is about people. Scores are whole
numbers: the draw over them is then exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from pcor.errors import ParameterError, UnknownName, others_code, plain
from pcor.public.context import Context
from pcor.public.space import clauses_and_items
from pcor.support.arrays import NDArray, np

if TYPE_CHECKING:
    from pcor.rows.table import Table

UTILITIES = ("population", "overlap", "people")

# Draws are over 64-bit integers; well inside, differences cannot overflow.
LARGEST_SCORE = 1 << 60


@dataclass(frozen=True, repr=False)
class Population:
    """The rows that a context covers, as a utility may look at them. Private."""

    context: Context
    table: Table

    @cached_property
    def size(self) -> int:
        """How many rows the context covers."""
        return int(self.table.populations([self.context.mask])[0])

    @cached_property
    def metric(self) -> NDArray[np.float64]:
        """Their metric values, rising."""
        values, counts = self.table.distribution(self.context.mask)
        return np.repeat(values, counts)

    @cached_property
    def people(self) -> int:
        """How many people have a row that the context covers; the schema says whose each is."""
        return int(self.table.people_in([self.context.mask])[0])

    def shared_with(self, other: Context) -> int:
        """How many rows the context shares with another."""
        if other.schema != self.table.schema:
            raise ParameterError("contexts of different schemas share no rows")
        return int(self.table.populations([self.context.mask & other.mask])[0])


class Utility(Protocol):
    """What the user's own utility must have. ``guarantee="dp"`` takes PCOR's own alone.

    A utility whose score is a sum over the covered cells (rows with the same attribute values) may
    also have ``cell_weights(table)``: an array of whole numbers of at least 0, what each cell of
    ``table.cells`` adds to the score. Contexts are then scored many at once, and the direct
    mechanism draws without listing all of them, with the same chances. The sums must be what
    ``score`` returns. A derived class that overrides ``score`` without ``cell_weights`` is scored
    by its ``score``.

    One may also have ``per_person = True``: what it declares is then about all rows of one person,
    added or removed together, and not about each of them.
    """

    @property
    def sensitivity(self) -> int | Fraction:
        """The most that one added or removed row can change any score."""
        ...

    @property
    def monotonic(self) -> bool:
        """Whether an added row changes all scores in one direction: none falls, or none rises."""
        ...

    def score(self, population: Population) -> int:
        """Return how good the population's context is, as a whole number."""
        ...


class AdditiveUtility(Utility, Protocol):
    """A utility whose scores are sums over the covered cells."""

    def cell_weights(self, table: Table) -> NDArray[np.int64]:
        """Return what each cell adds to the score of a context that covers it, at least 0."""
        ...


@dataclass(frozen=True)
class PopulationSize:
    """The number of rows that the context covers (paper, Section 3.2.1)."""

    sensitivity = 1
    monotonic = True

    def score(self, population: Population) -> int:
        """Return the number of rows."""
        return population.size

    def cell_weights(self, table: Table) -> NDArray[np.int64]:
        """Return what each cell adds to the score of a context that covers it."""
        return table.cells.cell_counts


@dataclass(frozen=True)
class Overlap:
    """The number of rows shared with a chosen context (paper, Section 3.2.2).

    Attributes:
        context: the chosen context; ``None`` stands for the start context of the search.
    """

    context: Context | None = None

    sensitivity = 1
    monotonic = True

    def __post_init__(self) -> None:
        if not isinstance(self.context, Context | None):
            raise ParameterError("utility 'overlap': context must be a pcor.Context")

    def score(self, population: Population) -> int:
        """Return the number of shared rows."""
        return population.shared_with(self._chosen)

    def cell_weights(self, table: Table) -> NDArray[np.int64]:
        """Return what each cell adds to the score of a context that covers it."""
        if self._chosen.schema != table.schema:
            raise ParameterError("utility 'overlap': its context is of another schema")
        return table.cells.cell_counts * table.covered_cells(self._chosen.mask)

    def compared_with(self, start: Context | None) -> Overlap:
        """Return the overlap with the start context, where it is not known beforehand."""
        if type(self) is not Overlap:  # a derived class may compare in another way
            raise ParameterError(
                f"the utility {type(self).__name__} has no context to compare with; give it one"
            )
        return Overlap(start)

    @property
    def _chosen(self) -> Context:
        if self.context is None:
            raise ParameterError(
                "utility 'overlap' compares with a chosen context: give pcor.Overlap(context) "
                "(--overlap-with), or a search with a start context"
            )
        return self.context


@dataclass(frozen=True)
class People:
    """The number of people with a row that the context covers.

    All rows of one person, added or removed, change it by 0 or 1 in every context.
    """

    sensitivity = 1
    monotonic = True
    per_person = True

    def score(self, population: Population) -> int:
        """Return the number of people."""
        return population.people


def counts_people(utility: object) -> bool:
    """Tell whether the scores are numbers of people; by the very class, as ``counts_rows`` does."""
    return type(utility) is People and not vars(utility)


def counts_rows(utility: object) -> TypeGuard[PopulationSize | Overlap]:
    """Tell whether the scores are known to be counts of rows: sums over cells, 1 for each row.

    By the very class, with nothing put into its place in the object: the proof of
    ``guarantee="dp"`` rests on it, so no declaration will do. One derived from it may score
    otherwise, and is taken at its own word like any other: by its methods and the sensitivity that
    it declares.
    """
    own = type(utility) in (PopulationSize, Overlap)
    return own and vars(utility).keys() <= {"context"}


def is_additive(utility: object) -> TypeGuard[AdditiveUtility]:
    """Tell whether the scores are sums of ``cell_weights`` over the covered cells.

    They are declared in the class that has ``score``, or in one derived from it: who overrides
    ``score`` alone has another score, and the weights that it inherits say nothing about it.
    """
    weights, score = _owner(utility, "cell_weights"), _owner(utility, "score")
    return (
        weights is not None
        and (score is None or weights <= score)
        and callable(getattr(utility, "cell_weights", None))
    )


def _owner(utility: object, name: str) -> int | None:
    """Return where an attribute is defined: 0 in the object, 1 in its class, 2 in a base, ..."""
    places = [getattr(utility, "__dict__", {}), *map(vars, type(utility).__mro__)]
    return next((place for place, names in enumerate(places) if name in names), None)


def awaits_start(utility: object) -> TypeGuard[Overlap]:
    """Tell whether a utility compares with a start context that it does not know yet."""
    return isinstance(utility, Overlap) and utility.context is None


def chosen_context(utility: object) -> Context | None:
    """Return the context that an ``Overlap``, or a class derived from it, compares with."""
    return utility.context if isinstance(utility, Overlap) else None


def get_utility(utility: object) -> Utility:
    """Return a utility from its name, or check the declarations of the user's own."""
    if isinstance(utility, str):
        if utility not in UTILITIES:
            raise UnknownName("utility", utility, UTILITIES)
        named: dict[str, type[Utility]] = dict(
            zip(UTILITIES, (PopulationSize, Overlap, People), strict=True)
        )
        return named[utility]()
    if isinstance(utility, type):
        raise ParameterError(
            f"the utility {utility.__name__} is a class; give an object: {utility.__name__}(...)"
        )
    return _checked(utility)


def _checked(utility: Any) -> Utility:
    """Return the user's own utility, or say which declaration is missing or cannot be."""
    who = f"the utility {type(utility).__name__}"
    for declared in ("sensitivity", "monotonic", "score"):
        if not hasattr(utility, declared):
            raise ParameterError(
                f"{who} does not declare {declared!r}; a utility needs sensitivity, monotonic and "
                "score(population)"
            )
    if not callable(utility.score):
        raise ParameterError(f"{who}: score must be a function of a population")
    sensitivity = utility.sensitivity
    number = isinstance(sensitivity, int | float | Fraction) and not isinstance(sensitivity, bool)
    if not number or not sensitivity > 0 or sensitivity % 1 != 0:
        raise ParameterError(
            f"{who}: sensitivity must be a positive whole number, as scores are whole numbers"
        )
    for declared in ("monotonic", "per_person"):
        if not isinstance(getattr(utility, declared, False), bool):
            raise ParameterError(f"{who}: {declared} must be True or False")
    checked: Utility = utility
    return checked


def describe_utility(utility: Utility) -> dict[str, Any]:
    """Return the public parameters of a utility, for a certificate."""
    own = type(utility).__name__
    known = {PopulationSize: "population", Overlap: "overlap", People: "people"}
    named: dict[str, Any] = {"name": known.get(type(utility), own)}
    chosen = chosen_context(utility)
    if awaits_start(utility):
        named["with"] = "the start context"
    elif chosen is not None:
        named["with"] = chosen.in_full
    return named | {
        "sensitivity": plain(Fraction(utility.sensitivity)),
        "monotonic": utility.monotonic,
        **({"per_person": True} if getattr(utility, "per_person", False) else {}),
    }


class Scorer:
    """The scores of contexts under one utility, remembered. Private.

    Args:
        utility: how good a context is.
        table: the rows.
        brevity: what each named item of a context's words takes off its score. The words are
            public, so this changes no difference between two tables.
    """

    def __init__(self, utility: Utility, table: Table, brevity: int = 0) -> None:
        self._utility = utility
        self._table = table
        self._brevity = brevity
        self._known: dict[int, int] = {}
        self._around: int | None = None  # the context whose neighbours are known
        self.weights = _weights(utility, table) if is_additive(utility) else None

    def __call__(self, masks: Sequence[int]) -> list[int]:
        """Score contexts."""
        try:
            scores = list(map(self._known.__getitem__, masks))
        except KeyError:
            self._learn([mask for mask in dict.fromkeys(masks) if mask not in self._known])
            scores = list(map(self._known.__getitem__, masks))
        if self._brevity and masks:
            named = clauses_and_items(self._table.schema, self._table.words(masks))[1]
            scores = [s - self._brevity * n for s, n in zip(scores, named.tolist(), strict=True)]
        return scores

    def _learn(self, masks: list[int]) -> None:
        if counts_people(self._utility):
            people = self._table.people_in(masks)
            self._known.update(zip(masks, people.tolist(), strict=True))
        elif self.weights is None:
            self._known.update((mask, self._own(mask)) for mask in masks)
        else:
            totals = self._table.cells.totals(self._table.words(masks), self.weights)
            self._known.update(zip(masks, totals.tolist(), strict=True))

    def learn_neighbours(self, around: int) -> None:
        """Score all one-bit neighbours of a context in one pass; only saves time."""
        if self.weights is not None and around != self._around:
            self._around = around
            width = self._table.schema.width
            words = self._table.words([around])[0]
            totals = self._table.cells.neighbour_totals(words, self.weights, width)
            self._known.update((around ^ 1 << p, n) for p, n in enumerate(totals.tolist()))

    def _own(self, mask: int) -> int:
        population = Population(Context.from_mask(self._table.schema, mask), self._table)
        with others_code(f"the utility {type(self._utility).__name__}"):
            score = self._utility.score(population)
        whole = isinstance(score, int | np.integer) and not isinstance(score, bool)
        if not whole or abs(int(score)) > LARGEST_SCORE:
            raise ParameterError(
                f"the utility {type(self._utility).__name__} must return whole numbers below 2^60; "
                "scale the score, round it, and declare a sensitivity that covers the rounding"
            )
        return int(score)


def _weights(utility: AdditiveUtility, table: Table) -> NDArray[np.int64]:
    """Return the weight of each cell, or say what is wrong with them."""
    who = f"the utility {type(utility).__name__}"
    with others_code(who):
        given = np.asarray(utility.cell_weights(table))
    whole = np.issubdtype(given.dtype, np.integer) and given.shape == table.cells.cell_counts.shape
    if not whole or int(given.min(initial=0)) < 0 or _sum(given) > LARGEST_SCORE:
        raise ParameterError(
            f"{who}: cell_weights must return one whole number of at least 0 for each cell of "
            "table.cells, together below 2^60; or leave it out, and score alone counts"
        )
    # A cell that nobody is in any more is one that a table without them does not have.
    return np.where(table.cells.cell_counts > 0, given, 0).astype(np.int64, copy=False)


def _sum(numbers: NDArray[Any]) -> int:
    """Return the sum of whole numbers of at least 0; of large ones as Python has it.

    Integers of 64 bits would wrap around.
    """
    small = int(numbers.max(initial=0)) <= LARGEST_SCORE // max(1, len(numbers))
    return int(numbers.sum()) if small else sum(numbers.tolist())
