"""Notes in, rows out: what the mirror writes, what it leaves unchanged, and which rows it makes due."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from cluster.mirror import writer as mirror_module
from cluster.mirror.records.kinds import KINDS
from cluster.mirror.watch import NoteType, WatchNote
from cluster.mirror.writer import EpochLost, MirrorWriter
from cluster.models import AppliedObject, Cluster, MirrorEpoch, MirrorKind, MirrorNews, MirrorPod, MirrorWarning
from cluster.reads import queries
from portal.core.due import owner_label
from tenants.models import Namespace
from tests.cluster.mirror.items import Item, Raw, listed, removed, seen
from tests.cluster.mirror.scripted_api import pod

OURS = {"app.kubernetes.io/managed-by": "gpu-portal"}


@pytest.fixture
def mirror(cluster: Cluster) -> MirrorWriter:
    found = MirrorWriter(cluster.pk)
    found.open()
    return found


def trouble(text: str, kind: str = "Pod") -> list[Item]:
    return [(WatchNote(KINDS[kind], NoteType.TROUBLE, text=text), None)]


def heard(kind: str = "Pod") -> list[Item]:
    return [(WatchNote(KINDS[kind], NoteType.HEARD), None)]


def thing(name: str, version: int, *, namespace: str = "team-a", owner: str = "", **more: Any) -> Raw:
    labels = {**OURS, "gpu-portal/owner": owner} if owner else {}
    metadata = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        "creationTimestamp": "2026-11-21T09:00:00Z",
        "labels": labels,
        **({"namespace": namespace} if namespace else {}),
        **more.pop("metadata", {}),
    }
    return {"metadata": metadata, **more}


def namespace_object(name: str, version: int, *, is_ours: bool) -> Raw:
    return thing(name, version, namespace="", metadata={"labels": OURS if is_ours else {}})


def pods(cluster: Cluster) -> dict[str, int]:
    return dict(MirrorPod.objects.filter(cluster_id=cluster.pk).values_list("name", "resource_version"))


def row_versions() -> dict[str, str]:
    """PostgreSQL's own mark of the transaction that last wrote a row."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, ctid::text FROM cluster_mirrorpod")
        return dict(cursor.fetchall())


# ---- rows --------------------------------------------------------------------------------------------------------


def test_nothing_is_known_until_the_list_is_complete(mirror: MirrorWriter, cluster: Cluster) -> None:
    begin, first, end = listed(10, pod("a", 3))

    mirror.write([begin, first])
    assert pods(cluster) == {"a": 3}
    assert not queries.is_known(cluster.pk, "Pod")
    assert queries.as_of(cluster.pk, "Pod").at is None

    mirror.write([end])
    assert queries.is_known(cluster.pk, "Pod")
    assert not queries.is_known(cluster.pk, "Pod", "Node")
    assert queries.as_of(cluster.pk, "Pod").is_current


def test_a_kind_that_was_not_heard_of_at_all_is_unknown_too(mirror: MirrorWriter, cluster: Cluster) -> None:
    """Nodes were listed but no page of pods has arrived: all GPUs would look free."""
    mirror.write(listed(10, kind="Node"))

    assert queries.as_of(cluster.pk, "Node").is_current
    assert queries.as_of(cluster.pk, "Node", "Pod").at is None


def test_events_change_rows_and_nothing_goes_backwards(mirror: MirrorWriter, cluster: Cluster) -> None:
    mirror.write(listed(10, pod("a", 3)))
    mirror.write(seen(pod("b", 11), pod("a", 14, node="n1"), pod("a", 12), pod("a", 14)))
    mirror.write(seen(pod("a", 13, node="n0")))

    assert pods(cluster) == {"a": 14, "b": 11}
    assert [one.node for one in queries.pods(cluster.pk)] == ["n1", ""]


