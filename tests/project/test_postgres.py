"""The database that other tests use: whoever runs them can start it."""

from __future__ import annotations

import pwd

import psycopg
import pytest

from tests.helpers import postgres


def test_the_server_starts_without_a_program_that_changes_the_user_and_without_its_own_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on a machine with the programs of PostgreSQL and no user ``postgres``."""
    postgres.postgres()
    programs, everybody = postgres._programs(), pwd.getpwall()
    monkeypatch.setattr(postgres, "_programs", lambda: programs)
    monkeypatch.setattr(pwd, "getpwall", lambda: [u for u in everybody if u.pw_name != "postgres"])
    monkeypatch.setenv("PATH", "")
    server = postgres.start_server()
    assert isinstance(server, postgres.Server), server
    try:
        with psycopg.connect(server.new_database()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        server.remove()


def test_why_it_does_not_start_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    postgres.postgres()
    monkeypatch.setattr(postgres, "_users", lambda: [])
    assert "(there is nobody but root to run it)" in str(postgres.start_server())
