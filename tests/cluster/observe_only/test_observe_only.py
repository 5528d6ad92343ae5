"""The rule that a cluster is observed only: who sets it, what it keeps from being sent, and what it wakes."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection

from accounts.core.actor import Actor, system_actor
from accounts.models import Event, User
from cluster.client.errors import ObserveOnly
from cluster.client.kube import Kube, connect
from cluster.models import Cluster
from cluster.observe_only.actions import set_observe_only
from cluster.observe_only.queries import is_observe_only, waiting_work
from portal.core import due
from portal.core.errors import Refused
from tenants.models import Namespace
from tests.support.source import APPS, ROOT

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "never-written", "uid": "u"}}
PATCH = [{"op": "test", "path": "/metadata/name", "value": "never-written"}]
JOB = {"kind": "Job", "name": "never", "namespace": "gpu-portal"}


@pytest.fixture
def own(services: dict[str, Any]) -> Kube:
    return connect(services["kubeconfigs"]["admin"])


@pytest.fixture
def observed(cluster: Cluster, olga: User) -> Cluster:
    return set_observe_only(cluster, wanted=True, by=Actor(olga, "page"))


WRITES = {
    "create": lambda kube: kube.create(NAMESPACE),
    "create as a dry run": lambda kube: kube.create(NAMESPACE, dry_run=True),
    "apply": lambda kube: kube.apply(NAMESPACE),
    "apply as a dry run": lambda kube: kube.apply(NAMESPACE, dry_run=True),
    "look": lambda kube: kube.look(NAMESPACE),
    "relabel": lambda kube: kube.relabel(**JOB, uid="u", labels={"a": "b"}),
    "merge": lambda kube: kube.merge(**JOB, body={}),
    "delete": lambda kube: kube.delete(**JOB),
    "a review of rights": lambda kube: kube.may("get", group="", resource="pods"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_no_write_is_sent_with_all_rights(write: Any, own: Kube, observed: Cluster) -> None:
    with pytest.raises(ObserveOnly, match=r"Not sent: (POST|PATCH|DELETE) api") as refused:
        write(own)
    assert refused.value.code == "observe_only"
    assert own.raw("version")["gitVersion"]
    assert own.list_page("api/v1/namespaces", limit=1)["items"]


def test_a_thread_asks_too_and_leaves_no_connection(own: Kube, transactional_db: None, observed: Cluster) -> None:
    found: list[object] = []

    def write() -> None:
        try:
            own.delete(**JOB)
        except ObserveOnly as refused:
            found.append(refused.code)
        found.append(connection.connection)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert found == ["observe_only", None]


def test_it_is_off_until_it_is_set_and_of_this_installations_cluster_only(
    cluster: Cluster, olga: User, settings: Any
) -> None:
    assert not is_observe_only()
    other = Cluster.objects.create(name="other", notebooks_domain="x")
    set_observe_only(other, wanted=True, by=Actor(olga, "page"))
    assert not is_observe_only()
    settings.CLUSTER_NAME = "other"
    assert is_observe_only()


def test_what_waits_is_due_again_when_it_ends(observed: Cluster, namespace_a: Namespace, olga: User) -> None:
    due.touch(Namespace, namespace_a.pk)
    claimed = due.claim(Namespace)
    assert claimed is not None
    due.run_claimed(claimed, lambda _row, _deadline: connect_and_write())
    namespace_a.refresh_from_db()
    assert (namespace_a.error_code, due.claim(Namespace)) == ("observe_only", None)
    waiting = waiting_work()
    assert (waiting.count, [row.text for row in waiting.rows]) == (1, [namespace_a.error_text])
    assert namespace_a.error_text.endswith("Not sent: DELETE apis/batch/v1/namespaces/gpu-portal/jobs/never")

    set_observe_only(observed, wanted=False, by=Actor(olga, "page"))
    again = due.claim(Namespace)
    assert again is not None
    assert again.row.pk == namespace_a.pk


def connect_and_write() -> due.Outcome:
    raise ObserveOnly("DELETE", "apis/batch/v1/namespaces/gpu-portal/jobs/never")


def test_operators_set_it_once_and_an_event_says_so(cluster: Cluster, olga: User, alice: User) -> None:
    with pytest.raises(Refused) as refused:
        set_observe_only(cluster, wanted=True, by=Actor(alice, "page"))
    assert refused.value.code == "not_allowed"
    first = set_observe_only(cluster, wanted=True, by=Actor(olga, "page"))
    again = set_observe_only(cluster, wanted=True, by=system_actor("setup"))
    assert (again.observe_only_since, again.observe_only_by) == (first.observe_only_since, olga)
    set_observe_only(cluster, wanted=False, by=Actor(olga, "page"))
    verbs = Event.objects.order_by("pk").values_list("verb", "actor")
    assert list(verbs) == [("cluster.observe_only_begun", "Olga"), ("cluster.observe_only_ended", "Olga")]
    cluster.refresh_from_db()
    assert (cluster.observe_only_since, cluster.observe_only_by) == (None, None)


def test_only_a_client_that_asks_can_write_as_the_portal() -> None:
    """Who makes a client of his own, and why it needs no rule. All others call `connect`."""
    makers = {
        "cluster/client/kube.py",  # the rule itself; and the check of the fence, which comes after the rule
        "cluster/tasks.py",  # the check of the fence at start, which is left out while the cluster is observed
        "desk/management/commands/doctor.py",  # with the kubeconfig of the person who installs the portal
    }
    found = {
        str(path.relative_to(ROOT))
        for app in APPS
        for path in (ROOT / app).rglob("*.py")
        if " Kube(" in path.read_text() or "(Kube(" in path.read_text()
    }
    assert found == makers
