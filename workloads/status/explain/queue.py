"""Kueue's messages about a workload that it does not admit or has preempted. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from workloads.interruption.preemption import IN_TEAM, preemption_cause, preemption_rule
from workloads.status.explain.endings.pod_termination import NOT_SAVED
from workloads.status.explain.nodes import (
    gang_too_large,
    level_too_small,
    names_only_other_flavors,
    one_node_remedy,
)
from workloads.status.explain.quantities import are, units_of
from workloads.status.explain.scheduling import CLOSED, NO_MEMORY, REMEDIES
from workloads.status.explain.types import STOP_OR_CHANGE, Explanation

_MORE_NEEDED = re.compile(r"insufficient unused quota for (\S+) in flavor (\S+), (\d+) more needed")
_MISMATCH = re.compile(r"flavor \S+ doesn't match node affinity")
_OTHER_TOPOLOGY = re.compile(r"Flavor \"([a-z0-9.-]+)\" (?:does not support|supports only) TopologyAwareScheduling")
_NO_LEVEL = re.compile(r"Flavor \"([a-z0-9.-]+)\" does not contain the requested level")
_OVER_MAXIMUM = re.compile(r"insufficient quota for (\S+) in flavor (\S+),.*maximum capacity \((\d+)\)")
_TOPOLOGY = re.compile(r"topology \"?[^\"]*\"? (?:doesn't allow to fit|allows to fit only (\d+) out of (\d+))")
_EXCLUDED = re.compile(r"resource \"([^\"]+)\": \d+")
_HELD = re.compile(r"untolerated taint \{gpu-portal/held[^}]*\} in flavor ([a-z0-9.-]+)")

_NO_DEVICE_CLASS = re.compile(
    r"failed to get DeviceClass ([a-z0-9.-]+): .*not found|DeviceClass ([a-z0-9.-]+) is not mapped"
)
_FEW_DEVICES = re.compile(
    r"insufficient matching devices for CEL selector in DeviceClass (\S+): (\d+) device\(s\) match in the cluster"
)
# These parts name the preempting team's workload and the path through the queues. Operators find them in the cluster.
_ANOTHERS = re.compile(r" \(UID: [^)]*\)|; preempt(?:or|ee) path: [^;]*")
_OUTSIDE = re.compile(r"Invalid value: (\[[^\]]*\]|\S+): requests must not be (above|below) the limitRange")

# What Kueue said of an inactive workload. It stays after the workload was set to active, until Kueue tries it again.
STILL_DEACTIVATED = "The workload is deactivated"


@dataclass(frozen=True)
class RequestedSize:
    """`units` are per worker. `gpu_memory_gib`: the least of each device, 0 for any. `level`: a required one, "" for
    none.
    """

    units: int
    workers: int = 1
    gpu_memory_gib: int = 0
    level: str = ""


def pending(message: str, size: RequestedSize, *, class_name: str, slug: str) -> Explanation:
    """Explains Kueue's condition QuotaReserved=False. It lists every flavor of the resource; flavors of other classes
    are excluded by their taint, so a sentence about quota or topology is about the run's own class.
    """
    return replace(_pending(message, size, class_name, slug), raw=message, raw_from="Kueue")


def _pending(message: str, size: RequestedSize, class_name: str, slug: str) -> Explanation:
    units, workers = size.units, size.workers
    if "LimitRange constraints" in message:
        return _limit_range(message)
    more_needed = _MORE_NEEDED.search(message)
    # An autoscaler was added or removed since: Kueue compares that before the quota.
    own_changed = any(flavor.rpartition("-")[0] == slug for flavor in _OTHER_TOPOLOGY.findall(message))
    if _MISMATCH.search(message) or (own_changed and not more_needed and not _OVER_MAXIMUM.search(message)):
        # Flavors of other classes were already excluded by their taint.
        text = f"It requests nodes by an earlier definition of {class_name}, which has changed since it was launched."
        remedy = "Start it again to use the current definition of its class."
        return Explanation("flavor_mismatch", text, remedy, is_final=True, actions=STOP_OR_CHANGE)
    if more_needed is None and any(flavor.rpartition("-")[0] == slug for flavor in _NO_LEVEL.findall(message)):
        text = f"{class_name} no longer has the topology level that it requests."
        remedy = "Choose another level, or none."
        return Explanation("level_missing", text, remedy, is_final=True, actions=STOP_OR_CHANGE)
    # A class whose nodes were relabelled has several flavors; one of them is enough.
    if more_needed is None and (found := _OVER_MAXIMUM.search(message)):
        return Explanation(
            "exceeds_maximum",
            more_than_maximum(units * workers, int(found[3]), class_name),
            "Request fewer units, or more quota: it starts when a grant allows it.",
            is_final=True,
            actions=STOP_OR_CHANGE,
            facts={"units": units, "most_units": int(found[3])},
        )
    if any(flavor.startswith(f"{slug}-") for flavor in _HELD.findall(message)):
        return Explanation(
            "class_held",
            f"Scheduling of {class_name} was resumed just now; Kueue retries in a moment.",
            "It starts automatically.",
        )
    if found := _TOPOLOGY.search(message):
        short = sorted(set(_EXCLUDED.findall(message[found.start() :])))
        lacking = _lacking(short)
        if workers > 1 and size.level:
            return level_too_small(int(found[1] or 0), (units, workers), class_name, size.level)
        if workers > 1:
            return gang_too_large(int(found[1] or 0), (units, workers), class_name, lacking)
        return Explanation(
            "no_node_fits",
            f"No single node has {units_of(units, class_name)} free{lacking}.",
            one_node_remedy(units),
            facts={"units": units},
        )
    if names_only_other_flavors(message):
        # The run's own class had quota but no node. Kueue then tried the other flavors, which their taint excludes.
        text = f"No node is available for {units_of(units * workers, class_name)}."
        return Explanation("no_node_fits", text, one_node_remedy(units), facts={"units": units})
    if "no topology domains" in message:
        text = f"No node of {class_name} is available for new workloads."
        return Explanation("nodes_closed", text, REMEDIES[CLOSED][1])
    if more_needed is not None:
        missing = int(more_needed[3])
        left = "your team's quota is in use"
        if missing < units * workers:
            left = f"it needs {units * workers}, more than your team's quota has free"
        lacking = f"{units_of(missing, class_name)} {are(missing)} missing"
        return Explanation(
            "waiting_for_quota",
            f"Waiting for quota: {lacking}; {left}.",
            "It starts when a running workload of your team ends. Stopping one frees its units at once.",
            facts={"units": units, "missing_units": missing},
        )
    if found := _NO_DEVICE_CLASS.search(message):
        return _no_device_class(found[1] or found[2], class_name, is_there=found[1] is None)
    if found := _FEW_DEVICES.search(message):
        return _few_devices(found[1], int(found[2]), units, class_name, size.gpu_memory_gib)
    if "doesn't exist" in message:
        return Explanation(
            "queue_missing",
            "Your team's queue does not exist in the cluster yet.",
            "Wait a moment: the portal creates it.",
        )
    if "Pending the preemption" in message:
        return Explanation(
            "reclaiming", "Reclaiming units that another team has borrowed; it starts when they are free."
        )
    if not message:
        return Explanation("queued", "Waiting in your team's queue.")
    return Explanation("queued", f"Waiting in your team's queue. Kueue reports: {message[:300]}", is_known=False)


def more_than_maximum(units: int, most: int, class_name: str) -> str:
    return f"{units_of(units, class_name)} requested, but your team may use at most {most} now."


def with_borrowing(found: Explanation, limit: int | None, *, class_name: str) -> Explanation:
    """Says which limit keeps the run from borrowing. Kueue's message is the same for each."""
    if found.reason != "waiting_for_quota" or limit is None:
        return found
    why = (
        f"Your team can borrow up to {limit} in all, while other teams do not use them."
        if limit
        else f"{class_name} cannot be borrowed from other teams (borrowing limit 0), even if units are free."
    )
    return replace(found, sentence=f"{found.sentence} {why}", facts={**found.facts, "borrowing_limit": limit})


