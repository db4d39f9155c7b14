"""Two hundred seeded requests of every kind, and what each is answered with.

What the code said once is written down in ``same_releases.json``; ``test_same_releases`` compares
what it says now, with the words of that time. Only names that users rely on are used here, so that
the house may be built anew around them.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pcor
from pcor.ledger.tables import START
from pcor.releasing.request import canonical
from pcor.testing import seeded
from tests.helpers.engines import LOCAL, SCHEMA, people
from tests.helpers.old_words import old_certificate

COUNT = 200
FILE = Path(__file__).parent / "same_releases.json"
# A moment that never moves: entries of the ledger say when they were written.
MOMENT = 1_800_000_000.0

ROWS = people(240, seed=5)
_PAY = dict(zip(ROWS["key"].to_pylist(), ROWS["pay"].to_pylist(), strict=True))
OUTLIERS = [key for key, pay in _PAY.items() if not 400 <= pay <= 1600]
COUNTING = [
    "tail:share=0.05",
    "neighbourhood:radius=300,share=0.1",
    "rare_bin:edges=500|900|1500,share=0.2",
]
DETECTORS = ["lof", "lof:k=5,ties=all", "grubbs", "grubbs:tail=upper", "histogram", *COUNTING[:1]]
SEARCHES = [
    "auto",
    "direct",
    "uniform",
    "random_walk",
    "depth_first",
    "breadth_first",
    "widest_first",
]

TRIES = 500_000
STARTED = ("random_walk", "depth_first", "breadth_first")


def requests() -> Iterator[dict[str, Any]]:
    """Yield two hundred requests; the same ones every time."""
    numbers = random.Random(17)  # noqa: S311 (which questions are asked)
    for seed in range(COUNT):
        options: dict[str, Any] = {}
        if numbers.random() < 0.35:
            options |= {"guarantee": "dp", "detector": numbers.choice(COUNTING)}
            if numbers.random() < 0.5:
                options["steepness"] = numbers.choice([5, 50])
        else:
            options |= {
                "detector": numbers.choice(DETECTORS),
                "search": numbers.choice(SEARCHES),
            }
            if options["search"] not in ("auto", "direct"):
                options["samples"] = numbers.choice([5, 20])
                options["accounting"] = numbers.choice(["tight", "tight", "tight", "paper"])
            paid_steps = options["search"] in ("depth_first", "breadth_first")
            if paid_steps and options["accounting"] == "tight" and numbers.random() < 0.5:
                options["delta"] = "0.000001"
        if "delta" not in options and numbers.random() < 0.2:
            options["selection"] = numbers.choice(["exponential", "permute_and_flip"])
        yield {
            "seed": seed,
            "record": numbers.choice(OUTLIERS if numbers.random() < 0.9 else [10, 24]),
            "epsilon": numbers.choice(["0.2", "1", "3/7"]),
            "utility": "overlap" if numbers.random() < 0.25 else "population",
            "start": options.get("search") in STARTED and numbers.random() < 0.4,
            "engine": numbers.choice([None, None, None, *LOCAL]),
            "payer": numbers.choice([None, "budget", "ledger", "batch", "ledger batch"]),
            "options": options,
        }


def answers(guarantee: str) -> dict[str, Any]:
    """Carry out the requests with a guarantee; return what was said to each, by seed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables: dict[str | None, pcor.Table] = {None: pcor.Table(ROWS, SCHEMA)}
        tables |= {engine: pcor.Table(make(ROWS, folder), SCHEMA) for engine, make in LOCAL.items()}
        with closing(pcor.Ledger(folder / "books.db", clock=lambda: MOMENT)) as ledger:
            ledger.set_budget("people", 100, delta="0.01")
            said = {
                str(request["seed"]): _answer(request, tables[request["engine"]], ledger)
                for request in requests()
                if request["options"].get("guarantee", "ocdp") == guarantee
            }
            return {"answers": said, "head": _head(ledger)}


def _answer(request: dict[str, Any], table: pcor.Table, ledger: pcor.Ledger) -> dict[str, str]:
    options = dict(request["options"])
    if options.get("search") == "widest_first":
        # The certificate names the tries, of which there were more when nobody said how many.
        options["search"] = pcor.WidestFirst(samples=options.pop("samples"), tries=TRIES)
    own = pcor.Context(SCHEMA, _values(request["record"]))
    if request["start"]:
        options["start"] = pcor.Context(SCHEMA, {a.name: list(a.values) for a in SCHEMA.attributes})
    options["utility"] = pcor.Overlap(own) if request["utility"] == "overlap" else "population"
    record, epsilon, chooser = request["record"], request["epsilon"], seeded(request["seed"])
    try:
        match request["payer"]:
            case None:
                release = pcor.release(table, record, epsilon, chooser=chooser, **options)
            case "budget":
                budget = pcor.Budget(1, delta="0.0001")
                release = pcor.release(
                    table, record, epsilon, chooser=chooser, budget=budget, **options
                )
            case "ledger":
                release = ledger.release(
                    table, record, epsilon, dataset="people", chooser=chooser, **options
                )
            case payer:
                paid: dict[str, Any] = {"ledger": ledger, "dataset": "people"}
                results = pcor.release_many(
                    table,
                    [record],
                    epsilon,
                    chooser=chooser,
                    **(paid if payer == "ledger batch" else {}),
                    **options,
                )
                if isinstance(results[0], pcor.PcorError):
                    raise results[0]
                release = results[0]
    except pcor.PcorError as error:
        return {"error": type(error).__name__, "said": str(error)}
    return {
        "bits": release.context.bits,
        "json": _digest(json.dumps(_old(release.to_dict()), indent=2, ensure_ascii=False)),
    }


def _old(certificate: dict[str, Any]) -> dict[str, Any]:
    context = pcor.Context.from_bits(SCHEMA, certificate["bits"])
    return old_certificate(certificate, context)


def _head(ledger: pcor.Ledger) -> str:
    """Return where the chain of entries would end, had certificates the words of old."""
    previous, last = START, 0
    for entry in ledger.entries():
        content = entry.content
        if "bits" in content.get("answer", {}):
            content["answer"] = _old(content["answer"])
        previous = replace(entry, body=canonical(content), previous=previous).sealed()
        last = entry.number
    return f"{last}:{previous}"


def _values(record: int) -> dict[str, list[Any]]:
    """Return the context of exactly a record's own values."""
    place = ROWS["key"].to_pylist().index(record)
    age = ROWS["age"][place].as_py()
    ages = SCHEMA.attribute("age").values
    own = ages[sum(age >= edge for edge in (30, 50))]
    return {
        "job": [ROWS["job"][place].as_py()],
        "year": [ROWS["year"][place].as_py()],
        "age": [own],
    }


def _digest(text: str) -> str:
    """Return a hash of a text in which every version of a program is left out."""
    plain = re.sub(r"\b\d+\.\d+(\.\w+)+\b", "VERSION", text)
    return hashlib.sha256(plain.encode()).hexdigest()[:24]
