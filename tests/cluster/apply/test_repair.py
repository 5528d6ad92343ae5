"""What a repair says and leaves when something goes wrong in it, on the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.apply import reconcile, status
from cluster.apply.reconcile import converge
from cluster.client.errors import Conflict
from cluster.client.kube import Kube
from cluster.client.types import ApiObject
from cluster.models import AppliedObject, Cluster
from devcluster.client.kube import Api
from portal.core.due import Deadline
from tests.cluster.apply.objects import OWNER, meta, namespace, quota

pytestmark = pytest.mark.usefixtures("clean_cluster")


def account(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta("robot", namespace=name)}


class Overruled(Kube):
    """Another client adds the field again at the same moment."""

    def take_out(self, answer: ApiObject, patch: list[dict[str, Any]]) -> ApiObject:
        return answer


class Between(Kube):
    """Another client changes the object between the two requests of a repair, once."""

    is_done = False

    def take_out(self, answer: ApiObject, patch: list[dict[str, Any]]) -> ApiObject:
        if not self.is_done:
            self.is_done = True
            raise Conflict(409, "Conflict", "the object has been modified")
        return super().take_out(answer, patch)


def drifted(admin: Api, name: str) -> None:
    """As the watcher notes it."""
    admin.patch("v1/serviceaccounts", "robot", {"imagePullSecrets": [{"name": "evil"}]}, namespace=name)
    difference = {"fields": ["imagePullSecrets"], "manager": "devcluster"}
    AppliedObject.objects.filter(kind="ServiceAccount").update(difference=difference)


@pytest.fixture
def name(unique: str) -> str:
    return f"repair-{unique}"


def test_repaired_is_said_only_of_an_object_that_is_as_it_was_sent(
    kube_worker: Kube, services: dict[str, Any], cluster: Cluster, admin: Api, name: str
) -> None:
    manifests = [namespace(name), account(name)]
    same = {"cluster_id": cluster.pk, "owner": OWNER, "manifests": manifests}
    converge(kube=kube_worker, deadline=Deadline(), **same)
    drifted(admin, name)

    done = converge(kube=Overruled(services["kubeconfigs"]["worker"]), deadline=Deadline(), **same)

    row = AppliedObject.objects.get(kind="ServiceAccount")
    assert not done.is_all_applied
    assert status.object_status(row) == "drifted"
    assert status.status_sentence(row) == (
        "The drift could not be repaired: imagePullSecrets, written by devcluster, is still there. It is tried again."
    )
    assert row.difference, "so that the next pass tries it again"

    AppliedObject.objects.update(sent_at=row.sent_at - reconcile.REFUSED_AGAIN_AFTER * 2)
    done = converge(kube=kube_worker, deadline=Deadline(), **same)

    row.refresh_from_db()
    assert done.is_all_applied
    assert (status.object_status(row), row.difference) == ("repaired", {})
    assert "imagePullSecrets" not in admin.get("v1/serviceaccounts", "robot", namespace=name)


def test_a_change_between_the_requests_of_a_repair_does_not_delay_it(
    kube_worker: Kube, services: dict[str, Any], cluster: Cluster, admin: Api, name: str
) -> None:
    """The controller of quotas writes the status as soon as the limits have changed."""
    same = {"cluster_id": cluster.pk, "owner": OWNER, "manifests": [namespace(name), account(name)]}
    converge(kube=kube_worker, deadline=Deadline(), **same)
    drifted(admin, name)
    kube = Between(services["kubeconfigs"]["worker"])

    done = converge(kube=kube, deadline=Deadline(), **same)

    assert kube.is_done
    assert done.is_all_applied
    assert status.object_status(AppliedObject.objects.get(kind="ServiceAccount")) == "repaired"
    assert "imagePullSecrets" not in admin.get("v1/serviceaccounts", "robot", namespace=name)


def test_an_exception_about_one_object_does_not_keep_the_others_from_being_sent(
    kube_worker: Kube, cluster: Cluster, admin: Api, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    same: dict[str, Any] = {"kube": kube_worker, "cluster_id": cluster.pk, "owner": OWNER}
    converge(manifests=[namespace(name), account(name)], deadline=Deadline(), **same)
    drifted(admin, name)

    def fails(body: dict[str, Any]) -> None:
        raise StopIteration

    monkeypatch.setattr(reconcile, "removal_patch", fails)
    done = converge(manifests=[namespace(name), account(name), quota(name, pods=3)], deadline=Deadline(), **same)

    row = AppliedObject.objects.get(kind="ServiceAccount")
    assert done.refused == (("ServiceAccount", name, "robot"),)
    assert admin.get("v1/resourcequotas", "gpu-portal", namespace=name)["spec"]["hard"] == {"pods": "3"}
    assert status.object_status(row) == "refused"
    assert status.status_sentence(row) == (
        "The portal failed to send this object (StopIteration); the worker's log has the details. It is tried again."
    )