def _no_device_class(name: str, class_name: str, *, is_there: bool) -> Explanation:
    if is_there:
        text = f"Kueue does not manage quota for the device class {name}, which {class_name} uses."
        remedy = "Contact an operator: the device class is missing in Kueue's configuration."
        return Explanation("device_class_not_counted", text, remedy)
    text = f"The cluster has no device class {name}, which {class_name} uses."
    remedy = "Contact an operator: its driver is not installed, or was removed."
    return Explanation("device_class_missing", text, remedy)


def _few_devices(device_class: str, count: int, units: int, class_name: str, gib: int) -> Explanation:
    """The drivers of all nodes together report fewer devices of the class than the run requests."""
    if gib:
        text = f"{units_of(units, class_name)} with at least {gib} GiB requested; the cluster has {count} in all."
        remedy = "Request less GPU memory, or contact an operator: a node may be missing."
        facts = {"gpu_memory_gib": gib, "units": units, "fitting_units": count}
        return Explanation(NO_MEMORY, text, remedy, actions=STOP_OR_CHANGE, facts=facts)
    if count == 0:
        text = f"No units of {class_name} are in the cluster: no driver reports a matching device ({device_class})."
        remedy = "Contact an operator: the DRA driver on the nodes of the class has to be checked."
        return Explanation("no_units_offered", text, remedy)
    there = f"the cluster has {count} in all"
    text = f"No single node has {units_of(units, class_name)} free: {there}."
    return Explanation("no_node_fits", text, one_node_remedy(units), facts={"units": units})


