"""What a repair says and leaves when something goes wrong in it, on the real API server."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from cluster.apply import reconcile, status
from cluster.apply.reconcile import converge
from cluster.client.errors import Conflict
from cluster.client.kube import Kube
from cluster.client.managed_fields import field_ownership
from cluster.client.types import ApiObject
from cluster.manifests.metadata import KUEUE_API
from cluster.manifests.namespace import plain_resource_group
from cluster.manifests.pool import cohort
from cluster.manifests.specs import CohortSpec, QuotaCell
from cluster.models import AppliedObject, Cluster, ObjectDrift
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


class Recording(Kube):
    """Keeps the object as it was after each request."""

    def __init__(self, kubeconfig: str) -> None:
        super().__init__(kubeconfig)
        self.answers: list[ApiObject] = []

    def _send(self, *args: Any, **kwargs: Any) -> ApiObject:
        self.answers.append(super()._send(*args, **kwargs))
        return self.answers[-1]


def shared_cohort(name: str, units: int) -> dict[str, Any]:
    cells = (QuotaCell(resource="nvidia.com/gpu", flavor="some-00000000", nominal=units),)
    return cohort(CohortSpec(name=f"gpu-portal-{name}", owner=OWNER, cells=cells))


def queue(name: str, units: int) -> dict[str, Any]:
    """Kueue adds defaults to `preemption` and `flavorFungibility`."""
    spec = {
        "cohortName": f"gpu-portal-{name}",
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
        "resourceGroups": [plain_resource_group(units)],
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
    }
    return {"apiVersion": KUEUE_API, "kind": "ClusterQueue", "metadata": meta(name), "spec": spec}


@pytest.mark.parametrize("manifest", [shared_cohort, queue])
def test_no_request_of_the_first_change_looks_like_a_removal(
    services: dict[str, Any], cluster: Cluster, name: str, manifest: Callable[[str, int], dict[str, Any]]
) -> None:
    """The watcher sees the object after each request, and all within one second have the same time."""
    kube = Recording(services["kubeconfigs"]["worker"])
    for units in (1, 2):
        manifests = [manifest(name, units)]
        converge(kube=kube, cluster_id=cluster.pk, owner=OWNER, manifests=manifests, deadline=Deadline())

    assert len(kube.answers) == 4, "create, apply, one entry of two, apply"
    found = []
    for answer in kube.answers:
        dated = [{**entry, "time": "2026-11-25T10:00:00Z"} for entry in answer.managed_fields]
        ownership = field_ownership(dated, answer.body)
        assert ownership is not None
        found.append(ownership)
    removed = [now.removed_since(before.baseline()) for before, now in pairwise(found)]
    assert removed == [(), (), ()]


@pytest.mark.parametrize("is_removed", [True, False])
def test_a_repair_that_changes_nothing_is_none(
    kube_worker: Kube, cluster: Cluster, admin: Api, name: str, is_removed: bool
) -> None:
    """A second write of the portal in one second, with fewer keys, is noted by the watcher as a removal by others."""
    wide = quota(name, pods=3)
    wide["spec"]["hard"]["services"] = "2"
    same: dict[str, Any] = {"kube": kube_worker, "cluster_id": cluster.pk, "owner": OWNER}
    for manifest in (wide, quota(name, pods=3)):
        converge(manifests=[namespace(name), manifest], deadline=Deadline(), **same)
    if is_removed:
        admin.patch("v1/resourcequotas", "gpu-portal", {"spec": {"hard": {"pods": None}}}, namespace=name)
    rows = AppliedObject.objects.filter(kind="ResourceQuota")
    rows.update(difference={"fields": ["spec.hard"], "manager": "", "since": "2026-11-25T10:00:00Z"})

    done = converge(manifests=[namespace(name), quota(name, pods=3)], deadline=Deadline(), **same)

    assert done.is_all_applied
    assert admin.get("v1/resourcequotas", "gpu-portal", namespace=name)["spec"]["hard"] == {"pods": "3"}
    row = rows.get()
    assert (status.object_status(row), row.difference) == ("repaired" if is_removed else "applied", {})
    assert ObjectDrift.objects.count() == int(is_removed)
