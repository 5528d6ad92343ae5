"""Launch, run, wait, stop and logs against the portal itself; the test sets in rows what a cluster would do."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass, Image
from gpu_cli import formatting
from tenants.models import Grant, Namespace, Tenant
from tests.cli.command import Done, Gpu, answered, unheard
from tests.cli.commands.run_rows import ended
from tests.support.rows import running
from tests.support.rows.waiting_runs import mirror_wait
from workloads.models import Run, Workload
from workloads.runs import restart
from workloads.runs.concurrency import actions as concurrency_actions
from workloads.runs.concurrency.policy import RunRequest

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("images")]
PAGE = "/teams/team-a/workloads/train"


@pytest.fixture
def what(granted: Tenant, a100: GpuClass, images: list[Image]) -> tuple[str, ...]:
    """A job on one of the two units; the mirror has nothing of it yet."""
    running.known(granted.namespaces.get().cluster_id)
    return ("--class", a100.slug, "--image", "python")


def at_work() -> object:
    """With its pod, as the mirror would show it."""
    return running.make_ready(Workload.objects.get())


# ---- launch --------------------------------------------------------------------------------------------------------


def test_launch_prints_the_page(gpu: Gpu, what: tuple[str, ...]) -> None:
    done = gpu("launch", "train", *what, "--env", "A=b=c", "--", "python", "train.py", "--lr", "3")
    assert done.code == 0, done.err
    assert done.out.endswith(f"{PAGE}\n")
    assert "queued: " in done.err
    row = Workload.objects.get()
    assert (row.kind, row.command, row.options["env"]) == ("job", ["python", "train.py", "--lr", "3"], {"A": "b=c"})
    again = gpu("launch", "train", *what)
    assert (again.code, again.out) == (6, "")


def test_without_a_command_it_is_a_notebook(gpu: Gpu, granted: Tenant, a100: GpuClass) -> None:
    done = gpu("launch", "lab", "--class", a100.slug, "--image", "minimal", "--json")
    assert done.code == 0, done.err
    assert done.json["kind"] == "notebook"


def test_a_body_from_a_file_and_what_is_said_beside_it(gpu: Gpu, what: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "train.json"
    body = {"gpu_class": what[1], "image": "python", "units": 1, "options": {"retries": 2, "env": {"A": "b"}}}
    file.write_text(json.dumps(body))
    done = gpu("launch", "train", "--kind", "job", "--file", str(file), "--units", "2", "--run-hours", "4")
    assert done.code == 0, done.err
    row = Workload.objects.get()
    assert (row.units, row.options["retries"], row.options["run_hours"]) == (2, 2, 4)
    for bad in ("[]", "{", '{"options": 1}'):
        assert gpu("launch", "more", "--file", "-", stdin=bad).code == 2
    assert "NAME=VALUE" in gpu("launch", "more", *what, "--env", "secret").err


def test_the_memory_of_the_devices(gpu: Gpu, what: tuple[str, ...]) -> None:
    done = gpu("launch", "train", *what, "--gpu-memory", "40")
    assert done.code == 6
    assert "The memory of the single devices of A100 80GB whole card is not known." in done.err


def test_a_level_of_the_topology(gpu: Gpu, what: tuple[str, ...]) -> None:
    done = gpu("launch", "train", *what, "--kind", "job", "--topology-level", "example.org/rack", "--topology-required")
    assert done.code == 6
    assert "A100 80GB whole card has no topology with levels." in done.err


@pytest.fixture
def spot(a100: GpuClass) -> GpuClass:
    a100.node_labels = {**a100.node_labels, "karpenter.sh/capacity-type": "spot"}
    a100.save()
    return a100


def test_a_job_on_spot_nodes_needs_checkpoints(gpu: Gpu, what: tuple[str, ...], spot: GpuClass) -> None:
    job = ("launch", "train", *what, "--kind", "job")
    refused = gpu(*job)
    assert refused.code == 6
    assert "has spot nodes, which the provider can reclaim at any time." in refused.err
    assert "Use --checkpoints" in refused.err
    assert not Workload.objects.exists()
    done = gpu(*job, "--checkpoints")
    assert done.code == 0, done.err
    assert Workload.objects.get().options["checkpoints"] is True
    # Nothing is confirmed for a job by what is for notebooks.
    assert gpu("run", "other", *what, "--accept-interruption", "--detach").code == 6
    assert gpu("run", "other", *what, "--checkpoints", "--detach").code == 0


def test_a_notebook_on_spot_nodes_needs_the_consent_of_its_owner(
    gpu: Gpu, what: tuple[str, ...], spot: GpuClass
) -> None:
    notebook = ("launch", "lab", "--class", spot.slug, "--image", "minimal")
    refused = gpu(*notebook)
    assert (refused.code, Workload.objects.count()) == (6, 0)
    assert "the notebook then loses its memory and restarts." in refused.err
    assert "Use --accept-interruption" in refused.err
    done = gpu(*notebook, "--accept-interruption")
    assert done.code == 0, done.err
    assert Workload.objects.get().options["accepts_interruption"] is True


# ---- run -----------------------------------------------------------------------------------------------------------


def run_it(gpu: Gpu, what: tuple[str, ...], *more: str) -> Done:
    return gpu("run", "train", *what, *more, "--", "python", "train.py")


def test_a_run_that_succeeds(gpu: Gpu, what: tuple[str, ...]) -> None:
    gpu.meanwhile = iter([at_work, lambda: None, ended("succeeded", "It is done.")])
    done = run_it(gpu, what)
    assert (done.code, done.out) == (0, "")
    told = done.err.splitlines()
    assert told[0].startswith("train: run 1, ")
    assert told[0].endswith(PAGE)
    assert told[-1] == "succeeded: It is done."
    assert len(told) == len(set(told)), "a sentence that did not change was told twice"


def test_a_run_that_fails_has_the_containers_code_in_its_json(gpu: Gpu, what: tuple[str, ...]) -> None:
    gpu.meanwhile = iter([at_work, ended("failed", "It ended with 42.", 42)])
    done = run_it(gpu, what, "--json")
    assert done.code == 1
    assert (done.json["exit_code"], done.json["outcome"], done.json["number"]) == (42, "failed", 1)
    assert "failed: It ended with 42." in done.err


def test_what_is_refused_starts_nothing(gpu: Gpu, what: tuple[str, ...]) -> None:
    done = run_it(gpu, what, "--units", "3")
    assert (done.code, done.out) == (6, "")
    assert "3 of A100 80GB whole card requested; your team can use at most 2" in done.err
    assert not Run.objects.exists()


def test_time_that_is_over_in_the_queue(gpu: Gpu, what: tuple[str, ...]) -> None:
    done = run_it(gpu, what, "--timeout", "30s")
    assert done.code == 3
    assert "Timed out after 30s while queued: " in done.err
    assert Run.objects.get().stop_requested_at is None
    assert sum(gpu.slept) == 30


def test_time_that_is_over_at_work_and_nothing_stays_behind(gpu: Gpu, what: tuple[str, ...]) -> None:
    gpu.meanwhile = iter([at_work])
    done = run_it(gpu, what, "--timeout", "30s", "--stop")
    assert done.code == 4
    assert "Timed out after 30s while running: " in done.err
    assert Run.objects.get().stop_requested_at is not None


def test_what_can_never_start_is_not_waited_for(gpu: Gpu, what: tuple[str, ...]) -> None:
    """The command ends as soon as Kueue reports that the run can never start: the portal gives the verdict."""
    text = "insufficient quota for nvidia.com/gpu in flavor a100-1, request (2) > maximum capacity (1)"

    def reduced() -> None:
        Grant.objects.update(units=1)
        mirror_wait(Workload.objects.get(), text)

    gpu.meanwhile = iter([lambda: None, reduced])
    done = run_it(gpu, what, "--units", "2", "--stop", "--timeout", "10h")
    assert (done.code, len(gpu.slept)) == (6, 2)
    assert done.err.splitlines()[-2:] == [
        "blocked: 2 units of A100 80GB whole card requested, but your team may use at most 1 now.",
        "Cannot start with this configuration.",
    ]
    assert Run.objects.get().stop_requested_at is not None


def test_a_portal_that_goes_away_and_one_that_comes_back(gpu: Gpu, what: tuple[str, ...]) -> None:
    gpu.meanwhile = iter([*4 * [lambda: None], ended("succeeded", "It is done.")])
    gpu.between.faults = [unheard(httpx.ReadTimeout), *3 * [answered(502)]]
    assert run_it(gpu, what).code == 0
    gpu.between.faults = [lambda _request: None, *999 * [unheard(httpx.ConnectError)]]
    done = gpu("run", "train", "--detach")
    assert done.code == 0
    done = gpu("wait", "train")
    assert (done.code, done.out) == (5, "")
    assert "does not answer" in done.err


def test_a_call_whose_answer_is_lost_starts_one_run(gpu: Gpu, what: tuple[str, ...]) -> None:
    def lost(request: httpx.Request) -> httpx.Response | None:
        gpu.between.answer(request)
        raise httpx.ReadTimeout("no way", request=request)

    gpu.between.faults = [lambda _request: None, lost]
    assert run_it(gpu, what, "--detach").out == "1\n"
    assert Run.objects.count() == 1


def test_the_same_key_is_the_same_run(gpu: Gpu, what: tuple[str, ...]) -> None:
    """A retried CI step gets the run of its first try."""
    assert run_it(gpu, what, "--detach", "--key", "build-1").out == "1\n"
    assert gpu("run", "train", "--detach", "--key", "build-1").out == "1\n"
    assert gpu("run", "train", "--detach").code == 6  # still running
    ended("succeeded", "It is done.")()
    assert gpu("run", "train", "--detach", "--key", "build-2").out == "2\n"


def test_a_newer_push_waits_for_the_end_of_a_run_that_is_being_stopped(gpu: Gpu, what: tuple[str, ...]) -> None:
    run_it(gpu, what, "--detach")
    assert run_it(gpu, what, "--detach").code == 6  # no stop was requested
    gpu("stop", "train")
    gpu.meanwhile = iter([ended("stopped", "Stopped.")])
    done = run_it(gpu, what, "--detach")
    assert (done.code, done.out) == (0, "2\n"), done.err
    gpu("stop", "train")
    assert run_it(gpu, what, "--timeout", "10s").code == 6  # the run does not end


def test_declare_only_and_runs_of_what_was_declared(gpu: Gpu, what: tuple[str, ...]) -> None:
    assert gpu("run", "train", "--declare-only").code == 2
    assert "train is declared." in run_it(gpu, what, "--declare-only").err
    assert "Changes apply to its next run." in run_it(gpu, what, "--declare-only").err
    assert not Run.objects.exists()
    assert gpu("run", "train", "--detach", "--json").json["number"] == 1


def test_a_run_that_was_begun_in_its_place_is_the_one_waited_for(gpu: Gpu, what: tuple[str, ...]) -> None:
    def interrupted() -> None:
        first = Run.objects.get()
        columns = {"ended_at": timezone.now(), "outcome": "failed", "reason": "interrupted", "message": "Interrupted."}
        Run.objects.filter(pk=first.pk).update(**columns)
        Run.objects.create(workload=first.workload, number=2, spec=first.spec, requested_by=first.requested_by)

    def follows(request: httpx.Request) -> httpx.Response | None:
        found = gpu.between.answer(request)
        return httpx.Response(200, json={**found.json(), "followed_by": 2})

    run_it(gpu, what, "--detach")
    interrupted()
    gpu.meanwhile = iter([ended("succeeded", "It is done.")])
    gpu.between.faults = [follows]
    done = gpu("wait", "train", "--run", "1", "--until", "finished", "--json")
    assert (done.code, done.json["number"]) == (0, 2)


# ---- runs of a group in CI -----------------------------------------------------------------------------------------

PUSH = ("--group", "main", "--cancel-running")


def end_of_the_first() -> None:
    """Records the end as the worker does: the run that was to follow begins."""
    ended("stopped", "Stopped.")()
    assert restart.start_pending(Workload.objects.get())


def test_a_push_is_followed_to_the_run_that_takes_the_place_of_the_one_before(gpu: Gpu, what: tuple[str, ...]) -> None:
    assert run_it(gpu, what, "--detach", *PUSH).out == "1\n"
    assert Run.objects.get().group == "main"
    gpu.meanwhile = iter([lambda: None, end_of_the_first, lambda: None, ended("succeeded", "It is done.")])
    done = run_it(gpu, what, *PUSH, "--json")
    assert (done.code, done.json["number"], done.json["group"]) == (0, 2, "main"), done.err
    told = done.err.splitlines()
    assert told[0].startswith("train: run 2, ")
    assert told[1].startswith("queued: It starts when run 1 has ended, ")
    assert told[-1] == "succeeded: It is done."


def test_a_push_that_does_not_wait_has_the_number_that_the_run_will_have(gpu: Gpu, what: tuple[str, ...]) -> None:
    run_it(gpu, what, "--detach", *PUSH)
    assert run_it(gpu, what, "--detach", *PUSH).out == "2\n"
    found = gpu("run", "train", "--detach", *PUSH, "--json").json
    assert (found["number"], found["requested_at"], found["status"]["reason"]) == (2, None, "follows")


def test_a_run_that_does_not_begin_says_why(gpu: Gpu, what: tuple[str, ...]) -> None:
    def is_in_the_way() -> None:
        GpuClass.objects.update(life_cycle="retiring")
        ended("stopped", "Stopped.")()
        assert not restart.start_pending(Workload.objects.get())

    run_it(gpu, what, "--detach", *PUSH)
    gpu.meanwhile = iter([is_in_the_way])
    done = gpu("run", "train", *PUSH, "--json")
    assert (done.code, done.json["code"]) == (6, "not_found")
    assert "Run 2 did not start. Stopped. It was not restarted: " in done.err


def test_whoever_cancels_an_older_push_does_not_take_the_newer_one_back(
    gpu: Gpu, what: tuple[str, ...], by_bob: Actor
) -> None:
    def cancelled() -> None:
        concurrency_actions.start_in_group("team-a", "train", RunRequest("main", cancel_running=True), by=by_bob)
        raise KeyboardInterrupt

    gpu.meanwhile = iter([cancelled])
    assert run_it(gpu, what, *PUSH, "--stop").code == 130
    assert Run.objects.get().next_wanted_by == by_bob.user


def test_a_push_takes_the_place_of_its_own_group_alone(gpu: Gpu, what: tuple[str, ...]) -> None:
    run_it(gpu, what, "--detach", "--group", "fix-7")
    refused = run_it(gpu, what, *PUSH)
    assert (refused.code, Run.objects.get().stop_requested_at) == (6, None)
    assert "of the group fix-7" in refused.err
    assert "Set group." in run_it(gpu, what, "--cancel-running").err


# ---- wait and stop -------------------------------------------------------------------------------------------------


def test_wait_until_a_notebook_is_ready(
    gpu: Gpu, granted: Tenant, namespace_a: Namespace, a100: GpuClass, bob: User
) -> None:
    found = running.workload(namespace_a, a100, name="one", by=bob)
    gpu.meanwhile = iter([lambda: running.make_ready(found)])
    done = gpu("wait", "one")
    assert done.code == 0
    assert done.err.splitlines()[-1].startswith("ready: ")
    assert gpu("wait", "one", "--until", "finished", "--timeout", "10s").code == 4
    assert gpu("wait", "one", "--until", "soon").code == 2


def test_waits_are_calls_of_a_minute_that_end_in_time(gpu: Gpu, what: tuple[str, ...]) -> None:
    run_it(gpu, what, "--detach")
    gpu.between.asked.clear()
    assert gpu("wait", "train", "--run", "1", "--until", "finished", "--timeout", "63s").code == 3
    waits = [int(one.url.params["wait"]) for one in gpu.between.asked if "wait" in one.url.params]
    assert waits[0] == 60
    assert waits[-1] <= 5
    assert {one.url.params["until"] for one in gpu.between.asked if "wait" in one.url.params} == {"admitted"}


def test_progress_tells_position_and_estimate_while_it_waits(gpu: Gpu, what: tuple[str, ...]) -> None:
    run_it(gpu, what, "--detach")
    done = gpu("wait", "train", "--timeout", "1s")
    body = gpu("status", "train", "--json").json
    assert body["status"]["message"] in done.err
    assert f"No start estimate: {body['estimate']['cannot_tell']}" in done.err


def test_progress_is_made_of_codes_and_says_the_position_once() -> None:
    status = {"phase": "queued", "message": "2nd of 2 units.", "facts": {"position": 2}}
    assert formatting.progress({"status": status}) == "queued: 2nd of 2 units. Position 2 in the team's queue."
    status = {"phase": "running", "message": "Running on n1.", "facts": {"node": "n1"}}
    assert formatting.progress({"status": status, "estimate": None}) == "running: Running on n1."


def test_stop_is_asked_once(gpu: Gpu, what: tuple[str, ...]) -> None:
    run_it(gpu, what, "--detach")
    gpu.between.faults = [unheard(httpx.ReadTimeout)]
    done = gpu("stop", "train")
    assert done.code == 0
    assert done.out.startswith("stopping: ")
    assert gpu("stop", "train").code == 0
    assert gpu("stop", "nothing").code == 6


def test_whoever_cancels_a_job_of_ci_leaves_no_card_behind(gpu: Gpu, what: tuple[str, ...]) -> None:
    def cancel() -> None:
        raise KeyboardInterrupt

    gpu.meanwhile = iter([cancel])
    done = run_it(gpu, what, "--stop")
    assert done.code == 130
    assert "Stopping train." in done.err
    assert Run.objects.get().stop_requested_at is not None
    ended("stopped", "Stopped.")()
    gpu.meanwhile = iter([cancel])
    done = gpu("run", "train")
    assert done.code == 130
    assert "train is still running. 'gpu stop train' stops it." in done.err
    assert Run.objects.order_by("-number")[0].stop_requested_at is None
