"""The page of the certificate: every member of its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pcor.releasing.certificate import FORMAT, JSON_SCHEMA
from tools.reference import markdown

_INTRO = f"""
A release leaves with a certificate: `Release.to_dict()`, `pcor release --json`, and the `release`
of the service's answer. Its JSON Schema lies beside the code that writes it, in
`pcor/releasing/certificate.schema.json`, and refuses members that are not declared. The format is
`{FORMAT}`; what it says does not change.
"""

# Members that the JSON Schema declares without a word about them.
_MEANINGS = {
    "format": "Which members there are, and what they mean.",
    "sentence": "The release in words.",
    "dataset": "The name that the schema gives to the dataset.",
    "metric": "The column by which the record is an outlier.",
    "detector": "The rule that calls the record an outlier, with its settings.",
    "detector.name": "Which rule.",
    "detector.min_population": "In a smaller population nothing is an outlier.",
    "search": "How contexts were looked for, with its settings.",
    "search.name": "Which search.",
    "search.samples": "How many contexts it collected at most.",
    "search.tries": "The most contexts that it tries.",
    "search.limit": "The largest space that it enumerates.",
    "search.start": "The context that it started from, where one was given.",
    "search.final_share": "Which part of epsilon the final draw has.",
    "search.seed": "Of the public numbers that steer it; the draw has none.",
    "search.shares": "Whether the schema's shares steered it.",
    "utility": "What the draw prefers.",
    "utility.name": "Which utility.",
    "utility.with": "The context to stay close to, for overlap.",
    "utility.sensitivity": "What one row can change it by, exact.",
    "utility.monotonic": "Whether a further row can only raise it.",
    "selection": "How every paid draw was made: the steps of a steered search, and the final one.",
    "accounting": "Which price list.",
    "guarantee": "What kind of promise: relaxed, or for everyone but the record.",
    "needed.chance": "How likely the context is valid then.",
    "needed.people": "How much utility some context must have.",
    "needed.margin": "By how many rows the record must stand out in it.",
    "needed.rows": "How many rows it must cover.",
    "needed.text": "The same in words.",
    "epsilon": "The total cost, as the nearest float.",
    "delta": "The additive slack in the bound; 0 unless one was asked for.",
    "steps": "What was paid for, step by step.",
    "steps[].what": "The step in words.",
    "steps[].each": "The price of one call, exact.",
    "steps[].cost": "The price of all of them, exact.",
    "steps[].unit": "What the price is counted in.",
    "promise": "What is protected, in full.",
    "promise.guarantee": "The same as `guarantee`.",
    "promise.definition": "The name of the guarantee, in full.",
    "promise.neighbours": "Which two tables are to be hard to tell apart.",
    "promise.epsilon": "The total cost, exact.",
    "promise.delta": "The additive slack, exact.",
    "promise.validity": "What is promised about the context itself.",
    "promise.not_protected": "Who or what the guarantee does not speak of.",
    "promise.text": "The whole promise, as it is printed.",
    "schema_sha256": "The fingerprint of the schema: `Schema.sha256`.",
    "software": "What made the certificate, with its version.",
}


def page() -> str:
    """Return the page."""
    schema = json.loads(JSON_SCHEMA.read_text(encoding="utf-8"))
    rows = [_row(*one) for one in members(schema)]
    return markdown.page(
        "Certificate",
        _INTRO,
        schema["description"],
        markdown.table(["member", "type", "", "meaning"], rows),
    )


def members(
    schema: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Yield every declared member: its path, its schema, whether it is always there."""
    required = schema.get("required", ())
    for name, one in schema.get("properties", {}).items():
        path = f"{above}{name}"
        yield path, one, name in required
        yield from members(one, f"{path}.")
        yield from members(one.get("items", {}), f"{path}[].")


def _row(path: str, one: Mapping[str, Any], required: bool) -> list[str]:
    return [
        markdown.code(path),
        _type(one),
        "always" if required else "optional",
        one.get("description") or _MEANINGS[path],
    ]


def _type(one: Mapping[str, Any]) -> str:
    """Return the type with its limits, in words."""
    if "const" in one:
        return markdown.code(json.dumps(one["const"]))
    if "enum" in one:
        return " or ".join(markdown.code(json.dumps(value)) for value in one["enum"])
    kinds = one["type"] if isinstance(one["type"], list) else [one["type"]]
    words = " or ".join(kinds)
    if "pattern" in one:
        words += f", like {markdown.code(one['pattern'])}"
    limits = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    for limit, sign in limits.items():
        words += f", {sign} {one[limit]}" if limit in one else ""
    if isinstance(one.get("items"), Mapping) and one["items"].get("type") != "object":
        words += f" of {_type(one['items'])}"
    return words
