"""Provisioning on the real API server with exactly the worker's rights; checked by an independent client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Event
from catalog.models import GpuClass, Pool
from cluster.apply import applied_objects
from cluster.client.kube import Kube
from cluster.manifests.namespace import PLAIN_RESOURCE_GROUP
from cluster.models import AppliedObject, Cluster
from devcluster.client.kube import Api
from portal.core.due import DONE, Deadline, Outcome, TryLater, owner_label
from tenants.models import Namespace, Tenant
from tenants.provisioning import reconcile, steps
from tests.support import golden_files
from tests.support.cluster.namespace_objects import KINDS, objects_of, queue_of, stop_policy
from tests.support.cluster.removal import remove_from_cluster
from tests.support.rows import make
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("clean_cluster")


@pytest.fixture
def pool(a100: GpuClass, kube_worker: Kube) -> Pool:
    """The catalog is in the cluster: one flavor, and the cohort."""
    row = Pool.objects.create(cluster=a100.cluster)
    reconcile.reconcile_pool(row, Deadline(), kube=kube_worker)
    return row


@pytest.fixture
def provision(pool: Pool, namespace_a: Namespace, kube_worker: Kube) -> Iterator[Any]:
    def look() -> Outcome:
        namespace_a.refresh_from_db()
        return steps.work_on_namespace(namespace_a, Deadline(), kube=kube_worker)

    return look


def versions(admin: Api, namespace: Namespace) -> dict[str, str]:
    return {
        f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
        for item in objects_of(admin, namespace)
    }


def test_the_namespace_in_the_cluster_equals_its_golden_file(
    provision: Any, namespace_a: Namespace, team_a: Tenant, a100: GpuClass, admin: Api, unique: str
) -> None:
    make.grant(team_a, a100, units=2)
    provision()
    words = {unique: "unique", owner_label(namespace_a): "tenants.namespace.1"}
    golden_files.check("namespace_in_cluster", objects_of(admin, namespace_a), words=words)


def test_a_second_look_sends_nothing(
    provision: Any, namespace_a: Namespace, team_a: Tenant, a100: GpuClass, admin: Api
) -> None:
    make.grant(team_a, a100, units=2)
    provision()
    before = versions(admin, namespace_a)
    sent = dict(AppliedObject.objects.values_list("pk", "sent_at"))
    provision()
    assert dict(AppliedObject.objects.values_list("pk", "sent_at")) == sent
    assert versions(admin, namespace_a) == before
    assert len(before) == 10


def test_a_cluster_that_lost_everything_gets_it_again(
    provision: Any, pool: Pool, namespace_a: Namespace, team_a: Tenant, a100: GpuClass, admin: Api, kube_worker: Kube,
    unique: str,
) -> None:  # fmt: skip
    """As in a new cluster: rows say what the former one had, and nobody saw it go."""
    make.grant(team_a, a100, units=2)
    provision()

    def names() -> set[str]:
        return set(versions(admin, namespace_a)) if admin.find("v1/namespaces", namespace_a.name) else set()

    before, uid = names(), admin.get("v1/namespaces", namespace_a.name)["metadata"]["uid"]
    remove_from_cluster(admin, unique)
    wait_until(lambda: names() == set(), within_s=60)
    provision()
    assert names() == set(), "rows still say that all of it is there"

    applied_objects.send_all_again(namespace_a.cluster_id)

    def is_again() -> bool:
        with suppress(TryLater):
            reconcile.reconcile_pool(pool, Deadline(), kube=kube_worker)
            provision()
        return names() == before and stop_policy(admin, namespace_a) == "None"

    wait_until(is_again, within_s=60)
    assert admin.get("v1/namespaces", namespace_a.name)["metadata"]["uid"] != uid


def test_everything_applied_again_changes_no_version(
    provision: Any, namespace_a: Namespace, team_a: Tenant, a100: GpuClass, admin: Api
) -> None:
    make.grant(team_a, a100, units=2)
    provision()
    as_created = golden_files.render(objects_of(admin, namespace_a))
    # The first apply after the POST moves the ownership of fields from "Update" to "Apply": bookkeeping, no content.
    send_all_again(provision)
    assert golden_files.render(objects_of(admin, namespace_a)) == as_created
    before = versions(admin, namespace_a)
    send_all_again(provision)
    assert versions(admin, namespace_a) == before


def send_all_again(provision: Any) -> None:
    ours = AppliedObject.objects.filter(owner__startswith="tenants.namespace.")
    ours.update(difference={"fields": ["spec"]})
    provision()
    assert not ours.exclude(difference={}).exists()


def test_a_foreign_object_is_reported_and_keeps_the_queue_closed_until_it_is_gone(
    provision: Any, namespace_a: Namespace, team_a: Tenant, a100: GpuClass, admin: Api
) -> None:
    grant = make.grant(team_a, a100, units=2)
    owned = {"app.kubernetes.io/managed-by": "gpu-portal", "gpu-portal/owner": owner_label(namespace_a)}
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace_a.name, "labels": owned}})
    foreign = {"name": "gpu-portal", "namespace": namespace_a.name}
    admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": foreign}, namespace=namespace_a.name)
    before = admin.get(KINDS["ServiceAccount"], "gpu-portal", namespace=namespace_a.name)
    with pytest.raises(TryLater, match=r"ServiceAccount gpu-portal: .* did not create; it is not changed") as told:
        provision()
    assert told.value.clock == grant.period.upper, "the grant's end is not postponed by it"
    row = AppliedObject.objects.get(kind="ServiceAccount", namespace=namespace_a.name)
    assert row.result == AppliedObject.Result.FOREIGN
    assert Event.objects.get(verb="namespace.refused").after["objects"] == ["ServiceAccount gpu-portal"]
    assert "it is not changed" in row.text
    assert admin.get(KINDS["ServiceAccount"], "gpu-portal", namespace=namespace_a.name) == before
    assert stop_policy(admin, namespace_a) == "Hold"

    admin.delete(KINDS["ServiceAccount"], "gpu-portal", namespace=namespace_a.name)
    AppliedObject.objects.filter(pk=row.pk).update(sent_at=timezone.now() - timedelta(hours=1))
    provision()
    assert stop_policy(admin, namespace_a) == "None"


def test_a_namespace_of_that_name_that_is_not_ours_is_left_alone_entirely(
    provision: Any, namespace_a: Namespace, admin: Api
) -> None:
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace_a.name}})
    before = admin.get(KINDS["Namespace"], namespace_a.name)
    with pytest.raises(TryLater) as told:
        provision()
    assert told.value.code == "foreign"
    assert admin.get(KINDS["Namespace"], namespace_a.name) == before
    assert [row.kind for row in AppliedObject.objects.filter(owner=owner_label(namespace_a))] == ["Namespace"]
    assert admin.find(KINDS["ClusterQueue"], namespace_a.name) is None


def test_a_change_from_outside_is_repaired_when_the_watcher_recorded_it(
    provision: Any, namespace_a: Namespace, team_a: Tenant, a100: GpuClass, admin: Api
) -> None:
    make.grant(team_a, a100, units=2)
    provision()
    admin.patch(KINDS["ResourceQuota"], "gpu-portal", {"spec": {"hard": {"pods": "7"}}}, namespace=namespace_a.name)
    AppliedObject.objects.filter(kind="ResourceQuota").update(difference={"fields": ["spec.hard.pods"]})
    provision()
    assert hard(admin, namespace_a)["pods"] == "1k"
    assert not AppliedObject.objects.exclude(difference={}).exists()


def test_a_deleted_object_comes_back(provision: Any, namespace_a: Namespace, admin: Api) -> None:
    provision()
    admin.delete(KINDS["NetworkPolicy"], "gpu-portal-ingress", namespace=namespace_a.name)
    AppliedObject.objects.filter(name="gpu-portal-ingress").update(difference={"gone": True})
    provision()
    assert admin.find(KINDS["NetworkPolicy"], "gpu-portal-ingress", namespace=namespace_a.name)


def test_a_grant_that_starts_later_is_the_clock_and_not_yet_in_force(
    provision: Any, namespace_a: Namespace, team_a: Tenant, a100: GpuClass, admin: Api
) -> None:
    start = timezone.now() + timedelta(days=2)
    make.grant(team_a, a100, units=4, since=start)
    assert provision().clock == start
    assert nominal(admin, namespace_a) == {}


def test_units_end_in_the_cluster_when_the_grant_ends(
    provision: Any, namespace_a: Namespace, team_a: Tenant, a100: GpuClass, admin: Api
) -> None:
    grant = make.grant(team_a, a100, units=4)
    provision()
    assert nominal(admin, namespace_a) == {"nvidia.com/gpu": ["4"]}
    assert hard(admin, namespace_a)["requests.nvidia.com/gpu"] == "8"
    grant.period = type(grant.period)(grant.period.lower, timezone.now())
    grant.save()
    assert provision().again_in_s == reconcile.RETRY_SOON_S
    assert nominal(admin, namespace_a) == {"nvidia.com/gpu": ["0"]}
    provision()
    assert nominal(admin, namespace_a) == {}
    assert hard(admin, namespace_a)["requests.nvidia.com/gpu"] == "0"


def test_what_may_be_borrowed_has_a_place_in_the_queue_without_any_grant(
    provision: Any, namespace_a: Namespace, a100: GpuClass, admin: Api
) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(borrowing_limit=3)
    provision()
    cell = queue_of(admin, namespace_a)["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
    assert cell == {"name": "nvidia.com/gpu", "nominalQuota": "0", "borrowingLimit": "3"}
    assert hard(admin, namespace_a)["requests.nvidia.com/gpu"] == "6"


def test_a_class_whose_flavor_is_not_made_yet_waits_outside_the_queue(
    namespace_a: Namespace, team_a: Tenant, a100: GpuClass, kube_worker: Kube, admin: Api
) -> None:
    """A ClusterQueue that names a missing flavor admits nothing at all."""
    make.grant(team_a, a100, units=2)
    outcome = steps.work_on_namespace(namespace_a, Deadline(), kube=kube_worker)
    assert not outcome.is_applied
    assert outcome.again_in_s is not None
    assert outcome.again_in_s >= 30, "the flavor's maker wakes it; one that cannot be made must not keep all busy"
    assert nominal(admin, namespace_a) == {}


def test_suspending_holds_the_queue_and_resuming_opens_it(provision: Any, namespace_a: Namespace, admin: Api) -> None:
    provision()
    assert stop_policy(admin, namespace_a) == "None"
    want(namespace_a, Namespace.Wanted.SUSPENDED)
    provision()
    assert stop_policy(admin, namespace_a) == "Hold"
    want(namespace_a, Namespace.Wanted.ACTIVE)
    provision()
    assert stop_policy(admin, namespace_a) == "None"


def test_closing_takes_the_queue_then_the_namespace_and_then_rests(
    provision: Any, namespace_a: Namespace, team_a: Tenant, a100: GpuClass, admin: Api
) -> None:
    make.grant(team_a, a100, units=2)
    provision()
    make.close(namespace_a.name)
    assert provision().again_in_s == reconcile.RETRY_SOON_S
    assert stop_policy(admin, namespace_a) == "Hold"
    wait_until(lambda: provision() == DONE)
    assert admin.find(KINDS["ClusterQueue"], namespace_a.name) is None
    assert admin.find(KINDS["Namespace"], namespace_a.name) is None
    assert not AppliedObject.objects.filter(owner=owner_label(namespace_a)).exists()


def test_without_kueue_there_are_the_same_walls_and_no_queue(
    provision: Any, namespace_a: Namespace, team_a: Tenant, a100: GpuClass, admin: Api
) -> None:
    Cluster.objects.update(queue_system=Cluster.QueueSystem.NONE)
    make.grant(team_a, a100, units=2)
    provision()
    assert {item["kind"] for item in objects_of(admin, namespace_a)} == KINDS.keys() - {"ClusterQueue", "LocalQueue"}
    assert hard(admin, namespace_a)["requests.nvidia.com/gpu"] == "4"


def test_a_settled_namespace_costs_few_queries(
    provision: Any, team_a: Tenant, a100: GpuClass, django_assert_num_queries: Any
) -> None:
    make.grant(team_a, a100, units=2)
    provision()
    with django_assert_num_queries(9):
        provision()


# ---- helper functions --------------------------------------------------------------------------------------------


def want(namespace: Namespace, wanted: Namespace.Wanted) -> None:
    Namespace.objects.filter(pk=namespace.pk).update(wanted=wanted)


def nominal(admin: Api, namespace: Namespace) -> dict[str, list[str]]:
    """Resource → nominal quotas of its flavors, of classes."""
    groups = queue_of(admin, namespace)["spec"]["resourceGroups"]
    return {
        group["coveredResources"][0]: [flavor["resources"][0]["nominalQuota"] for flavor in group["flavors"]]
        for group in groups
        if group != PLAIN_RESOURCE_GROUP
    }


def hard(admin: Api, namespace: Namespace) -> dict[str, str]:
    found: dict[str, str] = admin.get(KINDS["ResourceQuota"], "gpu-portal", namespace=namespace.name)["spec"]["hard"]
    return found