def test_a_kind_is_at_the_version_of_its_last_change_and_never_goes_back(
    mirror: MirrorWriter, cluster: Cluster
) -> None:
    """A list at that version returns what the rows contain, even if the kind was heard of just before."""
    assert queries.kind_versions(cluster.pk, "Pod") == {"Pod": None}
    begin, first, end = listed(10, pod("a", 3))
    mirror.write([begin, first])
    assert queries.kind_versions(cluster.pk, "Pod", "Job") == {"Pod": None, "Job": None}
    mirror.write([end])
    told = [queries.kind_versions(cluster.pk, "Pod")["Pod"]]
    for items in (
        seen(pod("b", 98)),
        removed(pod("a", 101)),
        seen(pod("c", 104), pod("b", 102, node="n1")),
        # Late, but to be written: the object was unknown.
        seen(pod("d", 99)),
    ):
        mirror.write(items)
        told.append(queries.kind_versions(cluster.pk, "Pod")["Pod"])
    assert told == ["10", "98", "101", "104", "104"]
    assert pods(cluster) == {"b": 102, "c": 104, "d": 99}


def test_what_changes_nothing_is_not_written(mirror: MirrorWriter, cluster: Cluster) -> None:
    mirror.write(listed(10, pod("a", 3)))
    mirror.write(seen(pod("a", 11, node="n1")))
    before = row_versions()

    channels = mirror.write(seen(pod("a", 12, node="n1"), pod("a", 13, node="n1")))

    assert row_versions() == before
    assert channels == set()


def test_an_object_that_went_away_does_not_come_back(mirror: MirrorWriter, cluster: Cluster) -> None:
    mirror.write(listed(10, pod("a", 3), pod("b", 4)))
    mirror.write(removed(pod("a", 12)))
    mirror.write(seen(pod("a", 11)))
    assert pods(cluster) == {"b": 4}

    # Created and deleted within one batch.
    mirror.write([*seen(pod("c", 13)), *removed(pod("c", 14)), *seen(pod("c", 13))])
    assert pods(cluster) == {"b": 4}


def test_a_new_object_of_the_same_name_takes_the_row(mirror: MirrorWriter, cluster: Cluster) -> None:
    mirror.write(listed(10, pod("a", 3)))
    mirror.write([*removed(pod("a", 12)), *seen(pod("a", 13, uid="another"))])
    assert pods(cluster) == {"a": 13}

    # The old object's deletion arrives late, and so does its last change.
    mirror.write([*seen(pod("a", 11)), *removed(pod("a", 12))])
    assert [one.uid for one in queries.pods(cluster.pk)] == ["another"]


def test_what_is_not_in_a_new_list_is_gone(mirror: MirrorWriter, cluster: Cluster) -> None:
    mirror.write(listed(10, pod("a", 3), pod("b", 4)))
    mirror.write(listed(50, pod("b", 4), pod("c", 44)))
    assert pods(cluster) == {"b": 4, "c": 44}


def test_a_restart_keeps_rows_that_are_right_and_drops_stale_ones(mirror: MirrorWriter, cluster: Cluster) -> None:
    mirror.write(listed(10, pod("a", 3), pod("b", 4)))
    before = row_versions()

    again = MirrorWriter(cluster.pk)
    again.open()
    assert queries.is_known(cluster.pk, "Pod")
    assert not queries.as_of(cluster.pk, "Pod").is_current
    again.write(listed(50, pod("b", 4), pod("c", 44)))

    assert pods(cluster) == {"b": 4, "c": 44}
    assert row_versions()["b"] == before["b"]
    assert queries.as_of(cluster.pk, "Pod").is_current


def test_a_row_that_vanished_is_written_again_by_the_next_list(mirror: MirrorWriter, cluster: Cluster) -> None:
    mirror.write(listed(10, pod("a", 3)))
    MirrorPod.objects.all().delete()
    mirror.write(listed(50, pod("a", 3)))
    assert pods(cluster) == {"a": 3}


# ---- epochs ------------------------------------------------------------------------------------------------------


