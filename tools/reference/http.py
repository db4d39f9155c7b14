"""The page of the service: every route of its OpenAPI document, and who may call it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from pcor.service.api import roles
from pcor.service.app import ROUTERS
from pcor.service.core import problems
from tools.reference import docstrings, markdown

_INTRO = """
What `pcor serve` answers. Bodies and answers are JSON. A key goes with every request but those for
health, as `Authorization: Bearer pcor_...`; its role says what it may do. A field that is not
declared is refused. The service gives the same as an OpenAPI document at `/openapi.json`. How to
run it: [run the service](../how-to/service.md).
"""

_PROBLEMS = f"""
A refusal is `{problems.MEDIA_TYPE}` (RFC 9457) with the members below. Every route may answer with
any of these; what each `kind` means is in [errors](errors.md).
"""

# In our words: Python's own names for some of them differ from version to version.
_STATUSES = {
    200: "done",
    201: "made",
    202: "taken on; the answer comes later",
    400: "the request cannot be read",
    401: "no key, or not a good one",
    403: "not for this role, or the budget cannot pay",
    404: "there is no such thing, or it is not open to this key",
    405: "the address does not take this method",
    406: "the answer cannot be given in the form asked for",
    409: "the same request is being answered at this moment",
    413: "the body is too large",
    415: "the body is not of the right type",
    422: "something in the request is wrong",
    429: "too many requests, or an audit is running; try again later",
    500: "an internal error, with an id to quote",
    503: "the database cannot be used at this moment; try again later",
}


def page() -> str:
    """Return the page."""
    document = described()
    who = dict(rights())
    routes = [
        _route(method, path, one, who[method, path], document)
        for path, methods in document["paths"].items()
        for method, one in methods.items()
    ]
    return markdown.page("HTTP", _INTRO, _overview(document, who), _common(), *routes)


def described() -> dict[str, Any]:
    """Return the OpenAPI document; the routes need no service for that."""
    app = FastAPI(title="PCOR", version="1")
    for router in ROUTERS:
        app.include_router(router)
    return app.openapi()


def rights() -> Iterator[tuple[tuple[str, str], str]]:
    """Yield each route with the roles that may call it."""
    for router in ROUTERS:
        for route in router.routes:
            if isinstance(route, APIRoute) and route.include_in_schema:
                for method in route.methods or ():
                    yield (method.lower(), route.path), _roles(route)


def _roles(route: APIRoute) -> str:
    for one in route.dependant.dependencies:
        if one.call is roles.identify:
            return "any key"
        if one.call is not None:
            known = inspect.getclosurevars(one.call).nonlocals
            if "roles" in known:
                return ", ".join(known["roles"])
    return "anybody, without a key"


def _title(method: str, path: str) -> str:
    return f"{method.upper()} {path}"


def _overview(document: Mapping[str, Any], who: Mapping[tuple[str, str], str]) -> str:
    rows = []
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            title = _title(method, path)
            first = docstrings.inline(one["description"].split("\n\n")[0])
            linked = markdown.link(f"`{title}`", f"#{markdown.anchor(title)}")
            rows.append([linked, who[method, path], first])
    return markdown.table(["route", "who", "what it does"], rows)


def _common() -> str:
    statuses = [[str(s), _STATUSES[int(s)]] for s in problems.COMMON]
    members = problems.ProblemBody.model_json_schema()["properties"]
    return markdown.section(
        2,
        "Problems",
        _PROBLEMS,
        markdown.table(["member", "type"], [[f"`{m}`", d["type"]] for m, d in members.items()]),
        markdown.table(["status", "meaning"], statuses),
    )


def _route(
    method: str, path: str, one: Mapping[str, Any], who: str, document: Mapping[str, Any]
) -> str:
    told = "\n\n".join(docstrings.inline(part) for part in one["description"].split("\n\n"))
    return markdown.section(
        2,
        _title(method, path),
        told,
        f"For: {who}.",
        _parameters(one),
        _body(one, document),
        _answers(one),
    )


def _parameters(one: Mapping[str, Any]) -> str:
    rows = [
        [
            markdown.code(given["name"]),
            given["in"],
            _type(given["schema"]),
            "required" if given["required"] else _default(given["schema"]),
            docstrings.inline(given.get("description", "")),
        ]
        for given in one.get("parameters", [])
    ]
    return markdown.table(["parameter", "in", "type", "default", "meaning"], rows)


def _body(one: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    if "requestBody" not in one:
        return ""
    schema = one["requestBody"]["content"]["application/json"]["schema"]
    model = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    about = docstrings.inline(model.get("description", ""))
    rows = [
        [
            markdown.code(name),
            _type(field, document),
            "required" if name in model.get("required", ()) else _default(field),
        ]
        for name, field in model["properties"].items()
    ]
    return f"Body: {about}\n\n" + markdown.table(["member", "type", "default"], rows)


def _answers(one: Mapping[str, Any]) -> str:
    """Return the answers that are the route's own."""
    rows = []
    for status, said in sorted(one["responses"].items()):
        common = problems.COMMON.get(int(status))
        if common is None or common["description"] != said["description"]:
            kinds = ", ".join(markdown.code(kind) for kind in said.get("content", {}))
            usual = said["description"] == "Successful Response"
            told = _STATUSES[int(status)] if usual else said["description"]
            rows.append([status, kinds, told])
    return markdown.table(["answer", "content", "meaning"], rows)


def _default(schema: Mapping[str, Any]) -> str:
    given = schema.get("default")
    return "" if given in (None, "") else markdown.code(json.dumps(given))


def _type(schema: Mapping[str, Any], document: Mapping[str, Any] | None = None) -> str:
    """Return a type with its limits, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        fields = (document or {})["components"]["schemas"][name]
        inside = ", ".join(markdown.code(field) for field in fields["properties"])
        return f"object: {inside}"
    if "anyOf" in schema:
        kinds = [_type(one, document) for one in schema["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "const" in schema:
        return markdown.code(json.dumps(schema["const"]))
    if "enum" in schema:
        return " or ".join(markdown.code(json.dumps(value)) for value in schema["enum"])
    words = str(schema["type"])
    if words == "array":
        words += f" of {_type(schema['items'], document)}"
    return words + _limits(schema)


def _limits(schema: Mapping[str, Any]) -> str:
    said = []
    for key, words in (
        ("minimum", ">= {}"),
        ("exclusiveMinimum", "> {}"),
        ("maximum", "<= {}"),
        ("maxLength", "at most {} characters"),
        ("maxItems", "at most {} of them"),
    ):
        if key in schema:
            number = schema[key]
            said.append(words.format(f"{int(number):,}" if number == int(number) else number))
    if "pattern" in schema:
        said.append(f"like {markdown.code(schema['pattern'])}")
    return f" ({', '.join(said)})" if said else ""
