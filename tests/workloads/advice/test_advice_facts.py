"""The facts behind next steps: their source, their queries, and how page, fragments and API show the steps."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass, Image
from cluster.models import Cluster, MirrorNode, MirrorPod
from tenants.models import Grant, Namespace, Tenant
from tests.support.rows import make, mirrored, running
from tests.support.rows.waiting_runs import IMAGE, runs, told, waits
from workloads.advice.queries import advice_by_workload
from workloads.core import queries, workload_sql
from workloads.forecast.queries import LaunchSize, outlooks
from workloads.launch.queries import reachable_classes
from workloads.models import NotebookWatch, Run, Workload
from workloads.status import queries as status_queries

pytestmark = pytest.mark.django_db
SPREAD = 'topology "gpu-portal" allows to fit only 3 out of 4 pod(s)'
PAGE = "/teams/team-a/workloads/waits"


@pytest.fixture
def house(team_a: Tenant, cluster: Cluster, a100: GpuClass) -> Tenant:
    """A team with four GPUs granted."""
    mirrored.hardware_seen(cluster)
    make.grant(team_a, a100, units=4)
    Image.objects.create(name="minimal", reference=IMAGE, kind="notebook", vendor="nvidia")
    return team_a


@pytest.fixture
def slices(cluster: Cluster) -> GpuClass:
    """A class of slices, four on one node."""
    return make.gpu_class(cluster, slug="a100-3g", name="A100 3g", resource="nvidia.com/mig-3g.40gb", weight="0.428571")


def verbs(by: Actor) -> list[str]:
    return [step.verb for step in told(by)["waits"].steps]


def test_an_idle_notebook_of_ones_own_goes_before_waiting_and_busy_work_comes_last(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, by_alice: Actor
) -> None:
    idle = runs(namespace_a, a100, alice, "idle")
    runs(namespace_a, a100, alice, "busy")
    waits(namespace_a, a100, alice)
    assert verbs(by_alice) == ["wait", "request_quota", "stop_other"]
    NotebookWatch.objects.create(run=idle.runs.get(), idle_since=timezone.now() - timedelta(hours=2))
    found = told(by_alice)["waits"]
    assert [step.verb for step in found.steps] == ["stop_other", "wait", "request_quota"]
    assert found.steps[0].label == "Stop idle"
    [finding] = found.findings
    assert finding.startswith("A few GPUs of A100 80GB whole card are in use by idle notebooks, in all")


def test_a_member_is_offered_what_is_theirs(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, bob: User, by_bob: Actor
) -> None:
    """Bob may change and stop what he launched, and may not request quota; the notebook belongs to Alice."""
    runs(namespace_a, a100, alice, "hers", units=3)
    waits(namespace_a, a100, bob)
    found = told(by_bob)["waits"]
    assert [step.verb for step in found.steps] == ["fewer_units", "wait", "request_quota"]
    assert found.steps[-1].way is None
    Workload.objects.filter(name="waits").update(created_by=alice)
    assert verbs(by_bob) == ["wait", "request_quota"]


def test_another_class_is_offered_where_it_takes_the_image_and_is_free(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, slices: GpuClass, alice: User, by_alice: Actor
) -> None:
    runs(namespace_a, a100, alice, "busy", units=4)
    waits(namespace_a, a100, alice)
    assert "smaller_slice" not in verbs(by_alice), "nothing of it is granted"
    make.grant(house, slices, units=2)
    found = told(by_alice)["waits"]
    assert found.steps[0].way is not None
    assert found.steps[0].way.href("team-a") == f"{PAGE}/change?class=a100-3g&units=2#choices"
    Image.objects.update(vendor="amd")
    assert "smaller_slice" not in verbs(by_alice)


def test_cores_are_never_offered_instead_of_a_gpu(
    house: Tenant, namespace_a: Namespace, cluster: Cluster, a100: GpuClass, alice: User, by_alice: Actor
) -> None:
    cores = {"resource": "", "sharing": "none", "vendor": "", "node_labels": {}, "memory_mib": None}
    cpu = make.gpu_class(cluster, slug="cpu", name="CPU only", interface="none", **cores)
    make.grant(house, cpu, units=8)
    Image.objects.update(vendor="")
    runs(namespace_a, a100, alice, "busy", units=4)
    waits(namespace_a, a100, alice)
    assert outlooks(namespace_a, list(reachable_classes(namespace_a)), LaunchSize())["cpu"].tone == "good"
    assert not {"smaller_slice", "other_class"} & set(verbs(by_alice))


def test_a_job_of_several_workers_is_offered_as_many_as_fit_on_the_nodes(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, by_alice: Actor
) -> None:
    """Four nodes with 4 GPUs, 2 of the first in use: there is room for three workers of 3 GPUs, on the other nodes."""
    Grant.objects.update(units=16)
    runs(namespace_a, a100, alice, "busy")
    Image.objects.update(kind="job")
    waits(namespace_a, a100, alice, text=SPREAD, kind="job", units=3, options={"workers": 4})
    found = told(by_alice)["waits"]
    assert found.verdict == "not_yet", "twelve GPUs are more than one node has, and no worker needs so many"
    assert (found.steps[0].verb, found.steps[0].label) == ("fewer_workers", "Request 3 workers instead of 4")
    assert found.steps[0].way is not None
    where = found.steps[0].way.href("team-a")
    assert where == f"{PAGE}/change?class={a100.slug}&units=3&workers=3#id_workers"
    client = Client()
    client.force_login(alice)
    assert re.search(r'<input type="number" name="workers" value="3"', client.get(where).content.decode())

    Grant.objects.update(units=8)
    assert told(by_alice)["waits"].steps[0].label == "Request 2 workers instead of 4", "two GPUs are in use"


def test_no_class_is_offered_whose_free_units_lie_beside_too_little_cpu_or_memory(
    house: Tenant, namespace_a: Namespace, cluster: Cluster, a100: GpuClass, slices: GpuClass, alice: User,
    by_alice: Actor,
) -> None:  # fmt: skip
    """Two slices come with their default cores and memory; a run with smaller options needs less."""
    make.grant(house, slices, units=2)
    runs(namespace_a, a100, alice, "busy", units=4)
    found = waits(namespace_a, a100, alice)
    assert verbs(by_alice)[0] == "smaller_slice"
    [node] = [one for one in MirrorNode.objects.all() if one.record["allocatable"].get(slices.resource)]
    for resource, enough, size in (
        ("cpu", slices.cpu_per_unit * 2, 1000),
        ("memory", slices.memory_gib_per_unit * 2, 2**30),
    ):
        for amount, offered in ((enough, 2), (enough // 2 - 1, 0), (enough - 1, 1)):
            allocatable = {**node.record["allocatable"], resource: amount * size}
            MirrorNode.objects.filter(pk=node.pk).update(record={**node.record, "allocatable": allocatable})
            ways = [step.way for step in told(by_alice)["waits"].steps if step.verb == "smaller_slice"]
            assert [way.query["units"] for way in ways if way] == ([str(offered)] if offered else []), amount
    Workload.objects.filter(pk=found.pk).update(options={"cpu": 1, "memory_gib": slices.memory_gib_per_unit})
    assert "smaller_slice" in verbs(by_alice)


def test_units_of_work_that_is_ending_are_waited_for(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, by_alice: Actor
) -> None:
    text = 'topology "gpu-portal" allows to fit only 0 out of 1 pod(s)'
    for number in range(1, 5):
        busy = runs(namespace_a, a100, alice, f"busy-{number}", units=4, node=f"a100-{number}")
        busy.runs.update(ended_at=timezone.now(), outcome="stopped")
    waits(namespace_a, a100, alice, text=text, units=4)
    assert "ending" not in told(by_alice)["waits"].steps[0].why
    MirrorPod.objects.filter(name="busy-2-x").update(deleting_since=timezone.now())
    found = told(by_alice)["waits"].steps[0]
    assert (found.verb, found.why[:31]) == ("wait", "It starts when that pod is gone")
    [row] = status_queries.workload_rows(workload_sql.with_related(Workload.objects.filter(name="waits")))
    held = "4 units of A100 80GB whole card on node a100-2 are in use until it is gone."
    assert row.status.sentence == f"The previous pod is still terminating: {held}"


def test_pods_that_were_not_started_here_are_told_of(
    house: Tenant, namespace_a: Namespace, cluster: Cluster, a100: GpuClass, alice: User, by_alice: Actor
) -> None:
    runs(namespace_a, a100, alice, "kubectl", units=3)
    MirrorPod.objects.update(owner="", gpu_class="")
    Run.objects.filter(workload__name="kubectl").update(ended_at=timezone.now(), outcome="stopped")
    waits(namespace_a, a100, alice)
    [finding] = told(by_alice)["waits"].findings
    assert finding.startswith("3 GPUs of A100 80GB whole card are in use by pods of your team that were not started")


def test_a_place_in_the_queue_counts_only_what_could_be_admitted(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    never = "insufficient quota for nvidia.com/gpu in flavor a100-1, request (9) > maximum capacity (4)"
    waits(namespace_a, a100, alice, name="never", text=never)
    waits(namespace_a, a100, alice, name="first")
    waits(namespace_a, a100, alice, name="second")
    rows = status_queries.workload_rows(workload_sql.with_related(Workload.objects.all()))
    places = {row.workload.name: row.status.facts.get("position") for row in rows}
    assert places == {"never": None, "first": 1, "second": 2}


def test_however_many_wait_the_number_of_queries_is_the_same(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, by_alice: Actor, django_assert_num_queries: Any
) -> None:
    namespace, team = queries.team(by_alice, "team-a")
    runs(namespace_a, a100, alice, "busy", units=4)
    for number in range(3):
        waits(namespace_a, a100, alice, name=f"waits-{number}")
        rows = status_queries.workload_rows(workload_sql.with_related(Workload.objects.all()))
        with django_assert_num_queries(12):
            found = advice_by_workload(by_alice, namespace, team, rows)
        assert len(found) == number + 1


def test_where_nothing_is_in_the_way_nothing_is_asked(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, by_alice: Actor, django_assert_num_queries: Any
) -> None:
    running.make_ready(running.workload(namespace_a, a100, by=alice))
    namespace, team = queries.team(by_alice, "team-a")
    rows = status_queries.workload_rows(workload_sql.with_related(Workload.objects.all()))
    with django_assert_num_queries(0):
        assert advice_by_workload(by_alice, namespace, team, rows) == {}


# ---- page, list and API ----------------------------------------------------------------------------------------------


def test_the_page_the_list_and_the_api_say_the_same(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, client: Client
) -> None:
    runs(namespace_a, a100, alice, "busy", units=3)
    waits(namespace_a, a100, alice)
    client.force_login(alice)
    link = f"{PAGE}/change?class={a100.slug}&units=1#id_units"
    for path in (PAGE, f"{PAGE}/next-steps", "/teams/team-a/next-steps"):
        text = html.unescape(client.get(path).content.decode())
        assert f'href="{link}"' in text, path
        assert "Request 1 GPU instead of 2" in text
        assert "Starts automatically; no action needed." in text
    assert 'id="helps-waits"' in client.get("/teams/team-a").content.decode()
    _row, token = api_token_actions.create_token(
        name="ci", scopes=["read"], expires_in_days=1, by=Actor(user=alice, via="page")
    )
    for path in ("/api/v1/workloads/waits", "/api/v1/workloads"):
        answer = client.get(f"{path}?team=team-a", headers={"authorization": f"Bearer {token}"}).json()
        body = answer if "status" in answer else answer["items"][0]
        assert body["status"]["verdict"] == "not_yet"
        steps = [(step["verb"], step["url"]) for step in body["status"]["next_steps"]]
        assert steps == [("wait", ""), ("request_quota", "")], "a token that only reads"


def test_the_form_starts_with_what_the_step_chose(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, slices: GpuClass, alice: User, client: Client
) -> None:
    make.grant(house, slices, units=2)
    waits(namespace_a, a100, alice)
    client.force_login(alice)
    page = client.get(f"{PAGE}/change?class=a100-3g&units=1&image=other&repo=https://example.org/x").content.decode()
    sized = client.get(f"{PAGE}/change?cpu=3&memory_gib=many").content.decode()
    assert re.search(r'name="cpu" value="3"', sized)
    assert 'value="many"' not in sized
    assert re.search(r'value="a100-3g"[^>]*checked', page)
    assert re.search(r'name="units" value="1"', page)
    assert not re.search(r'name="repository" value="[^"]', page)
    unknown = client.get(f"{PAGE}/change?class=h999").content.decode()
    assert "The class &#x27;h999&#x27; is not available to your team" in unknown


def test_it_is_not_there_for_strangers(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, charlie: User, client: Client
) -> None:
    waits(namespace_a, a100, alice)
    client.force_login(charlie)
    for path in (f"{PAGE}/next-steps", "/teams/team-a/next-steps"):
        assert client.get(path).status_code == 404