def test_emptied_tables_begin_a_new_epoch(mirror: MirrorWriter, cluster: Cluster) -> None:
    mirror.write(listed(10, pod("a", 3)))
    first = MirrorEpoch.objects.get().epoch
    for model in (MirrorEpoch, MirrorKind, MirrorPod):
        model._base_manager.all().delete()

    with pytest.raises(EpochLost):
        mirror.write(seen(pod("b", 11)))
    assert pods(cluster) == {}
    assert not queries.is_known(cluster.pk, "Pod")
    with pytest.raises(EpochLost):
        mirror.beat()

    again = MirrorWriter(cluster.pk)
    again.open()
    again.write(listed(50, pod("a", 3), pod("b", 11)))
    assert MirrorEpoch.objects.get().epoch > first
    assert pods(cluster) == {"a": 3, "b": 11}
    assert queries.is_known(cluster.pk, "Pod")


def test_records_of_another_version_of_the_code_are_listed_again(
    mirror: MirrorWriter, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror.write(listed(10, pod("a", 3)))
    monkeypatch.setattr(mirror_module, "record_format", lambda: "the next one")

    MirrorWriter(cluster.pk).open()

    assert pods(cluster) == {}
    assert not queries.is_known(cluster.pk, "Pod")


def test_a_cluster_whose_history_went_back_is_another_one(mirror: MirrorWriter, cluster: Cluster) -> None:
    mirror.write(listed(1000, pod("a", 900)))
    with pytest.raises(EpochLost, match="another cluster"):
        mirror.write(listed(10, pod("a", 3, uid="new")))

    again = MirrorWriter(cluster.pk)
    again.open()
    again.write(listed(10, pod("a", 3, uid="new")))
    assert pods(cluster) == {"a": 3}


# ---- namespaces of others ----------------------------------------------------------------------------------------


def test_of_strangers_namespaces_only_what_takes_capacity_is_kept(mirror: MirrorWriter, cluster: Cluster) -> None:
    mirror.write(
        listed(
            10,
            namespace_object("team-a", 2, is_ours=True),
            namespace_object("kube-system", 1, is_ours=False),
            kind="Namespace",
        )
    )
    for kind in ("PersistentVolumeClaim", "Job"):
        mirror.write(listed(10, thing("ours", 3), thing("theirs", 4, namespace="kube-system"), kind=kind))
    mirror.write(
        listed(10, pod("a", 3), {**pod("b", 4), "metadata": thing("b", 4, namespace="kube-system")["metadata"]})
    )
    event = {"type": "Warning", "reason": "Failed", "message": "no", "involvedObject": {"kind": "Job"}}
    mirror.write(listed(10, thing("e", 5, **event), thing("f", 6, namespace="kube-system", **event), kind="Event"))

    assert [one.name for one in queries.objects(cluster.pk, kind="PersistentVolumeClaim")] == ["ours"]
    assert [one.name for one in queries.jobs(cluster.pk)] == ["ours"]
    assert [one.name for one in queries.pods(cluster.pk)] == ["a", "b"]
    assert [one.namespace for one in MirrorWarning.objects.all()] == ["team-a"]
    assert len(queries.objects(cluster.pk, kind="Namespace")) == 2


def test_of_events_about_nodes_errors_of_gpus_are_kept(mirror: MirrorWriter, cluster: Cluster) -> None:
    """They are in the namespace default, which is nobody's: also if that is known after the event."""

    def event(name: str, version: int, message: str, about: dict[str, str]) -> Raw:
        told = {"type": "Warning", "reason": "KernelError", "message": message, "involvedObject": about}
        return thing(name, version, namespace="default", **told)

    of_node = {"kind": "Node", "name": "a100-1", "uid": "a100-1"}
    xid = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
    mirror.write(listed(10, kind="Namespace"))
    mirror.write(
        listed(10, event("a", 3, xid, of_node), event("b", 4, "disk", of_node), event("c", 5, xid, {}), kind="Event")
    )
    mirror.write(seen(namespace_object("default", 12, is_ours=False), kind="Namespace"))
    mirror.write(seen(event("d", 13, xid, {**of_node, "name": "a100-2"}), kind="Event"))
    mirror.write(seen(event("e", 14, xid, {"kind": "Pod", "name": "theirs"}), kind="Event"))

    found = queries.gpu_errors_of_nodes(cluster.pk, {"a100-1", "a100-2", "a100-3"})
    assert {node: [one.message for one in errors] for node, errors in found.items()} == {
        "a100-1": [xid],
        "a100-2": [xid],
    }
    assert {one.object_kind for one in MirrorWarning.objects.all()} == {"Node"}


def test_what_came_before_its_namespace_turned_out_a_strangers_is_dropped(
    mirror: MirrorWriter, cluster: Cluster
) -> None:
    mirror.write(listed(10, kind="Namespace"))
    mirror.write(listed(10, kind="PersistentVolumeClaim"))
    mirror.write(seen(thing("early", 11, namespace="new"), kind="PersistentVolumeClaim"))
    assert queries.objects(cluster.pk, kind="PersistentVolumeClaim")

    mirror.write(seen(namespace_object("new", 12, is_ours=False), kind="Namespace"))
    assert not queries.objects(cluster.pk, kind="PersistentVolumeClaim")


def test_what_came_in_one_batch_with_its_strangers_namespace_is_dropped(mirror: MirrorWriter, cluster: Cluster) -> None:
    for kind in ("Namespace", "PersistentVolumeClaim", "Pod"):
        mirror.write(listed(10, kind=kind))
    theirs = {**pod("taking", 12), "metadata": thing("taking", 12, namespace="new")["metadata"]}
    mirror.write(
        [
            *seen(thing("early", 11, namespace="new"), kind="PersistentVolumeClaim"),
            *seen(theirs),
            *seen(namespace_object("new", 13, is_ours=False), kind="Namespace"),
        ]
    )
    assert not queries.objects(cluster.pk, kind="PersistentVolumeClaim")
    assert [one.name for one in queries.pods(cluster.pk)] == ["taking"]


def test_a_strangers_pod_leaves_when_it_ends(mirror: MirrorWriter, cluster: Cluster) -> None:
    mirror.write(listed(10, pod("a", 3, node="n1"), pod("b", 4, owner="workloads.workload.1")))
    mirror.write(seen(pod("a", 11, node="n1", phase="Succeeded")))
    mirror.write(seen(pod("b", 12, owner="workloads.workload.1", phase="Failed")))
    assert pods(cluster) == {"b": 12}


# ---- owners to wake, and drift -----------------------------------------------------------------------------------


@pytest.fixture
def owner(namespace_a: Namespace) -> str:
    """The owner label of a row that is not due."""
    return owner_label(namespace_a)


def is_awake(namespace: Namespace) -> bool:
    namespace.refresh_from_db()
    awake = namespace.due_at is not None
    Namespace.objects.filter(pk=namespace.pk).update(due_at=None)
    return awake


@pytest.mark.parametrize("kind", ["Pod", "Job", "PersistentVolumeClaim"])
def test_every_change_of_what_runs_wakes_its_owner(
    mirror: MirrorWriter, namespace_a: Namespace, owner: str, kind: str
) -> None:
    mirror.write(listed(10, kind=kind))
    mirror.tell()
    assert not is_awake(namespace_a)

    for items in (
        seen(thing("a", 11, owner=owner), kind=kind),
        seen(thing("a", 12, owner=owner, metadata={"deletionTimestamp": "2026-11-21T10:00:00Z"}), kind=kind),
        removed(thing("a", 13, owner=owner), kind=kind),
    ):
        mirror.write(items)
        mirror.tell()
        assert is_awake(namespace_a)
    # Nothing new, so no row is made due.
    mirror.write(seen(thing("a", 12, owner=owner), kind=kind))
    mirror.tell()
    assert not is_awake(namespace_a)


@pytest.mark.parametrize("is_job_first", [True, False])
def test_a_workload_belongs_to_the_owner_of_its_job(
    mirror: MirrorWriter, cluster: Cluster, namespace_a: Namespace, owner: str, is_job_first: bool
) -> None:
    reference = {"kind": "Job", "name": "train", "uid": "uid-train", "controller": True}
    job = seen(thing("train", 11, owner=owner), kind="Job")
    workload = seen(thing("job-train", 12, metadata={"ownerReferences": [reference]}), kind="Workload")
    mirror.write(listed(10, kind="Job"))
    mirror.write(listed(10, kind="Workload"))

    mirror.write([*job, *workload] if is_job_first else [*workload, *job])

    [found] = queries.workloads(cluster.pk, owner=owner)
    assert (found.name, found.job_uid) == ("job-train", "uid-train")
    mirror.tell()
    assert is_awake(namespace_a)

    changed = thing("job-train", 13, metadata={"ownerReferences": [reference]}, spec={"active": False})
    mirror.write(seen(changed, kind="Workload"))
    mirror.tell()
    assert is_awake(namespace_a)


def quota(version: int, owner: str, *others: Raw, ours: tuple[str, ...] = ("pods", "requests.cpu")) -> Raw:
    fields = {"f:spec": {"f:hard": {f"f:{name}": {} for name in ours}}}
    entry = {"manager": "gpu-portal", "operation": "Apply", "time": "2026-11-21T09:00:00Z", "fieldsV1": fields}
    used = {"used": {"pods": str(version)}}
    return thing("gpu-portal", version, owner=owner, metadata={"managedFields": [entry, *others]}, status=used)


EDITED = {
    "manager": "kubectl-edit",
    "operation": "Update",
    "time": "2026-11-21T09:30:00Z",
    "fieldsV1": {"f:spec": {"f:hard": {"f:requests.cpu": {}}}},
}


@pytest.fixture
def applied(cluster: Cluster, owner: str) -> AppliedObject:
    return AppliedObject.objects.create(
        cluster=cluster,
        owner=owner,
        kind="ResourceQuota",
        namespace="team-a",
        name="gpu-portal",
        uid="uid-gpu-portal",
        result=AppliedObject.Result.APPLIED,
    )


def difference(applied: AppliedObject) -> dict[str, Any]:
    applied.refresh_from_db()
    return applied.difference


def test_a_field_that_no_record_shows_is_noted(
    mirror: MirrorWriter, namespace_a: Namespace, owner: str, applied: AppliedObject
) -> None:
    """Nothing of the portal's and nothing on a page changed: only a field has another manager."""
    added = {**EDITED, "fieldsV1": {"f:spec": {"f:scopes": {}}}}
    before, after = quota(3, owner), quota(4, owner, added)
    after["status"] = before["status"]
    mirror.write(listed(10, before, kind="ResourceQuota"))

    mirror.write(seen(after, kind="ResourceQuota"))
    mirror.tell()

    assert difference(applied)["fields"] == ["spec.scopes"]


def test_what_somebody_else_wrote_is_noted_and_told_once(
    mirror: MirrorWriter, namespace_a: Namespace, owner: str, applied: AppliedObject
) -> None:
    mirror.write(listed(10, quota(3, owner), kind="ResourceQuota"))
    mirror.tell()
    assert difference(applied) == {}
    assert not is_awake(namespace_a)

    mirror.write(seen(quota(11, owner, EDITED, ours=("pods",)), kind="ResourceQuota"))
    mirror.tell()
    assert difference(applied) == {
        "fields": ["spec.hard.requests.cpu"],
        "manager": "kubectl-edit",
        "since": "2026-11-21T09:30:00Z",
    }
    assert is_awake(namespace_a)

    # Its status keeps changing; the difference is the same.
    mirror.write(seen(quota(12, owner, EDITED, ours=("pods",)), kind="ResourceQuota"))
    mirror.tell()
    assert not is_awake(namespace_a)


def test_what_somebody_removed_is_noted(
    mirror: MirrorWriter, namespace_a: Namespace, owner: str, applied: AppliedObject
) -> None:
    mirror.write(listed(10, quota(3, owner), kind="ResourceQuota"))
    mirror.write(seen(quota(11, owner, ours=("pods",)), kind="ResourceQuota"))
    mirror.tell()

    assert difference(applied)["fields"] == ["spec.hard"]
    assert is_awake(namespace_a)


def test_an_owned_object_that_disappeared_is_noted(
    mirror: MirrorWriter, cluster: Cluster, namespace_a: Namespace, owner: str, applied: AppliedObject
) -> None:
    mirror.write(listed(10, quota(3, owner), kind="ResourceQuota"))
    mirror.write(removed(quota(11, owner), kind="ResourceQuota"))
    mirror.tell()

    assert difference(applied)["gone"] is True
    assert is_awake(namespace_a)
    assert queries.objects(cluster.pk, kind="ResourceQuota") == []
    assert [row.pk for row in queries.differences(cluster.pk, owner=owner)] == [applied.pk]


def test_an_object_that_disappeared_while_nobody_watched_is_noted(
    mirror: MirrorWriter, cluster: Cluster, namespace_a: Namespace, owner: str, applied: AppliedObject
) -> None:
    mirror.write(listed(10, quota(3, owner), kind="ResourceQuota"))

    again = MirrorWriter(cluster.pk)
    again.open()
    again.write(listed(50, kind="ResourceQuota"))
    again.tell()

    assert difference(applied)["gone"] is True
    assert is_awake(namespace_a)


def test_news_that_were_not_told_are_told_by_the_next_watcher(
    mirror: MirrorWriter, cluster: Cluster, namespace_a: Namespace, owner: str
) -> None:
    mirror.write(listed(10, pod("a", 3, owner=owner)))
    assert not is_awake(namespace_a)

    again = MirrorWriter(cluster.pk)
    again.open()
    again.tell()
    assert is_awake(namespace_a)
    assert not MirrorNews.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_locked_row_does_not_hold_up_the_mirror(
    mirror: MirrorWriter, cluster: Cluster, namespace_a: Namespace, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}) as other:
        other.execute("SELECT 1 FROM tenants_namespace WHERE id = %s FOR UPDATE", [namespace_a.pk])
        mirror.write(listed(10, pod("a", 3, owner=owner)))
        mirror.tell()
        assert pods(cluster) == {"a": 3}
        assert not Namespace.objects.filter(pk=namespace_a.pk, due_at__isnull=False).exists()

    monkeypatch.setattr(mirror, "_tell_after", 0.0)
    mirror.tell()
    assert is_awake(namespace_a)


