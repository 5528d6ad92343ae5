"""NVIDIA's GPU Operator on the page Health, in `manage.py doctor` and in the metrics."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from prometheus_client.core import CollectorRegistry

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from desk.health.gpu_operator import GpuOperator, gpu_operator
from portal.ops.metrics import RowsCollector
from tests.support.rows import mirrored

pytestmark = pytest.mark.django_db


def policy(state: str, *, minutes: int = 60, name: str = "cluster-policy", message: str = "") -> dict[str, Any]:
    at = (timezone.now() - timedelta(minutes=minutes)).isoformat()
    ready = {"type": "Ready", "status": "True" if state == "ready" else "False", "reason": "x", "message": ""}
    error = {"type": "Error", "status": "False" if state == "ready" else "True", "reason": "x", "message": message}
    return mirrored.with_metadata(
        {
            "kind": "ClusterPolicy",
            "metadata": {"name": name},
            "spec": {"driver": {"version": "580.82.07"}},
            "status": {"state": state, "conditions": [{**one, "lastTransitionTime": at} for one in (ready, error)]},
        }
    )


def driver(state: str) -> dict[str, Any]:
    return mirrored.with_metadata(
        {
            "kind": "NVIDIADriver",
            "metadata": {"name": "h100"},
            "spec": {"version": "570.1"},
            "status": {"state": state},
        }
    )


def read(cluster: Cluster) -> GpuOperator:
    found = gpu_operator(cluster, timezone.now())
    assert found is not None
    return found


def page(olga: User, client: Client) -> str:
    client.force_login(olga)
    return client.get("/health").content.decode()


def doctor() -> str:
    told = StringIO()
    with suppress(SystemExit):
        call_command("doctor", stdout=told)
    return told.getvalue()


def samples() -> dict[tuple[str, str], float]:
    registry = CollectorRegistry()
    registry.register(RowsCollector())
    families = {family.name: family for family in registry.collect()}
    found = families["portal_gpu_operator_ready"].samples
    return {(one.labels["kind"], one.labels["name"]): one.value for one in found}


def test_an_unknown_mirror_says_nothing(cluster: Cluster) -> None:
    assert gpu_operator(cluster, timezone.now()) is None


def test_a_ready_operator_is_no_problem(cluster: Cluster, a100: GpuClass, olga: User, client: Client) -> None:
    mirrored.hardware_seen(cluster, ClusterPolicy=[policy("ready")])
    [one] = read(cluster).objects
    assert (one.state, one.version, one.is_wrong, one.sentence, one.do) == ("ready", "580.82.07", False, "", "")
    text = page(olga, client)
    assert "NVIDIA GPU Operator" in text
    assert "driver 580.82.07" in text
    assert "GPU Operator not ready" not in text
    assert samples() == {("ClusterPolicy", "cluster-policy"): 1}


def test_one_that_is_not_ready_names_its_reason_and_the_classes_that_need_it(
    cluster: Cluster, a100: GpuClass, olga: User, client: Client
) -> None:
    why = "ClusterPolicy is not ready, states not ready: [state-device-plugin]"
    mirrored.hardware_seen(cluster, ClusterPolicy=[policy("notReady", message=why)], NVIDIADriver=[driver("notReady")])
    found = read(cluster)
    assert [(one.kind, one.is_wrong) for one in found.objects] == [("ClusterPolicy", True), ("NVIDIADriver", True)]
    assert (a100.slug, a100.name) in found.classes
    text = page(olga, client)
    assert "GPU Operator not ready" in text
    assert "states not ready: [state-device-plugin]" in text
    assert f'href="/catalog/{a100.slug}"' in text
    told = doctor()
    assert "ClusterPolicy cluster-policy: notReady" in told
    assert "kubectl describe nvidiadriver h100" in told
    assert samples() == {("ClusterPolicy", "cluster-policy"): 0, ("NVIDIADriver", "h100"): 0}


def test_a_node_that_joins_is_no_problem_yet(cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster, ClusterPolicy=[policy("notReady", minutes=5)])
    [one] = read(cluster).objects
    assert (one.state, one.is_wrong) == ("notReady", False)


def test_a_second_policy_is_ignored_and_said_so(cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster, ClusterPolicy=[policy("ready"), policy("ignored", name="second")])
    ours, second = read(cluster).objects
    assert (ours.is_wrong, second.is_wrong) == (False, True)
    assert second.do == "Delete it: kubectl delete clusterpolicy second."


def test_a_driver_that_is_switched_off_is_no_problem_and_has_no_sample(cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster, NVIDIADriver=[driver("disabled")])
    [one] = read(cluster).objects
    assert (one.state, one.version, one.is_wrong) == ("disabled", "570.1", False)
    assert samples() == {}


def test_without_an_operator_the_page_says_what_works(cluster: Cluster, olga: User, client: Client) -> None:
    mirrored.hardware_seen(cluster)
    found = read(cluster)
    assert (found.objects, found.has_nvidia) == ((), True)
    assert "Not installed. Devices that nodes report can be used all the same" in page(olga, client)
    assert "GPU Operator" not in doctor()


def test_a_cluster_without_nvidia_is_not_told_of_it(cluster: Cluster, olga: User, client: Client) -> None:
    mirrored.seen(cluster, Node=[])
    assert "NVIDIA GPU Operator" not in page(olga, client)
