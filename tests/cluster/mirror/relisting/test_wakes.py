"""What happened while no watcher ran wakes its row when a new watcher lists the cluster: nothing else would, for hours.

`owner` is the row of a namespace, as in test_mirror: any row that is due at some time.
"""

from __future__ import annotations

from typing import Any

import pytest

from cluster.mirror import tables
from cluster.mirror.writer import MirrorWriter
from cluster.models import AppliedObject, Cluster, MirrorEpoch, MirrorNews
from portal.core.due import owner_label
from tenants.models import Namespace
from tests.cluster.mirror.items import Item, Raw, listed, removed, seen

OURS = {"app.kubernetes.io/managed-by": "gpu-portal"}
OF_JOB = {"ownerReferences": [{"kind": "Job", "controller": True, "uid": "uid-train"}]}


@pytest.fixture
def owner(namespace_a: Namespace) -> str:
    return owner_label(namespace_a)


@pytest.fixture(autouse=True)
def _at_rest(namespace_a: Namespace) -> None:
    Namespace.objects.update(due_at=None)


def a_watcher(cluster: Cluster) -> MirrorWriter:
    found = MirrorWriter(cluster.pk)
    found.open()
    return found


def thing(name: str, version: int, *, owner: str = "", namespace: str = "team-a", **more: Any) -> Raw:
    metadata = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        "creationTimestamp": "2026-11-21T09:00:00Z",
        "labels": {**OURS, "gpu-portal/owner": owner} if owner else {},
        **({"namespace": namespace} if namespace else {}),
        **more.pop("metadata", {}),
    }
    return {"metadata": metadata, **more}


def kueue(version: int, **spec: Any) -> Raw:
    """Kueue's Workload of the Job `train`, which has no label of ours."""
    return thing("job-train", version, metadata=OF_JOB, spec=spec)


def wakes(mirror: MirrorWriter, items: list[Item]) -> bool:
    Namespace.objects.update(due_at=None)
    mirror.write(items)
    mirror.tell()
    return Namespace.objects.filter(due_at__isnull=False).exists()


def sent_job(cluster: Cluster, owner: str, name: str = "train") -> None:
    AppliedObject.objects.create(
        cluster=cluster, owner=owner, kind="Job", namespace="team-a", name=name, uid=f"uid-{name}", result="applied"
    )


@pytest.mark.parametrize("kind", ["Job", "Pod"])
def test_a_change_while_nobody_watched(cluster: Cluster, owner: str, kind: str) -> None:
    assert wakes(a_watcher(cluster), listed(10, thing("train", 3, owner=owner), kind=kind))
    assert not wakes(a_watcher(cluster), listed(11, thing("train", 3, owner=owner), kind=kind)), "nothing changed"
    changed = thing("train", 12, owner=owner, metadata={"deletionTimestamp": "2026-11-21T10:00:00Z"})
    assert wakes(a_watcher(cluster), listed(20, changed, kind=kind))
    assert wakes(a_watcher(cluster), listed(30, kind=kind)), "deleted while nobody watched"


@pytest.mark.parametrize("is_job_first", [True, False])
def test_a_workload_that_changed_while_nobody_watched(cluster: Cluster, owner: str, is_job_first: bool) -> None:
    """Threads list the kinds: that of the Workload, which has no owner of its own, may be earlier."""
    first = a_watcher(cluster)
    job = listed(10, thing("train", 3, owner=owner), kind="Job")
    wakes(first, job + listed(10, kueue(4), kind="Workload"))

    second = a_watcher(cluster)
    changed = listed(20, kueue(12, active=False), kind="Workload")
    assert [wakes(second, one) for one in ((job, changed) if is_job_first else (changed, job))] == (
        [False, True] if is_job_first else [True, False]
    )


def test_a_workload_that_was_seen_before_its_job_wakes_the_owner_with_it(cluster: Cluster, owner: str) -> None:
    """The Job is not new to its row, which has looked at it since."""
    mirror = a_watcher(cluster)
    assert not wakes(mirror, listed(10, kueue(4), kind="Workload"))
    mirror.write(listed(10, kind="Job"))
    # Another client had taken the label away.
    assert not wakes(mirror, seen(thing("train", 11), kind="Job"))
    assert wakes(mirror, seen(thing("train", 12, owner=owner), kind="Job"))


