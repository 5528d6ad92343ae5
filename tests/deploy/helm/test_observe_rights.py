"""The rights of deploy/observe, as kustomize renders them: worker and watcher can only read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.fences.test_rights import OF_WORKER, Right, rights
from tests.deploy.helm.chart import Chart
from tests.deploy.helm.test_same_objects import overlay

Json = dict[str, Any]
READS = {"get", "list", "watch"}


@pytest.fixture
def objects(chart: Chart, tmp_path: Path) -> list[Json]:
    return chart.kustomized(overlay(tmp_path, "observe"))


def held(objects: list[Json], account: str) -> Iterator[Right]:
    """Of every role that is bound to the service account."""
    rules = {(one["kind"], one["metadata"]["name"]): one["rules"] for one in objects if one["kind"].endswith("Role")}
    for one in objects:
        if any(subject.get("name") == account for subject in one.get("subjects", [])):
            yield from rights(rules[one["roleRef"]["kind"], one["roleRef"]["name"]])


@pytest.mark.parametrize("account", ["worker", "watcher"])
def test_no_identity_may_write(account: str, objects: list[Json]) -> None:
    found = set(held(objects, account))
    assert found
    assert {verb for _group, _resource, verb in found} <= READS


def test_the_worker_reads_what_it_reads_otherwise(objects: list[Json]) -> None:
    assert set(held(objects, "worker")) == {right for right in OF_WORKER if right[2] in READS}


def test_nothing_else_differs(chart: Chart, objects: list[Json]) -> None:
    changed = [one for one in objects if one not in chart.kustomized()]
    assert {(one["kind"], one["metadata"]["name"]) for one in changed} == {
        ("ClusterRole", "gpu-portal-worker"),
        ("ClusterRole", "gpu-portal-maintenance"),
    }
