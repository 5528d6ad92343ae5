"""The watcher as a separate process, with exactly the watcher's rights, on the real control plane."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from catalog.models import Pool
from cluster.models import AppliedObject, Cluster, MirrorEpoch
from cluster.reads import queries
from devcluster.client.kube import Api
from portal.core.due import owner_label
from tenants.models import Namespace
from tests.support.processes.watchers import Watchers, eventually, is_current

OURS = {"app.kubernetes.io/managed-by": "gpu-portal"}
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clean_cluster")]


@pytest.fixture
def watchers(cluster: Cluster, services: dict[str, Any], tmp_path: Path) -> Iterator[Watchers]:
    found = Watchers(services["kubeconfigs"]["watcher"], tmp_path)
    yield found
    found.end()


@pytest.fixture
def place(admin: Api, unique: str) -> str:
    """A namespace with the portal's label."""
    name = f"mirror-{unique}"
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": OURS}})
    return name


def quota(namespace: str, *, pods: int, owner: str = "") -> dict[str, Any]:
    labels = {**OURS, **({"gpu-portal/owner": owner} if owner else {})}
    metadata = {"name": "gpu-portal", "namespace": namespace, "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata,
        "spec": {"hard": {"pods": str(pods)}},
    }


def hard(cluster: Cluster, namespace: str) -> dict[str, str] | None:
    found = queries.object_named(cluster.pk, "ResourceQuota", "gpu-portal", namespace=namespace)
    return dict(found.record["hard"]) if found else None


def test_rows_follow_the_cluster(watchers: Watchers, cluster: Cluster, admin: Api, place: str) -> None:
    process = watchers.start()
    eventually(lambda: is_current(cluster), watchers)
    nodes = {node.name: node for node in queries.nodes(cluster.pk)}
    assert nodes["a100-1"].allocatable["nvidia.com/gpu"] == 4
    assert nodes["a100-1"].ready
    assert nodes["a100-1"].labels["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-80GB"
    [slice_] = [one for one in queries.objects(cluster.pk, kind="ResourceSlice") if one.record["node"] == "h100"]
    assert len(slice_.record["devices"]) == 8

    admin.create(quota(place, pods=3))
    eventually(lambda: hard(cluster, place) == {"pods": "3"}, watchers)
    admin.patch("v1/resourcequotas", "gpu-portal", {"spec": {"hard": {"pods": "5"}}}, namespace=place)
    eventually(lambda: hard(cluster, place) == {"pods": "5"}, watchers)
    admin.delete("v1/resourcequotas", "gpu-portal", namespace=place)
    eventually(lambda: hard(cluster, place) is None, watchers)

    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0


def test_nodes_and_pods_come_change_and_go(
    watchers: Watchers, cluster: Cluster, admin: Api, unique: str, place: str
) -> None:
    name = f"node-{unique}"
    pool = Pool.objects.create(cluster=cluster, due_at=None)
    watchers.start()
    eventually(lambda: is_current(cluster), watchers)
    Pool.objects.update(due_at=None)

    def node() -> Any:
        return next((one for one in queries.nodes(cluster.pk) if one.name == name), None)

    def is_woken() -> bool:
        return Pool.objects.filter(pk=pool.pk, due_at__isnull=False).update(due_at=None) == 1

    admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"rack": "7"}}})
    try:
        eventually(lambda: node() is not None and not node().ready, watchers)
        assert node().labels["rack"] == "7"
        eventually(is_woken, watchers)
        admin.patch("v1/nodes", name, {"spec": {"unschedulable": True}})
        eventually(lambda: not node().schedulable, watchers)
        eventually(is_woken, watchers)
    finally:
        admin.delete("v1/nodes", name)
    eventually(lambda: node() is None, watchers)

    # Not in a namespace of the portal, where a policy requires more labels than this test needs.
    elsewhere = f"elsewhere-{unique}"
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}})
    eventually(lambda: queries.object_named(cluster.pk, "Namespace", elsewhere) is not None, watchers)
    container = {"name": "main", "image": "none", "resources": {"limits": {"cpu": "1"}}}
    spec = {"containers": [container], "nodeSelector": {"no-such": "node"}}
    metadata = {"name": "stranger", "namespace": elsewhere}
    eventually(lambda: admin.find("v1/serviceaccounts", "default", namespace=elsewhere) is not None, watchers)
    admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    eventually(lambda: len(queries.pods(cluster.pk, namespace=elsewhere)) == 1, watchers)
    [pod] = queries.pods(cluster.pk, namespace=elsewhere)
    assert (pod.owner, pod.phase, pod.requests["cpu"]) == ("", "Pending", 1000)
    admin.delete("v1/pods", "stranger", namespace=elsewhere)
    eventually(lambda: queries.pods(cluster.pk, namespace=elsewhere) == [], watchers)
    # A foreign namespace is stored by name; its contents other than pods are not.
    assert queries.objects(cluster.pk, kind="ServiceAccount", namespace=elsewhere) == []


