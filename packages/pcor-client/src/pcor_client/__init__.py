"""Ask a service of PCOR for releases; nothing else needs to be installed.

``Client`` is ``pcor.Client``, from the same file, and so is all that it returns. Where the whole
library is installed, that one is used; elsewhere the few modules of it that touch no row, which lie
in the folder ``library`` beside this file and need the standard library alone.
"""

import sys as _sys
from importlib.util import find_spec as _find_spec
from pathlib import Path as _Path

if _find_spec("pcor") is None:
    _sys.path.append(str(_Path(__file__).parent / "library"))

from pcor.client import Client, ServiceError
from pcor.errors import BudgetExceeded, NoValidContext, ParameterError, PcorError, QuestionClosed
from pcor.public.schema import Schema
from pcor.releasing.certificate import Release
from pcor.releasing.plan import Plan

__all__ = [
    "BudgetExceeded",
    "Client",
    "NoValidContext",
    "ParameterError",
    "PcorError",
    "Plan",
    "QuestionClosed",
    "Release",
    "Schema",
    "ServiceError",
]
