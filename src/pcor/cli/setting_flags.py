"""The flags that are derived from declarations: one for each setting, and for each way of writing.

Public: everything here. A context is written as a text and read against the schema. What flags say
about how the table is written stands in for ``[source]`` of its schema.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from pcor.cli.options import context
from pcor.errors import ParameterError
from pcor.public.schema import Schema
from pcor.public.source_format import SourceFormat
from pcor.releasing.options import Interface, Option
from pcor.releasing.settings import Settings
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


@dataclass(frozen=True)
class GivenSource:
    """What the flags say about how the table is written, by the keys of ``[source]``."""

    texts: dict[str, str] = field(default_factory=dict)

    def schema(self, path: Path, *, draft: bool = False) -> Schema:
        """Return the schema of a file, written as the flags say."""
        declared = Schema.from_file(path, draft=draft)
        return declared.written(**self.texts) if self.texts else declared


NO_SOURCE = GivenSource()


def with_settings(interface: Interface) -> Callable[[Command], Command]:
    """Replace the parameter ``given`` by a flag for each setting that an interface offers."""

    def gathered(texts: dict[str, Any]) -> GivenSettings:
        overlap_with = texts.pop("overlap_with", None)
        return GivenSettings(texts, overlap_with)

    return _with_flags("given", list(_flags(interface)), gathered)


def with_source(command: Command) -> Command:
    """Replace the parameter ``source`` by a flag for each key of ``[source]``."""

    def gathered(texts: dict[str, Any]) -> GivenSource:
        return GivenSource({key: text for key, text in texts.items() if text is not None})

    flags = [
        _parameter(name, None, str | None, typer.Option(f"--{name}", help=told))
        for name, told in SourceFormat.options()
    ]
    return _with_flags("source", flags, gathered)(command)


def _with_flags(
    name: str, flags: list[Parameter], gathered: Callable[[dict[str, Any]], object]
) -> Callable[[Command], Command]:
    """Replace a parameter of a command by flags; the command is given what is gathered of them."""

    def decorate(command: Command) -> Command:
        shown = inspect.signature(command, eval_str=True)
        parameters: list[Parameter] = []
        for one in shown.parameters.values():
            parameters += flags if one.name == name else [one]

        @functools.wraps(command)
        def wrapper(**values: Any) -> None:
            texts = {flag.name: values.pop(flag.name) for flag in flags}
            command(**{name: gathered(texts)}, **values)

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
