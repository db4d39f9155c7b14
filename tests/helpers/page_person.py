"""Somebody who opens pages without a browser: a cookie jar and forms."""

from __future__ import annotations

import re
from typing import Any

from tests.helpers.service_world import World


class Person:
    """Somebody with cookies.

    Args:
        place: the service.
        who: whose key to sign in with; nobody's if it is left out.
    """

    def __init__(self, place: World, who: str | None = None) -> None:
        client = type(place.api)
        self.http = client(place.api.app, follow_redirects=False, raise_server_exceptions=False)
        if who is not None:
            signed = self.http.post("/sign-in", data={"key": place.keys[who]})
            assert signed.status_code == 303

    def get(self, path: str, **given: Any) -> Any:
        """Open a page."""
        return self.http.get(path, **given)

    def token(self) -> str:
        """Return the token of the forms of this session."""
        # Every page has the form that signs out, also the one that says "not for this key".
        found = re.search(r'name="token" value="([0-9a-f]{64})"', self.get("/keys").text)
        assert found is not None
        return found[1]

    def post(self, path: str, **fields: str) -> Any:
        """Send a form with its token."""
        return self.http.post(path, data={"token": self.token(), **fields})
