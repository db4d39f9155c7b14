"""Request: what is asked of a ledger, in one canonical form.

Public: everything here. A request is made from the schema and the analyst's wishes alone, before
any row is looked at. Two spellings of the same question give the same canonical body, so the same
fingerprint: epsilon 0.2 and "1/5", record 17 and "17", a detector and its name.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pcor.errors import UNPRINTABLE, ParameterError, is_printable, plain
from pcor.releasing.amounts import amount
from pcor.releasing.plan import Plan

FORMAT = "pcor-request/1"
LONGEST_NAME = 200


@dataclass(frozen=True)
class Request:
    """A validated question and who pays for it.

    Attributes:
        dataset: whose budget pays: the people, not a version of the file.
        analyst: whose allotment pays.
        key: the name of this request; the same key is the same request.
        epsilon: the cost, exact.
        delta: the slack, exact.
        guarantee: the name of the guarantee.
        body: the question as canonical JSON.
    """

    dataset: str
    analyst: str
    key: str
    epsilon: Fraction
    delta: Fraction
    guarantee: str
    body: str

    @classmethod
    def of(
        cls,
        plan: Plan,
        record: int | str,
        *,
        dataset: str,
        analyst: str,
        key: str | None = None,
        version: str | None = None,
        private: bool = True,
    ) -> Request:
        """Return the request for a planned release.

        Args:
            plan: what would be done; made from the schema alone.
            record: the queried record's key.
            dataset: whose budget pays.
            analyst: whose allotment pays.
            key: by default the fingerprint, so the same question is the same request.
            version: which state of the table is asked, where there are several; a name or number,
                never a hash of the rows.
            private: false for a seeded run, which must not answer for a real one.
        """
        epsilon = amount(plan.bill.epsilon)
        delta = amount(plan.bill.delta, "delta") if plan.bill.delta else Fraction(0)
        body = canonical(
            {
                "format": FORMAT,
                "record": check_record(record),
                "version": None if version is None else check_name("version", version),
                "private": private,
                **_settings(plan),
            }
        )
        return cls(
            check_name("dataset", dataset),
            check_name("analyst", analyst),
            fingerprint(body) if key is None else check_name("key", key),
            epsilon,
            delta,
            plan.guarantee.name,
            body,
        )

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the question."""
        return fingerprint(self.body)

    def to_dict(self) -> dict[str, Any]:
        """Return the question."""
        content: dict[str, Any] = json.loads(self.body)
        return content


def _settings(plan: Plan) -> dict[str, Any]:
    """Return all that decides what is drawn, and with which chances."""
    return {
        "schema_sha256": plan.schema.sha256,
        **plan.settings.described(whole=False),
        "epsilon": plain(plan.bill.epsilon),
        "delta": plain(plan.bill.delta),
    }


def canonical(content: object) -> str:
    """Write JSON in one way only: sorted, without spaces, in ASCII.

    >>> canonical({"b": 1, "a": ["x", 0.5]})
    '{"a":["x",0.5],"b":1}'
    """
    return sorted_json(json.loads(json.dumps(content)))  # names become texts, to be sorted


def sorted_json(content: object) -> str:
    """Write JSON in one way only, where all names are texts already."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def fingerprint(text: str) -> str:
    """Return the SHA-256 of a canonical text."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def canonical_record(record: object) -> int | str:
    """Return a record's key as a certificate spells it: "17" is 17, "017" is a name of its own.

    >>> canonical_record("17"), canonical_record("017"), canonical_record(17)
    (17, '017', 17)
    """
    text = str(record)
    if isinstance(record, bool) or not text or len(text) > LONGEST_NAME:
        raise ParameterError(
            f"a record is named by a whole number or a text of at most {LONGEST_NAME} characters"
        )
    try:
        return int(text) if str(int(text)) == text else text
    except ValueError:
        return text


def check_record(record: object) -> int | str:
    """Return a record's key as a certificate spells it, or refuse what cannot be printed."""
    key = canonical_record(record)
    if not is_printable(str(key)):
        raise ParameterError(f"record: the name {key!r} {UNPRINTABLE}")
    return key


def check_name(what: str, name: object) -> str:
    """Return the name of a dataset, an analyst, a key or a version, or refuse it."""
    fine = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable()
    if not fine or str(name) != str(name).strip():
        raise ParameterError(
            f"{what} must be a text of 1 to {LONGEST_NAME} printable characters, without spaces at "
            "its ends"
        )
    return str(name)
