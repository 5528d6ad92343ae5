"""Each state of an object as the team's page, the health page and the metrics show it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.core import CollectorRegistry

from accounts.models import User
from cluster.models import AppliedObject, Cluster
from portal.core.due import owner_label
from portal.ops.metrics import RowsCollector
from tenants.models import Namespace, Tenant
from tests.support.rows import mirrored

WORDS = ("applied", "repaired", "refused", "foreign", "missing", "drifted", "terminating", "orphan")


@pytest.fixture
def objects(namespace_a: Namespace, cluster: Cluster) -> None:
    """One object in each state; an orphan exists only in the cluster, a missing object does not exist there."""
    states: dict[str, dict[str, Any]] = {
        "LimitRange": {"result": "applied"},
        "NetworkPolicy": {"result": "applied", "code": "repaired", "text": "Drift repaired: it was changed."},
        "RoleBinding": {"result": "refused", "code": "Invalid", "text": "Words of the API server."},
        "ServiceAccount": {"result": "foreign", "text": "Remove or rename it."},
        "LocalQueue": {"result": "applied"},
        "ResourceQuota": {"result": "applied", "difference": {"fields": ["spec.hard"], "manager": "kubectl-edit"}},
        "ClusterQueue": {"result": "terminating"},
    }
    found: dict[str, list[Any]] = {}
    for kind, values in states.items():
        metadata: dict[str, Any] = {"name": "gpu-portal", "namespace": namespace_a.name}
        raw = mirrored.with_metadata({"metadata": metadata, "spec": {}})
        if kind in ("LimitRange", "NetworkPolicy", "ResourceQuota"):
            found[kind] = [raw]
        AppliedObject.objects.create(
            cluster=cluster,
            owner=owner_label(namespace_a),
            kind=kind,
            uid=raw["metadata"]["uid"],
            sent_at=timezone.now() - timedelta(hours=1),
            **metadata,
            **values,
        )
    lost = {"name": "lost", "namespace": namespace_a.name, "labels": {"gpu-portal/owner": "tenants.namespace.98765"}}
    found["NetworkPolicy"].append(mirrored.with_metadata({"metadata": lost, "spec": {}}))
    mirrored.seen(cluster, **found)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("Job", "A job is not created again: its run is recorded as lost."),
        ("PersistentVolumeClaim", "A volume is not created again: a new one would be empty."),
    ],
)
def test_what_is_created_once_is_not_said_to_come_back(
    cluster: Cluster, namespace_a: Namespace, olga: User, kind: str, sentence: str
) -> None:
    AppliedObject.objects.create(
        cluster=cluster, owner="workloads.workload.1", kind=kind, namespace=namespace_a.name, name="one-1", uid="x",
        result="applied", difference={"gone": True, "at": timezone.now().isoformat()},
    )  # fmt: skip
    shown = page(olga, "/health")
    assert sentence in shown
    assert "recreated" not in shown


@pytest.mark.parametrize(("kind", "is_listed"), [("Job", False), ("ResourceQuota", True)])
def test_a_job_that_the_portal_deletes_is_in_sync(
    cluster: Cluster, namespace_a: Namespace, olga: User, kind: str, is_listed: bool
) -> None:
    """Of a Job only the portal records that it is being deleted; other objects are deleted by somebody else."""
    AppliedObject.objects.create(
        cluster=cluster, owner="workloads.workload.1", kind=kind, namespace=namespace_a.name, name="one-1", uid="x",
        result="terminating", difference={"gone": True, "since": timezone.now().isoformat()},
    )  # fmt: skip
    shown = page(olga, "/health")
    assert ("It was deleted and will be recreated." in shown) == is_listed
    assert ("All objects are in sync." in shown) != is_listed


def test_limits_of_other_clients_are_listed(cluster: Cluster, namespace_a: Namespace, olga: User) -> None:
    """A workload that such a quota holds back names it; operators find it here."""
    mine = {"gpu-portal/owner": owner_label(namespace_a)}
    mirrored.seen(
        cluster,
        ResourceQuota=[
            mirrored.with_metadata(
                {
                    "metadata": {"name": name, "namespace": namespace_a.name, "labels": labels},
                    "spec": {"hard": {"pods": "0", "requests.nvidia.com/gpu": "1"}},
                }
            )
            for name, labels in (("theirs", {}), ("gpu-portal", mine))
        ],
    )
    shown = page(olga, "/health")
    assert "Foreign limits" in shown
    assert f"{namespace_a.name}/theirs" in shown
    assert "pods 0, requests.nvidia.com/gpu 1" in shown
    assert f"kubectl -n {namespace_a.name} delete resourcequota theirs" in shown
    assert f"{namespace_a.name}/gpu-portal" not in shown


def page(who: User, path: str) -> str:
    client = Client()
    client.force_login(who)
    return " ".join(client.get(path).content.decode().split())


@pytest.mark.usefixtures("objects")
def test_the_team_sees_its_own(team_a: Tenant, bob: User) -> None:
    text = page(bob, "/teams/team-a/members")
    assert (
        "1 applied, 1 repaired, 1 rejected, 1 name conflict, 1 missing, 1 drifted, 1 terminating, 6 not applied" in text
    )
    for sentence in (
        "Drift repaired: it was changed.",
        "The cluster rejected the object. A value is invalid.",
        "Words of the API server.",
        "Remove or rename it.",
        "It was applied, but the cluster does not have it.",
        "Changed outside of the portal by kubectl-edit: spec.hard.",
        "Not applied yet: it depends on objects that are applied first.",
    ):
        assert sentence in text


@pytest.mark.usefixtures("objects")
def test_staff_see_what_is_not_as_wanted(olga: User) -> None:
    text = page(olga, "/health")
    assert "4 objects out of sync" in text
    for sentence in (
        "Missing",
        "Drifted",
        "Name conflict",
        "The cluster rejected the object.",
        "Words of the API server.",
        "lost",
    ):
        assert sentence in text
    assert "Drift repaired: it was changed." not in text, "what is repaired is as wanted"


@pytest.mark.usefixtures("objects")
def test_each_state_is_counted() -> None:
    registry = CollectorRegistry()
    registry.register(RowsCollector())
    found = {word: registry.get_sample_value("portal_objects", {"state": word}) for word in WORDS}
    assert found == dict.fromkeys(WORDS, 1)
