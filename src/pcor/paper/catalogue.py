"""The experiments by name. Public."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pcor.paper import (
    coe_match,
    detectors,
    epsilon,
    locality,
    overlap,
    ratio,
    samples,
    sampling,
)
from pcor.paper.store import Store
from pcor.paper.units import Unit


class Experiment(Protocol):
    """What every experiment has."""

    @property
    def name(self) -> str:
        """The name of the command."""
        ...

    @property
    def title(self) -> str:
        """What it shows."""
        ...

    @property
    def source(self) -> str:
        """The tables and figures of the paper."""
        ...

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader must know."""
        ...

    @property
    def usual(self) -> tuple[str, ...]:
        """The tables it runs on by default."""
        ...

    @property
    def fallback(self) -> str:
        """The synthetic table for where none of those is there."""
        ...

    def units(self, tables: Sequence[str], *, quick: bool, seed: int) -> list[Unit]:
        """Return the work."""
        ...

    def rows(self, store: Store, tables: Sequence[str], *, quick: bool, seed: int) -> list[Any]:
        """Return the results of finished work, a row for each line of its tables."""
        ...


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        sampling.EXPERIMENT,
        overlap.EXPERIMENT,
        detectors.EXPERIMENT,
        epsilon.EXPERIMENT,
        samples.EXPERIMENT,
        coe_match.EXPERIMENT,
        ratio.EXPERIMENT,
        locality.EXPERIMENT,
    )
}