def test_a_job_that_was_created_and_deleted_while_nobody_watched(cluster: Cluster, owner: str) -> None:
    """It was never in the mirror, so no row of it goes; who sent it looks itself."""
    wakes(a_watcher(cluster), [*listed(10, kind="Job"), *listed(10)])
    sent_job(cluster, owner)
    assert wakes(a_watcher(cluster), listed(20, kind="Job"))
    assert wakes(a_watcher(cluster), listed(30, thing("train", 25, owner=owner), kind="Job"))
    assert not wakes(a_watcher(cluster), listed(40, thing("train", 25, owner=owner), kind="Job")), "it is shown"


@pytest.mark.parametrize("kind", ["Job", "Pod"])
def test_all_runs_look_when_the_mirror_is_known_again(cluster: Cluster, owner: str, kind: str) -> None:
    """PostgreSQL has emptied the mirror: until the list of each kind is complete, a worker could conclude nothing."""
    wakes(a_watcher(cluster), [*listed(10, kind="Job"), *listed(10)])
    sent_job(cluster, owner)
    other = "Pod" if kind == "Job" else "Job"
    MirrorEpoch.objects.all().delete()
    mirror = a_watcher(cluster)
    mirror.write(listed(20, kind=other))
    mirror.tell()
    assert wakes(mirror, listed(20, kind=kind))


@pytest.mark.parametrize("label", ["", "workloads.workload.7"])
@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("kind", ["Job", "Pod"])
def test_an_object_whose_owner_label_was_changed(
    cluster: Cluster, owner: str, label: str, is_restarted: bool, kind: str
) -> None:
    """The row of the label before does not find it any more."""
    mirror = a_watcher(cluster)
    wakes(mirror, listed(10, thing("train", 3, owner=owner), kind=kind))
    mirror = a_watcher(cluster) if is_restarted else mirror
    changed = thing("train", 12, owner=label)
    assert wakes(mirror, listed(20, changed, kind=kind) if is_restarted else seen(changed, kind=kind))
    Namespace.objects.update(due_at=None)
    assert not wakes(mirror, seen(thing("train", 13, owner=label, status={"x": 1}), kind=kind)), "it has nothing of it"


@pytest.mark.parametrize("kind", ["Job", "Pod"])
def test_both_owners_of_a_changed_label_are_told(cluster: Cluster, owner: str, kind: str) -> None:
    """Also if the label changes twice before anything is written, and of a new object that has an old one's name."""
    other, third = "workloads.workload.7", "workloads.workload.8"
    mirror = a_watcher(cluster)
    wakes(mirror, listed(10, thing("train", 3, owner=owner), kind=kind))
    mirror.write(seen(thing("train", 11, owner=other), thing("train", 12, owner=third), kind=kind))
    told = {one for one, _uid, _difference in tables.take_news(cluster.pk)}
    assert told == {owner, other, third}
    mirror.write(seen(thing("train", 13, owner=owner, metadata={"uid": "uid-new"}), kind=kind))
    assert {one for one, _uid, _difference in tables.take_news(cluster.pk)} == {owner, third}


def test_jobs_of_a_namespace_that_is_no_longer_ours(cluster: Cluster, owner: str) -> None:
    mirror = a_watcher(cluster)
    ours = thing("team-a", 2, namespace="", metadata={"labels": OURS})
    mirror.write(listed(9, ours, kind="Namespace"))
    wakes(mirror, listed(10, thing("train", 3, owner=owner), kind="Job"))
    assert wakes(mirror, seen(thing("team-a", 12, namespace=""), kind="Namespace"))


def test_news_are_delivered_in_bundles_and_all_of_them(
    cluster: Cluster, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tens of thousands of rows may be woken at once: each transaction locks only some of them."""
    monkeypatch.setattr(tables, "NEWS_AT_ONCE", 2)
    mirror = a_watcher(cluster)
    owners = [*(f"workloads.workload.{pk}" for pk in range(1, 5)), owner]
    assert wakes(mirror, listed(10, *(thing(f"a{pk}", 3, owner=one) for pk, one in enumerate(owners)), kind="Job"))
    assert not MirrorNews.objects.exists()


def test_lists_without_jobs_ask_nothing_and_events_neither(cluster: Cluster, owner: str) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    mirror = a_watcher(cluster)
    wakes(mirror, [*listed(10, thing("train", 3, owner=owner), kind="Job"), *listed(10)])
    for items, asks in (
        (listed(20, thing("train", 3, owner=owner), kind="Job"), 1),
        (listed(20), 0),
        (listed(20, kind="Node"), 0),
        (seen(thing("train", 21, owner=owner), kind="Job"), 0),
        (removed(thing("train", 22, owner=owner), kind="Job"), 0),
    ):
        with CaptureQueriesContext(connection) as asked:
            mirror.write(items)
        assert sum("cluster_appliedobject" in one["sql"] for one in asked) == asks
