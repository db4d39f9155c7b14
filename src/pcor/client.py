"""Client: ask a service for releases, with the library's names.

Public: everything that comes back; the rows stay where the service is. Private: the key, which is
sent to the service alone: no redirect is followed, no proxy is used but over https, and it is in no
message and no repr. Every request for a release carries an Idempotency-Key of its own and is tried
again under the same key, so that a lost connection costs nothing twice.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping
from fractions import Fraction
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from pcor.errors import (
    Amount,
    BudgetExceeded,
    NoValidContext,
    ParameterError,
    PcorError,
    QuestionClosed,
    SignatureError,
    plain,
)
from pcor.public.schema import Schema
from pcor.releasing.certificate import Release
from pcor.releasing.plan import Plan
from pcor.releasing.settings import Settings
from pcor.releasing.signature import check_public_key, check_signature
from pcor.support.ed25519 import PublicKey

# Answers that may be different a little later.
_PASSING = frozenset({429, 502, 503, 504})
# How long a question that costs nothing is repeated while nobody answers, in seconds.
_LOOKING = 10.0
_LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})


class ServiceError(PcorError):
    """The service refused, or cannot be reached."""

    exit_code = 5
    kind = "service"

    def __init__(self, detail: str, *, kind: str = "service", status: int | None = None) -> None:
        super().__init__(detail)
        self.problem, self.status = kind, status


class Client:
    """A service of releases.

    Args:
        url: where the service is, such as https://pcor.example.org.
        key: the API key that its owner gave you.
        timeout: seconds for one request.
        patience: seconds for an answer, all tries and waits together.
        insecure: send the key over plain HTTP to another machine.
        signed_by: take only certificates that are signed with this key, and as they were then.
        sleep: waits; for tests.

    Raises:
        ParameterError: the URL or the key is not one, or the key would be sent in the clear.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 30.0,
        patience: float = 900.0,
        insecure: bool = False,
        signed_by: PublicKey | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ParameterError("url must be like https://pcor.example.org")
        if parts.scheme == "http" and parts.hostname not in _LOCAL and not insecure:
            raise ParameterError(
                "over http:// anybody on the way can read the key; take https://, or say "
                "insecure=True where the network is your own"
            )
        if not key.isascii() or not key.isprintable() or " " in key.strip():
            raise ParameterError("key must be an API key: pcor_...")
        if signed_by is not None:
            check_public_key(signed_by, "signed_by")
        self._url, self._key, self._signed_by = url.rstrip("/"), key.strip(), signed_by
        self._timeout, self._patience, self._sleep = timeout, patience, sleep
        # Over https a proxy passes on what it cannot read; over http it would read the key.
        direct = [ProxyHandler({})] if parts.scheme == "http" else []
        self._opener = build_opener(_NoRedirects, *direct)
        self._registrations: dict[tuple[str, int | None], dict[str, Any]] = {}

    def __repr__(self) -> str:
        return f"<Client of {self._url}>"

    # -- asking ------------------------------------------------------------------------------------

    def release(
        self,
        dataset: str,
        record: int | str,
        epsilon: object = None,
        *,
        preset: str | None = None,
        draw: int = 1,
        key: str | None = None,
    ) -> Release:
        """Release one context in which the record is an outlier; wait until it can be seen.

        The same question again is free and has the same answer.

        Args:
            dataset: its name at the service.
            record: the record's id, or its row number where the schema has no id.
            epsilon: the total cost, up to the largest preset; or
            preset: small, medium or large, as the owner set them.
            draw: another number buys another draw of the same question.
            key: the Idempotency-Key; by default a new one.

        Raises:
            PcorError: the service's refusal or answer, as the library would raise it.
        SignatureError: ``signed_by`` was given, and has not signed this answer.
            ServiceError: the service cannot be reached, or refuses for a reason of its own.
        """
        body = _question(dataset, record, epsilon, preset, draw)
        call = str(uuid.uuid4()) if key is None else key
        until = time.monotonic() + self._patience
        found = self._send("POST", "/v1/releases", body, call=call, until=until)
        while found["state"] != "done":
            if found["state"] == "waiting":  # for its owner, who may take days
                raise ServiceError(str(found["detail"]), kind="source_changed")
            self._wait(found["retry_after"], until, found["id"])
            found = self._send("GET", f"/v1/releases/{quote(found['id'])}", until=until)
        return self._answer(found, record, until)

    def plan(
        self,
        dataset: str,
        record: int | str,
        epsilon: object = None,
        *,
        preset: str | None = None,
    ) -> Plan:
        """Return what a release would do and cost; refused where the release would be. Free."""
        planned = self._send("POST", "/v1/plans", _question(dataset, record, epsilon, preset, 1))
        return self._plan(dataset, None, planned["epsilon_exact"])

    # -- looking -----------------------------------------------------------------------------------

    def datasets(self) -> list[str]:
        """Return the names of the datasets that are open to this key."""
        return [one["name"] for one in self._send("GET", "/v1/datasets")["datasets"]]

    def schema(self, dataset: str) -> Schema:
        """Return the public description of a dataset."""
        return Schema.from_dict(self._registration(dataset, None)["schema"])

    def presets(self, dataset: str) -> dict[str, Fraction]:
        """Return what small, medium and large cost."""
        presets = self._registration(dataset, None)["presets"]
        return _Presets({name: Amount(epsilon) for name, epsilon in presets.items()})

    def left(self, dataset: str) -> Fraction:
        """Return what this key can still spend."""
        return Amount(self._send("GET", f"/v1/datasets/{quote(dataset, safe='')}/budget")["left"])

    def public_key(self) -> PublicKey | None:
        """Return the key with which the service says that it signs, if it does.

        Compare it with the one that you have from the owner by another way.
        """
        told = self._send("GET", "/v1/public-key")["key"]
        return None if told is None else PublicKey(told)

    def history(self, *, limit: int = 100) -> list[dict[str, Any]]:
        """Return what was asked with this key, the newest first."""
        found: list[dict[str, Any]] = self._send("GET", f"/v1/releases?limit={limit:d}")["releases"]
        return found

    def certificate(self, question: str) -> Release:
        """Return an answer of before, by its id in the history. Free.

        Raises:
            PcorError: it was a refusal that was paid for, such as ``NoValidContext``.
            ServiceError: this key asked no such question, or its answer cannot be seen yet.
        """
        found = self._send("GET", f"/v1/releases/{quote(question, safe='')}")
        if found["state"] != "done":
            raise ServiceError("this question has no answer to be seen yet", kind="still_running")
        return self._answer(found, found["record"], time.monotonic() + self._patience)

    def verify(self, certificate: Mapping[str, Any], question: str) -> bool:
        """Tell whether a certificate is, word for word, what the service answered. Free.

        Args:
            certificate: what ``Release.to_dict()`` returned, or was read from a .json file.
            question: its id in the history; an owner's key finds everybody's.
        """
        found = self._send("GET", f"/v1/releases/{quote(question, safe='')}")
        return bool(found["state"] == "done" and found["release"] == certificate)

    # -- how ---------------------------------------------------------------------------------------

    def _answer(self, found: Mapping[str, Any], record: int | str, until: float) -> Release:
        error = found["error"]
        if error is not None:
            kinds = {kind.kind: kind for kind in (NoValidContext, QuestionClosed)}
            raise kinds.get(error["kind"], PcorError)(error["detail"])
        if self._signed_by is not None:
            _check_signed(found["release"], record, self._signed_by)
        plan = self._plan(found["dataset"], found["version"], found["epsilon"], until)
        return Release.from_dict(found["release"], plan)

    def _plan(
        self, dataset: str, version: int | None, epsilon: object, until: float | None = None
    ) -> Plan:
        registered = self._registration(dataset, version, until)
        settings = Settings.from_json(registered["options"])
        return settings.plan(Schema.from_dict(registered["schema"]), epsilon)

    def _registration(
        self, dataset: str, version: int | None, until: float | None = None
    ) -> dict[str, Any]:
        # A version never changes; the newest may be another next time.
        if (dataset, version) not in self._registrations or version is None:
            which = "" if version is None else f"?version={version:d}"
            path = f"/v1/datasets/{quote(dataset, safe='')}{which}"
            found = self._send("GET", path, until=until)
            self._registrations[dataset, version] = found
        return self._registrations[dataset, version]

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        call: str | None = None,
        until: float | None = None,
    ) -> dict[str, Any]:
        """Send a request, again and again while what hinders it may pass."""
        if until is None:  # nothing is paid for: say soon that nobody answers
            until = time.monotonic() + min(self._patience, _LOOKING)
        wait = 0.1
        while True:
            try:
                return self._once(method, path, body, call)
            except _TransientFailure as passing:
                pause = wait if passing.after is None else passing.after
                if time.monotonic() + pause > until:
                    raise passing.error from None
                self._sleep(pause)
                wait = min(2 * wait, 10.0)

    def _once(
        self, method: str, path: str, body: Mapping[str, Any] | None, call: str | None
    ) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json"}
        if call is not None:
            headers["Idempotency-Key"] = call
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        request = Request(self._url + path, data, headers, method=method)  # noqa: S310 (checked)
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                return _object(answer.read())
        except HTTPError as refusal:
            with refusal:
                return _refused(refusal.code, refusal.headers.get("Retry-After"), refusal.read())
        except (URLError, HTTPException, OSError) as error:
            reason = type(getattr(error, "reason", error)).__name__
            raise _TransientFailure(
                ServiceError(f"the service at {self._url} cannot be reached ({reason})")
            ) from None

    def _wait(self, seconds: float | None, until: float, name: str) -> None:
        pause = 1.0 if seconds is None else max(0.01, seconds)
        if time.monotonic() + pause > until:
            raise ServiceError(
                f"release {name} is not answered yet; the same question later is free",
                kind="still_running",
            )
        self._sleep(pause)


