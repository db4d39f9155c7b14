"""Routes for datasets, their budgets and allotments.

Public: everything that leaves here. Analysts see a dataset while they have an open allotment in it,
and never the name of its file.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from pcor.service.api.models import AllotmentBody, AnalystName, BudgetBody, DatasetBody, DatasetName
from pcor.service.api.roles import Anybody, Asker, Owner
from pcor.service.core import owner, questions
from pcor.service.core.problems import COMMON, unknown
from pcor.service.core.service import of

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], responses=COMMON)


@router.get("")
def list_datasets(request: Request, key: Asker) -> dict[str, Any]:
    """Return the datasets that are open to this key."""
    found = questions.open_datasets(of(request), key)
    return {"datasets": [{"name": one.name, "description": one.description} for one in found]}


@router.get("/{name}")
def get_dataset(
    request: Request,
    key: Asker,
    name: DatasetName,
    version: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> dict[str, Any]:
    """Return a dataset as it is registered: the newest version, or a given one."""
    with of(request).ledger.database.reading() as connection:
        found = questions.open_dataset(connection, key, name, version)
    return found.to_owner() if key.role == "owner" else found.to_public()


@router.put("/{name}")
def register_dataset(
    request: Request, key: Owner, name: DatasetName, body: DatasetBody
) -> dict[str, Any]:
    """Register a dataset, or a new version of one: the people, and their budget, stay."""
    return owner.register(of(request), key, name, body.named()).to_owner()


@router.get("/{name}/budget")
def get_budget(request: Request, key: Anybody, name: DatasetName) -> dict[str, Any]:
    """Return the books of a dataset; an analyst sees what is left to them."""
    service = of(request)
    if key.role == "analyst":
        with service.ledger.database.reading() as connection:
            found = questions.open_dataset(connection, key, name)
        return questions.left_for(service, key, found)
    if name not in service.ledger.datasets():
        raise unknown("dataset")
    return service.ledger.status(name).to_dict()


@router.put("/{name}/budget")
def put_budget(request: Request, key: Owner, name: DatasetName, body: BudgetBody) -> dict[str, Any]:
    """Set what all may spend together; not below what is spent."""
    return owner.set_budget(of(request), key, name, body.named()).to_dict()


@router.put("/{name}/allotments/{analyst}")
def put_allotment(
    request: Request, key: Owner, name: DatasetName, analyst: AnalystName, body: AllotmentBody
) -> dict[str, Any]:
    """Set what an analyst may spend; this opens the dataset to them."""
    return owner.allot(of(request), key, name, analyst, body.named()).to_dict()


@router.delete("/{name}/allotments/{analyst}")
def delete_allotment(
    request: Request, key: Owner, name: DatasetName, analyst: AnalystName
) -> dict[str, Any]:
    """Close a dataset to an analyst; what was spent stays spent, what was paid for readable."""
    return owner.close(of(request), key, name, analyst).to_dict()
