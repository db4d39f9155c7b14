"""What a search is, and all that it may know.

Privacy: a search sees the table only through an ``Explorer``, which answers three things: whether
contexts are valid (a function of COE), public random numbers, and paid choices. Its candidates
therefore depend only on COE and on choices that the accountant prices; every proof in
``docs/proofs`` starts from this sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

from pcor.errors import NoValidContext, ParameterError, StartError, check_whole
from pcor.mechanism.randomness import RandomSource
from pcor.public.accounting import exact
from pcor.public.context import Context, Words, pack
from pcor.public.guarantee import USUAL, Guarantee
from pcor.public.schema import Schema
from pcor.public.space import Space
from pcor.search.blocks import blocks
from pcor.search.validity import Validity
from pcor.support.arrays import NDArray, np

# Contexts of a record's space, many at once: one row each, one column for each step.
ContextBits: TypeAlias = "NDArray[np.bool_]"

# The most contexts that may be tried, so that every search ends: minutes where they are compiled.
MOST_TRIES = 100_000_000

# MiB that boxes of contexts may take if nobody says otherwise.
USUAL_MEMORY = 512

NONE_FOUND = (
    "no context was found in which the record is an outlier by this detector; try another "
    "detector, other settings, or a start context"
)


class Explorer:
    """All that a search may look at.

    Args:
        validity: answers whether contexts are valid.
        chooser: makes the public random decisions.
        paid: draws one of several contexts by their utility; each call costs budget.
        paid_choices: how many such calls the accountant has priced.
    """

    def __init__(
        self,
        validity: Validity,
        chooser: RandomSource,
        paid: Callable[[Sequence[int]], int],
        paid_choices: int,
    ) -> None:
        self.space: Space = validity.record.space
        self.start: int | None = None
        self.around: int | None = None  # the context whose neighbours were last asked for
        self._validity = validity
        self._chooser = chooser
        self._paid = paid
        self._left = paid_choices

    @property
    def compiled(self) -> bool:
        """Whether several threads may ask for verdicts at once."""
        return self._validity.compiled

    def valid(self, masks: Sequence[int]) -> list[int]:
        """Return those of the contexts that are valid, in the given order."""
        return [mask for mask, yes in zip(masks, self._validity(masks), strict=True) if yes]

    def judge_of_many(self) -> Callable[[Words], NDArray[np.bool_]]:
        """Return what tells of many contexts of the space, as words, whether each is valid.

        It is made for hundreds of thousands, and remembers none.
        """
        return self._validity.judge_of_many()

    def rows(self, masks: Sequence[int]) -> ContextBits:
        """Return contexts of the space as rows of their steps."""
        return self.space.rows_of(pack(masks, self.space.schema.width))

    def every_valid(self) -> list[int]:
        """Return all valid contexts of the space."""
        return [
            self.space.mask(int(index))
            for block in blocks(self._validity)
            for index in block.indices[block.valid]
        ]

    def valid_neighbours(self, mask: int) -> list[int]:
        """Return the valid contexts that are one step away from ``mask``."""
        self.around = mask
        neighbours = self.space.neighbours(mask)
        verdicts = self._validity.of_neighbours(mask)
        return [other for other, yes in zip(neighbours, verdicts, strict=True) if yes]

    def sample(self, *, wanted: int, cap: int) -> list[int]:
        """Draw valid contexts uniformly with replacement, trying at most ``cap``."""
        members = self.space.members  # limits may leave few of those that are numbered

        def masks(places: Sequence[int]) -> list[int]:
            numbers = places if members is None else [int(members[place]) for place in places]
            return [self.space.mask(number) for number in numbers]

        places = self._chooser.sample(
            self.space.size if members is None else len(members),
            lambda tried: self._validity(masks(tried)),
            wanted=wanted,
            cap=cap,
        )
        if not places:
            raise NoValidContext(NONE_FOUND)
        return masks(places)

    def pick(self, masks: Sequence[int]) -> int:
        """Return one of the contexts, each with the same chance. Free: it looks at no utility."""
        return masks[self._chooser.uniform(len(masks))]

    def choose(self, masks: Sequence[int]) -> int:
        """Return one of the contexts, better ones more often. Paid."""
        if self._left < 1:
            raise RuntimeError("the search asks for more paid choices than it declared")
        self._left -= 1
        return masks[self._paid(masks)]

    def begin(self, start: Context | None, *, tries: int) -> int:
        """Return the start context: the given one if it is valid, else one found by validity.

        It never depends on populations or scores: the proofs cancel its chance.
        """
        if start is None:
            self.start = self.sample(wanted=1, cap=tries)[0]
        elif self.valid([start.mask]):
            self.start = start.mask
        else:
            raise StartError(
                "the record is not an outlier in the start context; give another one, or leave "
                "start (--start) out to have one found"
            )
        return self.start


def as_masks(words: Words) -> list[int]:
    """Return contexts given as words."""
    if words.shape[1] == 1:
        masks: list[int] = words[:, 0].tolist()
        return masks
    return [int.from_bytes(word.tobytes(), "little") for word in words.astype("<u8")]


@dataclass(frozen=True)
class Search:
    """A way to collect candidate contexts. Subclasses are frozen dataclasses.

    What differs between searches is declared here: ``takes_samples`` (it has a field ``samples``),
    ``takes_start`` (it has a field ``start``), ``draws_directly`` (every valid context is a
    candidate, so the draw may meet them best first), ``randomized`` (its candidates may depend on
    random decisions, not on the table and public knowledge alone).
    """

    name: ClassVar[str] = ""
    takes_samples: ClassVar[bool] = False
    takes_start: ClassVar[bool] = False
    draws_directly: ClassVar[bool] = False
    randomized: ClassVar[bool] = True

    @property
    def start(self) -> Context | None:
        """The start context that was given."""
        return None

    @property
    def memory(self) -> int:
        """MiB that boxes of contexts may take. It changes no answer."""
        return USUAL_MEMORY

    @property
    def paid_choices(self) -> int:
        """The most paid choices made before the final draw."""
        return 0

    @property
    def paper_calls(self) -> int:
        """The calls of the exponential mechanism that the paper charges for."""
        return 1

    @property
    def share_of_final_draw(self) -> Fraction | None:
        """The part of the budget for the final draw; ``None`` leaves it to the accountant."""
        return None

    @property
    def where_it_starts(self) -> str:
        """Where the start context comes from, in words; empty where there is none."""
        return ""

    def resolved(
        self,
        schema: Schema,
        *,
        compiled: bool,
        limit: int | None = None,
        guarantee: Guarantee = USUAL,
    ) -> Search:
        """Return the search with what a schema leaves open filled in.

        Args:
            schema: says how many contexts a record can have.
            compiled: whether contexts are verified by a compiled kernel and drawn in order.
            limit: the largest space to draw from directly, for a search that has one.
            guarantee: which words a refusal takes.
        """
        del schema, compiled, limit, guarantee  # used by some searches
        return self

    def verifications(self, schema: Schema) -> tuple[int, int]:
        """Return how many contexts are judged: with luck, and at most.

        Luck is to meet a valid one at every try.
        """
        return schema.most_contexts, schema.most_contexts

    def explore(self, explorer: Explorer) -> list[int]:
        """Return the candidates for the final draw, as masks; repeats count."""
        raise NotImplementedError(f"{type(self).__name__} must define explore()")

    def describe(self) -> dict[str, Any]:
        """Return the public parameters, for a certificate."""
        return {"name": self.name}


@dataclass(frozen=True)
class SamplingSearch(Search):
    """A search that collects a public number of samples.

    Attributes:
        samples: how many contexts to collect, the start context included.
        tries: the most contexts to try while drawing at random.
    """

    takes_samples: ClassVar[bool] = True
    # A public number, so that every search ends: a few seconds' worth, whatever the space.
    most_samples: ClassVar[int] = 1_000_000

    samples: int = 50
    tries: int = 100_000

    def __post_init__(self) -> None:
        check_whole(f"samples of search {self.name!r}", self.samples, self.most_samples)
        check_whole("tries", self.tries, MOST_TRIES)

    def verifications(self, schema: Schema) -> tuple[int, int]:
        """The samples to all tries; a space of no more contexts than tries is looked at whole."""
        return self._tried(schema.most_contexts, wanted=self.samples)

    def _tried(self, contexts: int, *, wanted: int) -> tuple[int, int]:
        if contexts <= self.tries:
            return contexts, contexts
        return min(wanted, self.tries), self.tries

    def describe(self) -> dict[str, Any]:
        """Return the public parameters."""
        return super().describe() | {"samples": self.samples, "tries": self.tries}


@dataclass(frozen=True)
class GraphSearch(SamplingSearch):
    """A search that walks from context to context, one step at a time (paper, Section 5.2).

    Attributes:
        start: where to begin; ``None`` has a start drawn uniformly from the valid contexts.
    """

    takes_start: ClassVar[bool] = True

    start: Context | None = None

    @property
    def where_it_starts(self) -> str:
        """Given, or drawn from the valid contexts."""
        return "found by validity alone" if self.start is None else "given by the owner"

    def verifications(self, schema: Schema) -> tuple[int, int]:
        """What finding a start takes, and the neighbours of every sample but the last."""
        contexts = schema.most_contexts
        few, most = self._tried(contexts, wanted=1) if self.start is None else (1, 1)
        neighbours = (self.samples - 1) * schema.most_steps
        return min(contexts, few + neighbours), min(contexts, most + neighbours)

    def describe(self) -> dict[str, Any]:
        """Return the public parameters."""
        start = "found by validity alone" if self.start is None else self.start.in_full
        return super().describe() | {"start": start}


@dataclass(frozen=True)
class SteeredSearch(GraphSearch):
    """A graph search that buys each step: n samples take n-1 paid choices.

    Attributes:
        final_share: the part of the budget for the final draw; the steps share the rest alike.
            ``None`` is the accountant's default; the paper's accounting splits evenly.
    """

    # Each step draws from the whole frontier, so time grows with its square: ten minutes here.
    most_samples: ClassVar[int] = 10_000

    final_share: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        share = self.final_share
        number = isinstance(share, int | float | Fraction) and not isinstance(share, bool)
        if share is not None and not (number and 0 < share < 1):
            raise ParameterError("final_share must be a number between 0 and 1")

    def describe(self) -> dict[str, Any]:
        """Return the public parameters."""
        given = {} if self.final_share is None else {"final_share": float(self.final_share)}
        return super().describe() | given

    @property
    def share_of_final_draw(self) -> Fraction | None:
        """The share that was given, read as it was written."""
        return None if self.final_share is None else exact(self.final_share, "final_share")

    @property
    def paid_choices(self) -> int:
        """The first sample is the start context: no choice, no cost."""
        return self.samples - 1

    @property
    def paper_calls(self) -> int:
        """The paper pays (2n+2) eps_1: n+1 calls."""
        return self.samples + 1
