"""The experiments that compare ways to release, each with the numbers of the paper. Public."""

from __future__ import annotations

from pcor.paper.comparison import OTHER, OURS, PAPER, Comparison, ComparisonLine
from pcor.paper.published import DETECTORS, EPSILON, OVERLAP, SAMPLES, SAMPLING
from pcor.paper.tables import LARGE, REDUCED
from pcor.paper.ways import ours, paper

_SEARCHES = {
    "uniform": "Uniform",
    "random_walk": "Random walk",
    "depth_first": "DFS",
    "breadth_first": "BFS",
}
_BOTH_EPSILONS = (("0.2", PAPER), ("0.1", OTHER))  # where the paper states two

BY_SEARCH = Comparison(
    name="sampling",
    title="Sampling methods",
    source="Tables 'Sampling Methods Comparison', Figure 1",
    lines=(
        *(
            ComparisonLine(
                label, paper(name, "0.2", 50), PAPER, SAMPLING[name], real=name != "breadth_first"
            )
            for name, label in _SEARCHES.items()
        ),
        *(
            ComparisonLine(
                _SEARCHES[name], paper(name, "0.2", 100), OTHER, SAMPLING[name], real=real
            )
            for name, real in (("depth_first", False), ("breadth_first", True))
        ),
        ComparisonLine("Direct", ours("0.2"), OURS),
    ),
    remarks=(
        "The paper labels all rows n = 50, but its BFS row equals the n = 100 row of its own "
        "table by number of samples, times included; BFS (and DFS) were measured with both.",
    ),
)

BY_OVERLAP = Comparison(
    name="overlap",
    title="Overlap with the start context",
    source="Tables 'Intersection Overlap Utility', Figure 2",
    lines=(
        *(
            ComparisonLine(_SEARCHES[name], paper(name, epsilon, 50, "overlap"), reading, published)
            for epsilon, reading in _BOTH_EPSILONS
            for name, published in OVERLAP.items()
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

BY_DETECTOR = Comparison(
    name="detectors",
    title="Outlier detectors",
    source="Tables 'Outlier Detection Algorithms', Figure 3",
    lines=(
        *(
            ComparisonLine(
                name.capitalize(),
                paper("breadth_first", epsilon, 50),
                reading,
                published,
                real=epsilon == "0.1",
                detector=name,
            )
            for epsilon, reading in _BOTH_EPSILONS
            for name, published in DETECTORS.items()
        ),
        *(
            ComparisonLine(name.capitalize(), ours("0.2"), OURS, detector=name)
            for name in DETECTORS
        ),
    ),
    remarks=(
        "The paper ran this on its reduced salary table (11,000 rows): authors_salary_11k.",
        "Its tables say epsilon 0.2; its Figure 3 and the authors' program say 0.1, and 0.1 is the "
        "reading that reproduces its numbers.",
        "The rules are the authors': Grubbs' test of the maximum only, and a histogram that never "
        "flags the maximum.",
    ),
    usual=(*REDUCED, *LARGE),
)

BY_EPSILON = Comparison(
    name="epsilon",
    title="Utility by epsilon",
    source="Tables 'Effect of privacy parameter', Figure 4",
    lines=(
        *(
            ComparisonLine(
                f"BFS, epsilon {cost}", paper("breadth_first", cost, 50), PAPER, published
            )
            for cost, published in EPSILON.items()
        ),
        *(ComparisonLine(f"Direct, epsilon {cost}", ours(cost), OURS) for cost in EPSILON),
    ),
    remarks=(
        "The direct mechanism is timed at epsilon 0.2 only; the other draws go on with the same "
        "walk.",
    ),
)

BY_SAMPLES = Comparison(
    name="samples",
    title="Utility by the number of samples",
    source="Tables 'Effect of # of samples', Figure 5",
    lines=(
        *(
            ComparisonLine(
                f"BFS, n = {count}", paper("breadth_first", "0.2", count), PAPER, published
            )
            for count, published in SAMPLES.items()
        ),
        ComparisonLine("Direct (no samples)", ours("0.2"), OURS),
    ),
)
