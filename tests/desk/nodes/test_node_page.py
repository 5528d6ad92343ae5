"""Node pages, for staff: what runs on a node, lost capacity, waiting runs; their queries do not grow."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import Role, User
from catalog.models import GpuClass
from cluster.models import Cluster
from desk.nodes import queries as node_queries
from devcluster.controlplane import hardware
from portal.core.due import owner_label
from tenants.models import Namespace, Tenant
from tests.support.rows import make, mirrored, running

pytestmark = pytest.mark.django_db
CONFIG = "nvidia.com/mig.config"


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def devices(resource: str, units: int) -> dict[str, Any]:
    return {f"nvidia.com/{resource}": units}


def seen(cluster: Cluster, change: Callable[[dict[str, Any]], None], *, node: str = "a100-1", **more: Any) -> None:
    """The simulated hardware with one changed node."""
    found = hardware.read("mixed")
    raw = [mirrored.ready(copy.deepcopy(one)) for one in found.nodes]
    change(next(one for one in raw if one["metadata"]["name"] == node))
    slices = [mirrored.with_metadata(one) for one in found.slices]
    mirrored.seen(cluster, Node=raw, ResourceSlice=slices, **more)


@pytest.mark.parametrize("path", ["/nodes", "/nodes/a100-1"])
def test_nodes_are_for_operators_and_administrators(
    path: str, cluster: Cluster, team_a: Tenant, alice: User, dana: User, charlie: User
) -> None:
    mirrored.hardware_seen(cluster)
    admin = make.user("Ada", roles=[Role.ADMIN])
    operator = make.user("Oscar", roles=[Role.OPERATOR])
    auditor = make.user("Ava", roles=[Role.AUDITOR])
    answers = [signed_in(one).get(path).status_code for one in (alice, dana, charlie, auditor, admin, operator)]
    assert answers == [404, 404, 404, 404, 200, 200]


def test_a_node_that_is_not_there(cluster: Cluster, olga: User) -> None:
    mirrored.hardware_seen(cluster)
    assert signed_in(olga).get("/nodes/nowhere").status_code == 404


def test_the_list_shows_what_is_used_of_what(cluster: Cluster, olga: User) -> None:
    held = mirrored.pod("p", node="a100-1", namespace="elsewhere", **devices("gpu", 3))
    over = mirrored.pod("q", node="a100-1", namespace="elsewhere", phase="Succeeded", **devices("gpu", 1))
    mirrored.hardware_seen(cluster, Pod=[held, over])
    found = {line.name: line for line in node_queries.node_list(cluster, q="", state="", cursor=None).lines}
    assert len(found) == len(hardware.read("mixed").nodes)
    assert [(one.resource, one.allocatable, one.used) for one in found["a100-1"].devices] == [("nvidia.com/gpu", 4, 3)]
    assert [(one.resource, one.allocatable, one.used) for one in found["h100"].devices] == [("gpu.nvidia.com", 8, 0)]
    assert (found["a100-mig"].layout, found["a100-mig"].layout_state) == ("all-balanced-one-me", "success")
    assert found["cpu-1"].devices == ()
    assert '<a href="/nodes/a100-1">' in signed_in(olga).get("/nodes").content.decode()


def test_a_cordoned_node_and_a_plugin_without_devices_are_told_in_words(cluster: Cluster, olga: User) -> None:
    def cordon(node: dict[str, Any]) -> None:
        node["spec"]["unschedulable"] = True
        node["spec"]["taints"] = [
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-11-27T14:02:00Z"}
        ]
        fields = {"f:spec": {"f:unschedulable": {}}}
        node["metadata"]["managedFields"] = [{"manager": "kured", "time": "2026-11-27T14:02:00Z", "fieldsV1": fields}]

    seen(cluster, cordon)
    client = signed_in(olga)
    for page, times in (("/nodes", 1), ("/nodes/a100-1", 1), ("/nodes/a100-2", 0)):
        assert client.get(page).content.decode().count("Cordoned by kured since 27 Nov 2026, 14:02") == times
    assert "No pods start here; running pods continue." in client.get("/nodes/a100-1").content.decode()
    assert "No pods start here" not in client.get("/nodes/a100-2").content.decode()
    listed = client.get("/nodes").content.decode()
    assert '<span class="muted">no</span> <code class="small">nvidia.com/gpu</code>' in listed
    assert "0 of 0" not in listed


def test_filters_and_pages(cluster: Cluster, olga: User) -> None:
    def change(node: dict[str, Any]) -> None:
        node["spec"]["unschedulable"] = True
        node["status"]["conditions"][0]["status"] = "False"
        node["metadata"]["labels"]["nvidia.com/mig.config.state"] = "failed"

    seen(cluster, change)

    def names(**asked: Any) -> list[str]:
        return [
            line.name
            for line in node_queries.node_list(cluster, **{"q": "", "state": "", "cursor": None, **asked}).lines
        ]

    assert names(state="cordoned") == names(state="not-ready") == names(state="changing") == ["a100-1"]
    assert names(q="GAUDI") == ["gaudi"]
    assert names(q="NVIDIA-H100") == ["h100"]
    assert names(q="a100-m") == ["a100-mig", "a100-mig-single", "a100-mps"]

    first = node_queries.node_list(cluster, q="", state="", cursor=None, limit=4)
    second = node_queries.node_list(cluster, q="", state="", cursor=first.next_cursor, limit=4)
    every = sorted(node["metadata"]["name"] for node in hardware.read("mixed").nodes)
    assert [line.name for line in [*first.lines, *second.lines]] == every[:8]
    assert node_queries.node_list(cluster, q="gaudi", state="", cursor=None).next_cursor is None
    assert signed_in(olga).get("/nodes?cursor=x").status_code == 422


def test_what_a_node_lost_and_whose_it_was(
    cluster: Cluster, team_a: Tenant, a100: GpuClass, namespace_a: Namespace, olga: User
) -> None:
    pod = mirrored.pod("p", node="a100-1", namespace=namespace_a.name, gpu_class=a100.slug, **devices("gpu", 1))

    def one_card_failed(node: dict[str, Any]) -> None:
        node["status"]["allocatable"]["nvidia.com/gpu"] = "3"

    seen(cluster, one_card_failed, Pod=[pod])
    page = node_queries.node_page(cluster, "a100-1")
    assert [(one.capacity, one.allocatable, one.unhealthy, one.used) for one in page.devices] == [(4, 3, 1, 1)]
    line = page.work.classes[0]
    assert (line.slug, line.offered, line.lost, line.teams, line.only_here) == (a100.slug, 3, 1, ("Team A",), False)

    neighbour = node_queries.node_page(cluster, "a100-2").work.classes[0]
    assert (neighbour.offered, neighbour.lost, neighbour.teams) == (4, 0, ())

    def gone(node: dict[str, Any]) -> None:
        node["metadata"]["resourceVersion"] = "2"
        node["status"]["conditions"][0]["status"] = "False"

    seen(cluster, gone, Pod=[pod])
    line = node_queries.node_page(cluster, "a100-1").work.classes[0]
    assert (line.offered, line.lost) == (0, 4)


def test_pods_that_hold_devices_and_only_they(
    cluster: Cluster, team_a: Tenant, a100: GpuClass, namespace_a: Namespace, alice: User, olga: User
) -> None:
    workload = running.workload(namespace_a, a100, name="train", by=alice)
    ours = mirrored.pod("ours", node="a100-1", namespace=namespace_a.name, gpu_class=a100.slug, **devices("gpu", 2))
    ours["metadata"]["labels"]["gpu-portal/owner"] = owner_label(workload)
    theirs = mirrored.pod("theirs", node="a100-1", namespace="elsewhere", **devices("gpu", 1))
    without = mirrored.pod("without", node="a100-1", namespace="elsewhere", cpu=2)
    mirrored.hardware_seen(cluster, Pod=[ours, theirs, without])
    found = node_queries.node_page(cluster, "a100-1").work.pods
    assert [(one.name, one.units, one.workload, one.href) for one in found] == [
        ("theirs", "1 nvidia.com/gpu", "", ""),
        ("ours", "2 nvidia.com/gpu", "train", "/teams/team-a/workloads/train"),
    ]
    assert '<a href="/teams/team-a/workloads/train">train</a>' in signed_in(olga).get("/nodes/a100-1").content.decode()


def test_devices_that_claims_hold(cluster: Cluster, olga: User) -> None:
    results = [{"request": "gpu", "driver": "gpu.nvidia.com", "pool": "h100", "device": f"gpu-{n}"} for n in (0, 3)]
    claim = mirrored.with_metadata(
        {
            "metadata": {"name": "c", "namespace": "elsewhere"},
            "spec": {"devices": {"requests": []}},
            "status": {
                "allocation": {"devices": {"results": results}},
                "reservedFor": [{"resource": "pods", "name": "p"}],
            },
        }
    )
    mirrored.hardware_seen(cluster, ResourceClaim=[claim], Pod=[mirrored.pod("p", node="h100", namespace="elsewhere")])
    page = node_queries.node_page(cluster, "h100")
    assert [(one.resource, one.capacity, one.used) for one in page.devices] == [("gpu.nvidia.com", 8, 2)]
    assert [(one.namespace, one.name, one.units) for one in page.work.pods] == [("elsewhere", "p", "2 gpu.nvidia.com")]
    assert signed_in(olga).get("/nodes/h100").status_code == 200


def test_who_set_the_layout_is_told_where_the_cluster_records_it_and_never_invented(
    cluster: Cluster, olga: User
) -> None:
    def labelled(node: dict[str, Any]) -> None:
        fields: dict[str, Any] = {"f:metadata": {"f:labels": {f"f:{CONFIG}": {}}}}
        node["metadata"]["managedFields"] = [
            {"manager": "kubectl-label", "time": "2026-11-21T08:30:00Z", "operation": "Update", "fieldsV1": fields}
        ]

    seen(cluster, labelled, node="a100-mig")
    found = {line.label: line for line in node_queries.node_page(cluster, "a100-mig").layout}
    asked, reached = found[CONFIG], found["nvidia.com/mig.config.state"]
    assert (asked.value, asked.manager, asked.at and asked.at.hour) == ("all-balanced-one-me", "kubectl-label", 8)
    assert (reached.value, reached.manager, reached.at) == ("success", "", None)
    text = signed_in(olga).get("/nodes/a100-mig").content.decode()
    assert "kubectl-label" in text
    assert "not recorded" in text
    assert "1g.10gb.me · free</text>" in text


def test_work_waits_only_for_a_node_that_nobody_can_stand_in_for(
    cluster: Cluster, team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, unique: str
) -> None:
    gaudi = make.gpu_class(
        cluster, slug=f"gaudi-{unique}", name="Gaudi", resource="habana.ai/gaudi", node_labels={}, vendor="habana"
    )
    GpuClass.objects.filter(pk=gaudi.pk).update(node_labels={"intel.feature.node.kubernetes.io/gaudi": "true"})
    gaudi.refresh_from_db()
    mirrored.hardware_seen(cluster)
    running.workload(namespace_a, gaudi, name="waits", by=alice, units=3)
    running.workload(namespace_a, a100, name="elsewhere", by=alice)
    admitted = running.workload(namespace_a, gaudi, name="admitted", by=alice)
    running.make_ready(admitted)
    mirrored.hardware_seen(cluster)

    page = node_queries.node_page(cluster, "gaudi")
    assert [(line.slug, line.only_here, line.waiting_units) for line in page.work.classes] == [(gaudi.slug, True, 3)]
    assert [(line.team, line.name, line.units) for line in page.work.waiting] == [("Team A", "waits", 3)]
    # Four nodes have whole A100 GPUs: none of them is the only one.
    assert node_queries.node_page(cluster, "a100-1").work.waiting == ()


def test_without_a_mirror_the_list_says_that_nobody_knows(cluster: Cluster, olga: User) -> None:
    text = signed_in(olga).get("/nodes").content.decode()
    assert "<h3>Unknown</h3>" in text
    assert "has none" not in text


@pytest.mark.parametrize("path", ["/nodes", "/nodes/a100-1"])
def test_queries_do_not_grow(
    path: str, cluster: Cluster, team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, olga: User
) -> None:
    client = signed_in(olga)
    only = make.gpu_class(cluster, slug="only", node_labels={"kubernetes.io/hostname": "a100-1"})
    running.workload(namespace_a, only, name="w", by=alice)
    counts = []
    for round_number in (1, 6):
        pods = []
        for number in range(round_number):
            name = f"w{round_number}-{number}"
            one = running.workload(namespace_a, only, name=name, by=alice)
            pod = mirrored.pod(name, node="a100-1", namespace=namespace_a.name, gpu_class="only", **devices("gpu", 1))
            pod["metadata"]["labels"]["gpu-portal/owner"] = owner_label(one)
            pods.append(pod)
            make.gpu_class(cluster, slug=f"c-{name}")
        more = [
            mirrored.ready(hardware.node(f"more-{number}", devices=devices("gpu", 4))) for number in range(round_number)
        ]
        found = hardware.read("mixed")
        mirrored.seen(cluster, Node=[*map(mirrored.ready, found.nodes), *more], Pod=pods)
        client.get(path)
        with CaptureQueriesContext(connection) as captured:
            assert client.get(path).status_code == 200
        counts.append(len(captured))
    assert counts[0] == counts[1]
    assert counts[0] <= 25
