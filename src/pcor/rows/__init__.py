"""From any frame, file or database to cells: read and encoded here, or asked where the rows are.

Private: everything that passes here. Nothing in this package prints or quotes a row; the one
drafts and misfits that an owner reads are made elsewhere (``audit.schema_draft``).
"""

from pcor.rows.engines.databases import Database, database

__all__ = ["Database", "database"]