class _Presets(dict[str, Fraction]):
    """What each preset costs, printed in plain numbers."""

    def __str__(self) -> str:
        return ", ".join(f"{name} {epsilon}" for name, epsilon in self.items())


class _NoRedirects(HTTPRedirectHandler):
    """The key is for this service, not for wherever it sends us."""

    def redirect_request(self, *_: Any) -> None:
        """Follow no redirect."""


class _TransientFailure(Exception):
    """A failure that may pass."""

    def __init__(self, error: ServiceError, after: float | None = None) -> None:
        super().__init__(str(error))
        self.error, self.after = error, after


def _check_signed(certificate: Mapping[str, Any], record: int | str, key: PublicKey) -> None:
    """Raise unless a certificate is signed, and about the record that was asked for."""
    check_signature(certificate, key, "the certificate of this answer")
    if str(certificate["record"]) != str(record):
        raise SignatureError("the certificate of this answer is signed, but of another record")


def _question(
    dataset: str, record: int | str, epsilon: object, preset: str | None, draw: int
) -> dict[str, Any]:
    if (epsilon is None) == (preset is None):
        raise ParameterError("give either epsilon or preset (small, medium, large)")
    cost = {"preset": preset} if epsilon is None else {"epsilon": _written(epsilon)}
    return {"dataset": dataset, "record": record, "draw": draw, **cost}


def _written(epsilon: object) -> str:
    """Write an epsilon so that the service reads it exactly as it was given."""
    return plain(epsilon) if isinstance(epsilon, Fraction) else str(epsilon)


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ServiceError("this is not the answer of a pcor service; is the url right?")
    return found


def _refused(status: int, after: str | None, body: bytes) -> dict[str, Any]:
    """Raise what the service refused with; a request that is running is one to look at."""
    try:
        problem = _object(body)
    except ServiceError:
        problem = {}
    kind, detail = str(problem.get("kind", "service")), str(problem.get("detail", ""))
    if kind == "still_running" and "release" in problem:
        return {
            "state": "running",
            "id": str(problem["release"]),
            "retry_after": problem.get("retry_after"),
        }
    if kind == BudgetExceeded.kind and {"asked", "left"} <= problem.keys():
        refusal = BudgetExceeded(asked=Fraction(problem["asked"]), left=Fraction(problem["left"]))
        refusal.args = (detail,)
        raise refusal
    error = ServiceError(
        detail or f"the service answered with status {status}", kind=kind, status=status
    )
    if status in _PASSING:
        seconds = float(after) if after is not None and after.isdecimal() else None
        raise _TransientFailure(error, seconds)
    raise error
