"""How many contexts a schema has, and what that rules out. Public: the schema alone decides."""

from __future__ import annotations

from pcor.errors import counted
from pcor.public.guarantee import PureDP
from pcor.public.schema import Schema
from pcor.search.blocks import ENUMERATION_LIMIT
from pcor.search.coe import PATIENCE
from pcor.search.direct import COUNTABLE


def space_in_words(schema: Schema) -> str:
    """Say how many contexts can contain a record, and of what."""
    return (
        f"{schema.width} values of {len(schema.attributes)} attributes: "
        f"{counted(schema.most_contexts)} contexts can contain a record "
        f"({schema.most_steps} values may come or go)"
    )


def beyond_limits(schema: Schema) -> str:
    """Say what is refused for its size, and where a limit can be raised; nothing if nothing is."""
    size = schema.most_walked
    if size <= ENUMERATION_LIMIT:
        return ""
    drawing, listing = (
        f"--guarantee {PureDP.name}, --search direct, pcor tradeoff",
        "pcor audit, pcor contexts",
    )
    if size > COUNTABLE:
        refused = f"{drawing}, {listing} are not to be had, whatever the limit"
    elif size > PATIENCE:
        refused = f"{drawing} need a larger --limit; {listing} are not to be had"
    else:
        refused = f"{drawing}, {listing} need a larger --limit"
    return (
        f"with more than {ENUMERATION_LIMIT:,} contexts {refused}. A release with --search auto "
        "needs nothing. Fewer values, by wider bins or with rare ones together as 'other', help all"
    )
