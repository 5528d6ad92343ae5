"""Before a container of docker-compose.yml starts: the order, the images, and what the machine needs."""

from __future__ import annotations

import argparse
import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from devcluster.compose import composed, engine, stand_ins
from devcluster.compose.order import COMPLETED, HEALTHY, awaited, start_order, stays_up
from devcluster.demo import command
from devcluster.processes.console import UserError
from tests.support.shipped import ROOT, compose

SERVICES = compose()["services"]


def test_every_service_starts_after_what_it_waits_for() -> None:
    order = start_order(SERVICES)

    assert sorted(order) == sorted(SERVICES)
    for name in order:
        assert set(awaited(SERVICES[name])) <= set(order[: order.index(name)]), name


def test_only_conditions_that_are_checked_are_used() -> None:
    used = {condition for body in SERVICES.values() for condition in awaited(body).values()}

    assert used == {HEALTHY, COMPLETED}
    assert {name for name, body in SERVICES.items() if not stays_up(body)} == {"migrate"}


def test_each_image_that_is_not_built_has_one_stand_in_that_says_so() -> None:
    built = {body["image"] for body in SERVICES.values() if "build" in body}
    pulled = {body["image"] for body in SERVICES.values()} - built

    known = stand_ins.stand_ins(Path("/caddy"))

    assert {image.partition(":")[0] for image in pulled} == set(known)
    for image in pulled:
        text = known[image.partition(":")[0]].dockerfile(image)
        assert f'LABEL stand-in="not {image}"' in text
        assert text.startswith("FROM real.node/python:1\n")


def test_one_service_builds_the_image_and_no_other_pulls_it() -> None:
    [name] = {name for name, body in SERVICES.items() if "build" in body}
    shared = {other: body for other, body in SERVICES.items() if body["image"] == SERVICES[name]["image"]}

    assert len(shared) == 6
    assert {body["pull_policy"] for body in shared.values()} == {"never"}
    assert start_order(shared | {"postgres": {}, "redis": {}}).index(name) < min(
        start_order(SERVICES).index(other) for other in shared if other != name
    )


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("postgres:18.6-trixie", "library/postgres:18.6-trixie"),
        ("valkey/valkey:8.1.11-alpine", "valkey/valkey:8.1.11-alpine"),
    ],
)
def test_names_without_a_folder_are_dockers_own(image: str, full: str) -> None:
    assert composed.full_name(image) == full


@pytest.mark.parametrize("script", sorted(stand_ins.SCRIPTS.glob("*.sh")), ids=lambda path: path.name)
def test_entry_points_are_valid_for_a_plain_shell(script: Path) -> None:
    assert subprocess.run(["sh", "-n", script], check=False).returncode == 0


def test_the_configuration_of_podman_is_its_own(tmp_path: Path) -> None:
    files = engine.configuration(tmp_path, bases="/var/lib/containers/storage")

    containers, storage = (tomllib.loads(files[name]) for name in ("containers.conf", "storage.conf"))
    assert storage["storage"]["graphroot"] == f"{tmp_path}/store"
    assert containers["network"] == {"network_backend": "netavark", "network_config_dir": f"{tmp_path}/networks"}


def test_without_root_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UserError, match="needs root"):
        engine.check()


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.machine, "missing", lambda: "")
    monkeypatch.setattr(engine.shutil, "which", lambda program, path: None if program == "aardvark-dns" else program)
    assert engine.missing().endswith("apt-get install aardvark-dns.")


def test_the_copy_of_the_tree_has_no_secrets_but_all_code() -> None:
    ours = [".dockerignore", "deploy", "docker-compose.yml"]
    private = [".env", ".git", ".venv", "secrets"]
    assert composed.not_copied(str(ROOT), [*private, *ours]) == set(private)
    assert composed.not_copied(str(ROOT / "workloads" / "credentials"), ["secrets", "__pycache__"]) == {"__pycache__"}


@pytest.mark.parametrize(
    ("beside", "sentence"),
    [
        ({"check": False}, "run to be checked"),
        ({"deployed": True}, "from docker-compose.yml or from deploy/"),
        ({"kubeconfig": Path("/kubeconfig")}, "part of the embedded cluster"),
    ],
)
def test_options_that_exclude_each_other(beside: dict[str, object], sentence: str) -> None:
    given = {"compose": True, "check": True, "deployed": False, "kubeconfig": None, "hardware": "", "real_node": False}
    arguments = argparse.Namespace(scenario="", **(given | beside))
    with pytest.raises(UserError, match=sentence):
        command.demo(arguments)
