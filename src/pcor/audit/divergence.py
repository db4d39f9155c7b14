"""How far apart two releases are: the delta one person faces, and the largest ratio of chances.

Private: everything; for the owner only. The final draw's chances follow from the scores of the
candidates, so nothing is sampled here. Chances are kept as logarithms. Contexts whose chance is
negligible in both releases are left out of sums; together they have a chance below ``NEGLIGIBLE``
in each, and what is stated is wrong by less than ``ERROR``.

The delta of two distributions P and Q at epsilon is the smallest with
P(S) <= e^epsilon Q(S) + delta for every set S of answers: the sum of max(0, P(C) - e^epsilon Q(C))
over the answers C, S being those where it is positive (Dwork and Roth 2014, Section 3.5.1). One
person faces the larger of that and of the same with P and Q swapped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# The chance, in each release, of all contexts that are left out of sums; and what follows for a
# delta or a log ratio, with the rounding of float64 and of the quadrature.
NEGLIGIBLE = 1e-14
ERROR = 1e-9

_AT_ONCE = 4096  # groups, each with some hundred nodes: a few megabytes

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]


class Divergence(NamedTuple):
    """How far apart the answers on two tables are.

    Attributes:
        delta: the smallest delta at the release's epsilon that holds in both directions.
        ratio: the largest absolute log ratio of the chances of an answer that both can give;
            ``None`` where they have no answer in common.
    """

    delta: float
    ratio: float | None


@dataclass(frozen=True, repr=False)
class Scores:
    """The contexts that at least one of two final draws can give, side by side. Private.

    Attributes:
        here: the score of each on the table.
        there: its score on the changed table.
        in_here: whether it is a candidate on the table.
        in_there: whether it is a candidate on the changed table.
    """

    here: Numbers
    there: Numbers
    in_here: Truths
    in_there: Truths

    def of(self, kept: Truths | NDArray[np.intp]) -> Scores:
        """Return those of some contexts."""
        return Scores(self.here[kept], self.there[kept], self.in_here[kept], self.in_there[kept])


def deepest(contexts: int, eta: float) -> float:
    """Return how far below the best a score must be for so many contexts to be negligible.

    Under either mechanism a context's chance is at most exp(eta * (its score - the best)).
    """
    return (math.log(max(contexts, 1)) - math.log(NEGLIGIBLE)) / eta


def divergence(
    scores: Scores, *, eta: float, epsilon: float, mechanism: str, far: Sequence[int] = ()
) -> Divergence:
    """Compare two final draws. No candidate at all is an answer too: "none was found".

    Args:
        scores: the candidates; those that are negligible on both sides may be left out.
        eta: the exponent of the final draw.
        epsilon: of the whole release.
        mechanism: of the final draw.
        far: by how much the scores of candidates of both sides fall that were left out.
    """
    if not scores.in_here.any() or not scores.in_there.any():
        return Divergence(0.0, 0.0) if not len(scores.here) else Divergence(1.0, None)
    depth = deepest(len(scores.here), eta)
    high = scores.here >= scores.here[scores.in_here].max() - depth
    high_there = scores.there >= scores.there[scores.in_there].max() - depth
    top = (scores.in_here & high) | (scores.in_there & high_there)
    groups, counts = _grouped(scores.of(top))
    here = _draw_logs(groups.here, counts * groups.in_here, eta, mechanism)
    there = _draw_logs(groups.there, counts * groups.in_there, eta, mechanism)
    delta = max(
        _excess(here.logs, there.logs, counts, epsilon),
        _excess(there.logs, here.logs, counts, epsilon),
    )
    both = groups.in_here & groups.in_there
    gaps = np.abs(here.logs[both] - there.logs[both])
    deep = ~top & scores.in_here & scores.in_there
    moves = np.append(scores.here[deep] - scores.there[deep], far)
    if len(moves):
        extremes = np.array([moves.min(), moves.max()])
        gaps = np.append(gaps, np.abs(eta * extremes + here.far - there.far))
    return Divergence(delta, float(gaps.max()) if len(gaps) else None)


def divergence_of_logs(
    here: Mapping[Any, float], there: Mapping[Any, float], epsilon: float
) -> Divergence:
    """Compare two distributions of ``exact_log_chances``."""
    answers = list(dict.fromkeys([*here, *there]))
    logs = np.array([[side.get(answer, -np.inf) for answer in answers] for side in (here, there)])
    ones = np.ones(len(answers))
    delta = max(_excess(logs[0], logs[1], ones, epsilon), _excess(logs[1], logs[0], ones, epsilon))
    both = np.isfinite(logs).all(axis=0)
    gaps = np.abs(logs[0, both] - logs[1, both])
    return Divergence(delta, float(gaps.max()) if len(gaps) else None)


def _excess(here: Floats, there: Floats, counts: Floats, epsilon: float) -> float:
    """Return the sum of max(0, P - e^epsilon Q), given logarithms.

    What is above by no more than rounding is not above.
    """
    above = here > there + epsilon + 1e-11
    some, other = here[above], there[above]
    lead = np.exp(some) * -np.expm1(np.where(np.isneginf(other), -np.inf, other + epsilon - some))
    return min(1.0, math.fsum(lead * counts[above]))


def _grouped(scores: Scores) -> tuple[Scores, Floats]:
    """Put contexts together that have the same scores and are candidates on the same sides."""
    order = np.lexsort((scores.in_there, scores.in_here, scores.there, scores.here))
    sides = np.array([scores.here, scores.there, scores.in_here, scores.in_there])[:, order]
    new = np.concatenate([[True], (sides[:, 1:] != sides[:, :-1]).any(axis=0)])
    starts = np.flatnonzero(new)
    counts = np.diff(np.append(starts, len(order))).astype(np.float64)
    return scores.of(order[starts]), counts


class LogChances(NamedTuple):
    """Logarithms of the chances of one context of each group.

    Attributes:
        logs: minus infinity where the group has no candidate on this side.
        far: what to add to minus its depth for a context far below the best.
    """

    logs: Floats
    far: float


def _draw_logs(utilities: Numbers, counts: Floats, eta: float, mechanism: str) -> LogChances:
    """Return the chances of a final draw; ``far`` is to be added to eta times a score."""
    inside = counts > 0
    best = int(utilities[inside].max())
    log_q = np.where(inside, eta * (utilities - best), -np.inf)
    found = log_chances(log_q, counts, mechanism)
    return LogChances(found.logs, found.far - eta * best)


def log_chances(log_q: Floats, counts: Floats, mechanism: str) -> LogChances:
    """Return the chances of a final draw among ``counts`` candidates of each weight.

    Permute-and-flip: the integral over x in [0, 1] of q_i * prod(1 - x q_j, j != i), with
    q = exp(eta (u - max)), as in ``exact.selection_log_chances``. The integrand falls at least as
    fast as exp(-x sum(q)) does, so pieces of doubling length follow it with few nodes, and what is
    beyond the last is below exp(-64) of the whole.

    Args:
        log_q: the logarithms of q for each group, at most 0.
        counts: how many candidates each group has.
        mechanism: of the draw.
    """
    q = np.exp(log_q)
    total = float(counts @ q)
    if mechanism == "exponential":
        return LogChances(log_q - math.log(total), -math.log(total))
    x, weights = _nodes(total)
    parts = [slice(low, low + _AT_ONCE) for low in range(0, len(q), _AT_ONCE)]
    failures = sum(counts[part] @ np.log1p(-np.outer(q[part], x)) for part in parts)
    nobody = np.exp(failures) * weights
    rest = np.concatenate([np.log((1 / (1 - np.outer(q[part], x))) @ nobody) for part in parts])
    return LogChances(log_q + rest, math.log(float(nobody.sum())))


def _nodes(total: float) -> tuple[Floats, Floats]:
    """Return where to evaluate the integral over [0, 1], and with which weights."""
    edges = [0.0, *(2**k / total for k in range(6) if 2**k < total / 2), min(1.0, 64 / total)]
    nodes, weights = np.polynomial.legendre.leggauss(32)
    lengths = np.diff(edges)[:, np.newaxis]
    x = np.array(edges[:-1])[:, np.newaxis] + lengths * (nodes + 1) / 2
    return x.ravel(), (lengths * weights / 2).ravel()
