"""The direct mechanism (paper, Algorithm 1): every valid context is a candidate.

Proof: docs/proofs/direct.md. Differs from the paper: only contexts with the record's own values
are looked at; no other can be valid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pcor.errors import NOTHING, NoValidContext, TooLarge, check_whole, counted
from pcor.search.base import Explorer, Search
from pcor.search.blocks import ENUMERATION_LIMIT

# Contexts are numbered by 64-bit integers, whatever the limit.
COUNTABLE = 1 << 60

# Within the usual limit the whole space can be listed, so a draw ends whatever the rows are. Beyond
# it nothing public bounds what a draw takes: it ends when it is decided.
CAUTION = "most draws are decided after a few contexts, but time and memory depend on the rows"

# What else there is, with and without dp: in Python, on the command line, at the service.
_OTHERWISE = {
    True: (
        "use guarantee='ocdp', or declare fewer values",
        "use --guarantee ocdp, or declare fewer values",
        "register it with guarantee ocdp, or a schema with fewer values",
    ),
    False: (
        "use search='widest_first'",
        "use --search widest_first",
        "register it with search widest_first",
    ),
}


def advice(size: int, larger: str, otherwise: str) -> str:
    """Return what else there is, and to raise the limit where that could help."""
    return otherwise if size > COUNTABLE else f"{otherwise}; or {larger}: {CAUTION}"


@dataclass(frozen=True)
class Direct(Search):
    """Draw from the whole space.

    Attributes:
        limit: the largest space to draw from; a larger one is refused.
    """

    name: ClassVar[str] = "direct"
    draws_directly: ClassVar[bool] = True
    randomized: ClassVar[bool] = False
    limit: int = ENUMERATION_LIMIT

    def __post_init__(self) -> None:
        check_whole("limit", self.limit)

    def settled(
        self, free: int, *, compiled: bool, limit: int | None = None, guarantee: str = "ocdp"
    ) -> Direct:
        """Return the search with the limit that was given; refuse a space beyond it."""
        del compiled  # a larger space takes longer without a kernel, but ends
        search = self if limit is None else replace(self, limit=limit)
        search.check(1 << free, guarantee)
        return search

    def check(self, size: int, guarantee: str = "ocdp") -> None:
        """Refuse a space that is too large; its size is public, and so is what else there is."""
        if size <= min(self.limit, COUNTABLE):
            return
        pure = guarantee == "dp"
        who = "guarantee 'dp' draws among" if pure else "search 'direct' draws among"
        most = min(self.limit, COUNTABLE)
        raise TooLarge(
            f"{who} all {counted(size)} contexts that can contain a record, more than the limit of "
            f"{most:,}",
            python=advice(size, "raise limit=", _OTHERWISE[pure][0]),
            cli=advice(size, "raise --limit", _OTHERWISE[pure][1]),
            service=advice(size, "register it with a larger limit", _OTHERWISE[pure][2]),
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
