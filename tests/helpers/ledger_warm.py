"""Loaded once by the server that test processes are forked from: a first release takes a second."""

import gc

from tests.helpers.ledger_clients import drawn

drawn()
gc.freeze()  # no process looks through what was loaded before it
