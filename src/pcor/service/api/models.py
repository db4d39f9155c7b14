"""The bodies of requests, with a limit on every field.

Public: everything here. What is not declared is refused, so a misspelt field is never ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, create_model

from pcor.releasing.options import Option
from pcor.releasing.settings import Settings

LONGEST = 200

Name = Annotated[str, Field(min_length=1, max_length=LONGEST)]
AmountField = (
    Annotated[StrictStr, Field(min_length=1, max_length=100)]
    | Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False, strict=True)]
    | Annotated[StrictInt, Field(gt=0, le=10**9)]
)
Record = (
    Annotated[StrictInt, Field(ge=-(10**18), le=10**18)]
    | Annotated[StrictStr, Field(min_length=1, max_length=LONGEST)]
)

# Not U+FFFD, which stands for bytes that are no text: several names would become one.
_NAME = r"^[^\x00-\x1f/\ufffd]+$"
DatasetName = Annotated[str, Path(min_length=1, max_length=LONGEST, pattern=_NAME)]
AnalystName = Annotated[str, Path(min_length=1, max_length=LONGEST, pattern=_NAME)]
Identifier = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Limit = Annotated[int, Query(ge=1, le=1000)]
After = Annotated[int, Query(ge=0, le=2**31 - 1)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class QuestionBody(_Body):
    """A question. Give a preset, or an epsilon from the smallest to the largest preset."""

    dataset: Name
    record: Record
    preset: Literal["small", "medium", "large"] | None = None
    epsilon: AmountField | None = None
    draw: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] = 1


class PresetsBody(_Body):
    """Three epsilons, rising."""

    small: AmountField
    medium: AmountField
    large: AmountField


class AllotmentBody(_Body):
    """What an analyst may spend. A delta that is not named stays as it is; null ends it."""

    epsilon: AmountField
    delta: AmountField | None = None

    def named(self) -> dict[str, Any]:
        """Return what was named."""
        return self.model_dump(exclude_unset=True)


class BudgetBody(AllotmentBody):
    """What may be spent. A delta or a cap that is not named stays as it is; null ends it."""

    cap: AmountField | None = None


class _Dataset(_Body):
    declared: Annotated[dict[str, Any], Field(alias="schema")]
    source: Annotated[str, Field(min_length=1, max_length=500)]
    presets: PresetsBody
    records: Annotated[list[Record], Field(max_length=100_000)] | Literal["any"]
    budget: BudgetBody | None = None
    description: Annotated[str, Field(max_length=2000)] = ""


def _type(default: object, option: Option) -> Any:
    """Return what a setting may be in the body of a request."""
    if option.kind == "amount":
        kind: Any = AmountField
    elif option.kind == "switch":
        kind = StrictBool
    elif option.kind == "whole":
        kind = Annotated[int, Field(ge=option.least, le=option.most, strict=True)]
    else:
        kind = Literal[option.names()] if option.only and option.names else Name
    return kind | None if default is None else kind


def settings_fields() -> dict[str, Any]:
    """Return the settings that an owner gives, as they are declared: name -> type and default."""
    return {
        name: (_type(default, option), default)
        for name, default, option in Settings.options("service")
    }


if TYPE_CHECKING:
    _SettledDataset = _Dataset
else:
    _SettledDataset = create_model("_SettledDataset", __base__=_Dataset, **settings_fields())


class DatasetBody(_SettledDataset):
    """A dataset: schema, source, guarantee, presets, who may be asked about, budget.

    ``replaces`` is the version that is the newest, 0 where there is none: if it is another by then,
    the registration is refused.
    """

    replaces: Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)] | None = None

    def named(self) -> dict[str, Any]:
        """Return the registration, with what was named of its budget."""
        budget = None if self.budget is None else self.budget.named()
        return self.model_dump(by_alias=True) | {"budget": budget}


class KeyBody(_Body):
    """A new key."""

    role: Literal["owner", "analyst", "auditor"]
    name: Name
    days: Annotated[int, Field(ge=1, le=3660, strict=True)] = 90
