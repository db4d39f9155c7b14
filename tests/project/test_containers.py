"""Containers: each line that can be tried without a builder. `make image` does the rest."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml  # type: ignore[import-untyped,unused-ignore]

from pcor.cli.commands import app
from pcor.service import create_app
from tests.helpers.service_world import prepared, settings_for
from tools.image import USER
from tools.packaging import ROOT

CONTAINERFILE = (ROOT / "Containerfile").read_text("utf-8").replace("\\\n", " ")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
KUBERNETES: list[dict[str, Any]] = [
    one
    for name in ("kubernetes.yaml", "kubernetes-init.yaml")
    for one in yaml.safe_load_all((ROOT / "deploy" / name).read_text("utf-8"))
]
PODS = [("Deployment", "service"), ("StatefulSet", "database"), ("Job", "init")]


def lines(word: str) -> list[str]:
    """Return what stands after an instruction of the Containerfile, once for each."""
    return re.findall(rf"^{word}\s+(.+)$", CONTAINERFILE, re.MULTILINE)


def resource(kind: str, name: str) -> dict[str, Any]:
    (found,) = [
        one for one in KUBERNETES if one["kind"] == kind and one["metadata"]["name"] == name
    ]
    return found


def pod(kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = resource(kind, name)["spec"]["template"]["spec"]
    return found


def paths(tmp_path: Path) -> set[str]:
    service, _ = prepared(settings_for(str(tmp_path / "books.db"), tmp_path))
    return set(create_app(service).openapi()["paths"])


SERVE = typer.main.get_command(app).commands["serve"]  # type: ignore[attr-defined]


def options() -> dict[str, str | None]:
    """Return the options of `pcor serve`, each with its variable."""
    command = SERVE.make_context("serve", ["--demo"], resilient_parsing=True).command
    return {
        flag: getattr(one, "envvar", None)
        for one in command.params
        for flag in (*one.opts, one.name)
    }


# -- the image ------------------------------------------------------------------------------------


def test_the_image_is_made_of_files_that_exist_and_that_a_builder_is_given() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    copied = [one for line in lines("COPY") if "--from" not in line for one in line.split()[:-1]]
    for one in copied:
        assert (ROOT / one).exists(), one
        assert f"!{one}" in ignored, one
    assert "*" in ignored
    assert sum(line.startswith("!") for line in ignored) == len(copied)


def test_the_image_runs_as_a_number_that_is_not_root() -> None:
    assert lines("USER") == [USER]
    assert f"--uid {USER}" in CONTAINERFILE
    assert lines("FROM") == ["${BASE} AS build", "${BASE}"]


def test_the_image_installs_optional_parts_that_exist() -> None:
    (installed,) = re.findall(r"'\.\[([^\]]+)\]'", CONTAINERFILE)
    declared = (ROOT / "pyproject.toml").read_text("utf-8")
    for extra in installed.split(","):
        assert re.search(rf"^{extra} = \[", declared, re.MULTILINE), extra


def test_the_health_check_asks_what_the_service_answers(tmp_path: Path) -> None:
    (check,) = re.findall(r"http://127\.0\.0\.1:(\d+)(/[\w/]+)", CONTAINERFILE)
    assert check[0] == lines("EXPOSE")[0]
    assert check[1] in paths(tmp_path)


def test_the_image_itself_says_nothing_about_tables_or_books() -> None:
    """Or `serve --demo`, which brings its own, would be refused in it."""
    assert "PCOR_" not in "\n".join(lines("ENV"))


# -- compose --------------------------------------------------------------------------------------


def test_the_service_is_started_with_words_that_it_knows() -> None:
    said = [shlex.split(line.strip("[]").replace(",", " ")) for line in lines("CMD")]
    said += [COMPOSE["services"]["service"]["command"]]
    said += [pod(*one)["containers"][0]["args"] for one in (PODS[0], PODS[2])]
    for command, *words in said:
        assert command == "serve"
        assert {one for one in words if one.startswith("--")} <= set(options())


@pytest.mark.parametrize("where", ["compose", "kubernetes"])
def test_every_variable_is_one_that_is_read(where: str) -> None:
    known = {name for name in options().values() if name}
    container = pod("Deployment", "service")["containers"][0]
    named = {
        "compose": list(COMPOSE["services"]["service"]["environment"]),
        "kubernetes": [one["name"] for one in container["env"]],
    }[where]
    assert named
    assert set(named) <= known


def test_compose_publishes_nothing_to_others_and_keeps_the_books() -> None:
    service, database = COMPOSE["services"]["service"], COMPOSE["services"]["database"]
    assert all(one.startswith("127.0.0.1:") for one in service["ports"])
    assert "ports" not in database
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["depends_on"]["database"]["condition"] == "service_healthy"
    mounted = {one.partition(":")[0] for part in (service, database) for one in part["volumes"]} - {
        "./tables"
    }
    assert mounted == set(COMPOSE["volumes"])


# -- Kubernetes -----------------------------------------------------------------------------------


def test_probes_ask_what_the_service_answers(tmp_path: Path) -> None:
    container = pod("Deployment", "service")["containers"][0]
    asked = {
        name: container[name]["httpGet"]
        for name in ("startupProbe", "readinessProbe", "livenessProbe")
    }
    assert {one["path"] for one in asked.values()} <= paths(tmp_path)
    # A process that cannot write is not helped by a restart: only readiness asks for the books.
    assert asked["livenessProbe"]["path"] == "/v1/health"
    (port,) = container["ports"]
    assert {one["port"] for one in asked.values()} == {port["name"]}
    assert str(port["containerPort"]) == lines("EXPOSE")[0]
    assert resource("Service", "service")["spec"]["ports"][0]["targetPort"] == port["name"]


@pytest.mark.parametrize(("kind", "name"), PODS)
def test_nobody_in_kubernetes_is_root_or_may_become_it(kind: str, name: str) -> None:
    found = pod(kind, name)
    assert found["securityContext"]["runAsNonRoot"] is True
    assert found["automountServiceAccountToken"] is False
    for container in found["containers"]:
        rights = container["securityContext"]
        assert rights["allowPrivilegeEscalation"] is False
        assert rights["capabilities"] == {"drop": ["ALL"]}
    if name != "database":
        assert str(found["securityContext"]["runAsUser"]) == USER


def test_no_secret_is_written_into_the_example() -> None:
    assert not [one for one in KUBERNETES if one["kind"] == "Secret"]
    secrets = [
        one["valueFrom"]["secretKeyRef"]
        for kind, name in PODS
        for container in pod(kind, name)["containers"]
        for one in container["env"]
        if "valueFrom" in one
    ]
    guide = (ROOT / "docs" / "how-to" / "deploy.md").read_text("utf-8")
    assert {(one["name"], one["key"]) for one in secrets} == {
        ("pcor", "database-password"),
        ("pcor", "database-url"),
    }
    assert all(f"--from-literal={one['key']}=" in guide for one in secrets)


def test_what_is_mounted_is_claimed_and_the_tables_are_only_read() -> None:
    claims = {one["metadata"]["name"] for one in KUBERNETES if "VolumeClaim" in one["kind"]}
    used = {
        volume["persistentVolumeClaim"]["claimName"]
        for kind, name in PODS
        for volume in pod(kind, name)["volumes"]
        if "persistentVolumeClaim" in volume
    }
    assert used == claims == {"books", "secret", "tables"}
    mounts = {
        one["name"]: one for one in pod("Deployment", "service")["containers"][0]["volumeMounts"]
    }
    assert mounts["tables"]["readOnly"] is True
    assert resource("Deployment", "service")["spec"]["strategy"]["type"] == "Recreate"
