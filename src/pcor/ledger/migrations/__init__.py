"""How older tables of a ledger become the newest, step by step, for alembic."""
