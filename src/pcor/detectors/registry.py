"""Detectors by name. Other packages add theirs through the entry point group ``pcor.detectors``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from pcor.detectors.base import Detector
from pcor.errors import ParameterError, UnknownName

GROUP = "pcor.detectors"

_registered: dict[str, Callable[..., Detector]] = {}


def register_detector(name: str, factory: Callable[..., Detector]) -> None:
    """Make a detector known under a name, for this process."""
    _registered[name] = factory


def detector_names() -> list[str]:
    """Return every name that ``get_detector`` takes."""
    return sorted({*_registered, *(point.name for point in entry_points(group=GROUP))})


def get_detector(detector: str | Detector) -> Detector:
    """Return a detector from its name, or from a name with settings.

    >>> get_detector("lof:k=10,threshold=2.0")
    LOF(min_population=21, k=10, threshold=2.0, ties='lower')
    """
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
    for point in entry_points(group=GROUP):
        if point.name == name:
            factory: Callable[..., Detector] = point.load()
            return factory
    raise UnknownName("detector", name, detector_names())


def _built(name: str, factory: Callable[..., Detector], settings: dict[str, Any]) -> Detector:
    try:
        return factory(**settings)
    except TypeError:
        parameters = inspect.signature(factory).parameters
        allowed = ", ".join(parameters)
        needed = [p for p in parameters.values() if p.default is p.empty and p.name not in settings]
        if needed:
            raise ParameterError(
                f"detector {name!r} needs {needed[0].name}: write {name}:{needed[0].name}=..."
            ) from None
        raise ParameterError(
            f"detector {name!r} does not take these settings; it has: {allowed}"
        ) from None


def _settings(name: str, text: str) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for part in text.split(",") if text else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ParameterError(f"write settings of {name!r} as {name}:key=value,key=value")
        settings[key] = _read(value)
    return settings


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