def node(name: str, version: int, *, gpus: int, heartbeat: str = "") -> Raw:
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat}
    status = {"allocatable": {"nvidia.com/gpu": str(gpus)}, "conditions": [ready]}
    return thing(name, version, namespace="", metadata={"labels": {"zone": "b"}}, status=status)


def test_capacity_wakes_who_asked_for_it_and_heartbeats_do_not(
    cluster: Cluster, namespace_a: Namespace, owner: str
) -> None:
    mirror = MirrorWriter(cluster.pk, capacity_owners=lambda: [owner])
    mirror.open()
    mirror.write(listed(10, node("n1", 3, gpus=4), kind="Node"))
    mirror.tell()
    assert is_awake(namespace_a)

    mirror.write(seen(node("n1", 11, gpus=4, heartbeat="2026-11-21T09:05:00Z"), kind="Node"))
    mirror.tell()
    assert not is_awake(namespace_a)

    mirror.write(seen(node("n1", 12, gpus=3), kind="Node"))
    mirror.tell()
    assert is_awake(namespace_a)

    mirror.write(removed(node("n1", 13, gpus=3), kind="Node"))
    mirror.tell()
    assert is_awake(namespace_a)


@pytest.mark.parametrize(
    ("kind", "raw", "channels"),
    [
        ("Pod", pod("a", 11, owner="workloads.workload.1"), {"team-a", "cluster"}),
        ("Pod", pod("a", 11), {"cluster"}),
        ("Job", thing("a", 11), {"team-a"}),
        ("ClusterQueue", thing("team-a", 11, namespace=""), {"team-a"}),
        ("Namespace", thing("team-a", 11, namespace=""), {"team-a"}),
        ("Node", node("n1", 11, gpus=4), {"cluster"}),
        ("ResourceFlavor", thing("f", 11, namespace=""), {"cluster"}),
    ],
)
def test_whose_pages_are_hinted(mirror: MirrorWriter, kind: str, raw: Raw, channels: set[str]) -> None:
    mirror.write(listed(10, kind=kind))
    assert mirror.write(seen(raw, kind=kind)) == channels
    assert mirror.write(removed(raw, kind=kind)) == channels


