"""One status word for each wanted object: what was sent, what was seen, and objects that no row wants."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.apply import queries as apply_queries
from cluster.apply import status
from cluster.models import AppliedObject, Cluster, MirrorEpoch
from portal.core.due import owner_label
from tenants.models import Namespace
from tests.support.rows import mirrored, running
from workloads.models import Workload

DRIFT = {"fields": ["spec.hard.pods"], "manager": "kubectl-edit", "since": "2026-11-21T21:58:03Z"}


def quota(namespace: str, owner: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/managed-by": "gpu-portal", "gpu-portal/owner": owner}
    return mirrored.with_metadata(
        {"metadata": {"name": "gpu-portal", "namespace": namespace, "labels": labels}, "spec": {"hard": {}}}
    )


def sent(namespace: Namespace, **values: Any) -> AppliedObject:
    """A quota that was applied an hour ago."""
    usual = {"result": "applied", "uid": f"{namespace.name}-gpu-portal"[:36], "kind": "ResourceQuota"}
    return AppliedObject.objects.create(
        cluster=namespace.cluster,
        owner=owner_label(namespace),
        namespace=namespace.name,
        name="gpu-portal",
        sent_at=timezone.now() - timedelta(hours=1),
        **{**usual, **values},
    )


@pytest.mark.parametrize(
    ("values", "word", "sentence"),
    [
        ({}, "applied", ""),
        (
            {"code": "repaired", "text": "Drift repaired: it was changed."},
            "repaired",
            "Drift repaired: it was changed.",
        ),
        (
            {"difference": DRIFT},
            "drifted",
            "Changed outside of the portal by kubectl-edit since 21 Nov 21:58 UTC: spec.hard.pods. The drift will be "
            "repaired.",
        ),
        ({"difference": {"gone": True}}, "missing", "Deleted outside of the portal. It will be recreated."),
        (
            {"result": "refused", "code": "Forbidden", "text": "Computer says no."},
            "refused",
            "The cluster rejected the object. The request is forbidden.",
        ),
        ({"result": "foreign", "text": "Remove or rename it.", "difference": DRIFT}, "foreign", "Remove or rename it."),
        ({"result": "terminating"}, "terminating", "It was deleted and will be recreated."),
    ],
)
def test_a_word_and_a_sentence(namespace_a: Namespace, values: dict[str, Any], word: str, sentence: str) -> None:
    row = sent(namespace_a, **values)
    assert (status.object_status(row), status.status_sentence(row)) == (word, sentence)


def test_what_was_sent_and_is_not_in_the_cluster_is_missing(namespace_a: Namespace, cluster: Cluster) -> None:
    row = sent(namespace_a)
    mirrored.seen(cluster, ResourceQuota=[quota(namespace_a.name, row.owner)])
    assert apply_queries.missing_objects(cluster.pk) == set()
    mirrored.seen(cluster)
    absent = apply_queries.missing_objects(cluster.pk)
    assert absent == apply_queries.missing_objects(cluster.pk, owner=row.owner) == {row.pk}
    assert status.object_status(row, absent) == "missing"
    assert "the cluster does not have it" in status.status_sentence(row, absent)
    assert apply_queries.missing_objects(cluster.pk, owner="somebody.else.1") == set()


def test_another_object_of_that_name_is_not_the_one_that_was_sent(namespace_a: Namespace, cluster: Cluster) -> None:
    row = sent(namespace_a, uid="another")
    mirrored.seen(cluster, ResourceQuota=[quota(namespace_a.name, row.owner)])
    assert apply_queries.missing_objects(cluster.pk) == {row.pk}


def test_what_is_not_known_is_not_missing(namespace_a: Namespace, cluster: Cluster) -> None:
    sent(namespace_a)
    assert apply_queries.missing_objects(cluster.pk) == set(), "there is no mirror"
    mirrored.seen(cluster)
    MirrorEpoch.objects.update(beat_at=timezone.now() - timedelta(minutes=5))
    assert apply_queries.missing_objects(cluster.pk) == set(), "the watcher is dead"


def test_what_was_sent_this_moment_is_not_missing_yet(namespace_a: Namespace, cluster: Cluster) -> None:
    row = sent(namespace_a)
    AppliedObject.objects.filter(pk=row.pk).update(sent_at=timezone.now())
    mirrored.seen(cluster)
    assert apply_queries.missing_objects(cluster.pk) == set()


def test_orphans_name_no_live_row(namespace_a: Namespace, cluster: Cluster) -> None:
    mirrored.seen(
        cluster,
        ResourceQuota=[
            quota(namespace_a.name, owner_label(namespace_a)),
            quota("gone", "tenants.namespace.987654321"),
            quota("large", f"tenants.namespace.{2**63}"),
            quota("odd", "nobody"),
            quota("old", "removed.model.1"),
        ],
    )
    found = apply_queries.orphaned_objects(cluster.pk, limit=10)
    assert found == [("ResourceQuota", name, "gpu-portal") for name in ("gone", "large", "odd", "old")]
    assert len(apply_queries.orphaned_objects(cluster.pk, limit=2)) == 2


def test_objects_of_a_deleted_workload_are_orphans_although_its_row_is_kept(
    namespace_a: Namespace, cluster: Cluster, a100: GpuClass, alice: User
) -> None:
    found = running.workload(namespace_a, a100, by=alice)
    mirrored.seen(cluster, ResourceQuota=[quota(namespace_a.name, owner_label(found))])
    assert apply_queries.orphaned_objects(cluster.pk, limit=10) == []
    Workload.objects.filter(pk=found.pk).update(deleted_at=timezone.now())
    assert [one for _kind, one, _name in apply_queries.orphaned_objects(cluster.pk, limit=10)] == [namespace_a.name]
