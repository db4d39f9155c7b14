"""From any frame, file or database to cells: read and encoded here, or asked where the rows are.

Private: everything that passes here. Nothing in this package prints or quotes a row; the one
exception is ``fitting``, which is for the owner's eyes and says so.
"""

from pcor.sources.databases import Database, database

__all__ = ["Database", "database"]