# ---- age of the mirror -------------------------------------------------------------------------------------------


def test_trouble_is_said_and_taken_back(mirror: MirrorWriter, cluster: Cluster) -> None:
    mirror.write(listed(10, pod("a", 3)))
    mirror.write(trouble("The API server did not answer."))
    now = queries.as_of(cluster.pk, "Pod")
    assert (now.is_current, now.problem) == (False, "The API server did not answer.")
    assert now.at is not None
    assert queries.is_known(cluster.pk, "Pod")

    mirror.write(heard())
    assert queries.as_of(cluster.pk, "Pod").is_current


def test_a_kind_that_was_never_listed_says_why(mirror: MirrorWriter, cluster: Cluster) -> None:
    mirror.write(trouble("The API server refused to show it (403): no."))
    now = queries.as_of(cluster.pk, "Pod")
    assert (now.at, now.problem) == (None, "The API server refused to show it (403): no.")


def test_a_watcher_that_is_dead_or_deaf_is_noticed(mirror: MirrorWriter, cluster: Cluster) -> None:
    mirror.write(listed(10, pod("a", 3)))
    long_ago = timezone.now() - timezone.timedelta(seconds=600)

    MirrorKind.objects.update(heard_at=long_ago)
    deaf = queries.as_of(cluster.pk, "Pod")
    assert (deaf.at, deaf.is_current, deaf.problem) == (
        long_ago,
        False,
        "No cluster updates for more than 75 s.",
    )

    MirrorEpoch.objects.update(beat_at=long_ago)
    assert queries.as_of(cluster.pk, "Pod").problem == "The watcher is not running."
    mirror.beat()
    assert queries.as_of(cluster.pk, "Pod").problem == "No cluster updates for more than 75 s."