def _lacking(short: list[str]) -> str:
    """`short`: resources of which nodes have too little. Pods are not a size: a node accepts so many of them."""
    sizes = [name for name in short if name != "pods"]
    parts = [f"too little {', '.join(sizes)} free"] if sizes else []
    parts += ["nodes have reached their maximum number of pods"] if "pods" in short else []
    return f": {'; '.join(parts)}" if parts else ""


def _limit_range(message: str) -> Explanation:
    found = _OUTSIDE.search(message)
    names = " and ".join(re.findall(r"[a-z][a-z0-9./-]*", found[1])) if found else "cpu or memory"
    if found and found[2] == "below":
        text = f"The namespace's LimitRange rejects the pod: {names} requested below the minimum for one container."
        return Explanation(
            "below_limit_range", text, "Request more, or contact an operator.", is_final=True, actions=STOP_OR_CHANGE
        )
    text = f"The namespace's LimitRange rejects the pod: {names} requested above the maximum for one container."
    return Explanation(
        "limit_range", text, "Request less, or contact an operator.", is_final=True, actions=STOP_OR_CHANGE
    )


def class_held(sentence: str, message: str) -> Explanation:
    """`sentence`: since when, why and until when scheduling is paused. Nothing new starts then, whatever Kueue reported
    last.
    """
    return Explanation(
        "class_held",
        sentence,
        "It starts automatically when scheduling is resumed.",
        message,
        "Kueue" if message else "",
    )


def preempted(message: str, rule: str = "") -> Explanation:
    """Never names the preempting team: names and workloads of other teams are private. `rule`: Kueue's name."""
    known = preemption_rule(rule, message)
    reason = "preempted_in_team" if known == IN_TEAM else "preempted"
    return Explanation(
        reason,
        f"Preempted: {preemption_cause(known)}.",
        f"It restarts automatically. {NOT_SAVED}",
        raw=_ANOTHERS.sub("", message),
        raw_from="Kueue",
    )
