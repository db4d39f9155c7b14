"""Detectors by name. Other packages add theirs through the entry point group ``pcor.detectors``."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any

from pcor.detectors.base import Detector
from pcor.errors import ParameterError, UnknownName
from pcor.public.schema import Schema

# What the paper judges by first; for a dataset whose schema says nothing else.
USUAL = "lof"

GROUP = "pcor.detectors"

_registered: dict[str, Callable[..., Detector]] = {}


def register_detector(name: str, factory: Callable[..., Detector]) -> None:
    """Make a detector known under a name, for this process.

    Args:
        name: what to write after ``--detector`` or as ``detector=``.
        factory: a ``pcor.Detector`` class, or a function that makes one of its settings.

    Raises:
        ParameterError: the name is not one word, or the factory cannot be called.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ParameterError("name must be one word of letters, digits and _, such as 'mad'")
    if not callable(factory):
        raise ParameterError(
            "factory must be a pcor.Detector class or a function that returns a pcor.Detector"
        )
    _registered[name] = factory


def detector_names() -> list[str]:
    """Return every name that ``get_detector`` takes."""
    return sorted({*_registered, *(point.name for point in _announced())})


def get_detector(detector: str | Detector | None, schema: Schema | None = None) -> Detector:
    """Return a detector from its name, or from a name with settings.

    ``None`` stands for the detector of the dataset: the one that its schema declares under
    [release], or else the paper's, LOF.

    >>> get_detector("lof:k=10,threshold=2.0")
    LOF(min_population=21, k=10, threshold=2.0, ties='lower')

    Raises:
        UnknownName: no detector has this name.
        ParameterError: a setting is missing, unknown or out of range.
    """
    if detector is None:
        detector = USUAL if schema is None else schema.release.get("detector", USUAL)
    if isinstance(detector, Detector):
        return detector
    if not isinstance(detector, str):
        raise ParameterError(
            "detector must be a name or a pcor.Detector; wrap a scikit-learn or PyOD estimator or "
            "a function in pcor.Estimator"
        )
    name, _, settings = detector.partition(":")
    return _built(name, detector_factory(name), _settings(name, settings))


def detector_factory(name: str) -> Callable[..., Detector]:
    """Return what makes the detector of a name; some cannot be made without settings."""
    if name in _registered:
        return _registered[name]
    announced = {point.value: point for point in _announced().select(name=name)}
    if not announced:
        raise UnknownName("detector", name, detector_names())
    if len(announced) > 1:
        raise ParameterError(
            f"several packages announce a detector {name!r} ({', '.join(sorted(announced))}); "
            "uninstall all but one, or give the detector itself in Python"
        )
    return _loaded(*announced.values())


def _announced() -> EntryPoints:
    """Return what the installed packages announce."""
    return _announced_in(tuple((place, _last_change(place or ".")) for place in sys.path))


# It opens a file of every installed package: 15 ms where there are 200, for each release by a
# detector's name. A package that comes or goes changes the folder that it is in.
@lru_cache(maxsize=1)
def _announced_in(places: tuple[tuple[str, int | None], ...]) -> EntryPoints:
    del places
    return entry_points(group=GROUP)


def _last_change(place: str) -> int | None:
    with suppress(OSError):
        return os.stat(place).st_mtime_ns
    return None


def _loaded(point: EntryPoint) -> Callable[..., Detector]:
    try:
        factory: Callable[..., Detector] = point.load()
    except Exception as error:  # another package's: whatever it is, the user needs its name
        package = "an installed package" if point.dist is None else f"package {point.dist.name!r}"
        broken = ParameterError(
            f"detector {point.name!r} is announced by {package} and cannot be loaded from "
            f"{point.value!r} ({type(error).__name__}); repair or uninstall that package"
        )
        broken.add_note(str(error))  # another package's words: for the owner
        raise broken from error
    return factory


def _built(name: str, factory: Callable[..., Detector], settings: dict[str, Any]) -> Detector:
    try:
        made = factory(**settings)
    except TypeError as error:
        _check_settings(name, inspect.signature(factory), settings)
        refused = ParameterError(
            f"detector {name!r} takes these settings and cannot be made with them "
            f"({type(error).__name__}); give others, or tell its authors"
        )
        refused.add_note(str(error))
        raise refused from error
    if not isinstance(made, Detector):
        raise ParameterError(
            f"what is known as detector {name!r} made no pcor.Detector; it must be a subclass of "
            "pcor.Detector, or a function that returns an object of one"
        )
    return made


def _check_settings(name: str, signature: inspect.Signature, settings: dict[str, Any]) -> None:
    """Refuse settings that a detector does not have, or without one that it needs."""
    with suppress(TypeError):
        signature.bind(**settings)
        return
    parameters = signature.parameters
    needed = [p for p in parameters.values() if p.default is p.empty and p.name not in settings]
    if needed:
        raise ParameterError(
            f"detector {name!r} needs {needed[0].name}: write {name}:{needed[0].name}=..."
        ) from None
    strange = ", ".join(repr(key) for key in settings if key not in parameters)
    raise ParameterError(
        f"detector {name!r} has no setting {strange}; it has: {', '.join(parameters)}"
    ) from None


def _settings(name: str, text: str) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for part in text.split(",") if text else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ParameterError(
                f"write settings of {name!r} as {name}:key=value,key=value{_bars(name, text)}"
            )
        settings[key] = _read(value)
    return settings


def _bars(name: str, text: str) -> str:
    """Return how to write a setting of several numbers that were separated by commas."""
    listed = re.search(r"(\w+)=([-+.\w]+(?:,\s*[-+.\d][-+.\w]*)+)\s*(?:,|$)", text)
    if listed is None:
        return ""
    values = "|".join(value.strip() for value in listed[2].split(","))
    return f"; several numbers have bars between them, and quotes: '{name}:{listed[1]}={values}'"


def _read(value: str) -> Any:
    words = {"true": True, "false": False}
    if value.lower() in words:
        return words[value.lower()]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