# ---- reading -----------------------------------------------------------------------------------------------------


def test_requests_by_node_count_bound_pods_that_are_not_over(mirror: MirrorWriter, cluster: Cluster) -> None:
    def asking(name: str, version: int, gpus: int, **more: Any) -> Raw:
        raw = pod(name, version, **more)
        raw["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": str(gpus), "cpu": "500m"}}
        return raw

    mirror.write(
        listed(
            10,
            asking("a", 1, 2, node="n1"),
            asking("b", 2, 1, node="n1", phase="Pending", owner="workloads.workload.1"),
            asking("c", 3, 4, node="n1", phase="Failed", owner="workloads.workload.2"),
            asking("d", 4, 1, phase="Pending"),
            asking("e", 5, 3, node="n2"),
        )
    )
    assert queries.requests_by_node(cluster.pk, ["n2"]) == {"n2": {"nvidia.com/gpu": 3, "cpu": 500}}
    assert queries.requests_by_node(cluster.pk, ["n1", "n2"]) == {
        "n1": {"nvidia.com/gpu": 3, "cpu": 1000},
        "n2": {"nvidia.com/gpu": 3, "cpu": 500},
    }


def test_the_newest_warning_per_object_and_reason(mirror: MirrorWriter, cluster: Cluster) -> None:
    def event(name: str, version: int, reason: str, message: str, minute: int, of: str = "uid-train") -> Raw:
        about = {"kind": "Job", "name": "train", "uid": of}
        at = f"2026-11-21T09:{minute:02}:00Z"
        return thing(name, version, reason=reason, message=message, involvedObject=about, lastTimestamp=at)

    mirror.write(
        listed(
            10,
            event("e1", 1, "FailedCreate", "exceeded quota: old", 1),
            event("e2", 2, "FailedCreate", "exceeded quota: new", 5),
            event("e3", 3, "FailedMount", "no volume", 3),
            event("e4", 4, "FailedCreate", "of another object", 4, of="uid-2"),
            event("e5", 5, "FailedCreate", "not asked for", 4, of="uid-3"),
            kind="Event",
        )
    )
    assert [(one.reason, one.message) for one in queries.warnings(cluster.pk, ["uid-train", "uid-2", "other"])] == [
        ("FailedCreate", "exceeded quota: new"),
        ("FailedCreate", "of another object"),
        ("FailedMount", "no volume"),
    ]
    assert queries.warnings(cluster.pk, ["other"]) == []
    mirror.write(removed(event("e2", 12, "FailedCreate", "", 5), kind="Event"))
    assert queries.warnings(cluster.pk, ["uid-train"])[1].message == "exceeded quota: old"


