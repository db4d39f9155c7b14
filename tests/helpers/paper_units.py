"""One unit of an experiment on the reduced salaries."""

from __future__ import annotations

from typer.testing import CliRunner

from pcor.cli import app
from pcor.paper.units import Unit
from pcor.paper.ways import ours, paper

REDUCED = "synthetic_reduced"
BFS = paper("breadth_first", "0.2", 20).key
DIRECT = ours("0.2").key


def pcor_(*words: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["experiment", *map(str, words)])
    return done.exit_code, done.stdout, done.stderr


def unit(number: int = 0, *parts: str, detector: str = "lof", seed: int = 0) -> Unit:
    return Unit("releases", REDUCED, detector, number, seed, parts or (DIRECT, BFS))
