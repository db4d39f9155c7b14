"""Detectors by name: built in, registered, from a package."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sklearn.neighbors import LocalOutlierFactor

import pcor
from pcor.detectors import detector_names, get_detector, register_detector
from pcor.detectors.base import Detector
from pcor.errors import ParameterError, UnknownName
from pcor.testing import check_detector
from tests.helpers.populations import CROWD, Above, flagged


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lof", pcor.LOF()),
        ("grubbs", pcor.Grubbs()),
        ("histogram", pcor.Histogram()),
        ("lof:k=10,threshold=2.0", pcor.LOF(k=10, threshold=2.0)),
        ("lof: k = 10 , ties = all", pcor.LOF(k=10, ties="all")),
        (
            "grubbs:tail=upper,alpha=0.01,min_population=5",
            pcor.Grubbs(min_population=5, alpha=0.01, tail="upper"),
        ),
        (
            "histogram:rare=0.01,include_maximum=false",
            pcor.Histogram(rare=0.01, include_maximum=False),
        ),
    ],
)
def test_a_name_with_settings_gives_a_detector(name: str, expected: Detector) -> None:
    assert get_detector(name) == expected


def test_a_detector_is_its_own_name() -> None:
    detector = pcor.LOF(k=3)
    assert get_detector(detector) is detector


def test_the_built_in_names_are_known() -> None:
    assert {"lof", "grubbs", "histogram"} <= set(detector_names())


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"unknown detector 'grubs'; did you mean 'grubbs'\?"):
        get_detector("grubs")
    with pytest.raises(UnknownName, match="allowed: grubbs, histogram, lof"):
        get_detector("zzz")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "lof:q=3",
            "'lof' has no setting 'q'; it has: k, threshold, ties, min_population",
        ),
        ("lof:k", "write settings of 'lof' as lof:key=value,key=value"),
        ("rare_bin:edges=0,100,1000", "and quotes: 'rare_bin:edges=0|100|1000'"),
        ("rare_bin:rare=0.1,edges=0, 1e3,min_population=5", "'rare_bin:edges=0|1e3'"),
        ("LOF", "did you mean 'lof'?"),
        ("lof:k=3,", "write settings of 'lof' as lof:key=value,key=value"),
        ("lof:k=three", "k must be a whole number"),
        ("lof:k=1.5", "k must be a whole number"),
        ("grubbs:tail=up", "unknown tail 'up'"),
        ("histogram:rare=nan", "rare must be a share"),
    ],
)
def test_settings_that_do_not_fit_are_refused(name: str, sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        get_detector(name)


@pytest.mark.parametrize("thing", [3, LocalOutlierFactor(), pcor.LOF])
def test_what_is_neither_name_nor_detector_is_refused(thing: Any) -> None:
    with pytest.raises(
        ParameterError, match=r"wrap a .* estimator or a function in pcor\.Estimator"
    ):
        get_detector(thing)


def test_without_a_word_the_detector_is_the_schemas_and_else_the_papers() -> None:
    declared: dict[str, Any] = {"metric": "pay", "attributes": {"job": ["clerk", "cook"]}}
    chosen = pcor.Schema(**declared, release={"detector": "grubbs:alpha=0.01"})
    assert get_detector(None) == get_detector(None, pcor.Schema(**declared)) == pcor.LOF()
    assert get_detector(None, chosen) == pcor.Grubbs(alpha=0.01)
    assert get_detector("histogram", chosen) == pcor.Histogram()


PLUGIN = '''
from dataclasses import dataclass
from typing import ClassVar
from pcor import Detector


@dataclass(frozen=True)
class Above(Detector):
    """A value above a public limit."""

    name: ClassVar[str] = "above"
    limit: float = 1000.0

    def verdicts(self, values, counts):
        return values > self.limit
'''


def test_a_package_adds_a_detector_through_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pcor_plugin_for_this_test.py").write_text(PLUGIN)
    about = tmp_path / "pcor_plugin_for_this_test-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: pcor-plugin-for-this-test\nVersion: 1.0\n"
    )
    (about / "entry_points.txt").write_text(
        "[pcor.detectors]\nabove = pcor_plugin_for_this_test:Above\n"
    )
    assert "above" not in detector_names()
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert "above" in detector_names()
        detector = get_detector("above:limit=300")
        assert type(detector).__module__ == "pcor_plugin_for_this_test"
        assert flagged(detector, CROWD) == {400}
        check_detector(detector)
    finally:
        sys.modules.pop("pcor_plugin_for_this_test", None)


def test_a_package_that_is_installed_while_pcor_runs_is_found_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    assert "late" not in detector_names()
    about = tmp_path / "late-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: late\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[pcor.detectors]\nlate = pcor.detectors.lof:LOF\n")
    assert get_detector("late:k=3") == pcor.LOF(k=3)
    about.rename(tmp_path / "uninstalled")
    with pytest.raises(UnknownName):
        get_detector("late:k=3")


@pytest.fixture
def no_registered_detectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pcor.detectors.registry._registered", {})


@pytest.mark.usefixtures("no_registered_detectors")
def test_a_registered_detector_is_known_by_name() -> None:
    register_detector("over", Above)
    assert "over" in detector_names()
    assert get_detector("over:limit=300") == Above(limit=300)
    check_detector(get_detector("over:limit=300"))


@pytest.mark.usefixtures("no_registered_detectors")
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("over", "'over' needs limit: write over:limit="),
        ("over:limit=3,q=1", "'over' has no setting 'q'; it has: "),
    ],
)
def test_a_registered_detector_without_its_settings_is_refused(name: str, sentence: str) -> None:
    register_detector("over", Above)
    with pytest.raises(ParameterError, match=sentence):
        get_detector(name)


@dataclass(frozen=True)
class Clumsy(Above):
    """A detector that stumbles over its own settings."""

    def __post_init__(self) -> None:
        super().__post_init__()
        len(self.limit)  # type: ignore[arg-type]


@pytest.mark.usefixtures("no_registered_detectors")
def test_what_a_detector_itself_fails_with_is_not_blamed_on_the_names_of_its_settings() -> None:
    register_detector("clumsy", Clumsy)
    with pytest.raises(
        ParameterError, match=r"cannot be made with them \(TypeError\)(?s:.*)object of"
    ):
        get_detector("clumsy:limit=3")
    with pytest.raises(ParameterError, match="'clumsy' needs limit"):
        get_detector("clumsy")