def test_a_node_and_its_devices_in_types(mirror: MirrorWriter, cluster: Cluster) -> None:
    mirror.write(listed(10, node("n1", 3, gpus=4), kind="Node"))
    [found] = queries.nodes(cluster.pk)
    assert (found.name, found.ready, found.schedulable) == ("n1", True, True)
    assert found.allocatable == {"nvidia.com/gpu": 4}
    assert found.labels == {"zone": "b"}


def test_two_clusters_do_not_mix(mirror: MirrorWriter, cluster: Cluster) -> None:
    other = Cluster.objects.create(name="second", notebooks_domain="n.localhost")
    second = MirrorWriter(other.pk)
    second.open()
    mirror.write(listed(10, pod("a", 3)))
    second.write(listed(7, pod("b", 2)))
    mirror.write(listed(50))
    assert [one.name for one in queries.pods(other.pk)] == ["b"]
    assert queries.pods(cluster.pk) == []


def test_a_batch_takes_few_statements(mirror: MirrorWriter, django_assert_max_num_queries: Any) -> None:
    mirror.write(listed(10))
    with django_assert_max_num_queries(8) as found:
        mirror.write(seen(*(pod(f"p{number}", 100 + number, node="n1") for number in range(200))))
    writes = [query for query in found.captured_queries if re.match(r"\s*(WITH|INSERT|UPDATE|DELETE)", query["sql"])]
    assert len(writes) <= 3


