"""A client asks which cluster it reaches, and asks nothing else of one that is not the cluster of the rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection

from cluster.client import fence
from cluster.client.errors import ClusterRefused, ClusterUnavailable, NotFound, ObserveOnly, OtherCluster
from cluster.client.kube import Kube, connect, connect_for_logs, require_own_cluster
from cluster.models import Cluster
from cluster.replacement import server_check
from cluster.replacement.server_check import ServerCheck
from devcluster.client.kube import Api
from tests.cluster.replacement.other_server import empty_server
from tests.support.cluster.second_api_server import SecondApiServer

POOL = object()


class Server:
    """Answers with its uid, or fails."""

    def __init__(self, uid: str) -> None:
        self.uid, self.asked = uid, 0
        self.fails: Exception | None = None

    def __call__(self) -> str:
        self.asked += 1
        if self.fails is not None:
            raise self.fails
        return self.uid


def check(one: ServerCheck, server: Server, pool: object = POOL) -> None:
    require_own_cluster(one, pool, server)


def test_the_first_cluster_that_a_watcher_reaches_is_the_one_of_the_rows(cluster: Cluster) -> None:
    check(ServerCheck(), Server("first"))
    cluster.refresh_from_db()
    assert cluster.uid == ""
    check(ServerCheck(records=True), Server("first"))
    cluster.refresh_from_db()
    assert (cluster.uid, cluster.other_uid, cluster.other_since) == ("first", "", None)
    check(ServerCheck(), Server("first"))
    with pytest.raises(OtherCluster):
        check(ServerCheck(), Server("second"))


def test_the_row_says_since_when_another_cluster_is_reached_and_forgets_it(cluster: Cluster) -> None:
    Cluster.objects.update(uid="first")
    for _ in range(2):
        with pytest.raises(OtherCluster):
            check(ServerCheck(records=True), Server("second"))
    cluster.refresh_from_db()
    since = cluster.other_since
    assert (cluster.uid, cluster.other_uid) == ("first", "second")
    assert since is not None
    # A worker changes no row, and tells the same.
    with pytest.raises(OtherCluster):
        check(ServerCheck(), Server("third"))
    with pytest.raises(OtherCluster):
        check(ServerCheck(records=True), Server("second"))
    cluster.refresh_from_db()
    assert (cluster.other_uid, cluster.other_since) == ("second", since)
    check(ServerCheck(records=True), Server("first"))
    cluster.refresh_from_db()
    assert (cluster.uid, cluster.other_uid, cluster.other_since) == ("first", "", None)


def test_an_answer_is_used_for_a_moment_and_not_after_a_failure(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, server = ServerCheck(), Server("first")
    Cluster.objects.update(uid="first")
    check(one, server)
    check(one, server)
    assert server.asked == 1
    one.forget()
    check(one, server)
    check(one, server, pool=object())
    assert server.asked == 3
    monkeypatch.setattr(server_check, "FRESH_S", 0.0)
    one.forget()
    check(one, server)
    server.uid = "second"
    with pytest.raises(OtherCluster):
        check(one, server)


def test_an_answer_from_before_a_failure_is_not_used_after_it(cluster: Cluster) -> None:
    """One thread asks; meanwhile a request of another thread fails, since the server is being replaced."""
    one, server = ServerCheck(), Server("first")
    Cluster.objects.update(uid="first")

    def replaced_meanwhile() -> str:
        one.forget()
        return "first"

    require_own_cluster(one, POOL, replaced_meanwhile)
    server.uid = "second"
    with pytest.raises(OtherCluster):
        check(one, server)


@pytest.mark.parametrize(
    "fails",
    [ClusterRefused(403, "Forbidden", "no right"), NotFound(404, "NotFound", "not yet"), ClusterUnavailable("away")],
    ids=["a server without the rights", "a server that has just begun", "no server"],
)
def test_a_server_that_does_not_say_it_is_asked_nothing(fails: Exception, cluster: Cluster) -> None:
    server = Server("first")
    server.fails = fails
    one = ServerCheck()
    for _ in range(2):
        with pytest.raises(ClusterUnavailable):
            check(one, server)
    assert server.asked == 2


def test_a_database_that_does_not_answer_is_no_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise OperationalError("away")

    monkeypatch.setattr(server_check, "known_cluster", fails)
    with pytest.raises(ClusterUnavailable):
        check(ServerCheck(), Server("first"))


def test_a_thread_leaves_no_connection(transactional_db: None, cluster: Cluster) -> None:
    found: list[object] = []

    def ask() -> None:
        check(ServerCheck(records=True), Server("first"))
        found.append(connection.connection)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [None]
    assert Cluster.objects.get().uid == "first"


# ---- real API servers ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def elsewhere(services: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecondApiServer]:
    with empty_server(services, tmp_path_factory.mktemp("elsewhere")) as found:
        yield found


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "never-written"}}
CALLS: dict[str, Callable[[Kube], object]] = {
    "get": lambda kube: kube.get("Namespace", name="default"),
    "list": lambda kube: kube.list_page("api/v1/namespaces"),
    "watch": lambda kube: list(kube.watch_lines("api/v1/namespaces", resource_version="1", timeout_s=5)),
    "create": lambda kube: kube.create(NAMESPACE),
    "dry run": lambda kube: kube.create(NAMESPACE, dry_run=True),
    "apply": lambda kube: kube.apply(NAMESPACE),
    "delete": lambda kube: kube.delete("Namespace", name="default"),
    "log": lambda kube: kube.open_log(
        namespace="default", pod="a", container="a", follow=False, tail_lines=1, silence_s=5
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_nothing_is_asked_of_another_cluster_with_all_rights(
    call: Callable[[Kube], object], elsewhere: SecondApiServer, services: dict[str, Any], cluster: Cluster
) -> None:
    own = Kube(services["kubeconfigs"]["watcher"], server_check=ServerCheck(records=True))
    assert own.list_page("api/v1/namespaces", limit=1)["items"]
    cluster.refresh_from_db()
    assert cluster.uid == Api(services["kubeconfigs"]["admin"]).get("v1/namespaces", "kube-system")["metadata"]["uid"]

    path = str(elsewhere.kubeconfig)
    with pytest.raises(OtherCluster):
        call(connect(path))
    names = {one["metadata"]["name"] for one in Api(path).list("v1/namespaces")}
    assert "never-written" not in names
    assert "default" in names


def test_workers_have_the_right_to_ask_and_doors_need_not(
    services: dict[str, Any], cluster: Cluster, settings: Any
) -> None:
    identities = services["kubeconfigs"]
    settings.PORTAL_KUBECONFIG = identities["doors"]
    uid = Kube(identities["worker"]).server_uid()
    assert uid == Kube(identities["watcher"]).server_uid(by_list=True)
    with pytest.raises(ClusterRefused):
        Kube(identities["doors"]).server_uid()
    with pytest.raises(ObserveOnly):
        connect_for_logs.__wrapped__().delete("Namespace", name="never-written")


def test_the_fence_is_not_tried_in_another_cluster(
    elsewhere: SecondApiServer, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a dry run of a Secret in kube-system; a worker that begins there has to check it in its own."""
    monkeypatch.setattr(fence, "_fence", fence.Fence())
    monkeypatch.setattr(server_check, "FRESH_S", 0.0)
    asked: list[Any] = []
    monkeypatch.setattr(fence, "check_fence", asked.append)
    Cluster.objects.update(uid="first")
    fence.postpone_fence()
    kube = connect.__wrapped__(str(elsewhere.kubeconfig))
    with pytest.raises(OtherCluster):
        kube.delete("Job", name="nothing", namespace="default")
    assert asked == []

    reached = Api(str(elsewhere.kubeconfig)).get("v1/namespaces", "kube-system")["metadata"]["uid"]
    Cluster.objects.update(uid=reached)
    for _ in range(2):
        kube.delete("Job", name="nothing", namespace="default")
    assert len(asked) == 1
    # The client of the check asks too.
    Cluster.objects.update(uid="first")
    with pytest.raises(OtherCluster):
        asked[0].create(fence.FORBIDDEN_SECRET, dry_run=True)
