"""From a file in the data folder to a schema: choose, draft, edit, check, go on to register.

Private: drafts and what does not fit; they go to the owner who asked and are kept nowhere. Between
two requests everything is in the form, so it works with any number of processes, and whatever is
refused comes back as it was filled in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Query, Request, Response

from pcor.audit.schema_draft import NO_ID
from pcor.audit.schema_fit import Misfit
from pcor.errors import MetricError, PcorError
from pcor.public.dates import PERIODS
from pcor.public.guarantee import OWNER_ONLY
from pcor.public.schema import Schema
from pcor.public.source_format import SourceFormat
from pcor.service.core.inspection import columns_of, draft_of, misfits_of
from pcor.service.core.keys import Key
from pcor.service.core.problems import Problem
from pcor.service.core.service import of
from pcor.service.core.sources import LONGEST, MOST_LISTED, list_sources
from pcor.service.page import schema_form
from pcor.service.page.access import Form, Owner, as_problem, page_router
from pcor.service.page.html import render
from pcor.service.page.registration import EMPTY
from pcor.service.page.routes_datasets import registration_page
from pcor.service.page.schema_form import (
    FormRefused,
    added_fields,
    draft_fields,
    entry,
    left_out,
    schema_of,
    text_of,
    ticked_columns,
    unreviewed,
    written_of,
)

router = page_router()

TO_REVIEW = "read this part and tick it: it was read off the data, and it becomes public"

Fields = Mapping[str, str]
Source = Annotated[str, Query(max_length=LONGEST)]


@dataclass(frozen=True)
class Check:
    """What came of a look at the fields, for the owner's eyes.

    Attributes:
        said: for each field or part, what is wrong with it; "" is the whole.
        schema: what the fields declare, if that much is right.
        found: what of the file does not fit it; ``None`` where nobody looked.
    """

    said: Mapping[str, str] = field(default_factory=dict)
    schema: Schema | None = None
    found: Sequence[Misfit] | None = None


@router.get("/draft")
def choose(request: Request, key: Owner, source: Source = "") -> Response:
    """Return the files of the data folder, and of a chosen one the columns."""
    return _choice(request, key, {"source": source})


@router.post("/draft")
def draft(request: Request, key: Owner, form: Form) -> Response:
    """Draft a schema for a file, and return it as a form."""
    if "read" in form:  # the file as it is said to be written now
        return _choice(request, key, form)
    metric = form.get("metric", "")
    if not metric:
        said = {"metric": "choose the column that outliers stand out in"}
        return _choice(request, key, form, said=said, status=422)
    try:
        drafted = draft_of(
            of(request),
            key,
            form.get("source", ""),
            metric=text_of(metric),
            id_column=text_of(form["id"]) if form.get("id") else None,
            attributes=ticked_columns(form) or None,
            given=written_of(form),
        )
    except (Problem, PcorError) as error:
        refused = as_problem(error)
        place = "metric" if refused.kind == MetricError.kind else ""
        said = {place: refused.detail}
        return _choice(request, key, form, said=said, status=refused.status)
    return _editor(request, key, draft_fields(drafted, form["source"]), Check())


@router.post("/draft/add")
def add(request: Request, key: Owner, form: Form) -> Response:
    """Draft more columns of the same file, and return the form with them."""
    ticked = [text_of(name) for place, name in left_out(form) if form.get(f"left.{place}.add")]
    if not ticked:
        check = Check({"left": "tick the columns that contexts should speak of too"})
        return _editor(request, key, form, check, status=422)
    try:
        drafted = draft_of(
            of(request),
            key,
            form.get("source", ""),
            metric=text_of(form.get("metric.column", "")),
            id_column=None,
            attributes=ticked,
            given=written_of(form),
        )
    except (Problem, PcorError) as error:
        refused = as_problem(error)
        return _editor(request, key, form, Check({"left": refused.detail}), refused.status)
    return _editor(request, key, added_fields(form, drafted), Check())


@router.post("/draft/check")
def check(request: Request, key: Owner, form: Form) -> Response:
    """Say what is wrong with the fields, or what of the file does not fit them."""
    checked, status = _checked(request, key, form)
    return _editor(request, key, form, checked, status)


@router.post("/draft/done")
def finish(request: Request, key: Owner, form: Form) -> Response:
    """Go on to register, once every part is reviewed and the file fits."""
    waiting = dict.fromkeys(unreviewed(form), TO_REVIEW)
    if waiting:
        try:
            schema_of(form)
        except FormRefused as refused:
            waiting |= refused.said
        return _editor(request, key, form, Check(waiting), status=422)
    checked, status = _checked(request, key, form)
    if checked.schema is None or checked.found is None or any(one.refused for one in checked.found):
        return _editor(request, key, form, checked, max(status, 422))
    schema = checked.schema
    fields = {"name": schema.name, "source": form["source"], "schema": schema.to_toml()}
    return registration_page(
        request, key, EMPTY | fields, known=False, found=checked.found, schema=schema
    )


def _checked(request: Request, key: Key, form: Fields) -> tuple[Check, int]:
    """Check the fields and then the file against them; return that with the HTTP status."""
    try:
        schema = schema_of(form)
    except FormRefused as refused:
        return Check(refused.said), 422
    try:
        found = misfits_of(of(request), key, form.get("source", ""), schema)
    except (Problem, PcorError) as error:
        problem = as_problem(error)
        return Check({"": problem.detail}, schema), problem.status
    return Check({}, schema, found), 200


def _choice(
    request: Request,
    key: Key,
    form: Fields,
    *,
    said: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    """Return the page on which a file and the roles of its columns are chosen."""
    service, said = of(request), dict(said or {})
    columns: list[str] = []
    if form.get("source"):
        try:
            columns = columns_of(service, form["source"], written_of(form))
        except (Problem, PcorError) as error:
            refused = as_problem(error)
            said, status = {"": refused.detail, **said}, refused.status
    files = list_sources(service.settings.data)
    return render(
        request,
        "draft_choice.html",
        key=key,
        status=status,
        fields=form,
        files=files,
        more=len(files) == MOST_LISTED,
        columns=[entry(name) for name in columns],
        ticked={entry(name) for name in ticked_columns(form)},
        written=list(SourceFormat.options()),
        said=said,
        owner_only=OWNER_ONLY,
    )


def _editor(
    request: Request, key: Key, form: Fields, checked: Check, status: int = 200
) -> Response:
    """Return the page with the fields of a schema, and what is to be said of each."""
    return render(
        request,
        "draft.html",
        key=key,
        status=status,
        fields=form,
        numbers=schema_form.numbers(form),
        left=left_out(form),
        said=checked.said,
        schema=checked.schema,
        found=checked.found,
        misfits=_by_part(form, checked.found or ()),
        waiting=len(unreviewed(form)),
        written=list(SourceFormat.options()),
        words=schema_form,
        periods={period: period for period in PERIODS},
        no_id="" if form.get("id") else NO_ID,
        owner_only=OWNER_ONLY,
    )


def _by_part(form: Fields, found: Sequence[Misfit]) -> dict[str, list[str]]:
    """Return what does not fit, by the part of the form that its column has; "" has the rest."""
    parts = {text_of(form[f"{number}.name"]): number for number in schema_form.numbers(form)}
    parts[text_of(form.get("metric.column", ""))] = "metric"
    said: dict[str, Any] = {}
    for misfit in found:
        said.setdefault(parts.get(misfit.column, ""), []).append(str(misfit))
    return said
