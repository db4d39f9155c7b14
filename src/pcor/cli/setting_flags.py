"""The flags of the commands that make a release: one for each setting, as it is declared.

Public: everything here. A context is written as a text and read against the schema.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from inspect import Parameter
from typing import Annotated, Any, TypeVar

import typer

from pcor.cli.options import context
from pcor.errors import ParameterError
from pcor.public.schema import Schema
from pcor.releasing.settings import Interface, Option, Settings
from pcor.search.utility import Overlap

Command = TypeVar("Command", bound=Callable[..., None])

# Goes with a utility that compares with a context; a name alone cannot say with which.
OVERLAP_WITH = typer.Option(
    "--overlap-with", help="The context to stay close to, with --utility overlap."
)


@dataclass(frozen=True)
class GivenSettings:
    """What the flags say, as it was written.

    Attributes:
        texts: by the name of the setting.
        overlap_with: the context that the utility compares with.
    """

    texts: dict[str, Any] = field(default_factory=dict)
    overlap_with: str | None = None

    def read(self, schema: Schema) -> Settings:
        """Return the settings; contexts are of this schema."""
        given = dict(self.texts)
        if self.overlap_with is not None:
            if given["utility"] != "overlap":
                raise ParameterError(
                    "--overlap-with goes with --utility overlap; give both or neither"
                )
            given["utility"] = Overlap(context(schema, "--overlap-with", self.overlap_with))
        for name, _, option in Settings.options():
            if option.kind == "context" and given.get(name) is not None:
                given[name] = context(schema, f"--{name}", given[name])
        return Settings(**given)


NO_SETTINGS = GivenSettings()


def with_settings(interface: Interface) -> Callable[[Command], Command]:
    """Replace the parameter ``given`` by a flag for each setting that an interface offers."""

    def decorate(command: Command) -> Command:
        flags = list(_flags(interface))
        shown = inspect.signature(command, eval_str=True)
        parameters: list[Parameter] = []
        for one in shown.parameters.values():
            parameters += flags if one.name == "given" else [one]

        @functools.wraps(command)
        def wrapper(**values: Any) -> None:
            texts = {flag.name: values.pop(flag.name) for flag in flags}
            overlap_with = texts.pop("overlap_with", None)
            command(given=GivenSettings(texts, overlap_with), **values)

        # Typer makes the command's options from these.
        wrapper.__signature__ = shown.replace(parameters=parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {one.name: one.annotation for one in parameters}
        return wrapper  # type: ignore[return-value]

    return decorate


def _flags(interface: Interface) -> Iterator[Parameter]:
    for name, default, option in Settings.options(interface):
        yield _parameter(name, default, _type(default, option), _flag(name, option))
        if name == "utility":
            yield _parameter("overlap_with", None, str | None, OVERLAP_WITH)


def _parameter(name: str, default: object, kind: Any, flag: Any) -> Parameter:
    annotation = Annotated[kind, flag]
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)


def _type(default: object, option: Option) -> Any:
    kind = {"whole": int, "switch": bool}.get(option.kind, str)
    return kind | None if default is None else kind


def _flag(name: str, option: Option) -> Any:
    def begun(incomplete: str) -> list[str]:
        names = () if option.names is None else option.names()
        return [one for one in names if one.startswith(incomplete)]

    flag = f"--{name.replace('_', '-')}"
    if option.kind == "switch":
        return typer.Option(f"{flag}/--no-{flag[2:]}", help=option.help)
    return typer.Option(flag, help=option.help, autocompletion=begun if option.names else None)


# For commands that need nothing else of a release.
DetectorName = Annotated[str | None, next(_flags("release")).annotation.__metadata__[0]]
