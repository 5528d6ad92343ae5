"""Plans: what an approval would change, as a dry run on the real API server that changes nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from catalog.classes.queries import flavor_name
from catalog.models import GpuClass, Pool
from cluster.client.kube import Kube
from devcluster.client.kube import Api
from portal.core.due import DONE, Deadline
from tenants.models import Namespace, Plan, QuotaRequest, Tenant
from tenants.provisioning import reconcile as provisioning_reconcile
from tenants.provisioning import steps
from tenants.provisioning.dry_run import reconcile
from tenants.requests import actions
from tenants.requests.types import RequestedLine
from tests.support.rows import make

pytestmark = pytest.mark.usefixtures("clean_cluster")


@pytest.fixture
def request_of_4(team_a: Tenant, a100: GpuClass, alice: User) -> QuotaRequest:
    now = timezone.now()
    line = RequestedLine(gpu_class=a100.slug, units=4, starts=now, ends=now + timedelta(days=9))
    return actions.file_request("team-a", lines=[line], justification="Two trainings.", by=Actor(alice, "page"))


def plan(request: QuotaRequest, kube: Kube) -> dict[tuple[str, str], dict[str, Any]]:
    """Returns the stored plan by (kind, name)."""
    row = Plan.objects.select_related("request__tenant").get(request=request)
    steps.work_on_plan(row, Deadline(), kube=kube)
    row.refresh_from_db()
    assert row.made_at is not None
    return {(one["kind"], one["name"]): one for one in row.objects_planned}


def test_before_the_namespace_exists_every_object_is_new_and_tried_elsewhere(
    request_of_4: QuotaRequest, namespace_a: Namespace, kube_worker: Kube, admin: Api
) -> None:
    planned = plan(request_of_4, kube_worker)
    assert {one["change"] for one in planned.values()} == {"create"}
    assert {one["result"] for one in planned.values()} == {"accepted"}
    quota = planned["ResourceQuota", "gpu-portal"]
    assert quota["namespace"] == namespace_a.name
    assert f"because {namespace_a.name} does not exist yet" in quota["text"]
    assert "+ spec.hard.requests.nvidia.com/gpu: 8" in quota["difference"]
    assert admin.find("v1/namespaces", namespace_a.name) is None
    assert admin.find("kueue.x-k8s.io/v1beta2/clusterqueues", namespace_a.name) is None


def test_the_namespace_for_trying_is_ours_and_stays_empty(
    request_of_4: QuotaRequest, kube_worker: Kube, admin: Api
) -> None:
    plan(request_of_4, kube_worker)
    found = admin.get("v1/namespaces", reconcile.PLAN_NAMESPACE)
    assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "gpu-portal"
    assert found["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert admin.list("v1/resourcequotas", namespace=reconcile.PLAN_NAMESPACE) == []


def test_for_a_team_that_runs_only_what_differs_is_a_change(
    request_of_4: QuotaRequest, team_a: Tenant, a100: GpuClass, namespace_a: Namespace, kube_worker: Kube, admin: Api
) -> None:
    provisioning_reconcile.reconcile_pool(Pool.objects.create(cluster=a100.cluster), Deadline(), kube=kube_worker)
    make.grant(team_a, a100, units=2)
    steps.work_on_namespace(namespace_a, Deadline(), kube=kube_worker)
    planned = plan(request_of_4, kube_worker)
    changed = {key: one["difference"] for key, one in planned.items() if one["change"] != "same"}
    path = f"spec.resourceGroups[0].flavors[{flavor_name(a100)}].resources[nvidia.com/gpu].nominalQuota"
    assert changed["ClusterQueue", namespace_a.name] == [f"- {path}: 2", f"+ {path}: 4"]
    assert "+ spec.hard.requests.nvidia.com/gpu: 8" in changed["ResourceQuota", "gpu-portal"]
    assert changed.keys() == {("ClusterQueue", namespace_a.name), ("ResourceQuota", "gpu-portal")}
    queue = admin.get("kueue.x-k8s.io/v1beta2/clusterqueues", namespace_a.name)
    assert queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] == "2"


def test_what_the_cluster_would_refuse_is_said_before_anybody_decides(
    request_of_4: QuotaRequest, namespace_a: Namespace, kube_worker: Kube, admin: Api
) -> None:
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace_a.name}})
    planned = plan(request_of_4, kube_worker)
    refused = planned["Namespace", namespace_a.name]
    assert (refused["result"], refused["code"]) == ("refused", "foreign")


def test_a_plan_rests_when_nothing_is_pending(request_of_4: QuotaRequest, alice: User, kube_worker: Kube) -> None:
    actions.withdraw_request(request_of_4.pk, by=Actor(alice, "page"))
    row = Plan.objects.get(request=request_of_4)
    assert steps.work_on_plan(row, Deadline(), kube=kube_worker) == DONE
    assert row.made_at is None
