"""More samples: Tables "Effect of # of samples", Figure 5. Public: the settings."""

from __future__ import annotations

from pcor.paper.comparison import OURS, PAPER, Comparison, ComparisonLine
from pcor.paper.published import SAMPLES
from pcor.paper.ways import ours, paper

EXPERIMENT = Comparison(
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
