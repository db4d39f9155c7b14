"""Another utility: overlap with the start. Tables "Intersection Overlap", Figure 2. Public."""

from __future__ import annotations

from pcor.paper.comparison import OTHER, OURS, PAPER, Comparison, ComparisonLine
from pcor.paper.published import OVERLAP
from pcor.paper.ways import ours, paper

_NAMES = {"depth_first": "DFS", "breadth_first": "BFS"}

EXPERIMENT = Comparison(
    name="overlap",
    title="Overlap with the start context",
    source="Tables 'Intersection Overlap Utility', Figure 2",
    lines=(
        *(
            ComparisonLine(label, paper(name, epsilon, 50, "overlap"), reading, OVERLAP[name])
            for epsilon, reading in (("0.2", PAPER), ("0.1", OTHER))
            for name, label in _NAMES.items()
        ),
        ComparisonLine("Direct", ours("0.2", "overlap"), OURS),
    ),
    remarks=(
        "Utility is the rows shared with the start context over all rows of it. The start context "
        "itself has the most there can be and is always a candidate, so this utility is nearly "
        "trivial.",
        "The paper's tables say epsilon 0.2, its Figure 2 says 0.1; both were measured.",
    ),
)
