"""``pip install pcor-client``: the client alone, of the same files, and with nothing beside it."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import pcor
from pcor.client import Client
from tests.helpers.service_world import ANALYST, DATASET, OUTLIER, prepared, served, settings_for
from tests.helpers.waiting import DEADLINE
from tools.packaging import CLIENT, CLIENT_LIMIT_MB, ROOT, build, contents

LIBRARY = "pcor_client/library/"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(CLIENT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the only folder of packages that an interpreter will see."""
    folder = tmp_path_factory.mktemp("packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def alone(installed: Path, code: str, **given: str) -> Any:
    """Run code where nothing but the client is installed; return the JSON that it prints."""
    begin = f"import json, sys\nsys.path.append({str(installed)!r})\ngiven = {given!r}\n"
    ran = subprocess.run(  # noqa: S603 (our own code)
        [sys.executable, "-I", "-S", "-W", "error", "-c", begin + code],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def project(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def test_it_is_small_pure_python_and_requires_nothing(wheel: Path) -> None:
    files = contents(wheel)
    assert wheel.name == f"pcor_client-{pcor.__version__}-py3-none-any.whl"
    assert sum(map(len, files.values())) < CLIENT_LIMIT_MB * 1e6
    metadata = next(files[name] for name in files if name.endswith("/METADATA")).decode()
    assert "Requires-Dist" not in metadata


def test_its_modules_are_those_of_pcor_byte_for_byte(wheel: Path) -> None:
    files = contents(wheel)
    library = {name: files[name] for name in files if name.startswith(LIBRARY)}
    assert f"{LIBRARY}pcor/client.py" in library
    assert not any("/rows/" in name or "/_kernels/" in name for name in library)
    for name, content in library.items():
        assert content == (ROOT / "src" / name.removeprefix(LIBRARY)).read_bytes(), name


def test_it_says_of_itself_what_pcor_says() -> None:
    ours, whole = project(CLIENT), project(ROOT)
    for key in ("version", "license", "requires-python", "authors", "entry-points"):
        assert ours[key] == whole[key], key
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


RELEASE = """
from pcor_client import Client, Release, BudgetExceeded, NoValidContext, Schema
client = Client(given["url"], given["key"])
record = int(given["record"])
planned = client.plan(given["dataset"], record, preset="medium")
released = client.release(given["dataset"], record, preset="medium")
assert isinstance(released, Release) and isinstance(client.schema(given["dataset"]), Schema)
released.save(given["out"])
(question,) = [one["id"] for one in client.history() if one["record"] == record]
assert client.certificate(question) == released
assert client.verify(released.to_dict(), question)
changed = released.to_dict() | {"record": 4}
assert not client.verify(changed, question)
try:
    client.release(given["dataset"], 0, preset="small")
except NoValidContext as refusal:
    refused = str(refusal)
others = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)
print(json.dumps([planned.to_dict(), released.to_dict(), refused, sorted(others)]))
"""


def test_a_release_through_it_is_the_library_s(installed: Path, tmp_path: Path) -> None:
    service, keys = prepared(settings_for(str(tmp_path / "books.db"), tmp_path))
    with served(service) as there:
        planned, released, refused, others = alone(
            installed,
            RELEASE,
            url=there.url,
            key=keys[ANALYST],
            dataset=DATASET,
            record=str(OUTLIER),
            out=str(tmp_path / "certificate.html"),
        )
        client = Client(there.url, keys[ANALYST])
        assert client.plan(DATASET, OUTLIER, preset="medium").to_dict() == planned
        assert client.release(DATASET, OUTLIER, preset="medium").to_dict() == released
    assert others == ["__main__", "pcor", "pcor_client"]
    assert "no context" in refused
    assert "PCOR certificate" in (tmp_path / "certificate.html").read_text()


REST = """
import pcor_client, pcor
try:
    pcor.Table
except ImportError as error:
    said = str(error)
jobs = {"job": ["cook"]}
with_pattern = pcor.Schema(metric="pay", attributes=jobs, id="n", id_pattern="C-[0-9]+")
names = pcor.get_detector("grubbs").describe(), pcor.__version__
print(json.dumps([said, pcor_client.Client is pcor.Client, with_pattern.to_dict(), names]))
"""


def test_what_it_has_not_got_says_where_it_is(installed: Path) -> None:
    said, same, schema, names = alone(installed, REST)
    assert said == "pcor.Table is not part of pcor-client; for all of PCOR: pip install pcor"
    assert same
    assert schema["dataset"]["id_pattern"] == "C-[0-9]+"
    assert names == [pcor.Grubbs().describe(), pcor.__version__]


LETTER = """
import pcor_client, pcor, pathlib
schema = pcor.Schema(metric="pay", attributes={"job": ["cook", "clerk"]})
context = pcor.Context(schema, {"job": ["cook"]})
released = pcor.Release(1, context, pcor.plan(schema, 1), private=True)
said = []
for write in (released.to_letter, lambda: released.save(given["out"], letter=True)):
    try:
        write()
    except pcor.PcorError as error:
        said.append(str(error))
print(json.dumps([said, pathlib.Path(given["out"]).exists()]))
"""


def test_it_writes_no_letters_and_says_what_does(installed: Path, tmp_path: Path) -> None:
    said, written = alone(installed, LETTER, out=str(tmp_path / "letter.html"))
    sentence = (
        "pcor-client writes no letters: pip install 'pcor[letter]', or take \"Download a letter\" "
        "on the page of the service"
    )
    assert said == [sentence, sentence]
    assert not written


def test_beside_the_library_it_is_the_library_s_class(installed: Path) -> None:
    code = "import pcor_client, pcor; print(pcor_client.Client is pcor.Client, pcor.__file__)"
    begin = f"import sys; sys.path.append({str(installed)!r}); "
    ran = subprocess.run(  # noqa: S603 (our own code)
        [sys.executable, "-c", begin + code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["True", pcor.__file__]
