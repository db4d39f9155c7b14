"""The tutorial's motor claims as another system exports them: the same claims, every rough edge.

Semicolons, Windows-1252, decimal commas and a currency; one value in several spellings, days
instead of years, words for no value, a number for each customer, and columns that say nothing.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from pcor.demo.insurer import claims

EXPORT_ENCODING = "cp1252"

_FUELS = ("Diesel", "Benzin", "?", "Elektro")
_GARAGES = ("Köln", "Zürich", "Graz", "Málaga")
_CUSTOMERS = 9_001  # so that many have several claims


def claims_export() -> bytes:
    """Return ``claims`` as the bytes of such a file."""
    rows = claims().to_pylist()
    lines = [";".join(_exported(rows[0])), *(";".join(_exported(row).values()) for row in rows), ""]
    return "\n".join(lines).encode(EXPORT_ENCODING)


def _exported(row: dict[str, Any]) -> dict[str, str]:
    number = row["claim"]
    day = date(row["year"], 1, 1) + timedelta(days=number * 31 % 365)
    return {
        "claim": str(number),
        "customer no": f"K{number * 7919 % _CUSTOMERS:05d}",
        "day": f"{day:%d.%m.%Y}",
        "region": _spelled(row["region"], number),
        "age": str(row["age"]),
        "vehicle": _spelled(row["vehicle"], number // 7),
        "fuel": _FUELS[number * 13 % len(_FUELS)],
        "garage": f"{_GARAGES[number % len(_GARAGES)]} {row['garage']}",
        "status": "closed",
        "note": f"file {number * 31 % 1_000_003}",
        "amount": "n/a" if row["amount"] is None else _money(row["amount"]),
    }


def _spelled(value: str, number: int) -> str:
    """Return a value as one of several clerks writes it; most of them the usual way."""
    ways = {1: value.upper(), 2: f"{value} ", 3: value.capitalize()}
    return ways.get(number % 10, value)


def _money(amount: float) -> str:
    return f"{amount:,.2f} €".translate(str.maketrans(",.", ".,"))