def profile(version: int, **data: str) -> Raw:
    return thing("site", version, namespace="gpu-portal", data=data)


def test_the_site_profile_is_kept_with_the_cluster_and_wakes_all_namespaces(
    mirror: MirrorWriter, cluster: Cluster, namespace_a: Namespace, owner: str
) -> None:
    key = {"cluster": cluster, "kind": "Namespace", "name": namespace_a.name}
    AppliedObject.objects.create(**key, owner=owner, result=AppliedObject.Result.APPLIED)

    def site() -> Any:
        mirror.tell()
        return Cluster.objects.get(pk=cluster.pk).site

    mirror.write(listed(10, profile(3, dns="a"), kind="ConfigMap"))
    assert (site(), is_awake(namespace_a)) == ({"dns": "a"}, True)
    mirror.write(seen(profile(11, dns="a"), kind="ConfigMap"))
    assert (site(), is_awake(namespace_a)) == ({"dns": "a"}, False)
    mirror.write(seen(profile(12, dns="b"), kind="ConfigMap"))
    assert (site(), is_awake(namespace_a)) == ({"dns": "b"}, True)

    MirrorEpoch.objects.all().delete()
    again = MirrorWriter(cluster.pk)
    again.open()
    again.write(listed(20, pod("a", 19)))
    assert site() == {"dns": "b"}, "an empty mirror says nothing about the profile"
    again.write(listed(20, kind="ConfigMap"))
    again.tell()
    assert (site(), is_awake(namespace_a)) == ({}, True)
