"""Causes that hold work back beside quota and nodes: closed queues, admission checks, a later retry, no controller that
acts. Each is tested beside a neighbour that must differ.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from cluster.reads.observed import AsOf, KueueWorkload
from tests.workloads.cases.advice import FULL, with_own
from tests.workloads.cases.cluster_objects import (
    ABOVE,
    ADMITTED,
    AGO,
    BOUND,
    EXCEEDED,
    NEEDED,
    NOW,
    OVER,
    SUSPENDED,
    WISH,
    condition,
    job,
    pending,
    pod,
    queue,
    warning,
)
from workloads.advice.advice import NEVER, NOT_YET, STUCK, advice
from workloads.core.observation import LocalQueueState, Observation
from workloads.status.estimates.queries import wait_reason
from workloads.status.explain.admission import NAMESPACE_ENDING
from workloads.status.explain.types import FACTS, Who, who_acts
from workloads.status.explain.unexplained import is_unexplained
from workloads.status.observations.positions import is_hopeless
from workloads.status.phase import status_of
from workloads.status.types import Status

RESERVED = condition("QuotaReserved")
LATER = NOW + timedelta(seconds=70)
BROKEN = "Can't admit new workloads: references missing AdmissionCheck(s): budget."
TWO_FLAVORS = (
    "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor a100-2, previously "
    "considered podsets requests (0) + current podset request (2) > maximum capacity (0), insufficient unused quota "
    "for nvidia.com/gpu in flavor a100-1, 2 more needed"
)


def of(found: KueueWorkload, at: LocalQueueState | None = None, position: int | None = None) -> Status:
    return status_of(WISH, Observation(SUSPENDED, found, position=position, at=at), now=NOW)


CASES = {
    "put back by a check": (
        of(queue(RESERVED, checks={"budget": "Retry", "other": "Ready"}, requeue_at=LATER)),
        "put_back",
        "Requeued: the cluster's admission check budget requested a later retry. The next retry is at 21 Nov 2026, "
        "12:01:10.",
        (NOT_YET, "wait", "Kueue retries automatically at 21 Nov 2026, 12:01:10."),
    ),
    "put back for the third time": (
        of(queue(condition("Evicted", reason="PodsReadyTimeout"), requeue_at=LATER, requeue_count=3)),
        "put_back",
        "Requeued: it was not ready in time. It was requeued 3 times before. The next retry is at 21 Nov 2026, "
        "12:01:10.",
        (NOT_YET, "wait", "12:01:10"),
    ),
    "the time of its next try is over": (
        of(replace(pending(NEEDED), requeue_at=NOW, requeue_count=3)),
        "waiting_for_quota",
        "Waiting for quota: 2 units of A100 are missing; your team's quota is in use.",
        (NOT_YET, "wait", "when a running workload of your team ends"),
    ),
    "a check has still to agree": (
        of(queue(RESERVED, checks={"budget": "Pending", "other": "Ready"})),
        "checked",
        "Its quota is reserved; it starts when the cluster's admission check budget is ready.",
        (NOT_YET, "wait", "when the check is ready"),
    ),
    "every check agreed": (
        of(queue(RESERVED, checks={"budget": "Ready"})),
        "reserved",
        "Its quota is reserved; it starts in a moment.",
        None,
    ),
    "a check refused it": (
        of(queue(condition("QuotaReserved", true=False), checks={"budget": "Rejected"}, active=False)),
        "deactivated",
        "Kueue deactivated it: the cluster's admission check budget rejected it.",
        (NEVER, "tell_operators", "deactivated"),
    ),
    "the team's queue is held": (
        of(
            pending("ClusterQueue team-a is inactive"),
            LocalQueueState({}, "Can't admit new workloads: is stopped.", True),
        ),
        "queue_held",
        "Your team's queue is paused: no workload starts, running workloads continue.",
        (STUCK, "tell_operators", "queue_held"),
    ),
    "it was paused until a moment ago": (
        of(pending("ClusterQueue team-a is inactive"), LocalQueueState({})),
        "queued",
        "Waiting in your team's queue. It was paused when Kueue tried this workload last, and is open now.",
        None,
    ),
    "somebody held the local queue alone": (
        of(pending("LocalQueue gpu-portal is inactive"), LocalQueueState({}, BROKEN)),
        "queue_held",
        "Your team's queue is paused: no workload starts, running workloads continue.",
        (STUCK, "tell_operators", "queue_held"),
    ),
    "the team's queue names what is not there": (
        of(pending("ClusterQueue team-a is inactive"), LocalQueueState({}, BROKEN)),
        "queue_inactive",
        "Your team's queue cannot admit workloads: it references missing AdmissionCheck(s): budget.",
        (STUCK, "tell_operators", "queue_inactive"),
    ),
    "one of two flavors of its class has no quota": (
        of(pending(TWO_FLAVORS)),
        "waiting_for_quota",
        "Waiting for quota: 2 units of A100 are missing; your team's quota is in use.",
        (NOT_YET, "wait", ""),
    ),
    "its only flavor never has enough": (
        of(pending(OVER)),
        "exceeds_maximum",
        "2 units of A100 requested, but your team may use at most 1 now.",
        (NEVER, "tell_operators", ""),
    ),
}


@pytest.mark.parametrize("name", [name for name in CASES if name != "its only flavor never has enough"])
def test_what_is_said_and_what_helps(name: str) -> None:
    told, reason, sentence, expected = CASES[name]
    assert (told.reason, told.sentence) == (reason, sentence)
    found = advice(told, FULL)
    if expected is None:
        assert found is None
        return
    assert found is not None
    verdict, verb, why = expected
    assert (found.verdict, found.steps[0].verb) == (verdict, verb)
    assert why in found.steps[0].why


def test_what_can_never_start_is_told_from_what_only_waits() -> None:
    found, other = CASES["its only flavor never has enough"], CASES["one of two flavors of its class has no quota"]
    assert (found[0].reason, found[0].sentence) == found[1:3]
    assert (found[0].phase, other[0].phase) == ("blocked", "queued")


def test_the_time_of_the_next_try_is_told_as_a_fact() -> None:
    told = CASES["put back for the third time"][0]
    assert told.facts == {"again_at": "2026-11-21T12:01:10+00:00", "times": 3}
    assert all(isinstance(value, FACTS[name]) for name, value in told.facts.items())


def test_of_what_waits_for_others_units_no_place_is_told() -> None:
    """The run requests two units; the team has one or two units of its own."""
    borrowed = of(pending(NEEDED), LocalQueueState({"a100": 1}), position=0)
    own = of(pending(NEEDED), LocalQueueState({"a100": 2}), position=0)
    assert (borrowed.reason, own.reason) == ("waiting_for_quota", "waiting_for_quota")
    assert ("position" in borrowed.facts, own.facts.get("position")) == (False, 1)
    assert of(pending(NEEDED), LocalQueueState({"h100": 0}), position=0).facts["position"] == 1


# ---- missing Jobs and an outdated mirror -----------------------------------------------------------------------------

GOING = (
    'jobs.batch "one-1" is forbidden: unable to create new content in namespace team-a because it is being terminated'
)
SILENT = (
    'Internal error occurred: failed calling webhook "vjob.kb.io": failed to call webhook: Post "https://kueue": EOF'
)
UNCOUNTED = 'jobs.batch "one-1" is forbidden: status unknown for quota: gpu-portal, resources: count/jobs.batch'
SAVED = "Your notebook is saved and starts automatically when possible."


def test_a_run_that_waits_for_the_end_of_observe_only() -> None:
    waits = replace(WISH, sent="", problem="observe_only", problem_text="Not sent: POST jobs")
    told = status_of(waits, Observation(), now=NOW)
    sentence = "The portal only observes the cluster and writes nothing to it. Your notebook is saved."
    assert (told.phase, told.reason, told.sentence) == ("queued", "observe_only", sentence)
    assert who_acts(told.reason) is Who.OPERATORS
    found = advice(told, FULL)
    assert found is not None
    assert (found.verdict, [step.verb for step in found.steps]) == (STUCK, ["tell_operators"])


@pytest.mark.parametrize(
    ("code", "text", "reason", "sentence", "verb"),
    [
        ("", "", "requested", "Requested just now; its job is being created.", ""),
        ("cluster_unavailable", GOING, "namespace_going", NAMESPACE_ENDING, "wait"),
        (
            "namespace_missing",
            "",
            "namespace_missing",
            "Your team's namespace does not exist in the cluster yet.",
            "wait",
        ),
        (
            "cluster_unavailable",
            SILENT,
            "admission_unavailable",
            "The cluster's admission webhook vjob.kb.io does not respond, and no job is created without it.",
            "wait",
        ),
        (
            "cluster_unavailable",
            UNCOUNTED,
            "quota_starting",
            "The usage of the namespace's ResourceQuota gpu-portal is not known yet.",
            "wait",
        ),
        (
            "cluster_unavailable",
            "The API server did not answer POST jobs: ReadTimeoutError.",
            "cluster_unavailable",
            "The cluster did not respond. Your notebook is saved and starts when the cluster responds.",
            "wait",
        ),
    ],
)
def test_why_there_is_no_job_yet(code: str, text: str, reason: str, sentence: str, verb: str) -> None:
    told = status_of(replace(WISH, sent="", problem=code, problem_text=text), Observation(), now=NOW)
    saved = "" if reason in ("requested", "cluster_unavailable") else f" {SAVED}"
    assert (told.phase, told.reason, told.sentence) == ("queued", reason, sentence + saved)
    found = advice(told, FULL)
    assert (found.steps[0].verb if found else "") == verb
    assert found is None or found.verdict == NOT_YET


STALE = AsOf(AGO, False, "The watcher is not running.")


def test_a_mirror_that_is_older_than_the_job_does_not_say_that_it_is_gone() -> None:
    told = status_of(WISH, Observation(), now=NOW, as_of=STALE)
    assert (told.phase, told.reason, told.since) == ("unknown", "mirror_stale", AGO)
    assert told.sentence == ("No cluster updates since 21 Nov 2026, 11:58; the status is unknown.")
    assert told.facts == {"heard_at": "2026-11-21T11:58:00+00:00"}
    found = advice(told, FULL)
    assert found is not None
    assert (found.verdict, found.steps[0].verb) == (STUCK, "tell_operators")
    assert status_of(WISH, Observation(), now=NOW, as_of=AsOf(NOW, True)).reason == "job_gone"
    assert status_of(WISH, None, now=NOW, as_of=AsOf(None, False)).reason == "cluster_not_read"


def test_what_was_missing_a_moment_before_the_mirror_stopped_is_not_missed_since() -> None:
    """Its Job was three seconds old when the mirror stopped; minutes later Kueue has probably created its Workload."""
    young = Observation(replace(SUSPENDED, created_at=AGO - timedelta(seconds=3)))
    assert status_of(WISH, young, now=NOW, as_of=STALE).reason == "queued"
    assert status_of(WISH, young, now=NOW, as_of=AsOf(NOW, True)).reason == "not_in_queue"


def test_units_that_nothing_comes_of_are_found() -> None:
    """An event reports a refusal; without one, no controller creates the pod."""
    since = NOW - timedelta(minutes=3)
    admitted = queue(condition("QuotaReserved"), condition("Admitted", since=since))
    told = status_of(WISH, Observation(job(), admitted), now=NOW)
    assert (told.phase, told.reason) == ("blocked", "no_pod")
    assert told.sentence == "Admitted at 21 Nov 2026, 11:57, but its pod has not been created since."
    found = advice(told, FULL)
    assert found is not None
    assert (found.verdict, found.steps[0].verb) == (STUCK, "tell_operators")
    younger = replace(admitted, conditions=(condition("Admitted", since=since + timedelta(seconds=1)),))
    assert status_of(WISH, Observation(job(), younger), now=NOW).reason == "creating_pod"
    refused = warning("Job", "FailedCreate", EXCEEDED, last_at=since)
    assert status_of(WISH, Observation(job(), admitted, warnings=(refused,)), now=NOW).reason == "quota_full"


# ---- changed classes, and limits -------------------------------------------------------------------------------------

RELABELLED = "couldn't assign flavors to pod set main: flavor a100-2 doesn't match node affinity"


def test_what_asks_for_nodes_as_they_were_is_started_again() -> None:
    """Holds whatever Kueue reports of the old flavor. On a class whose labels have not changed, the run waits."""
    for text in (RELABELLED, f"{RELABELLED}, {NEEDED.partition(': ')[2]}", f"{RELABELLED}, {OVER}"):
        told = of(pending(text))
        assert (told.phase, told.reason) == ("blocked", "flavor_mismatch")
        assert told.sentence == (
            "It requests nodes by an earlier definition of A100, which has changed since it was launched."
        )
    assert is_hopeless(RELABELLED)
    assert of(pending(NEEDED)).reason == "waiting_for_quota"

    free = with_own(FULL, used=0, on_one_node=4)
    now, later = advice(told, free), advice(told, FULL)
    assert now is not None
    assert later is not None
    assert (now.verdict, now.steps[0].verb) == (NEVER, "start_again")
    assert now.steps[0].way is not None
    assert now.steps[0].way.href("team-a") == "/teams/team-a/workloads/one/change?class=a100&units=2#choices"
    assert now.steps[0].why.endswith(
        "the current definition of its class. Uses 2 of 4 GPUs; 4 free now on one node; starts now."
    )
    assert later.steps[0].why.endswith("the current definition of its class.")
    for changed in (replace(FULL, own=None), replace(FULL, may_change=False)):
        found = advice(told, changed)
        assert found is not None
        assert found.steps[0].verb == "tell_operators"


def test_limits_are_told_with_what_was_asked_and_what_is_the_most() -> None:
    asked = replace(WISH, asked={"cpu": "12", "memory": "64Gi"})

    def told(**limits: str) -> Status:
        return status_of(asked, Observation(SUSPENDED, pending(ABOVE), at=LocalQueueState({}, limits=limits)), now=NOW)

    assert told(cpu="10", memory="100Gi").sentence == (
        "The namespace's LimitRange rejects the pod: cpu per container: 12 cores requested, maximum 10."
    )
    assert told(cpu="10", memory="32Gi").sentence == (
        "The namespace's LimitRange rejects the pod: cpu per container: 12 cores requested, maximum 10; memory per "
        "container: 64 GiB requested, maximum 32."
    )
    assert told(cpu="10").facts == {"resource": "cpu", "asked": 12, "limit": 10}
    for unknown in (told(), told(cpu="16")):
        assert unknown.sentence.endswith("cpu and memory requested above the maximum for one container.")
    found = advice(told(cpu="10"), FULL)
    assert found is not None
    assert (found.steps[0].verb, found.steps[0].why) == (
        "change",
        "The limit is 10. Request less, or contact an operator.",
    )


def test_fewer_units_are_no_way_out_of_a_quota_of_cores_that_is_too_small() -> None:
    """For GPUs, the quota gives the number of units that would fit."""
    cores = advice(refused("requests.cpu", 12, 8), with_own(replace(FULL, each=8), used=0, on_one_node=8))
    cards = advice(refused("requests.nvidia.com/gpu", 8, 4), with_own(replace(FULL, each=8), used=0, on_one_node=8))
    assert cores is not None
    assert cards is not None
    assert [step.verb for step in cores.steps] == ["change", "tell_operators"]
    assert cores.steps[0].why.startswith("The limit is 8.")
    assert [step.verb for step in cards.steps] == ["fewer_units", "tell_operators"]


def refused(resource: str, asked: int, most: int) -> Status:
    text = f"exceeded quota: tight, requested: {resource}={asked}, used: {resource}=0, limited: {resource}={most}"
    found = (warning("Job", "FailedCreate", f'Error creating: pods "one-1-x" is forbidden: {text}'),)
    return status_of(WISH, Observation(job(), ADMITTED, warnings=found), now=NOW)


# ---- other messages --------------------------------------------------------------------------------------------------


def test_a_closed_queue_has_no_time_to_tell_and_a_later_try_has_told_it() -> None:
    assert {str(wait_reason(CASES[name][0])) for name in CASES if "queue" in name} == {"queue"}
    assert {wait_reason(CASES[name][0]) for name in ("put back by a check", "every check agreed")} == {None}


@pytest.mark.parametrize("name", CASES)
def test_each_has_words_of_its_own(name: str) -> None:
    told = CASES[name][0]
    assert told.explained is not None
    assert not is_unexplained(told.explained)
    assert told.since == AGO


# ---- components that do not respond ----------------------------------------------------------------------------------

SINCE = NOW - timedelta(minutes=2)
UNPLACED = Observation(job(), ADMITTED, (pod(created_at=NOW - timedelta(seconds=30)),))


@pytest.mark.parametrize(
    ("component", "seen", "sentence"),
    [
        ("kueue", Observation(SUSPENDED, pending(NEEDED)), "The queue system (Kueue) has not responded since"),
        ("kueue", Observation(SUSPENDED), "No workload is admitted until it responds."),
        ("kueue", Observation(job(), ADMITTED, (pod(gates=("kueue.x-k8s.io/topology",)),)), "(Kueue)"),
        ("scheduler", UNPLACED, "The scheduler (kube-scheduler) has not responded since"),
        ("controllers", Observation(job(), ADMITTED), "No pod is created until it responds."),
        ("controllers", Observation(job()), "No pod is created until it responds."),
    ],
)
def test_what_waits_for_a_silent_component_says_so_and_nothing_else(
    component: str, seen: Observation, sentence: str
) -> None:
    """Its last report may be outdated: no quota is said to be in use, and no stop is said to help."""
    others = {name: SINCE for name in ("kueue", "scheduler", "controllers") if name != component}
    told = status_of(WISH, seen, now=NOW, as_of=AsOf(NOW, True, silent={component: SINCE}))
    assert (told.phase, told.reason, told.since) == ("blocked", f"{component}_silent", SINCE)
    assert sentence in told.sentence
    assert "21 Nov 2026, 11:58" in told.sentence
    assert told.explained is not None
    assert "Contact an operator" in told.explained.remedy
    assert "stop" not in told.explained.remedy.lower()
    assert who_acts(told.reason) is Who.OPERATORS
    assert "position" not in told.facts
    found = advice(told, FULL)
    assert found is not None
    assert (found.verdict, [step.verb for step in found.steps]) == (STUCK, ["tell_operators"])
    assert status_of(WISH, seen, now=NOW, as_of=AsOf(NOW, True, silent=others)).reason != f"{component}_silent"


def test_a_run_that_waits_for_nobody_is_not_blamed_on_a_silent_component() -> None:
    everyone = AsOf(NOW, True, silent=dict.fromkeys(("kueue", "scheduler", "controllers"), SINCE))
    running = Observation(job(), ADMITTED, (pod(BOUND, state="running", node="a100-1", phase="Running"),))
    assert status_of(WISH, running, now=NOW, as_of=everyone).reason == "starting"
    assert status_of(replace(WISH, sent=""), Observation(), now=NOW, as_of=everyone).reason == "requested"
    rejects = replace(WISH, sent="", problem="cluster_unavailable", problem_text="ReadTimeoutError")
    assert status_of(rejects, Observation(), now=NOW, as_of=everyone).reason == "kueue_silent", "its webhook is missing"


def test_a_scheduler_without_a_lease_is_missed_after_a_minute() -> None:
    def at(age: timedelta) -> str:
        return status_of(WISH, Observation(job(), ADMITTED, (pod(created_at=NOW - age),)), now=NOW).reason

    assert at(timedelta(seconds=59)) == "placing"
    assert at(timedelta(seconds=61)) == "scheduler_silent"
