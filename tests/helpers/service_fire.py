"""Services that will be killed, the client of an analyst, and what must hold whatever happens."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

from pcor.client import Client
from tests.helpers.ledger_clients import lines
from tests.helpers.service_world import ANALYST, DATASET, OUTLIER, prepared, settings_for
from tests.helpers.service_zygote import Services
from tests.helpers.waiting import DEADLINE

# So small that every valid context is drawn about as often: an answer that was drawn again and put
# in the place of the first is another one, most of the time.
EPSILON = "0.0001"
PRESETS = {"small": EPSILON, "medium": EPSILON, "large": "0.2"}


class Fire:
    """Services that will be killed, and the client of an analyst."""

    def __init__(self, url: str, folder: Path, services: Services) -> None:
        self.trace = folder / "trace"
        self._settings = settings_for(url, folder, sweep=0.2)
        service, self.keys = prepared(self._settings, registered={"presets": PRESETS})
        self.ledger, self.services = service.ledger, services

    def start(self, step: str | None = None) -> int:
        """Start a service, to be killed at a step."""
        return self.services.start(self._settings, self.trace, step)

    def client(self, **options: Any) -> Client:
        """Return a client that is patient and quick."""
        limits = {"timeout": DEADLINE, "patience": DEADLINE}
        return Client(self.services.url, self.keys[ANALYST], **limits | options)

    def ask(self, draw: int, key: str | None = None) -> dict[str, Any]:
        """Ask as a client does, until there is an answer."""
        released = self.client().release(DATASET, OUTLIER, preset="medium", draw=draw, key=key)
        return released.to_dict()

    def budget(self, epsilon: str) -> None:
        """Set the analyst's allotment and the budget."""
        self.ledger.set_budget(DATASET, epsilon)
        self.ledger.allot(DATASET, ANALYST, epsilon)

    def count(self, kind: str) -> Counter[str]:
        """Return how many entries of a kind each question has."""
        return Counter(entry.key for entry in self.ledger.entries() if entry.kind == kind)

    def drawn(self) -> Counter[str]:
        """Return how often each question was drawn."""
        return Counter(key for _, key in lines(self.trace))

    def check(self) -> Counter[str]:
        """Assert what must hold at any moment; return how often each key was charged."""
        charges, answers = self.count("charge"), self.count("answer")
        assert set(charges.values()) <= {1}
        assert set(answers.values()) <= {1}
        assert answers.keys() <= charges.keys()
        assert self.ledger.status(DATASET).spent["ocdp"] == Fraction(EPSILON) * len(charges)
        assert self.ledger.verify().problems == ()
        assert self.drawn().keys() <= charges.keys(), "something was drawn before it was charged"
        return charges
