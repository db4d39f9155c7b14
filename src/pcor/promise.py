"""The promise: exactly what a release protects, against what, at what cost.

Public: everything here. The guarantee of the paper is (epsilon, COE)-OCDP, output constrained
differential privacy (paper, Definitions 2.4 and 2.5), and weaker than differential privacy; it is
never called by the stronger name.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pcor.errors import plain


@dataclass(frozen=True)
class Promise:
    """What is protected.

    Attributes:
        epsilon: the total cost, exact.
        delta: the additive slack in the bound; 0 for the mechanisms of the paper.
        definition: the name of the guarantee, in full.
        neighbours: which two tables are to be hard to tell apart.
        not_protected: who or what the guarantee does not speak of.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    definition: str = "(epsilon, COE)-OCDP: output constrained differential privacy"
    neighbours: str = (
        "tables that differ by one added or removed row and in which the queried record has the "
        "same, non-empty set of valid contexts (COE)"
    )
    not_protected: tuple[str, ...] = (
        "the queried record itself: its values and its id or row number are public",
        "anyone whose presence changes the set of valid contexts (COE): the table without them is "
        "not a neighbour, and this definition promises nothing about it",
        "the set of valid contexts itself",
        "a person with several rows, beyond epsilon for each of them",
        "several releases taken together, beyond the sum of their epsilons between tables on which "
        "every queried record keeps its set of valid contexts",
        "how long the computation took",
    )

    def to_dict(self) -> dict[str, Any]:
        """Return the promise for a certificate."""
        return {
            "definition": self.definition,
            "neighbours": self.neighbours,
            "epsilon": plain(self.epsilon),
            "delta": plain(self.delta),
            "not_protected": list(self.not_protected),
            "text": str(self),
        }

    @property
    def claim(self) -> str:
        """What is protected, in two sentences."""
        return (
            f"Relaxed guarantee, {self.definition}, with epsilon = {plain(self.epsilon)}. Between "
            f"{self.neighbours}, no answer's chance differs by more than a factor "
            f"exp({plain(self.epsilon)})."
        )

    def __str__(self) -> str:
        return "\n".join(
            [self.claim, "Not protected:", *(f"- {who}" for who in self.not_protected)]
        )
