"""The service: owners register datasets, analysts ask for releases, auditors read the books.

Private: the rows, which only ``sources`` and ``drawing`` touch. Everything else here handles
requests, keys, budgets and released certificates, and answers with those alone.
"""

from pcor.service.app import create_app
from pcor.service.settings import Settings

__all__ = ["Settings", "create_app"]
