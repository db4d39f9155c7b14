"""300 audits by person compared with brute force; half a minute, so not in the suite.

python -m tests.helpers.people_brute_force
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from typing import Any

import pcor
from tests.helpers.people_tables import RULES, SCHEMA, check_people, random_people

SEEDS = range(1000, 1300)
OVERLAP = pcor.Overlap(pcor.Context(SCHEMA, {"job": ["a", "b"], "city": ["x"]}))


def compare(seed: int) -> Counter[str]:
    """Compare one audit with its twin, by a rule, search, utility and mechanism drawn here."""
    numbers = random.Random(seed)  # noqa: S311 (a table for a test)
    rule = list(RULES.values())[seed % len(RULES)]
    options: dict[str, Any] = {
        "search": numbers.choice(["direct", "direct", pcor.WidestFirst(samples=3)]),
        "utility": numbers.choice(["population", "people", OVERLAP]),
        "selection": numbers.choice(["exponential", "permute_and_flip"]),
    }
    rows = random_people(seed, people=numbers.choice([5, 9, 14]))
    metrics = numbers.choice([[40.0], [3.0], [12.5]])
    return check_people(rows, rule, metrics, **options) + Counter(tables=1)


if __name__ == "__main__":
    found: Counter[str] = sum(map(compare, SEEDS), Counter())
    sys.stdout.write(f"no difference: {dict(found)}\n")
