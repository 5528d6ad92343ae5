"""Jobs by form and API: the same sentences and the same refusals at the same fields."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass, Image
from cluster.models import MirrorPod
from tenants.models import Grant, Membership, Namespace, Tenant
from tests.support.rows import running
from workloads.gateway import queries
from workloads.models import Run, Workload
from workloads.status.observations import wait_conditions

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("granted", "images")]
LAUNCH = "/teams/team-a/launch"
API = "/api/v1/workloads?team=team-a"
SCRIPT = "#!/usr/bin/env bash\r\nset -e\r\ntorchrun train.py\r\n"
RUNS = "/api/v1/workloads/train/runs?team=team-a"


@pytest.fixture
def her(alice: User, images: list[Image]) -> Client:
    Grant.objects.update(units=8)
    client = Client()
    client.force_login(alice)
    return client


def typed(a100: GpuClass, **more: Any) -> dict[str, Any]:
    return {"kind": "job", "name": "train", "gpu_class": a100.slug, "units": 2, "image": "python", **more}


def text(answer: Any) -> str:
    return html.unescape(answer.content.decode())


def beside(answer: Any, field: str) -> str:
    found = re.search(rf'<div id="id_{field}_error">(.*?)</div>', text(answer), re.DOTALL)
    return found[1] if found else ""


def test_all_that_a_job_may_be_told_reaches_its_run(her: Client, a100: GpuClass, alice: User) -> None:
    Membership.objects.filter(user=alice).update(role="manager")
    said = {"workers": "4", "script": SCRIPT, "retries": "3", "priority": "production", "checkpoints": "on"}
    assert her.post(LAUNCH, typed(a100, **said)).status_code == 302
    spec = Run.objects.get().spec
    names = ("units", "workers", "script", "retries", "priority", "checkpoints")
    assert {name: spec[name] for name in names} == {
        "units": 2, "workers": 4, "script": "#!/usr/bin/env bash\nset -e\ntorchrun train.py\n", "retries": 3,
        "priority": "production", "checkpoints": True,
    }  # fmt: skip


def test_the_same_by_a_call_and_what_it_answers(her: Client, a100: GpuClass) -> None:
    options = {"workers": 2, "script": "ls", "retries": 1, "checkpoints": True, "priority": "batch"}
    body = {**typed(a100, units=1), "options": options}
    answer = her.post(API, body, content_type="application/json")
    assert answer.status_code == 201, answer.json()
    told = answer.json()["options"]
    assert {name: told[name] for name in options} == options
    assert Run.objects.get().total_units == 2
    again = {**body, "options": {**options, "workers": 3}}
    del again["name"]
    assert her.put("/api/v1/workloads/train?team=team-a", again, content_type="application/json").status_code == 200
    assert Workload.objects.get().workers == 3


@pytest.mark.parametrize(
    ("said", "field", "words"),
    [
        (
            {"workers": 5},
            "workers",
            "5 workers × 2 = 10 of A100 80GB whole card requested; your team can use at most 8",
        ),
        ({"workers": 0}, "workers", "Enter 1 to 256 workers, not 0."),
        ({"script": "ls", "command": "ls"}, "script", "A job runs a command or a script, not both."),
        ({"script": "x" * 20_001}, "script", "at most 20,000 characters; this one has 20,001"),
        ({"retries": 11}, "retries", "Enter 0 to 10 retries, not 11."),
        (
            {"priority": "production"},
            "priority",
            "Only owners and managers of Team A may launch a job with priority production",
        ),
        ({"workers": 2, "volume": "data"}, "volume", "The volume data can be attached to one node only"),
        ({"workers": 2, "kind": "notebook", "image": "minimal"}, "workers", "A notebook has 1 worker"),
        ({"workers": 0, "kind": "notebook", "image": "minimal"}, "workers", "A notebook has 1 worker"),
    ],
)
def test_a_refusal_stands_beside_its_field_and_in_the_answer(
    her: Client, a100: GpuClass, said: dict[str, Any], field: str, words: str
) -> None:
    Membership.objects.update(role="member")
    form = her.post(LAUNCH, typed(a100, **said))
    assert form.status_code == 422
    assert words in beside(form, field)
    outside = {"kind", "image", "command", "volume"}
    body = typed(a100, **{name: value for name, value in said.items() if name in outside})
    body["options"] = {name: value for name, value in said.items() if name not in outside}
    if "command" in body:
        body["command"] = [body["command"]]
    answer = her.post(API, body, content_type="application/json")
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert words in answer.json()["message"]
    assert not Run.objects.exists()


def test_where_units_are_lent_a_job_confirms_that_it_checkpoints(her: Client, a100: GpuClass) -> None:
    look = her.post(LAUNCH, typed(a100, look="kind"))
    assert "This job uses checkpointing" not in text(look)
    GpuClass.objects.update(borrowing_limit=4)
    look = her.post(LAUNCH, typed(a100, look="kind"))
    assert "This job uses checkpointing: it saves its state and resumes from it" in text(look)
    assert "Not possible: Jobs on A100 80GB whole card can run on borrowed units" in text(look)

    refused = her.post(LAUNCH, typed(a100))
    assert refused.status_code == 422
    assert "Confirm that this job uses checkpointing" in beside(refused, "checkpoints")
    assert her.post(API, typed(a100), content_type="application/json").status_code == 422
    assert not Run.objects.exists()

    assert her.post(LAUNCH, typed(a100, checkpoints="on")).status_code == 302
    assert Run.objects.get().spec["checkpoints"] is True


SPOT = {"cloud.google.com/gke-spot": "true"}


def test_a_class_of_spot_nodes_asks_what_may_be_interrupted(her: Client, a100: GpuClass) -> None:
    notebook = typed(a100, kind="notebook", image="minimal")
    accept = "I accept that this notebook can be interrupted at any time"
    assert accept not in text(her.post(LAUNCH, {**notebook, "look": "kind"}))
    GpuClass.objects.update(node_labels={**a100.node_labels, **SPOT})
    look = text(her.post(LAUNCH, {**notebook, "look": "kind"}))
    assert accept in look
    assert "This job uses checkpointing" not in look
    look = text(her.post(LAUNCH, typed(a100, look="kind")))
    assert accept not in look
    assert "This job uses checkpointing" in look
    assert "has spot nodes, which the provider can reclaim at any time." in look

    refused = her.post(LAUNCH, notebook)
    assert refused.status_code == 422
    assert "Accept this in the form" in beside(refused, "accepts_interruption")
    assert "Confirm that this job" in beside(her.post(LAUNCH, typed(a100)), "checkpoints")
    answer = her.post(API, notebook, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (422, "interruption_not_accepted")
    assert not Run.objects.exists()

    assert her.post(LAUNCH, {**notebook, "accepts_interruption": "on"}).status_code == 302
    assert Workload.objects.get().options["accepts_interruption"] is True
    again = {**notebook, "name": "second", "options": {"accepts_interruption": True}}
    assert her.post(API, again, content_type="application/json").status_code == 201


def test_a_rerun_needs_the_confirmation_too(her: Client, a100: GpuClass) -> None:
    her.post(LAUNCH, typed(a100))
    Run.objects.update(ended_at="2026-01-01T00:00Z", outcome="succeeded")
    GpuClass.objects.update(borrowing_limit=4)
    answer = her.post(RUNS, content_type="application/json")
    assert answer.status_code == 422
    assert "checkpoints_not_confirmed" in answer.content.decode()
    assert 'action="/teams/team-a/workloads/train/start"' not in text(her.get("/teams/team-a/workloads/train"))


def test_a_rerun_as_production_keeps_to_the_grant_too(her: Client, a100: GpuClass) -> None:
    her.post(LAUNCH, typed(a100, workers=2, priority="production"))
    Run.objects.update(ended_at="2026-01-01T00:00Z", outcome="succeeded")
    GpuClass.objects.update(borrowing_limit=8)
    Workload.objects.update(options={**Workload.objects.get().options, "checkpoints": True})
    Grant.objects.update(units=3)
    answer = her.post(RUNS, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (422, "priority_beyond_grant")
    Grant.objects.update(units=4)
    assert her.post(RUNS, content_type="application/json").status_code == 201


def test_fields_of_jobs_are_shown_for_jobs_without_script(her: Client, a100: GpuClass) -> None:
    """The page without JavaScript: the user chooses the kind, and a button reloads the fields for it."""
    page = text(her.get(LAUNCH))
    assert "Update options" in page
    assert not re.search(r'name="(workers|script|retries|command)"', page)
    page = text(her.post(LAUNCH, typed(a100, look="all")))
    assert re.findall(r'<(?:input|textarea)[^>]* name="(workers|command|script|retries)"', page) == [
        "workers", "command", "script", "retries",
    ]  # fmt: skip
    # Values sent for a job that a notebook cannot have stay visible and can be removed.
    refused = her.post(LAUNCH, typed(a100, kind="notebook", image="minimal", script="ls"))
    assert "Only jobs can have a script" in beside(refused, "script")


def test_the_plan_counts_and_shows_the_service(her: Client, a100: GpuClass) -> None:
    page = text(her.post(LAUNCH, typed(a100, workers=4, units=1, look="units")))
    assert "4 GPU-hours per hour" in page
    assert "<b>Service</b> <code>train-1</code>" in page
    assert "then runs 4 pods, all or none" in page
    assert '"workers": 4' in page


def test_another_like_it_has_everything_but_the_confirmation(her: Client, a100: GpuClass) -> None:
    GpuClass.objects.update(borrowing_limit=4)
    her.post(LAUNCH, typed(a100, workers=3, script=SCRIPT, retries=2, checkpoints="on"))
    page = text(her.get(f"{LAUNCH}?like=train"))
    assert re.search(r'name="workers" value="3"', page)
    assert re.search(r'name="retries" value="2"', page)
    assert "torchrun train.py" in page
    assert not re.search(r'name="checkpoints"[^>]* checked', page)
    page = text(her.get("/teams/team-a/workloads/train/change"))
    assert re.search(r'name="checkpoints"[^>]* checked', page)


def test_an_event_does_not_repeat_the_script(her: Client, a100: GpuClass, granted: Tenant) -> None:
    body = {key: value for key, value in typed(a100).items() if key != "name"}
    for script in ("echo one", "echo two"):
        her.put(
            "/api/v1/workloads/train?team=team-a", {**body, "options": {"script": script}},
            content_type="application/json",
        )  # fmt: skip
    event = Event.objects.get(verb="workload.changed")
    assert "echo" not in str(event.before) + str(event.after)
    assert event.before != event.after


# ---- workload page ---------------------------------------------------------------------------------------------------


def made_worker(pod: MirrorPod, index: int, **changes: Any) -> None:
    labels = {"batch.kubernetes.io/job-completion-index": str(index)}
    values = {"name": f"one-1-{index}-x", "uid": f"pod-{index}", "node": f"a100-{index}", **changes}
    for name, value in values.items():
        setattr(pod, name, value)
    pod.pk, pod.record = None, {**pod.record, "labels": labels}
    pod._state.adding = True
    pod.save()


@pytest.fixture
def gang(namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    """A job of which two of three workers run."""
    options = {"workers": 3, "script": "#!/bin/sh\n# train\ntorchrun train.py", "retries": 2, "priority": "production"}
    found = running.workload(namespace_a, a100, by=alice, kind="job", options=options)
    pod = running.make_ready(found)
    MirrorPod.objects.filter(pk=pod.pk).delete()
    for index in (0, 1):
        made_worker(pod, index)
    return found


def test_the_page_says_what_each_worker_does_and_where_its_log_is(her: Client, gang: Workload) -> None:
    page = text(her.get("/teams/team-a/workloads/one"))
    rows = re.findall(r'<tr><th scope="row">(\d)</th><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td></tr>', page, re.DOTALL)
    assert [(row[0], re.sub("<[^>]*>", "", row[2])) for row in rows] == [("0", "a100-0"), ("1", "a100-1"), ("2", "–")]
    assert 'href="/live/logs/team-a/one?worker=1"' in rows[1][3]
    assert "pod is being created" in rows[2][1]
    assert "2 of 3 ready. Worker 2: " in page
    for words in ("3 workers × 1 GPU", "torchrun train.py … (3 lines)", "up to 2 after a crash", "production"):
        assert words in page, words
    assert "3 workers × 1 GPU" in text(her.get("/teams/team-a/workloads?kind=job"))


def test_which_log_is_read(gang: Workload, alice: User) -> None:
    by = Actor(user=alice, via="stream")
    found = [queries.log_source(by, "team-a", "one", index)[1] for index in (None, 0, 1, 2)]
    assert [one and one.pod for one in found] == ["one-1-0-x", "one-1-0-x", "one-1-1-x", None]


def test_a_gang_is_waited_for_until_the_last_one_is_ready(gang: Workload) -> None:
    where = (gang.namespace.name, "one", "ready")
    assert wait_conditions.has_reached(*where)
    Run.objects.update(ready_at=None)
    assert not wait_conditions.has_reached(*where)
    Run.objects.update(spec={**gang.runs.get().spec, "workers": 1})
    assert wait_conditions.has_reached(*where)


def test_a_page_with_many_workers_asks_no_more(her: Client, gang: Workload, alice: User) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert her.get("/teams/team-a/workloads/one").status_code == 200
        return len(seen)

    asked()
    two = asked()
    pod = MirrorPod.objects.first()
    assert pod is not None
    Run.objects.update(spec={**Run.objects.get().spec, "workers": 40})
    for index in range(2, 40):
        made_worker(pod, index)
    assert asked() == two
