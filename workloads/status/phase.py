"""Computes the Status from the desired run and the observation, on each read. None of it is stored.

The same Status is used for badge, page, stream, API and email. Without a mirror the phase is Unknown, never "stopped".
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from cluster.reads.observed import AsOf, KueueWorkload, Pod
from workloads.core.observation import (
    ImagePresence,
    NodeTrouble,
    Observation,
    current_container,
    job_has_failed,
    main_container,
    true_since,
)
from workloads.status import workers
from workloads.status.desired_run import DesiredRun
from workloads.status.explain import admission, container_start, nodes, queue_holds, scheduling
from workloads.status.explain import queue as explain_queue
from workloads.status.explain.autoscaler import by_autoscaler, refusal_of
from workloads.status.explain.endings.node_errors import with_node_errors
from workloads.status.explain.endings.pod_termination import AGAIN, last_container, pod_termination
from workloads.status.explain.endings.termination import termination_explanation
from workloads.status.explain.types import Explanation
from workloads.status.silence import with_silence
from workloads.status.types import Phase, Status

# Within this time, a missing object is most likely being created.
PATIENCE = timedelta(seconds=15)
# The Job controller creates a pod at once, unless the API server refuses it, which the controller reports.
POD_PATIENCE = timedelta(minutes=3)
# An event that was not repeated for longer no longer applies.
WARNING_LIFE = timedelta(minutes=3)
# A node comes; how long that takes is set in the class.
NODE_REASONS = ("node_coming", "node_starting")
SLOW_PULL = timedelta(minutes=5)


def status_of(
    wish: DesiredRun | None,
    seen: Observation | None,
    *,
    now: datetime,
    as_of: AsOf | None = None,
    is_deleting: bool = False,
) -> Status:
    """`wish` is None for a workload that was declared and never started; `seen` is None while the mirror is unknown.

    `as_of`: when the mirror was last current; None: it is current.
    """
    if wish is None and is_deleting:
        return Status(Phase.STOPPING, "deleting", "Being deleted.", None)
    if wish is None:
        return Status(Phase.STOPPED, "not_started", "Not started yet.", None, actions=("start", "delete"))
    if wish.ended_at is not None:
        return _ended(wish, seen)
    if wish.stop_requested_at is not None or wish.is_deleting:
        return _stopping(wish, seen)
    if wish.sent in ("refused", "foreign"):
        return _refused(wish)
    if seen is None:
        return Status(
            Phase.UNKNOWN,
            "cluster_not_read",
            "The portal has not read the cluster yet; the status is unknown.",
            None,
            actions=("stop",),
        )
    silent = as_of.silent if as_of is not None else {}
    if as_of is None or as_of.is_current or as_of.at is None:
        return with_silence(_alive(wish, seen, now), seen, silent, now)
    if seen.job is None and wish.sent == "applied":
        return _not_heard(as_of.at, as_of.problem)
    # An object that was missing at the last update may exist by now.
    now = min(now, as_of.at)
    return with_silence(_alive(wish, seen, now), seen, silent, now)


def _not_heard(at: datetime, problem: str) -> Status:
    found = queue_holds.mirror_outdated(at, problem)
    return Status(Phase.UNKNOWN, found.reason, found.sentence, at, dict(found.facts), found.actions, found)


def _ended(wish: DesiredRun, seen: Observation | None) -> Status:
    """The sentence is that of the Run, with the texts stored with it, whether its pod still exists or not."""
    if wish.is_deleting:
        return Status(Phase.STOPPING, "deleting", "Being deleted.", wish.ended_at)
    phase = {"succeeded": Phase.SUCCEEDED, "stopped": Phase.STOPPED}.get(wish.outcome, Phase.FAILED)
    facts: dict[str, Any] = {} if wish.exit_code is None else {"exit_code": wish.exit_code}
    if phase is not Phase.FAILED or wish.kept is None:
        return Status(phase, wish.reason or wish.outcome, wish.message, wish.ended_at, facts, ("start", "delete"))
    told = wish.kept.told
    over = {"stop"} if seen is not None and seen.pod is not None else {"stop", "log"}
    actions = ("start", *(action for action in told.actions if action not in over), "delete")
    facts |= told.facts
    return Status(phase, wish.reason, wish.message, wish.ended_at, facts, actions, told)


def _stopping(wish: DesiredRun, seen: Observation | None) -> Status:
    word = "Being deleted" if wish.is_deleting else "Stopping"
    if seen is None:
        waits = "the cluster has not confirmed its end yet"
    elif seen.pods:
        waits = "its units are released when its pod has ended"
    elif seen.queue is not None and seen.queue.is_true("Admitted"):
        waits = "its units are released when its job is deleted"
    else:
        waits = "it uses no units any more"
    then = " Then it restarts with its current configuration." if wish.is_followed and not wish.is_deleting else ""
    return Status(Phase.STOPPING, "stopping", f"{word}; {waits}.{then}", wish.stop_requested_at)


def _refused(wish: DesiredRun) -> Status:
    found = admission.refused_job(wish.sent_text)
    text = wish.sent_text if wish.sent == "foreign" else found.sentence
    return Status(Phase.BLOCKED, found.reason, text, wish.sent_at, dict(found.facts), found.actions, found)


def _alive(wish: DesiredRun, seen: Observation, now: datetime) -> Status:
    pod = seen.pod
    will_fail = seen.job is not None and job_has_failed(seen.job)
    if pod is not None and pod.phase == "Failed" and is_requeued(seen) and not will_fail:
        # The pod of an earlier admission: it explains the interruption, not the wait.
        pod = None
    if seen.namespace_ends is not None and seen.job is not None and (pod is None or pod.deleting_since is not None):
        told = admission.namespace_ending()
        return Status(Phase.BLOCKED, told.reason, told.sentence, seen.namespace_ends, {}, told.actions, told)
    if pod is not None and (pod.deleting_since is None or seen.queue is None):
        return _with_pods(wish, seen, pod, now)
    if seen.queue is not None and seen.queue.is_true("Admitted") and not seen.queue.is_true("Evicted"):
        return _without_pod(seen, now) if pod is None else _replacing(seen, pod)
    if seen.job is None:
        return _without_job(wish, now)
    if seen.queue is None:
        return _without_queue(wish, seen, now)
    if wish.drain_reason and pod is not None and seen.lost is not None and seen.lost.is_silent:
        # It is queued again only when its end is certain.
        return _replacing(seen, pod)
    return _queued(wish, seen, seen.queue, now)


def is_requeued(seen: Observation) -> bool:
    """The queue has taken the run back, and its Job is suspended."""
    queue, job = seen.queue, seen.job
    is_out = queue is not None and queue.is_true("Evicted") and not queue.is_true("Admitted")
    return is_out and job is not None and job.suspend


def _without_job(wish: DesiredRun, now: datetime) -> Status:
    if wish.sent == "applied" and wish.sent_at is not None and now - wish.sent_at > PATIENCE:
        text = "Its job is no longer in the cluster; the portal is recording its end."
        return Status(Phase.UNKNOWN, "job_gone", text, wish.sent_at, actions=("stop",))
    if (found := admission.not_created(wish.problem, wish.problem_text, kind=wish.kind)) is not None:
        facts = dict(found.facts)
        return Status(Phase.QUEUED, found.reason, found.sentence, wish.requested_at, facts, found.actions, found)
    text = "Requested just now; its job is being created."
    return Status(Phase.QUEUED, "requested", text, wish.requested_at, actions=("stop",))


def _without_queue(wish: DesiredRun, seen: Observation, now: datetime) -> Status:
    assert seen.job is not None
    if not seen.job.suspend:
        text = "Its pod is being created."
        return Status(Phase.PREPARING, "creating_pod", text, seen.job.created_at, actions=("stop",))
    if now - seen.job.created_at > PATIENCE:
        text = "Kueue has not processed its job. Contact an operator: Kueue may be down."
        return Status(Phase.BLOCKED, "not_in_queue", text, seen.job.created_at, actions=("stop",))
    return Status(Phase.QUEUED, "queued", "Submitted to the queue.", wish.requested_at, actions=("stop",))


def _queued(wish: DesiredRun, seen: Observation, queue: KueueWorkload, now: datetime) -> Status:
    """For a workload that waits for other teams' units, a position in the team's own queue is meaningless."""
    position = seen.position
    if seen.at is not None and seen.at.is_for_borrowed(wish.class_slug, wish.units * wish.workers):
        position = None
    facts: dict[str, Any] = {} if position is None else {"position": position + 1}
    pending = queue.condition("QuotaReserved")
    message, about = (pending.message, pending.about) if pending is not None and not pending.is_true else ("", "")
    if queue.active and message == explain_queue.STILL_DEACTIVATED:
        message, about = "", ""
    size = explain_queue.RequestedSize(wish.units, wish.workers, wish.gpu_memory_gib, wish.required_level)
    found = explain_queue.pending(message, size, class_name=wish.class_name, slug=wish.class_slug)
    found = explain_queue.with_borrowing(found, wish.borrowing_limit, class_name=wish.class_name)
    if seen.at is not None:
        found = admission.with_numbers(found, wish.asked, seen.at.limits, seen.at.minimums)
    by_nodes = nodes.by_nodes(seen, message, told=found, class_name=wish.class_name, workers=wish.workers)
    found = queue_holds.queue_hold(seen, queue, message, now) or by_nodes or found
    facts |= found.facts
    if wish.hold and not found.is_final and not queue.is_true("QuotaReserved"):
        found = explain_queue.class_held(wish.hold, message)
    found = replace(found, raw_about=about)
    interrupted = queue.condition("Preempted")
    if interrupted is not None and interrupted.is_true and not found.is_final:
        again = explain_queue.preempted(interrupted.message, interrupted.reason)
        raw = again.raw if about else "\n".join(filter(None, (again.raw, found.raw)))
        sentence = f"{again.sentence} {found.sentence}"
        found = replace(again, sentence=sentence, wait_sentence=found.sentence, raw=raw)
    if wish.drain_reason:
        found = queue_holds.draining(wish.drain_reason)
    elif not queue.active:
        found = queue_holds.deactivated(queue)
    is_blocked = found.is_final or (not queue.active and not wish.drain_reason)
    phase = Phase.BLOCKED if is_blocked else Phase.QUEUED
    return Status(phase, found.reason, found.sentence, wish.requested_at, facts, found.actions, found)


def _without_pod(seen: Observation, now: datetime) -> Status:
    admitted_at = true_since(seen.queue, "Admitted")
    refused = seen.warning("FailedCreate", kind="Job")
    if refused is not None and (admitted_at is None or refused.last_at >= admitted_at):
        found = admission.refused_pod(refused.message)
    elif seen.job is not None and (edited := queue_holds.job_edited(seen.job)) is not None:
        found = edited
    elif admitted_at is None or now - admitted_at < POD_PATIENCE:
        text = "Admitted; its pod is being created."
        return Status(Phase.PREPARING, "creating_pod", text, admitted_at, actions=("stop",))
    else:
        found = queue_holds.no_pod(admitted_at)
    phase = Phase.BLOCKED if found.is_final or found.reason in ("no_pod", "job_edited") else Phase.PREPARING
    return Status(phase, found.reason, found.sentence, admitted_at, dict(found.facts), found.actions, found)


def _with_pods(wish: DesiredRun, seen: Observation, pod: Pod, now: datetime) -> Status:
    if wish.workers == 1:
        return _with_pod(wish, seen, pod, now)
    found = dict.fromkeys(range(wish.workers), _without_pod(seen, now))
    for index, theirs in workers.observation_by_worker(seen).items():
        if theirs.pod is not None and index in found:
            found[index] = _with_pod(wish, theirs, theirs.pod, now)
    return workers.combined_status(found, seen, wish.retries)


def _with_pod(wish: DesiredRun, seen: Observation, pod: Pod, now: datetime) -> Status:
    main = main_container(pod)
    ended_at = main.ended_at if main else None
    if pod.phase == "Succeeded":
        return Status(Phase.SUCCEEDED, "completed", "Completed; the portal is recording its end.", ended_at)
    if pod.phase == "Failed":
        return _failed(wish, seen, pod)
    if pod.deleting_since is not None:
        return _replacing(seen, pod)
    if not pod.node:
        return _unbound(wish, seen, pod, now)
    if seen.lost is not None:
        return _on_lost_node(seen.lost, pod)
    if main is None or main.state != "running":
        return _on_its_way(wish, seen, pod, now)
    facts = _facts(seen, pod)
    if wish.kind != "notebook":
        notes = (f"Running on {pod.node}.", _removal_note(seen, pod), workers.retry_note(seen.pods, wish.retries))
        text = " ".join(filter(None, notes))
        return Status(Phase.RUNNING, "running", text, main.since, facts, ("stop",))
    if pod.is_ready and wish.ready_at is not None:
        text = f"Ready on {pod.node}. {_removal_note(seen, pod)}".rstrip()
        return Status(Phase.READY, "ready", text, true_since(pod, "Ready"), facts, ("open", "stop"))
    if pod.is_ready:
        # The gateway grants access from the Run's row, which the worker updates in a moment.
        text = "JupyterLab is responding; it opens in a moment."
    else:
        text = "JupyterLab is starting." if wish.ready_at is None else "JupyterLab is not responding."
    return Status(Phase.STARTING, "starting", text, main.since, facts, ("stop",))


def _removal_note(seen: Observation, pod: Pod) -> str:
    return seen.leaving.sentence if seen.leaving is not None and seen.leaving.name == pod.node else ""


def _facts(seen: Observation, pod: Pod) -> dict[str, Any]:
    """`attempts`: how many pods the Job has created, if more than one."""
    facts: dict[str, Any] = {"node": pod.node} if pod.node else {}
    return facts if len(seen.pods) < 2 else {**facts, "attempts": len(seen.pods)}


# ---- pods that have ended or are being deleted -----------------------------------------------------------------------


def _failed(wish: DesiredRun, seen: Observation, pod: Pod) -> Status:
    """A disruption, a rejection by the kubelet, or a crash that may be retried, as long as the Job has not failed."""
    told = with_node_errors(termination_explanation(pod), pod, seen.gpu_errors)
    last = last_container(pod)
    at = last.ended_at if last else None
    gave_up = seen.job is None or seen.job.is_true("Failed") or seen.job.is_true("FailureTarget")
    retry = workers.retry_note(seen.pods, wish.retries)
    if told.is_final and not gave_up:
        found = replace(told, sentence=f"{told.sentence} Kubernetes repeats it without success.")
        return Status(Phase.BLOCKED, told.reason, found.sentence, at, dict(told.facts), told.actions, found)
    if gave_up or not (pod_termination(pod).comes_back or retry):
        return Status(Phase.FAILED, told.reason, told.sentence, at, dict(told.facts), told.actions, told)
    return _again(seen, pod, told, at, retry or AGAIN)


def _again(seen: Observation, pod: Pod, told: Explanation, at: datetime | None, then: str = AGAIN) -> Status:
    found = replace(told, sentence=f"{told.sentence} {then}", restarts=True)
    facts = {**found.facts, **_facts(seen, pod)}
    return Status(Phase.PREPARING, found.reason, found.sentence, at, facts, found.actions, found)


def _replacing(seen: Observation, pod: Pod) -> Status:
    """Admitted, but the pod is terminating. On a node that does not respond, nothing confirms the end of the pod."""
    told = termination_explanation(pod)
    if seen.lost is not None and seen.lost.is_silent:
        text = (
            f"Its pod cannot be removed from node {pod.node}, which no longer responds; another pod can only start "
            "when the node responds again or is removed from the cluster."
        )
        lost = Explanation("node_given_up", text, "Contact an operator.", told.raw, told.raw_from)
        return Status(Phase.UNKNOWN, lost.reason, text, pod.deleting_since, _facts(seen, pod), lost.actions, lost)
    if pod_termination(pod).disruption:
        return _again(seen, pod, told, pod.deleting_since)
    text = "Its pod is terminating; another pod replaces it when it is gone."
    return Status(Phase.PREPARING, "replacing_pod", text, pod.deleting_since, actions=("stop",))


def _on_lost_node(lost: NodeTrouble, pod: Pod) -> Status:
    found = nodes.lost_node(lost, pod.node)
    return Status(Phase.UNKNOWN, found.reason, found.sentence, lost.since, {"node": pod.node}, found.actions, found)


# ---- pods that do not run yet ----------------------------------------------------------------------------------------


def _unbound(wish: DesiredRun, seen: Observation, pod: Pod, now: datetime) -> Status:
    scheduled = pod.condition("PodScheduled")
    found = scheduling.held_by_gates(pod.gates) or scheduling.not_provisioned(scheduled, seen.claim)
    if found is None and scheduled is not None and scheduled.reason == "Unschedulable" and not scheduled.is_true:
        found = scheduling.unschedulable(scheduled.message, seen.nodes, seen.claim, seen.devices)
        found = nodes.for_pod(seen.nodes, found, wish.class_name, max_units=wish.max_units, minutes=wish.node_minutes)
        if found.reason == "node_coming":
            found = by_autoscaler(seen.autoscaler, found, refusal_of(seen.warnings, now)) or found
    if found is None:
        return Status(Phase.PREPARING, "placing", scheduling.placing(seen.claim), pod.created_at, {}, ("stop",))
    patience = timedelta(minutes=wish.node_minutes) if found.reason in NODE_REASONS else PATIENCE
    phase = Phase.BLOCKED if now - pod.created_at > patience else Phase.PREPARING
    at = pod.created_at if scheduled is None or scheduled.since is None else scheduled.since
    return Status(phase, found.reason, found.sentence, at, dict(found.facts), found.actions, found)


def _on_its_way(wish: DesiredRun, seen: Observation, pod: Pod, now: datetime) -> Status:
    bound_at = true_since(pod, "PodScheduled") or pod.created_at
    facts = _facts(seen, pod)
    if (found := _hindrance(wish, seen, pod, now - bound_at, now)) is not None:
        facts |= found.facts
        return Status(Phase.BLOCKED, found.reason, found.sentence, bound_at, facts, found.actions, found)
    current = current_container(pod)
    if current is not None and current.state == "running":
        text = f"On {pod.node}: cloning the repository."
        return Status(Phase.PREPARING, "cloning", text, current.since, facts, ("stop", "log"))
    is_there = true_since(pod, "PodReadyToStartContainers")
    has_image = any(one.exit_code == 0 for one in pod.init_containers)
    if is_there is not None and current is not None and not current.message and not has_image:
        return _pulling(pod, is_there, seen.image, facts, now)
    text = f"On {pod.node}: pulling the image and preparing the container."
    if current is not None and current.message and current.reason != "CreateContainerConfigError":
        text = f"On {pod.node}. {current.message}"
    return Status(Phase.PREPARING, "preparing", text, bound_at, facts, ("stop",))


def _hindrance(wish: DesiredRun, seen: Observation, pod: Pod, age: timedelta, now: datetime) -> Explanation | None:
    current = current_container(pod)
    if current is not None and current.state == "waiting":
        found = container_start.waiting_container(
            current.reason, current.message, image=wish.image, node=pod.node, sign_in=wish.sign_in
        )
        if found is not None and found.reason == "secret_missing" and wish.sealed is not None:
            return container_start.secrets_unreadable(wish.sealed, node=pod.node)
        # The worker creates the Secret a moment after its Job.
        if found is not None and (found.reason != "secret_missing" or age > PATIENCE):
            return found
    warning = seen.warning(*container_start.SET_UP_WARNINGS, kind="Pod")
    is_there = true_since(pod, "PodReadyToStartContainers") is not None
    if warning is None or is_there or now - warning.last_at > WARNING_LIFE or age < PATIENCE:
        return None
    return container_start.not_set_up(warning.reason, warning.message, node=pod.node, volume=wish.volume)


def _pulling(pod: Pod, since_: datetime, image: ImagePresence | None, facts: dict[str, Any], now: datetime) -> Status:
    """Volumes and network are ready and there is no container: the node is pulling the image."""
    if now - since_ <= SLOW_PULL:
        text = f"On {pod.node}: pulling the image."
        return Status(Phase.PREPARING, "pulling", text, since_, facts, ("stop",))
    found = container_start.slow_pull(pod.node, since_, SLOW_PULL, image)
    facts = {**facts, **found.facts}
    return Status(Phase.PREPARING, found.reason, found.sentence, since_, facts, found.actions, found)
