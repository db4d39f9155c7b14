"""How the tables of the service came to be, step by step, for alembic."""
