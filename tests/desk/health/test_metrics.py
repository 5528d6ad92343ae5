"""Prometheus metrics that need classes, runs and nodes: an unknown value has no sample."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Certificate, Cluster, MirrorEpoch, MirrorNode
from desk.health.metrics import families
from portal.ops import metrics
from tenants.models import Namespace
from tests.support.http.metrics import figures
from tests.support.rows import make, mirrored, running
from workloads.models import Run

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).parents[3]


def waited(namespace: Namespace, gpu_class: GpuClass, by: User, name: str, seconds: int, **columns: Any) -> None:
    """A run that was admitted a minute ago after the given wait."""
    found = running.workload(namespace, gpu_class, name=name, by=by)
    admitted_at = columns.pop("admitted_at", timezone.now() - timedelta(minutes=1))
    Run.objects.filter(workload=found).update(
        requested_at=admitted_at - timedelta(seconds=seconds), admitted_at=admitted_at, **columns
    )


def test_free_units_are_those_of_the_nodes(a100: GpuClass, namespace_a: Namespace) -> None:
    pods = [mirrored.pod("p", node="a100-1", namespace=namespace_a.name, gpu_class=a100.slug, **{"nvidia.com/gpu": 2})]
    mirrored.hardware_seen(a100.cluster, Pod=pods)
    before = figures()["portal_class_free_units", a100.slug]
    mirrored.hardware_seen(a100.cluster)
    assert figures()["portal_class_free_units", a100.slug] == before + 2


def test_free_units_are_unknown_without_a_current_mirror(a100: GpuClass) -> None:
    assert ("portal_class_free_units", a100.slug) not in figures()
    mirrored.hardware_seen(a100.cluster)
    assert ("portal_class_free_units", a100.slug) in figures()
    MirrorEpoch.objects.update(beat_at=timezone.now() - timedelta(minutes=5))
    assert ("portal_class_free_units", a100.slug) not in figures()


def test_waits_of_a_day_by_class(a100: GpuClass, namespace_a: Namespace, alice: User) -> None:
    for name, seconds in (("one", 10), ("two", 20), ("three", 300)):
        waited(namespace_a, a100, alice, name, seconds)
    waited(namespace_a, a100, alice, "old", 90_000, admitted_at=timezone.now() - timedelta(days=2))
    running.workload(namespace_a, a100, name="waits", by=alice)
    found = figures()
    assert found["portal_queue_wait_seconds", a100.slug, "0.5"] == pytest.approx(20)
    assert found["portal_queue_wait_seconds", a100.slug, "0.9"] == pytest.approx(20 + 0.8 * 280)
    assert not [key for key in found if key[0] in ("portal_queue_wait_seconds_count", "portal_queue_wait_seconds_sum")]


def test_topology_rejections_are_counted_once_a_run(a100: GpuClass, namespace_a: Namespace, alice: User) -> None:
    assert figures()["portal_topology_rejections_total", a100.slug] == 0
    ended = {"ended_at": timezone.now(), "outcome": "failed"}
    waited(namespace_a, a100, alice, "one", 1, reason="topology_refused", **ended)
    waited(namespace_a, a100, alice, "two", 1, reason="out_of_memory", **ended)
    assert figures()["portal_topology_rejections_total", a100.slug] == 1


def test_nodes_whose_layout_is_changing(cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster)
    changing, unknown = MirrorNode.objects.filter(cluster_id=cluster.pk).order_by("name")[:2]
    others = figures()
    for node, state, at in ((changing, "pending", moment(400)), (unknown, "rebooting", None)):
        node.record["labels"]["nvidia.com/mig.config.state"] = state
        node.record["writers"] = {"nvidia.com/mig.config.state": {"manager": "nvidia-mig-manager", "at": at}}
        node.save()
    found = figures()
    assert 400 <= found["portal_mig_pending_seconds", changing.name] < 410
    assert math.isnan(found["portal_mig_pending_seconds", unknown.name])
    grown = {key for key in found if key[0] == "portal_mig_pending_seconds"} - others.keys()
    assert grown == {("portal_mig_pending_seconds", changing.name), ("portal_mig_pending_seconds", unknown.name)}


def moment(seconds: int) -> str:
    at: datetime = timezone.now() - timedelta(seconds=seconds)
    return at.isoformat()


def test_queries_do_not_grow(a100: GpuClass, namespace_a: Namespace, alice: User, unique: str) -> None:
    mirrored.hardware_seen(a100.cluster)
    with CaptureQueriesContext(connection) as few:
        list(families())
    for number in range(5):
        more = make.gpu_class(a100.cluster, slug=f"more-{number}-{unique}")
        waited(namespace_a, more, alice, f"w{number}", number, reason="topology_refused")
    with CaptureQueriesContext(connection) as many:
        list(families())
    assert len(few) == len(many) <= 10


def test_without_a_cluster_there_are_only_the_figures_of_rows(db: None) -> None:
    found = figures()
    assert found["portal_database_up",] == 1
    assert not [key for key in found if key[0].startswith("portal_class")]


def test_each_rule_asks_for_labels_that_its_figure_has(
    a100: GpuClass, namespace_a: Namespace, alice: User, cluster: Cluster
) -> None:
    """Works without promtool: the names and labels in selectors and in `by (…)` are those that are exposed."""
    test_nodes_whose_layout_is_changing(cluster)
    waited(namespace_a, a100, alice, "one", 10)
    Certificate.objects.create(name=Certificate.Name.PORTAL, begins_at=timezone.now(), ends_at=timezone.now())
    labels: dict[str, set[str]] = {}
    for line in metrics.exposition().decode().splitlines():
        if found := re.match(r"(portal_\w+)(?:\{(.*)\})? ", line):
            labels.setdefault(found[1], set()).update(re.findall(r"(\w+)=\"", found[2] or ""))
    [group] = yaml.safe_load((ROOT / "deploy" / "monitoring" / "rules" / "portal-alerts.yaml").read_text())["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(names) == len(set(names))
    for rule in group["rules"]:
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["expr"].count("(") == rule["expr"].count(")")
        for name, selector in re.findall(r"\b(portal_\w+)(?:\{([^}]*)\})?", rule["expr"]):
            assert name in labels, f"{rule['alert']} asks for {name}"
            asked = set(re.findall(r"(\w+)=~?\"", selector))
            asked |= {
                one.strip() for group_by in re.findall(r"by \(([^)]*)\)", rule["expr"]) for one in group_by.split(",")
            }
            assert asked - {"instance"} <= labels[name], f"{rule['alert']} asks for labels of {name}"
