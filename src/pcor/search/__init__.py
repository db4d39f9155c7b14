"""Searches: where to look for contexts among which one is then drawn.

Each search is handed an ``Explorer`` and nothing else, so it can use only what the privacy rules
allow: validity, public knowledge, and choices it has paid for.
"""

from pcor.search.base import Explorer, Search
from pcor.search.breadth_first import BreadthFirst
from pcor.search.depth_first import DepthFirst
from pcor.search.direct import Direct
from pcor.search.random_walk import RandomWalk
from pcor.search.registry import SEARCHES, get_search
from pcor.search.uniform import Uniform
from pcor.search.widest_first import WidestFirst

__all__ = [
    "SEARCHES",
    "BreadthFirst",
    "DepthFirst",
    "Direct",
    "Explorer",
    "RandomWalk",
    "Search",
    "Uniform",
    "WidestFirst",
    "get_search",
]
