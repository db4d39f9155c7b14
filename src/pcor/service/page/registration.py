"""From a filled-in form to what registers a dataset, by the rules of the API.

Public: everything here; the file is only named. Whatever is wrong is said in a sentence, and the
form comes back as it was filled in.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

from pydantic import ValidationError

from pcor.errors import plain
from pcor.public.schema import REVIEW
from pcor.releasing.options import Option
from pcor.releasing.settings import Settings
from pcor.service.api.models import DatasetBody
from pcor.service.core.problems import Problem
from pcor.service.core.registry import PRESETS, Registration


def _written(value: object) -> str:
    """Write a setting as a field of the form holds it; a switch as one of its two words."""
    if isinstance(value, bool):
        return SWITCH[value]
    return "" if value is None else str(value)


# A switch that is off, and one that is on.
SWITCH = ("no", "yes")

# What the form is filled with before anybody has written into it.
EMPTY: dict[str, str] = {
    "name": "",
    "description": "",
    "source": "",
    "schema": "",
    "small": "0.05",
    "medium": "0.1",
    "large": "0.2",
    "records": "",
    "budget": "",
    "cap": "",
    "budget_delta": "",
    "replaces": "",
    **{name: _written(default) for name, default, _ in Settings.options("service")},
}


def setting_fields(*, first: bool) -> list[tuple[str, object, Option, tuple[str, ...]]]:
    """Return the settings in the form, the first or the others, as they are declared.

    Each with what can be chosen; nothing where it is written.
    """
    return [
        (name, default, option, _choices(default, option))
        for name, default, option in Settings.options("service")
        if option.first == first
    ]


def _choices(default: object, option: Option) -> tuple[str, ...]:
    if option.kind == "switch":
        return SWITCH
    if not option.chosen or option.names is None:
        return ()
    names = option.names()
    return names if default is not None else ("", *names)


_NAME = re.compile(r"[^\x00-\x1f/]{1,200}")
_KINDS = {name: option.kind for name, _, option in Settings.options("service")}


def fields_of(registration: Registration) -> dict[str, str]:
    """Return the form for a new version of a dataset, filled in with the old one.

    The budget is left empty: it belongs to the people and stays as it is. The version that the new
    one replaces is part of the form.
    """
    settings = registration.settings.to_json().items()
    options = {name: _written(value) for name, value in settings}
    presets = {name: plain(registration.presets[name]) for name in PRESETS}
    records = registration.records
    return {
        **EMPTY,
        "name": registration.name,
        "description": registration.description,
        "source": registration.source,
        "schema": registration.schema.to_toml(),
        "records": "any" if records is None else "\n".join(map(str, records)),
        **options,
        **presets,
        "replaces": str(registration.version),
    }


def body_of(form: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """Return the name and the body of a registration, or say what is wrong with the form."""
    name = form.get("name", "")
    if not _NAME.fullmatch(name):
        raise Problem(422, "invalid", "give the dataset a name of 1 to 200 characters, without /")
    given: dict[str, Any] = {
        "schema": schema_table(form.get("schema", "")),
        "source": form.get("source", ""),
        "presets": {preset: form.get(preset, "") for preset in PRESETS},
        "records": _records(form.get("records", "")),
        "description": form.get("description", ""),
        **{name: _option(name, form.get(name, "")) for name, _, _ in Settings.options("service")},
    }
    fields = (("epsilon", "budget"), ("cap", "cap"), ("delta", "budget_delta"))
    budget = {name: form[field] for name, field in fields if form.get(field)}
    if budget and "epsilon" not in budget:
        raise Problem(
            422, "invalid", "give the epsilon of the budget too, or leave all of the budget empty"
        )
    if budget:
        given["budget"] = budget
    try:
        body = DatasetBody.model_validate(given)
    except ValidationError as error:
        raise Problem(422, "invalid", _said(error)) from None
    return name, body.named()


def budget_of(form: dict[str, str]) -> dict[str, str | None]:
    """Return a budget or an allotment; a delta that is left empty stays as it is.

    The cap does not: its field holds the one there is, so who empties it ends it.
    """
    delta: dict[str, str | None] = {"delta": form["delta"]} if form.get("delta") else {}
    return {"epsilon": form.get("epsilon", ""), "cap": form.get("cap") or None} | delta


def schema_table(text: str) -> dict[str, Any]:
    """Read the text of a schema file; a draft that nobody has reviewed is refused."""
    if REVIEW in text:
        raise Problem(
            422,
            "schema",
            "the schema is a draft: parts marked REVIEW were read off the data, and a domain is "
            "public; read each one and delete the marks",
        )
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Problem(422, "schema", f"the schema is not TOML: {error}") from None


def _records(text: str) -> list[str] | str:
    if text.lower() == "any":
        return "any"
    return [line.strip() for line in text.splitlines() if line.strip()]


def _option(name: str, text: str) -> str | int | None:
    if _KINDS[name] == "switch":
        return text == SWITCH[True]
    if not text:
        return None
    if _KINDS[name] == "whole":
        if not (text.isascii() and text.isdigit()) or len(text) > 19:
            raise Problem(422, "invalid", f"{name} must be a whole number, or empty")
        return int(text)
    return text


def _said(error: ValidationError) -> str:
    found = error.errors()[0]
    place = ".".join(str(part) for part in found["loc"])
    return f"{place}: {found['msg']}"[:500]
