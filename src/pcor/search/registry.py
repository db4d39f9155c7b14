"""Searches by name, and the public rule behind "auto"."""

from __future__ import annotations

from dataclasses import replace

from pcor.errors import ParameterError, UnknownName
from pcor.public.context import Context
from pcor.public.guarantee import USUAL, Guarantee
from pcor.public.schema import Schema
from pcor.search.base import Search
from pcor.search.breadth_first import BreadthFirst
from pcor.search.depth_first import DepthFirst
from pcor.search.direct import Direct
from pcor.search.random_walk import RandomWalk
from pcor.search.uniform import Uniform
from pcor.search.widest_first import WidestFirst

SEARCHES: dict[str, type[Search]] = {
    search.name: search
    for search in (Direct, WidestFirst, Uniform, RandomWalk, DepthFirst, BreadthFirst)
}

# "auto" takes the direct mechanism on spaces up to these sizes, and widest-first beyond: the first
# where the detector has a compiled kernel, the second where every context is a refit. Both follow
# from public facts alone.
AUTO_LIMIT = 1 << 22
AUTO_LIMIT_OF_REFITS = 1 << 10

# Up to here both "auto" and "direct" draw from the whole space where subtrees of contexts can be
# settled at once (LOF) and the family has no limits on whole contexts: measured by ``bench.wide``.
WALKED_LIMIT = 1 << 30


def get_search(
    search: str | Search,
    schema: Schema,
    *,
    samples: int | None = None,
    start: Context | None = None,
    limit: int | None = None,
    compiled: bool = False,
    guarantee: Guarantee = USUAL,
) -> Search:
    """Return a search from its name; fill in ``samples``, ``start``, ``limit`` where it takes them.

    ``compiled`` says whether contexts are verified by a compiled kernel and drawn in order; "auto"
    looks at it, and so does the usual number of tries of widest-first.
    """
    if isinstance(search, str):
        wanted = samples is not None or start is not None
        search = _named(search, schema, compiled=compiled, sampling=wanted, limit=limit)
    if not isinstance(search, Search):
        raise ParameterError("search must be a name or a pcor search such as pcor.Direct()")
    if samples is not None:
        if not search.takes_samples:
            raise ParameterError(f"search {search.name!r} takes no samples; leave them out")
        search = replace(search, samples=samples)  # type: ignore[call-arg] # it takes them
    if start is not None and search.takes_start:
        search = replace(search, start=start)  # type: ignore[call-arg] # likewise
    return search.resolved(schema, compiled=compiled, limit=limit, guarantee=guarantee)


def walked_limit(search: str | Search, schema: Schema) -> int | None:
    """Return the limit where subtrees can be settled and the usual one does not admit a schema."""
    if search not in ("auto", Direct.name) or schema.limited:
        return None
    usual = AUTO_LIMIT if search == "auto" else Direct().limit
    return None if schema.drawable(usual) or not schema.drawable(WALKED_LIMIT) else WALKED_LIMIT


def is_direct(search: str | Search) -> bool:
    """Tell whether a search, or what its name stands for, draws from the whole space."""
    return search == Direct.name or (isinstance(search, Search) and search.draws_directly)


def _named(
    name: str, schema: Schema, *, compiled: bool, sampling: bool, limit: int | None
) -> Search:
    if name == "auto":
        # Whoever gives samples or a start wants a search that has them.
        usual = AUTO_LIMIT if compiled else AUTO_LIMIT_OF_REFITS
        small = schema.drawable(usual if limit is None else limit)
        return Direct() if small and not sampling else WidestFirst()
    if name not in SEARCHES:
        raise UnknownName("search", name, ["auto", *SEARCHES])
    return SEARCHES[name]()
