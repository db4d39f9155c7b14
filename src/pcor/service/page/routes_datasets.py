"""What owners do to datasets: look, register, set budgets and allotments, close them.

Public: everything here but the name of a file and what of it does not fit, which only owners see.
Everything goes through ``core.owner``, as for the API, so it is in the audit log or the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import Request, Response

from pcor.audit.schema_fit import Misfit
from pcor.errors import PcorError
from pcor.ledger.accounts import read_open
from pcor.public.guarantee import OWNER_ONLY, TITLES
from pcor.public.schema import Schema
from pcor.service.core import owner
from pcor.service.core.inspection import misfits_of
from pcor.service.core.keys import Key, read_keys
from pcor.service.core.problems import Problem, unknown
from pcor.service.core.registry import find_registration
from pcor.service.core.service import Service, of
from pcor.service.core.sources import list_sources
from pcor.service.page.access import Form, Owner, as_problem, field, page_router, see
from pcor.service.page.html import render, url
from pcor.service.page.registration import (
    EMPTY,
    body_of,
    budget_of,
    fields_of,
    schema_table,
    setting_fields,
)
from pcor.service.page.routes_questions import Text

router = page_router()


@router.get("/dataset")
def show_dataset(request: Request, key: Owner, name: Text) -> Response:
    """Return a dataset with its books and what can be done with it."""
    service = of(request)
    registration = service.registration(name)
    books = service.ledger.status(name) if name in service.ledger.datasets() else None
    with service.ledger.database.reading() as connection:
        analysts = sorted({one.name for one in read_keys(connection) if one.role == "analyst"})
    return render(
        request,
        "dataset.html",
        key=key,
        registration=registration,
        public=registration.to_owner(),
        guarantee=TITLES[str(registration.settings.guarantee)],
        books=books,
        analysts=analysts,
    )


@router.post("/dataset/budget")
def set_budget(request: Request, key: Owner, form: Form) -> Response:
    """Set what all may spend together on a dataset."""
    name = field(form, "name")
    field(form, "epsilon")
    owner.set_budget(of(request), key, name, budget_of(form))
    return see(url("/dataset", name=name))


@router.post("/dataset/allotment")
def set_allotment(request: Request, key: Owner, form: Form) -> Response:
    """Set what an analyst may spend on a dataset; this opens it to them."""
    name, analyst = field(form, "name"), field(form, "analyst")
    field(form, "epsilon")
    owner.allot(of(request), key, name, analyst, budget_of(form))
    return see(url("/dataset", name=name))


@router.get("/dataset/close")
def confirm_closing(request: Request, key: Owner, name: Text, analyst: Text) -> Response:
    """Ask whether a dataset is to be closed to an analyst; nothing happens yet."""
    service = of(request)
    service.registration(name)
    with service.ledger.database.reading() as connection:
        found = read_open(connection, name, analyst) if analyst else None
    if found is None:
        raise unknown("allotment")
    return render(request, "close.html", key=key, dataset=name, one=found)


@router.post("/dataset/close")
def close_dataset(request: Request, key: Owner, form: Form) -> Response:
    """Close a dataset to an analyst."""
    name = field(form, "name")
    owner.close(of(request), key, name, field(form, "analyst"))
    return see(url("/dataset", name=name))


@router.get("/register")
def show_form(request: Request, key: Owner, name: Text = "") -> Response:
    """Return the form that registers a dataset, or a new version of one."""
    fields = EMPTY if not name else fields_of(of(request).registration(name))
    return registration_page(request, key, fields, known=bool(name))


@router.post("/register")
def register(request: Request, key: Owner, form: Form) -> Response:
    """Register a dataset; what is wrong is said above the form, which keeps what was written."""
    known = form.get("known") == "yes"
    try:
        name, given = body_of(form)
        taken = _version(of(request), name)
        if taken and form.get("replaces") != str(taken):
            return _confirm(request, key, EMPTY | form, taken)
        owner.register(of(request), key, name, given | {"replaces": taken})
    except (Problem, PcorError) as error:
        refused = as_problem(error)
        if refused.status != 422:
            raise
        return registration_page(request, key, EMPTY | form, known=known, said=refused.detail)
    return see(url("/dataset", name=name))


@router.post("/register/check")
def check_registration(request: Request, key: Owner, form: Form) -> Response:
    """Say what of the file does not fit the schema; nothing is registered."""
    fields, known = EMPTY | form, form.get("known") == "yes"
    try:
        schema = Schema.from_dict(schema_table(fields["schema"]))
        found = misfits_of(of(request), key, fields["source"], schema)
    except (Problem, PcorError) as error:
        refused = as_problem(error)
        return registration_page(
            request, key, fields, known=known, said=refused.detail, status=refused.status
        )
    return registration_page(request, key, fields, known=known, found=found, schema=schema)


def _version(service: Service, name: str) -> int:
    """Return the newest version of a dataset, 0 where there is none."""
    with service.ledger.database.reading() as connection:
        found = find_registration(connection, name)
    return 0 if found is None else found.version


def _confirm(request: Request, key: Key, fields: dict[str, str], taken: int) -> Response:
    """Say that a name is taken, and what registering it again would do."""
    said = (
        f"A dataset {fields['name']} is registered already, as version {taken}. If you go on, this "
        f"becomes version {taken + 1} of it, for all new questions. Its allotments stay, and so "
        "does every part of its budget that you leave empty here. If you meant another dataset, "
        "take another name."
    )
    agreed = fields | {"replaces": str(taken)}
    return registration_page(request, key, agreed, known=False, said=said, status=409)


def registration_page(
    request: Request,
    key: Key,
    fields: dict[str, str],
    *,
    known: bool,
    said: str = "",
    status: int = 422,
    found: Sequence[Misfit] | None = None,
    schema: Schema | None = None,
) -> Response:
    """Return the form that registers a dataset.

    Args:
        request: whose answer it is.
        key: of the owner.
        fields: what stands in it.
        known: whether it is for a new version of a dataset that is named already.
        said: what is wrong with it.
        status: the HTTP status where something is.
        found: what of the file does not fit the schema; ``None`` where nobody looked.
        schema: the one that it was checked against.
    """
    replaces = fields["replaces"]
    return render(
        request,
        "register.html",
        key=key,
        status=status if said else 200,
        fields=fields,
        following=int(replaces[:9]) + 1 if replaces.isascii() and replaces.isdigit() else None,
        settings=setting_fields(first=True),
        more_settings=setting_fields(first=False),
        guarantees=TITLES,
        known=known,
        said=said,
        files=list_sources(of(request).settings.data),
        found=found,
        schema=schema,
        owner_only=OWNER_ONLY,
    )
