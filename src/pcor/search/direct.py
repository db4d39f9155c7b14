"""The direct mechanism (paper, Algorithm 1): every valid context is a candidate.

Proof: docs/proofs/direct.md. Differs from the paper: only contexts with the record's own values
are looked at; no other can be valid.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from pcor.errors import NO_CONTEXT, NoValidContext, TooLarge, check_whole, counted
from pcor.public.guarantee import USUAL, Guarantee
from pcor.public.schema import LARGEST_LIST, MOST_NUMBERED, Schema
from pcor.search.base import USUAL_MEMORY, Explorer, Search
from pcor.search.blocks import ENUMERATION_LIMIT

# Within the usual limit the whole space can be listed, so a draw ends whatever the rows are. Beyond
# it nothing public bounds what a draw takes: it ends when it is decided.
CAUTION = "most draws are decided after a few contexts, but time and memory depend on the rows"

MOST_MEMORY = 1 << 20  # MiB: a terabyte


def advice(size: int, larger: str, otherwise: str) -> str:
    """Return what else there is, and to raise the limit where that could help."""
    return otherwise if size > MOST_NUMBERED else f"{otherwise}; or {larger}: {CAUTION}"


@dataclass(frozen=True)
class Direct(Search):
    """Draw from the whole space.

    Attributes:
        limit: the largest space to draw from; a larger one is refused.
        memory: MiB that boxes of contexts may take where subtrees are settled at once. With less a
            draw may take longer; the answer is the same, and no part of the request.
    """

    name: ClassVar[str] = "direct"
    draws_directly: ClassVar[bool] = True
    randomized: ClassVar[bool] = False
    limit: int = ENUMERATION_LIMIT
    memory: int = field(default=USUAL_MEMORY, compare=False)

    def __post_init__(self) -> None:
        check_whole("limit", self.limit)
        check_whole("memory", self.memory, MOST_MEMORY)

    def resolved(
        self,
        schema: Schema,
        *,
        compiled: bool,
        limit: int | None = None,
        guarantee: Guarantee = USUAL,
    ) -> Direct:
        """Return the search with the limit that was given; refuse a space beyond it."""
        del compiled  # a larger space takes longer without a kernel, but ends
        search = self if limit is None else replace(self, limit=limit)
        search.check(schema, guarantee)
        return search

    def check(self, schema: Schema, guarantee: Guarantee = USUAL) -> None:
        """Refuse a space that is too large; its size is public, and so is what else there is."""
        size, most = schema.most_walked, min(self.limit, MOST_NUMBERED)
        if schema.drawable(most):
            return
        if size <= most:  # no limit helps: it can be neither listed nor walked
            most = LARGEST_LIST
        python, cli, service = guarantee.instead
        which = "numbered before max_clauses and max_named leave some out"
        raise TooLarge(
            f"{guarantee.drawn_from} draws among all {counted(size)} contexts "
            f"{which if size > schema.most_contexts else 'that can contain a record'}, more than "
            f"the limit of {most:,}",
            python=advice(size, "raise limit=", python),
            cli=advice(size, "raise --limit", cli),
            service=advice(size, "register it with a larger limit", service),
        )

    def verifications(self, schema: Schema) -> tuple[int, int]:
        """With luck the draw is decided after the first few, best first."""
        return min(128, schema.most_contexts), schema.most_contexts

    def explore(self, explorer: Explorer) -> list[int]:
        """Return all valid contexts."""
        self.check(explorer.space.schema)
        valid = explorer.every_valid()
        if not valid:
            raise NoValidContext(NO_CONTEXT)
        return valid

    def describe(self) -> dict[str, Any]:
        """Return the public parameters."""
        return super().describe() | {"limit": self.limit}