def test_a_killed_watcher_finds_what_happened_meanwhile(
    watchers: Watchers, cluster: Cluster, admin: Api, place: str, namespace_a: Namespace
) -> None:
    owner = owner_label(namespace_a)
    created = admin.create(quota(place, pods=3, owner=owner))
    row = AppliedObject.objects.create(
        cluster=cluster,
        owner=owner,
        kind="ResourceQuota",
        namespace=place,
        name="gpu-portal",
        uid=created["metadata"]["uid"],
        result=AppliedObject.Result.APPLIED,
    )
    first = watchers.start()
    eventually(lambda: is_current(cluster) and hard(cluster, place) == {"pods": "3"}, watchers)
    assert not Namespace.objects.filter(pk=namespace_a.pk, due_at__isnull=False).exists()

    first.kill()
    first.wait(10)
    admin.delete("v1/resourcequotas", "gpu-portal", namespace=place)
    limits = {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}
    metadata = {"name": "meanwhile", "namespace": place, "labels": OURS}
    admin.create({"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": limits})
    assert hard(cluster, place) == {"pods": "3"}

    watchers.start()
    eventually(lambda: hard(cluster, place) is None, watchers)
    eventually(
        lambda: queries.object_named(cluster.pk, "LimitRange", "meanwhile", namespace=place) is not None, watchers
    )
    eventually(lambda: Namespace.objects.filter(pk=namespace_a.pk, due_at__isnull=False).exists(), watchers)
    eventually(lambda: AppliedObject.objects.get(pk=row.pk).difference.get("gone") is True, watchers)


def test_emptied_tables_are_filled_again_by_itself(
    watchers: Watchers, cluster: Cluster, admin: Api, place: str
) -> None:
    admin.create(quota(place, pods=3))
    watchers.start()
    eventually(lambda: is_current(cluster) and hard(cluster, place) == {"pods": "3"}, watchers)
    before = MirrorEpoch.objects.get().epoch
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r'")
        tables = [name for (name,) in cursor.fetchall()]
        assert {"cluster_mirrorepoch", "cluster_mirrorpod", "cluster_mirrornews"} <= set(tables)
        # Every batch of the watcher locks its epoch first: the same order here avoids a deadlock.
        tables.sort(key=lambda name: name != "cluster_mirrorepoch")
        cursor.execute(f"TRUNCATE {', '.join(tables)}")
    assert not queries.is_known(cluster.pk, "Pod")

    eventually(lambda: is_current(cluster) and hard(cluster, place) == {"pods": "3"}, watchers)
    assert MirrorEpoch.objects.get().epoch > before


def test_a_second_watcher_waits_until_the_first_is_gone(
    watchers: Watchers, cluster: Cluster, admin: Api, place: str
) -> None:
    first = watchers.start()
    eventually(lambda: is_current(cluster), watchers)
    watchers.start()
    eventually(lambda: watchers.said(1, "watcher_waits"), watchers)
    assert not watchers.said(1, "watcher_follows")

    first.kill()
    first.wait(10)
    eventually(lambda: watchers.said(1, "watcher_follows"), watchers)
    admin.create(quota(place, pods=4))
    eventually(lambda: hard(cluster, place) == {"pods": "4"}, watchers)


def test_a_lost_database_connection_begins_again(watchers: Watchers, cluster: Cluster, admin: Api, place: str) -> None:
    watchers.start()
    eventually(lambda: is_current(cluster), watchers)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
            " WHERE locktype = 'advisory' AND datname = current_database()"
        )
        assert cursor.fetchall() == [(True,)]

    eventually(lambda: watchers.said(0, "database_lost"), watchers)
    admin.create(quota(place, pods=4))
    eventually(lambda: is_current(cluster) and hard(cluster, place) == {"pods": "4"}, watchers)


def test_it_waits_for_its_cluster_to_be_seeded(watchers: Watchers, cluster: Cluster) -> None:
    Cluster.objects.update(name="not-yet")
    process = watchers.start()
    eventually(lambda: watchers.said(0, "no cluster named main"), watchers)
    assert process.poll() is None

    Cluster.objects.update(name="main")
    eventually(lambda: is_current(cluster), watchers)
