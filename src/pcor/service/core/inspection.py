"""Look into a file before it is registered: its columns, a draft of a schema, what does not fit.

Private: everything that comes back. It is for the owner who asks, and is kept nowhere; that
somebody looked is in the audit log, without the name of the file, which auditors do not see.
A file is read as a whole, so a process looks into one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pcor.audit.schema_draft import SchemaDraft, draft
from pcor.audit.schema_fit import Misfit, misfits
from pcor.audit.source_guess import guess_layout
from pcor.errors import LedgerError, ParameterError, PcorError, SourceError
from pcor.public.guarantee import OWNER_ONLY
from pcor.public.schema import Schema
from pcor.rows.columns import column_names
from pcor.service.core.keys import Key
from pcor.service.core.owner import note_event
from pcor.service.core.problems import Problem, to_owner
from pcor.service.core.service import Service
from pcor.service.core.sources import find_listed

# Bytes of a file that is drafted from: all of its columns are in memory at once.
LARGEST_DRAFTED = 1 << 30

# Another look at the same time would need as much memory again.
_busy = threading.Lock()


def columns_of(service: Service, source: str, given: Mapping[str, str]) -> list[str]:
    """Return the names of the columns of a file in the data folder.

    Args:
        service: whose.
        source: the file, relative to the data folder.
        given: what is known of how it is written, as ``[source]`` says it; the rest is guessed.
    """
    with _looking_into(service, source) as path:
        return column_names(path, guess_layout(path, given))


def draft_of(
    service: Service,
    key: Key,
    source: str,
    *,
    metric: str,
    id_column: str | None,
    attributes: Sequence[str] | None,
    given: Mapping[str, str],
) -> SchemaDraft:
    """Return a draft of a schema for a file, with what was noticed."""
    with _looking_into(service, source) as path:
        if path.stat().st_size > LARGEST_DRAFTED:
            raise SourceError(
                f"the file is larger than {LARGEST_DRAFTED >> 30} GiB, and the page drafts from "
                "smaller ones only; draft with `pcor schema init`, and register with that schema"
            )
        note_event(service, "schema_drafted", key, {})
        return draft(path, metric=metric, attributes=attributes, id_column=id_column, given=given)


def misfits_of(service: Service, key: Key, source: str, schema: Schema) -> list[Misfit]:
    """Return what of a file does not fit a schema."""
    with _looking_into(service, source) as path:
        note_event(service, "schema_checked", key, {})
        return misfits(path, schema)


@contextmanager
def _looking_into(service: Service, source: str) -> Iterator[Path]:
    """Give the path of a file, alone; a refusal names it as the owner does.

    Its notes, which the API leaves out, become part of what is said: only owners get here.
    """
    path = find_listed(service.settings.data, source)
    if not _busy.acquire(blocking=False):
        raise Problem(429, "busy", "another file is being read; try again when that is over")
    try:
        yield path
    except LedgerError:  # the audit log could not be written
        raise
    except PcorError as error:
        said = [error.at("service"), *getattr(error, "__notes__", ())]
        words = "; ".join(said).replace(f"{OWNER_ONLY} ", "").replace(str(path), source)
        raise to_owner(error, words) from None
    except OSError:
        raise ParameterError("source cannot be read by the service") from None
    finally:
        _busy.release()
