"""How older tables of the service become the newest: one module per step, for alembic."""
