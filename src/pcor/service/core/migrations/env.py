"""What alembic runs: the missing steps, on the connection and inside the transaction it is given.

Public: the shape of the tables. The caller holds the lock and commits.
"""

from __future__ import annotations

from alembic import context

from pcor.service.core.tables import VERSION_TABLE

# Without a configuration somebody only imports this module, to read its documentation.
if hasattr(context, "config"):
    context.configure(
        connection=context.config.attributes["connection"],
        version_table=VERSION_TABLE,
        transactional_ddl=True,
    )
    context.run_migrations()
