"""What the number of contexts allows: exact draws, listings, audits. Public."""

from __future__ import annotations

from pcor.errors import counted
from pcor.public.guarantee import PureDP
from pcor.public.schema import MOST_NUMBERED, Schema
from pcor.search.blocks import ENUMERATION_LIMIT
from pcor.search.coe import PATIENCE


def beyond_limits(schema: Schema) -> str:
    """Say what is refused for its size, and where a limit can be raised; nothing if nothing is."""
    size = schema.most_numbered
    if size <= ENUMERATION_LIMIT:
        return ""
    if schema.drawable(ENUMERATION_LIMIT):
        return (
            f"{counted(size)} contexts are numbered before the limits on whole contexts: pcor "
            "audit needs a larger --limit, or fewer values"
        )
    drawing, listing = (
        f"--guarantee {PureDP.name}, --search direct, pcor tradeoff",
        "pcor audit, pcor contexts",
    )
    if size > MOST_NUMBERED:
        refused = f"{drawing}, {listing} are not to be had, whatever the limit"
    elif size > PATIENCE:
        refused = f"{drawing} need a larger --limit; {listing} are not to be had"
    else:
        refused = f"{drawing}, {listing} need a larger --limit"
    return (
        f"with more than {ENUMERATION_LIMIT:,} contexts {refused}. A release with --search auto "
        "needs nothing. Fewer values, by wider bins or with rare ones together as 'other', help all"
    )
