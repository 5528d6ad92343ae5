"""The watcher behind a proxy that duplicates, reorders, cuts and withholds events: rows finally equal the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from cluster.client.errors import UNAVAILABLE
from cluster.models import Cluster, MirrorObject
from cluster.reads import queries
from devcluster.client.kube import Api
from devcluster.faults.api_proxy import ApiProxy
from tenants.models import Namespace
from tests.support.processes.watchers import Watchers, eventually, is_current
from tests.support.rows import make

OURS = {"app.kubernetes.io/managed-by": "gpu-portal"}
RESOURCE = "v1/limitranges"
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clean_cluster")]


@pytest.fixture
def proxy(services: dict[str, Any], tmp_path: Path) -> Iterator[ApiProxy]:
    with ApiProxy(services["kubeconfigs"]["watcher"], tmp_path) as found:
        yield found


@pytest.fixture
def watchers(cluster: Cluster, proxy: ApiProxy, tmp_path: Path) -> Iterator[Watchers]:
    found = Watchers(str(proxy.kubeconfig), tmp_path)
    yield found
    found.end()


@pytest.fixture
def place(admin: Api, unique: str) -> str:
    name = f"faults-{unique}"
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": OURS}})
    return name


def limits(place: str, name: str, milli: int) -> dict[str, Any]:
    spec = {"limits": [{"type": "Container", "default": {"cpu": f"{milli}m"}}]}
    metadata = {"name": name, "namespace": place, "labels": OURS}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": spec}


def stir(admin: Api, place: str, *, turns: int, first: int = 0) -> None:
    """Objects are created, changed, deleted and created again under the same names."""
    for turn in range(first, first + turns):
        name = f"l{turn % 5}"
        if admin.find(RESOURCE, name, namespace=place) is None:
            admin.create(limits(place, name, 100 + turn))
        elif turn % 3 == 0:
            admin.delete(RESOURCE, name, namespace=place)
        else:
            admin.patch(RESOURCE, name, {"spec": limits(place, name, 100 + turn)["spec"]}, namespace=place)


def in_cluster(admin: Api, place: str) -> dict[str, Any]:
    return {
        item["metadata"]["name"]: (item["metadata"]["uid"], item["spec"]["limits"])
        for item in admin.list(RESOURCE, namespace=place)
    }


def in_rows(place: str) -> dict[str, Any]:
    rows = MirrorObject.objects.filter(kind="LimitRange", namespace=place)
    return {row.name: (row.uid, row.record["limits"]) for row in rows}


@pytest.mark.parametrize("fault", ["duplicate", "reorder", "gone", "cut"])
def test_rows_are_what_the_cluster_has_whatever_the_wire_does(
    watchers: Watchers, cluster: Cluster, proxy: ApiProxy, admin: Api, place: str, fault: str
) -> None:
    watchers.start()
    eventually(lambda: is_current(cluster), watchers)
    if fault in ("duplicate", "reorder"):
        getattr(proxy.when("watch", "limitranges", times=None), fault)()
    elif fault == "gone":
        proxy.when("watch", "limitranges", nth=7).gone()

    stir(admin, place, turns=20)
    if fault == "cut":
        proxy.cut()
    stir(admin, place, turns=20, first=20)
    proxy.forget()
    # A fault may hold the last event back until one more follows.
    admin.create(limits(place, "last", 1))

    eventually(lambda: in_rows(place) == in_cluster(admin, place), watchers)
    assert len(in_rows(place)) > 1


def test_an_api_server_that_is_away_is_said_aloud_and_caught_up_with(
    watchers: Watchers, cluster: Cluster, proxy: ApiProxy, admin: Api, place: str
) -> None:
    watchers.start()
    eventually(lambda: is_current(cluster), watchers)

    proxy.refuse()
    proxy.cut()
    eventually(lambda: not queries.as_of(cluster.pk).is_current, watchers)
    away = queries.as_of(cluster.pk)
    assert away.at is not None
    assert "did not respond" in away.problem or "was interrupted" in away.problem
    assert queries.is_known(cluster.pk, "Node")
    admin.create(limits(place, "meanwhile", 7))
    # Rows that were tried in vain a few times: one for the API server, one for something else.
    later, rows = Now() + timedelta(minutes=4), Namespace.objects
    for slug, code in (("waits", UNAVAILABLE), ("refused", "refused")):
        make.tenant(cluster, slug=slug)
        rows.filter(name=slug).update(error_code=code, attempts=7, due_at=later)

    proxy.resume()
    eventually(lambda: rows.filter(name="waits", due_at__lte=Now()).exists(), watchers)
    assert rows.filter(name="refused", due_at__gt=Now()).exists()
    eventually(lambda: "meanwhile" in in_rows(place), watchers)
    eventually(lambda: is_current(cluster), watchers)


def test_a_connection_that_fell_silent_is_opened_again(
    watchers: Watchers, cluster: Cluster, proxy: ApiProxy, admin: Api, place: str
) -> None:
    watchers.start("--silence", "2")
    eventually(lambda: is_current(cluster), watchers)
    silence = proxy.when("watch", "limitranges").silence()

    admin.create(limits(place, "unheard", 7))
    silence.wait()
    eventually(lambda: "unheard" in in_rows(place), watchers)


def test_a_server_that_refuses_one_kind_keeps_the_others_going(
    watchers: Watchers, cluster: Cluster, proxy: ApiProxy, admin: Api, place: str
) -> None:
    forbidden = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "resourceslices is forbidden"}
    proxy.when("list", "resourceslices", times=None).status(403, forbidden)
    watchers.start()
    admin.create(limits(place, "others", 7))

    eventually(lambda: "others" in in_rows(place) and queries.is_known(cluster.pk, "LimitRange"), watchers)
    eventually(lambda: "resourceslices is forbidden" in queries.as_of(cluster.pk, "ResourceSlice").problem, watchers)
    assert not queries.is_known(cluster.pk, "ResourceSlice")
    assert queries.as_of(cluster.pk, "LimitRange").is_current

    proxy.forget()
    eventually(lambda: is_current(cluster), watchers)
