"""The steps of a node's maintenance: what the node must be like in each, and when the next one begins. Pure.

Each step writes a state, never a change: repeating it has no effect, and a worker that dies between a write and its row
repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import models

from portal.ui.text import date_and_time, plural

MIG_CONFIG, MIG_STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
PLUGIN_CONFIG = "nvidia.com/device-plugin.config"
DRIVER_UPGRADE = "nvidia.com/gpu-driver-upgrade-state"
# Says that a node is off; the control plane then removes pods whose end its kubelet cannot confirm.
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
NAMED_MOST = 3


class Step(models.TextChoices):
    """In their order."""

    PLANNED = "planned", "planned"
    HELD = "held", "held"
    DRAINING = "draining", "draining"
    CHANGING = "changing", "changing"
    WAITING = "waiting", "waiting"
    VERIFYING = "verifying", "verifying"
    RELEASING = "releasing", "releasing"
    DONE = "done", "done"


ORDER = list(Step)
# From this step until the release the labels of the change are on the node.
CHANGED = (Step.CHANGING, Step.WAITING, Step.VERIFYING)
DRAINED = (Step.DRAINING, *CHANGED)


@dataclass(frozen=True)
class NodePlan:
    """What one node is to go through. `labels`: to be set, or as before while `is_going_back`; a label with None is
    removed. `devices`: offered afterwards; other devices of the same vendor must be gone.
    """

    holds_from: datetime
    starts_at: datetime
    labels: Mapping[str, str | None]
    devices: Mapping[str, int]
    is_going_back: bool = False
    is_confirmed: bool = False
    is_canceled: bool = False
    is_released: bool = False


@dataclass(frozen=True)
class Unready:
    """A node that is not ready. `is_silent`: its kubelet does not report, so that nothing confirms the end of a pod."""

    since: datetime | None
    is_silent: bool

    @property
    def sentence(self) -> str:
        since = f" since {date_and_time(self.since)}" if self.since is not None else ""
        return f"The node {'has not responded' if self.is_silent else 'has not been ready'}{since}."


@dataclass(frozen=True)
class NodeFacts:
    """The node now. `unready`: None while it is ready; `runs`: names of our runs on it, None: not known since it was
    held; `moving`: of those that left it and are not in the queue yet; `others`: of other pods that use its devices.
    """

    unready: Unready | None
    labels: Mapping[str, str]
    devices: Mapping[str, int]
    runs: tuple[str, ...] | None = ()
    others: tuple[str, ...] = ()
    moving: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """`step`: the same, or the one that follows. `problem`: what it waits for; "" while only time has to pass."""

    step: Step
    problem: str = ""
    goes_back: bool = False


def next_step(step: Step, plan: NodePlan, facts: NodeFacts, now: datetime) -> Verdict:
    """Decides after the state of `step` was written to the node. A node that is not ready is told in every step in
    which the portal holds it.
    """
    found = _next_step(step, plan, facts, now)
    if found.step is not step or found.goes_back or step is Step.PLANNED or facts.unready is None:
        return found
    return Verdict(step, " ".join(filter(None, (facts.unready.sentence, found.problem))))


def _next_step(step: Step, plan: NodePlan, facts: NodeFacts, now: datetime) -> Verdict:
    if step in (Step.RELEASING, Step.DONE):
        return Verdict(Step.DONE)
    if step is Step.PLANNED and plan.is_canceled:
        return Verdict(Step.DONE)
    if plan.is_released:
        return Verdict(Step.RELEASING)
    if plan.is_canceled and not plan.is_going_back:
        # A node whose labels were changed goes back the same way; there is no other safe end.
        is_changed = step in CHANGED and plan.labels
        return Verdict(Step.CHANGING, goes_back=True) if is_changed else Verdict(Step.RELEASING)
    match step:
        case Step.PLANNED:
            return Verdict(Step.HELD if now >= plan.holds_from else step)
        case Step.HELD:
            return Verdict(Step.DRAINING if now >= plan.starts_at else step)
        case Step.DRAINING:
            problem = _still_there(facts)
            return Verdict(step, problem) if problem else Verdict(Step.CHANGING)
        case Step.CHANGING:
            if plan.labels or plan.is_confirmed:
                return Verdict(Step.WAITING)
            return Verdict(step, "It waits until an operator says that the work is done.")
        case Step.WAITING:
            problem = _not_applied(plan, facts)
            return Verdict(step, problem) if problem else Verdict(Step.VERIFYING)
        case Step.VERIFYING:
            problem = _differs(plan, facts)
            return Verdict(step, problem) if problem or facts.unready else Verdict(Step.RELEASING)
    raise AssertionError(step)


def has_failed(step: Step, facts: NodeFacts) -> bool:
    """Whether waiting longer is pointless: the MIG manager says that it failed."""
    return step is Step.WAITING and facts.labels.get(MIG_STATE) == "failed"


def waits_since(step: Step, facts: NodeFacts | None, step_since: datetime) -> datetime:
    """Since when something other than time has to happen. A node is held for as long as was planned."""
    if step is not Step.HELD or facts is None or facts.unready is None or facts.unready.since is None:
        return step_since
    return max(step_since, facts.unready.since)


def remedy(step: Step, facts: NodeFacts | None) -> str:
    """What else ends the wait of this step, "" for nothing special."""
    if step is not Step.DRAINING or facts is None or facts.unready is None or not facts.unready.is_silent:
        return ""
    return (
        "If the machine is off and does not come back, delete the node, or give it the taint "
        f"{OUT_OF_SERVICE}: Kubernetes then removes its pods, and the workloads are queued again."
    )


def _still_there(facts: NodeFacts) -> str:
    if facts.runs is None:
        return "It is not known what runs on the node: there are no current updates from the cluster."
    if facts.runs and facts.unready is not None and facts.unready.is_silent:
        verb = "runs" if len(facts.runs) == 1 else "run"
        return f"Whether {plural(len(facts.runs), 'workload')} ({_listed(facts.runs)}) still {verb} there is unknown."
    if facts.runs:
        return f"{_named(facts.runs, 'workload')} still on the node."
    if facts.moving:
        return f"{_named(facts.moving, 'workload')} being queued again."
    if facts.others:
        return f"{_named(facts.others, 'pod')} still on the node, and not of the portal, which does not end such pods."
    return ""


def _not_applied(plan: NodePlan, facts: NodeFacts) -> str:
    upgrade = facts.labels.get(DRIVER_UPGRADE, "")
    if upgrade not in ("", "upgrade-done"):
        return f"The driver upgrade of the GPU operator is in the state {upgrade}."
    if plan.labels.get(MIG_CONFIG) is None:
        return ""
    state = facts.labels.get(MIG_STATE, "")
    if state == "success":
        return ""
    if state == "failed":
        return "The MIG manager reports that the layout could not be applied. See the logs of its pod on the node."
    said = f"The MIG manager reports {state}" if state else "The MIG manager has not responded"
    return f"{said}; the layout is not applied yet."


def _differs(plan: NodePlan, facts: NodeFacts) -> str:
    if facts.unready is not None:
        # What it offers is what it reported last.
        return ""
    vendors = {name.partition("/")[0] for name in plan.devices}
    unplanned = {name for name in facts.devices if name not in plan.devices and name.partition("/")[0] in vendors}
    names = sorted({*plan.devices, *unplanned})
    wrong = [
        f"{facts.devices.get(name, 0)} of {plan.devices.get(name, 0)} {name}"
        for name in names
        if facts.devices.get(name, 0) != plan.devices.get(name, 0)
    ]
    return f"The node offers {', '.join(wrong)}." if wrong else ""


def _named(names: tuple[str, ...], noun: str) -> str:
    return f"{plural(len(names), noun)} ({_listed(names)}) {'is' if len(names) == 1 else 'are'}"


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - NAMED_MOST} more" if len(names) > NAMED_MOST else ""
    return f"{', '.join(names[:NAMED_MOST])}{more}"
