"""schemathesis against the service's own OpenAPI document: no 500, no undocumented status."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.helpers.service_routes import ROUTES
from tests.helpers.service_world import World, world

EXAMPLES = 15
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("service")
    with world(str(folder / "books.db"), folder) as made:
        yield made


@pytest.fixture(scope="module")
def document(place: World) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_dict(place.api.get("/openapi.json").json())


@pytest.mark.parametrize(("method", "path"), [route[:2] for route in ROUTES])
def test_nothing_undocumented_comes_of_what_the_document_allows(
    place: World, document: schemathesis.BaseSchema, method: str, path: str
) -> None:
    @given(case=document[path][method].as_strategy())
    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: schemathesis.Case[Any]) -> None:
        sent = case.as_transport_kwargs(base_url="http://testserver")
        sent["headers"] = {**sent["headers"], "Authorization": f"Bearer {place.keys['owner']}"}
        content = sent.pop("data", None)
        del sent["cookies"]  # no route reads one
        answer = place.api.request(content=content, **sent)
        case.validate_response(answer, checks=CHECKS)

    check()
