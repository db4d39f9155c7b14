"""The direct mechanism (paper, Algorithm 1): every valid context is a candidate.

Proof: docs/proofs/direct.md. Differs from the paper: only contexts with the record's own values
are looked at; no other can be valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pcor.enumeration import ENUMERATION_LIMIT
from pcor.errors import NOTHING, NoValidContext, TooLarge, check_whole, counted
from pcor.search.base import Explorer, Search

# Contexts are numbered by 64-bit integers, whatever the limit.
_COUNTABLE = 1 << 60


@dataclass(frozen=True)
class Direct(Search):
    """Enumerate the whole space.

    Attributes:
        limit: the largest space to enumerate; a larger one is refused.
    """

    name: ClassVar[str] = "direct"
    limit: int = ENUMERATION_LIMIT

    def __post_init__(self) -> None:
        check_whole("limit", self.limit)

    def check(self, size: int) -> None:
        """Refuse a space that is too large; its size is public."""
        if size > min(self.limit, _COUNTABLE):
            raise TooLarge(
                f"search 'direct' would enumerate {counted(size)} contexts, more than its limit of "
                f"{self.limit:,}; use search 'widest_first', or in Python raise "
                "Direct(limit=...) if you have the time"
            )

    def verifications(self, free: int) -> tuple[int, int]:
        """With luck the draw is decided after the first few, best first."""
        return min(128, 1 << free), 1 << free

    def explore(self, explorer: Explorer) -> list[int]:
        """Return all valid contexts."""
        self.check(explorer.space.size)
        valid = explorer.every_valid()
        if not valid:
            raise NoValidContext(NOTHING)
        return valid

    def describe(self) -> dict[str, Any]:
        """Return the public parameters."""
        return super().describe() | {"limit": self.limit}
