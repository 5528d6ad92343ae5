"""New objects of a namespace are sent in parallel, with one request each; what fails is repaired later."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.apply.reconcile import converge
from cluster.apply.types import ConvergeResult
from cluster.client.errors import ClusterUnavailable, ObserveOnly
from cluster.client.kube import Kube
from cluster.manifests.metadata import OWNER_LABEL
from cluster.models import AppliedObject, Cluster
from devcluster.client.kube import Api
from devcluster.faults.api_proxy import ApiProxy
from devcluster.faults.rules import WRITES
from portal.core.due import Deadline

OWNER = "tenants.namespace.78"
pytestmark = pytest.mark.usefixtures("clean_cluster")


@pytest.fixture
def proxy(services: dict[str, Any], tmp_path: Path) -> Iterator[ApiProxy]:
    with ApiProxy(services["kubeconfigs"]["worker"], tmp_path) as proxy:
        yield proxy


@pytest.fixture
def name(unique: str) -> str:
    return f"at-once-{unique}"


def namespace(name: str, **labels: str) -> dict[str, Any]:
    security = {f"pod-security.kubernetes.io/{key}": value for key, value in labels.items()}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta(name, **security)}


def account(namespace: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**meta(name), "namespace": namespace}}


def meta(name: str, **labels: str) -> dict[str, Any]:
    return {"name": name, "labels": {"app.kubernetes.io/managed-by": "gpu-portal", OWNER_LABEL: OWNER, **labels}}


def send(proxy: ApiProxy, cluster: Cluster, *manifests: dict[str, Any]) -> ConvergeResult:
    kube = Kube(str(proxy.kubeconfig))
    return converge(kube=kube, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=Deadline())


def test_they_do_not_wait_for_one_another(proxy: ApiProxy, cluster: Cluster, name: str) -> None:
    both = threading.Barrier(2)
    proxy.when("create", "serviceaccounts", times=2).call_before(lambda: both.wait(4))
    sent = send(proxy, cluster, namespace(name, enforce="restricted"), account(name, "a"), account(name, "b"))
    assert len(sent.sent) == 3
    assert set(AppliedObject.objects.values_list("result", flat=True)) == {"applied"}
    # The namespace is created before its contents, with one request each.
    assert [done.call.resource for done in proxy.calls(WRITES)] == ["namespaces", *["serviceaccounts"] * 2]


def test_what_was_sent_is_known_though_another_could_not_be(proxy: ApiProxy, cluster: Cluster, name: str) -> None:
    both = threading.Barrier(2)
    wanted = [namespace(name, enforce="restricted"), *(account(name, one) for one in "abcdefgh")]
    send(proxy, cluster, wanted[0])
    proxy.when("create", "serviceaccounts", times=2).call_before(lambda: both.wait(4))
    proxy.when("create", "serviceaccounts", nth=2, times=None).status(503)
    with pytest.raises(ClusterUnavailable):
        send(proxy, cluster, *wanted)
    assert AppliedObject.objects.filter(kind="ServiceAccount").count() == 1
    # Only requests already in flight were sent; none was begun afterwards.
    assert len(proxy.calls("create", "serviceaccounts")) < 8
    proxy.forget()
    send(proxy, cluster, *wanted)
    assert AppliedObject.objects.filter(kind="ServiceAccount", result="applied").count() == 8


def test_whether_they_may_be_sent_is_asked_for_each_by_the_caller(proxy: ApiProxy, cluster: Cluster, name: str) -> None:
    """A connection of each thread took longer than the requests. After the third ask the portal only observes."""
    asked: list[threading.Thread] = []

    def check_write(method: str, path: str) -> None:
        asked.append(threading.current_thread())
        if len(asked) > 3:
            raise ObserveOnly(method, path)

    kube = Kube(str(proxy.kubeconfig), check_write=check_write)
    wanted = [namespace(name, enforce="restricted"), *(account(name, one) for one in "abcdefgh")]
    with pytest.raises(ObserveOnly, match="serviceaccounts"):
        converge(kube=kube, cluster_id=cluster.pk, owner=OWNER, manifests=wanted, deadline=Deadline())
    assert asked == [threading.current_thread()] * 4
    assert AppliedObject.objects.filter(kind="ServiceAccount", result="applied").count() == 2
    assert len(proxy.calls("create", "serviceaccounts")) == 2


def test_a_field_that_only_the_creation_sent_goes_with_the_first_change(
    proxy: ApiProxy, cluster: Cluster, name: str, admin: Api
) -> None:
    send(proxy, cluster, namespace(name, enforce="restricted", warn="restricted"))
    send(proxy, cluster, namespace(name, enforce="restricted"))
    metadata = admin.get("v1/namespaces", name)["metadata"]
    assert "pod-security.kubernetes.io/warn" not in metadata["labels"]
    ours = [entry["operation"] for entry in metadata["managedFields"] if entry["manager"] == "gpu-portal"]
    assert ours == ["Apply"]
