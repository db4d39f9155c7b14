"""Which search is best? Tables "Sampling Methods Comparison", Figure 1. Public: the settings."""

from __future__ import annotations

from pcor.paper.comparison import OTHER, OURS, PAPER, Comparison, ComparisonLine
from pcor.paper.published import SAMPLING
from pcor.paper.ways import ours, paper

_NAMES = {
    "uniform": "Uniform",
    "random_walk": "Random walk",
    "depth_first": "DFS",
    "breadth_first": "BFS",
}

EXPERIMENT = Comparison(
    name="sampling",
    title="Sampling methods",
    source="Tables 'Sampling Methods Comparison', Figure 1",
    lines=(
        *(
            ComparisonLine(
                label, paper(name, "0.2", 50), PAPER, SAMPLING[name], real=name != "breadth_first"
            )
            for name, label in _NAMES.items()
        ),
        ComparisonLine(
            "DFS", paper("depth_first", "0.2", 100), OTHER, SAMPLING["depth_first"], real=False
        ),
        ComparisonLine("BFS", paper("breadth_first", "0.2", 100), OTHER, SAMPLING["breadth_first"]),
        ComparisonLine("Direct", ours("0.2"), OURS),
    ),
    remarks=(
        "The paper labels all rows n = 50, but its BFS row equals the n = 100 row of its own "
        "table by number of samples, times included; BFS (and DFS) were measured with both.",
    ),
)
