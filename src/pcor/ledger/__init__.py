"""The ledger: a budget that outlives the process, and every answer that was paid from it.

Public: everything in it. It holds requests, which are made from the schema alone, what they cost,
and the certificates that were released. No row, count, score or unreleased draw is ever written.
"""

from pcor.ledger.accounts import Account, Status
from pcor.ledger.entries import Entry, Head
from pcor.ledger.inclusion import Inclusion
from pcor.ledger.ledger import Ledger
from pcor.ledger.verification import Verification
from pcor.releasing.answers import read_answer
from pcor.releasing.payment import OWNER, Claim
from pcor.releasing.request import Request

__all__ = [
    "OWNER",
    "Account",
    "Claim",
    "Entry",
    "Head",
    "Inclusion",
    "Ledger",
    "Request",
    "Status",
    "Verification",
    "read_answer",
]
