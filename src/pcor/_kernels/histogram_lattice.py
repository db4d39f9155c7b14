"""The rare-bin rule for all contexts of a block.

Source: the paper, Section 6.5, as ``pcor.detectors.histogram`` states it; its ``verdicts`` is the
twin. As ``histogram_verdicts``, with the least and the largest metric of each context at hand.
"""

from __future__ import annotations

from typing import Any

from pcor._kernels import kernel
from pcor._kernels.coverage import PairColumns, covers
from pcor._kernels.histogram import bin_of, root

Array = Any


@kernel
def histogram_in_block(
    masks: Array,
    pairs: PairColumns,
    contexts: tuple[Array, Array, Array],
    at: int,
    v: float,
    rule: tuple[bool, int],
    out: Array,
) -> None:
    """Tell for each context whether V lies in a rare bin.

    Args:
        masks: the contexts, each of which covers V.
        pairs: what they may cover, at least of V's bins.
        contexts: of each the rows; the most that a rare bin can hold; and the least and the largest
            metric, shape (2, contexts).
        at: the first pair with V's value.
        v: that value.
        rule: whether the maximum can be an outlier, and the smallest population.
        out: one boolean per context.
    """
    include_maximum, smallest = rule
    required, values, counts = pairs
    populations, most, extremes = contexts
    for row in range(len(masks)):
        n, rare = populations[row], most[row]
        low, high = extremes[0, row], extremes[1, row]
        out[row] = False
        # One value alone makes no histogram; without the maximum, the authors' half-open last bin.
        if n < smallest or rare < 1 or low == high or (v == high and not include_maximum):
            continue
        bins = root(n)
        own = bin_of(v, low, high, bins)
        # Between these a value is in V's bin for certain: rounding moves an edge by less.
        width = (high - low) / bins
        doubt = 1e-12 * (abs(low) + abs(high))
        first, last = low + own * width + doubt, low + (own + 1) * width - doubt
        inside = 0
        for step in (-1, 1):
            pair = at if step == 1 else at - 1
            # The formula never falls as values rise, so the bin is a run of pairs around V.
            while 0 <= pair < len(values) and inside <= rare:
                value = values[pair]
                certain = first < value < last
                if not certain and bin_of(value, low, high, bins) != own:
                    break
                if covers(masks[row], required, pair):
                    inside += counts[pair]
                pair += step
        out[row] = inside <= rare
