"""The results of a run: for each record a release, or the error in its place.

Public: everything here. Results stand in the order asked; nothing says when or in which order they
were ready.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, overload

from pcor.errors import (
    BudgetExceeded,
    LedgerError,
    NotAsked,
    NoValidContext,
    PcorError,
    RecordError,
    Unfinished,
    plain,
)
from pcor.releasing.answers import Outcome, write_answer
from pcor.releasing.batch.plan import ManyPlan
from pcor.releasing.certificate import Release

FORMAT = "pcor-many/1"


@dataclass(frozen=True)
class Results(Sequence[Outcome]):
    """The results of a run, one for each record that was listed, in that order.

    Attributes:
        plan: what was asked, and what all of it costs.
        outcomes: a release, or the error in its public words.
        charged: the epsilon that this run cost; a repeated answer costs nothing.
    """

    plan: ManyPlan
    outcomes: tuple[Outcome, ...] = field(repr=False)
    charged: Fraction

    @overload
    def __getitem__(self, place: int) -> Outcome: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Outcome, ...]: ...

    def __getitem__(self, place: int | slice) -> Outcome | tuple[Outcome, ...]:
        return self.outcomes[place]

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def releases(self) -> list[Release]:
        """The releases alone, in the order asked."""
        return [outcome for outcome in self.outcomes if isinstance(outcome, Release)]

    @property
    def exit_code(self) -> int:
        """What the command line ends with.

        0: every record has a release. 2: the source failed. 3: the budget ended. 5: some are being
        answered by somebody else at this moment. 4: some have none, for good.
        """
        failed = [outcome for outcome in self.outcomes if isinstance(outcome, PcorError)]
        for kind in (Unfinished, NotAsked, BudgetExceeded, LedgerError):
            if any(isinstance(error, kind) for error in failed):
                return kind.exit_code
        return NoValidContext.exit_code if failed else 0

    def by_record(self) -> Iterator[tuple[int | str, Outcome]]:
        """Yield each record with its result."""
        return zip(self.plan.records, self.outcomes, strict=True)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as public parameters."""
        return {
            "format": FORMAT,
            "plan": self.plan.to_dict(),
            "released": len(self.releases),
            "charged": plain(self.charged),
            "summary": str(self),
            "results": [
                {"record": record, "answer": write_answer(outcome)}
                for record, outcome in self.by_record()
            ],
        }

    def __str__(self) -> str:
        each = dict(self.by_record())  # one that is listed twice is one record
        counted = Counter(map(_in_words, each.values()))
        said = "; ".join(f"{number:,} {words}" for words, number in counted.items() if words)
        released = sum(isinstance(outcome, Release) for outcome in each.values())
        listed = f"{released:,} of {len(each):,} records released"
        cost = f"Cost of this run: epsilon {plain(self.charged)}."
        lines = [f"{listed}{'; ' if said else ''}{said}. {cost}"]
        refusal = next((o for o in self.outcomes if isinstance(o, BudgetExceeded)), None)
        if refusal is not None:
            lines.append(
                f"Not all are paid for: {refusal}. What is missing is asked for by the same call, "
                "once there is more."
            )
        failure = next((o for o in self.outcomes if isinstance(o, Unfinished | NotAsked)), None)
        if failure is not None:
            lines.append(f"The source failed, and the run ended: {failure}.")
        return "\n".join(lines)


def _in_words(outcome: Outcome) -> str:
    words: dict[type[PcorError], str] = {
        BudgetExceeded: "not paid for",
        NoValidContext: "with no valid context",
        RecordError: "not in the table",
        LedgerError: "being answered elsewhere",
        Unfinished: "unfinished",
        NotAsked: "not asked for",
    }
    if isinstance(outcome, Release):
        return ""
    return next((text for kind, text in words.items() if isinstance(outcome, kind)), "refused")
