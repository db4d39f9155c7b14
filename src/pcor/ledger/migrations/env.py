"""What alembic runs: the missing steps, on the connection and inside the transaction it is given.

Public: the shape of the tables. The caller holds the lock and commits, so tables are upgraded whole
or not at all, and by one process.
"""

from __future__ import annotations

from alembic import context

# Without a configuration somebody only imports this module, to read its documentation.
if hasattr(context, "config"):
    context.configure(**context.config.attributes, transactional_ddl=True)
    context.run_migrations()
