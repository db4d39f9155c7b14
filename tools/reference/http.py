"""The routes of the service: all of its OpenAPI document, and who may call them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from pcor.service.api import roles
from pcor.service.app import ROUTERS
from pcor.service.core import problems
from tools.reference import docstrings, json_types, markdown

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


def overview() -> str:
    """Return a line for each route."""
    rows = [
        [_linked(title), who, docstrings.inline(one["description"].split("\n\n")[0])]
        for title, who, one in _operations()
    ]
    return markdown.table(["route", "who", "what it does"], rows)


def members() -> str:
    """Return the members of a refusal."""
    declared = problems.ProblemBody.model_json_schema()["properties"]
    rows = [[markdown.code(name), json_types.told(one)] for name, one in declared.items()]
    return markdown.table(["member", "type"], rows)


def statuses() -> str:
    """Return the refusals that any route may answer with."""
    rows = [[str(status), _STATUSES[int(status)]] for status in problems.COMMON]
    return markdown.table(["status", "meaning"], rows)


def routes() -> str:
    """Return what every route takes and answers."""
    return "\n\n".join(
        markdown.section(
            2,
            title,
            "\n\n".join(map(docstrings.inline, one["description"].split("\n\n"))),
            f"For: {who}.",
            _parameters(one),
            _body(one),
            _answers(one),
        )
        for title, who, one in _operations()
    )


def _operations() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield each route: its title, who may call it, and what the document says of it."""
    who = dict(rights())
    for path, methods in described()["paths"].items():
        for method, one in methods.items():
            yield f"{method.upper()} {path}", who[method, path], one


def _linked(title: str) -> str:
    return markdown.link(f"`{title}`", f"#{markdown.anchor(title)}")


@cache
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


def _parameters(one: Mapping[str, Any]) -> str:
    rows = [
        [
            markdown.code(given["name"]),
            given["in"],
            json_types.told(given["schema"]),
            "required" if given["required"] else _default(given["schema"]),
            docstrings.inline(given.get("description", "")),
        ]
        for given in one.get("parameters", [])
    ]
    return markdown.table(["parameter", "in", "type", "default", "meaning"], rows)


def _body(one: Mapping[str, Any]) -> str:
    if "requestBody" not in one:
        return ""
    declared = described()["components"]["schemas"]
    model = declared[
        json_types.name_of(one["requestBody"]["content"]["application/json"]["schema"])
    ]
    rows = [
        [
            markdown.code(name),
            json_types.told(field, declared),
            "required" if name in model.get("required", ()) else _default(field),
        ]
        for name, field in model["properties"].items()
    ]
    about = docstrings.inline(model["description"])
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
