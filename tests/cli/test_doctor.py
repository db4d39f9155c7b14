"""`pcor doctor` says what works here, and fails where a release cannot run."""

from __future__ import annotations

import os

import pytest

from pcor.demo import warm_up
from tests.helpers.command_line import pcor_


def test_doctor_says_that_everything_is_here() -> None:
    ran = pcor_("doctor")
    assert ran.code == 0
    assert "FAIL" not in ran.out
    assert "ok    private draw: works" in ran.out
    assert "ok    releases from made-up rows: work" in ran.out
    assert ran.out.endswith("everything a release needs is here\n")


def test_doctor_as_json() -> None:
    ran = pcor_("doctor", "--json")
    assert ran.json["ok"] is True
    assert {
        *("numpy", "private draw", "system randomness", "detectors"),
        "releases from made-up rows",
    } <= {check["check"] for check in ran.json["checks"]}


def test_doctor_fails_where_a_release_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: int) -> bytes:
        raise NotImplementedError("secret 12345")

    monkeypatch.setattr(os, "urandom", broken)
    ran = pcor_("doctor")
    assert ran.code == 1
    assert "FAIL  system randomness: fails (NotImplementedError)" in ran.out
    assert "secret" not in ran.out + ran.err


def test_doctor_says_how_long_compiling_ahead_took(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "warm_up", lambda: (41, True))
    ran = pcor_("doctor")
    assert "rows: work; compiling their loops, once, took 41 s\n" in ran.out

    def broken() -> tuple[int, bool]:
        raise RuntimeError("secret 12345")

    monkeypatch.setattr(warm_up, "warm_up", broken)
    ran = pcor_("doctor")
    assert ran.code == 1
    assert "FAIL  releases from made-up rows: fail (RuntimeError)" in ran.out
    assert "secret" not in ran.out + ran.err
