"""Loaded once by the server that test processes are forked from: a first release takes a second."""

from tests.helpers.ledger_clients import drawn

drawn()
