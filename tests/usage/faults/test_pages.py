"""Who sees which faults, on pages and in the API, and what they count."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import ApiToken, User
from catalog.models import GpuClass
from cluster.models import Cluster
from desk.nodes import queries as node_queries
from tenants.models import Namespace, Tenant
from tests.desk.nodes.test_node_page import seen
from tests.support.rows import make, mirrored, running
from tests.usage.faults.rows import DEVICE, fault
from usage.faults.models import FaultSource, GpuFault
from workloads.models import Run

pytestmark = pytest.mark.django_db
PAGE = "/teams/team-a/workloads/train"
NODE = "a100-1"


@pytest.fixture
def run(namespace_a: Namespace, a100: GpuClass, alice: User) -> Run:
    return running.workload(namespace_a, a100, name="train", kind="job", by=alice).runs.get()


@pytest.fixture
def other_run(cluster: Cluster, a100: GpuClass, bob: User) -> Run:
    """Of a team that neither Alice nor Charlie is in."""
    team = make.tenant(cluster, slug="team-z")
    return running.workload(team.namespaces.get(), a100, name="theirs", kind="job", by=bob).runs.get()


def page(client: Client, who: User, path: str) -> str:
    client.force_login(who)
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def asked(who: User, query: str = "") -> Any:
    name = f"t{ApiToken.objects.count()}"
    _row, token = api_token_actions.create_token(
        name=name, scopes=["read"], expires_in_days=1, by=Actor(user=who, via="page")
    )
    return Client().get(f"/api/v1/gpu-faults{query}", headers={"Authorization": f"Bearer {token}"})


def listed(who: User, query: str = "") -> list[dict[str, Any]]:
    answer = asked(who, query)
    assert answer.status_code == 200, answer.content
    return list(answer.json()["items"])


# ---- the page of a workload ------------------------------------------------------------------------------------------


def test_the_workloads_page_says_what_it_is_and_what_to_do(
    cluster: Cluster, run: Run, alice: User, client: Client
) -> None:
    fault(cluster, run)
    for path in (PAGE, f"{PAGE}/faults"):
        text = page(client, alice, path).partition('id="faults"')[2].partition("</section>")[0]
        assert "XID 79: GPU has fallen off the bus" in text
        assert "The node can no longer reach this GPU." in text
        assert "what they had only in memory is lost" in text
        assert "If the run has failed, start it again; it may get another GPU." in text
        assert DEVICE in text
        assert "tone-bad" in text


def test_a_fault_that_is_over_stays_with_its_run(cluster: Cluster, run: Run, alice: User, client: Client) -> None:
    fault(cluster, run, cleared_at=timezone.now())
    text = page(client, alice, PAGE).partition('id="faults"')[2].partition("</section>")[0]
    assert "tone-good" in text
    assert "Over" in text
    run.ended_at, run.outcome = timezone.now(), "failed"
    run.save()
    assert "XID 79" in page(client, alice, PAGE)


def test_a_gpu_without_metrics_is_unknown(cluster: Cluster, run: Run, alice: User, client: Client) -> None:
    fault(cluster, run, measured_at=timezone.now() - timedelta(minutes=6))
    assert "No metrics: unknown" in page(client, alice, PAGE)
    assert [one["state"] for one in listed(alice)] == ["unknown"]


def test_gpus_with_the_same_fault_are_one_entry(cluster: Cluster, run: Run, alice: User, client: Client) -> None:
    fault(cluster, run, device="GPU-1", cleared_at=timezone.now())
    fault(cluster, run, device="GPU-2")
    text = page(client, alice, PAGE).partition('id="faults"')[2].partition("</section>")[0]
    assert text.count("XID 79") == 1
    assert "GPU-1, GPU-2" in text
    assert "tone-bad" in text, "one of them is open"


def test_a_run_without_faults_has_no_section(
    cluster: Cluster, run: Run, other_run: Run, alice: User, client: Client
) -> None:
    fault(cluster, other_run)
    assert "GPU faults" not in page(client, alice, PAGE)


# ---- nodes -----------------------------------------------------------------------------------------------------------


def test_the_page_of_a_node_proposes_a_cordon(
    cluster: Cluster, run: Run, other_run: Run, olga: User, client: Client
) -> None:
    mirrored.hardware_seen(cluster)
    fault(cluster, run, other_run, node=NODE)
    text = page(client, olga, f"/nodes/{NODE}").partition('id="gpu-faults"')[2].partition("</section>")[0]
    assert "kubectl cordon a100-1" in text
    assert "reboot it" in text
    assert ">train</a>" in text
    assert ">theirs</a>" in text
    GpuFault.objects.update(code=31)
    text = page(client, olga, f"/nodes/{NODE}").partition('id="gpu-faults"')[2].partition("</section>")[0]
    assert "XID 31" in text
    assert "kubectl" not in text
    GpuFault.objects.update(code=79, cleared_at=timezone.now())
    text = page(client, olga, f"/nodes/{NODE}").partition('id="gpu-faults"')[2].partition("</section>")[0]
    assert "XID 79" in text
    assert "kubectl" not in text


def test_the_list_of_nodes_marks_and_filters(cluster: Cluster, olga: User, client: Client) -> None:
    mirrored.hardware_seen(cluster)
    assert "Faults of GPUs are not read" in page(client, olga, "/nodes")
    fault(cluster, node=NODE)
    fault(cluster, node="a100-2", cleared_at=timezone.now())
    assert page(client, olga, "/nodes").count("1 GPU fault<") == 2, "wide and narrow"
    found = node_queries.node_list(cluster, q="", state="gpu-fault", cursor=None)
    assert [line.name for line in found.lines] == [NODE]
    FaultSource.objects.update(problem="Prometheus does not respond (too slow).")
    assert "Faults of GPUs are not known now. Prometheus does not respond (too slow)." in page(client, olga, "/nodes")
    FaultSource.objects.update(problem="", read_until=timezone.now() - timedelta(minutes=6))
    assert "The worker does not read them." in page(client, olga, f"/nodes/{NODE}")


def units(cluster: Cluster, node: str) -> list[tuple[str, int, int, int, int | None]]:
    found = node_queries.node_page(cluster, node)
    return [(one.resource, one.capacity, one.allocatable, one.unhealthy, one.faulty) for one in found.devices]


def test_a_gpu_with_a_fault_is_unhealthy(cluster: Cluster, olga: User) -> None:
    """Once, whatever its faults; not if the program is at fault, or it is only hot."""
    mirrored.hardware_seen(cluster)
    for fields in ({"code": 31}, {"kind": "hot", "code": 0}, {"code": 48, "cleared_at": timezone.now()}):
        fault(cluster, node=NODE, **fields)
    assert units(cluster, NODE) == [("nvidia.com/gpu", 4, 4, 0, 0)]
    fault(cluster, node=NODE)
    fault(cluster, node=NODE, kind="row_remap_failure", code=0)
    assert units(cluster, NODE) == [("nvidia.com/gpu", 4, 4, 1, 1)]
    fault(cluster, node=NODE, device="GPU-2")
    assert units(cluster, NODE) == [("nvidia.com/gpu", 4, 4, 2, 2)]


def test_a_gpu_that_kubernetes_does_not_offer_counts_once(cluster: Cluster, olga: User) -> None:
    def withdraw(node: dict[str, Any]) -> None:
        node["status"]["allocatable"]["nvidia.com/gpu"] = "3"

    seen(cluster, withdraw)
    fault(cluster, node=NODE)
    assert units(cluster, NODE) == [("nvidia.com/gpu", 4, 3, 1, 1)]
    fault(cluster, node=NODE, device="GPU-2")
    assert units(cluster, NODE) == [("nvidia.com/gpu", 4, 3, 2, 2)]


def test_shares_of_a_gpu_count_and_slices_are_unknown(cluster: Cluster, olga: User, client: Client) -> None:
    mirrored.hardware_seen(cluster)
    fault(cluster, node="a100-shared")
    fault(cluster, node="a100-mig", device="GPU-2")
    assert units(cluster, "a100-shared") == [
        ("nvidia.com/gpu", 0, 0, 0, 0),
        ("nvidia.com/gpu.shared", 16, 16, 4, 4),
    ]
    assert {(one[3], one[4]) for one in units(cluster, "a100-mig") if one[0].startswith("nvidia.com/mig")} == {
        (0, None)
    }
    assert "not known how many there are" in page(client, olga, "/nodes/a100-mig")
    assert "not known how many there are" not in page(client, olga, "/nodes/a100-shared")


# ---- the API ---------------------------------------------------------------------------------------------------------


def test_staff_see_all_and_others_those_of_their_teams(
    cluster: Cluster, run: Run, other_run: Run, alice: User, charlie: User, olga: User, client: Client
) -> None:
    ours = fault(cluster, run, other_run)
    fault(cluster, other_run, device="GPU-2")
    fault(cluster, device="GPU-3")
    assert [one["gpu"] for one in listed(olga)] == ["GPU-3", "GPU-2", DEVICE]
    assert listed(charlie) == []
    [one] = listed(alice)
    assert (one["id"], one["runs"]) == (ours.pk, [{"team": "team-a", "workload": "train", "run": 1}])
    assert [len(one["runs"]) for one in listed(olga)] == [0, 1, 2]
    assert [one["gpu"] for one in listed(olga, "?team=team-a")] == [DEVICE]


def test_an_item_says_what_it_is(cluster: Cluster, run: Run, alice: User, client: Client) -> None:
    fault(cluster, run, kind="row_remap_failure", code=0, value=1)
    [one] = listed(alice)
    assert (one["kind"], one["code"], one["state"]) == ("row_remap_failure", None, "open")
    assert (one["title"], one["is_unhealthy"], one["cleared_at"]) == ("row remapping failure", True, None)
    assert one["operators"] == "Drain the node and replace the GPU."


def test_open_and_those_that_are_over(cluster: Cluster, olga: User, client: Client) -> None:
    fault(cluster)
    fault(cluster, device="GPU-2", cleared_at=timezone.now())
    fault(cluster, device="GPU-3", cleared_at=timezone.now(), is_gone=True)
    assert [one["state"] for one in listed(olga)] == ["gone", "cleared", "open"]
    assert [one["state"] for one in listed(olga, "?open=true")] == ["open"]
    assert [one["state"] for one in listed(olga, "?open=false")] == ["gone", "cleared"]


@pytest.mark.parametrize(("query", "status", "code"), [("?open=x", 422, "invalid"), ("?team=team-a", 404, "not_found")])
def test_calls_that_are_refused(
    team_a: Tenant, charlie: User, client: Client, query: str, status: int, code: str
) -> None:
    answer = asked(charlie, query)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_figures_of_classes_count_it(cluster: Cluster, a100: GpuClass, alice: User, olga: User, client: Client) -> None:
    mirrored.hardware_seen(cluster)

    def unhealthy() -> tuple[int, int]:
        client.force_login(olga)
        items = client.get("/api/v1/capacity").json()["items"]
        classes = client.get("/api/v1/classes").json()["items"]
        [of_capacity] = [one["unhealthy"] for one in items if one["slug"] == a100.slug]
        [of_class] = [one["capacity"]["unhealthy"] for one in classes if one["slug"] == a100.slug]
        return of_capacity, of_class

    before = unhealthy()
    fault(cluster, node=NODE)
    assert unhealthy() == (before[0] + 1, before[1] + 1)
    GpuFault.objects.update(node="a100-mig")
    assert unhealthy() == before


# ---- cost ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/nodes", f"/nodes/{NODE}", "/api/v1/gpu-faults", PAGE])
def test_a_page_takes_as_many_queries_for_many_faults_as_for_one(
    cluster: Cluster, run: Run, a100: GpuClass, alice: User, olga: User, client: Client, path: str
) -> None:
    mirrored.hardware_seen(cluster)
    client.force_login(olga)

    def queries_of_page() -> int:
        client.get(path)
        with CaptureQueriesContext(connection) as found:
            assert client.get(path).status_code == 200
        return len(found)

    fault(cluster, run, node=NODE)
    few = queries_of_page()
    for number in range(6):
        team = make.tenant(cluster, slug=f"team-{number}")
        of_team = running.workload(team.namespaces.get(), a100, name=f"w{number}", by=alice, kind="job").runs.get()
        fault(cluster, run, of_team, node=NODE, device=f"GPU-{number}")
    assert queries_of_page() == few
