"""What Kueue says of a workload that it does not admit, or has preempted. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from workloads.interruption.preemption import IN_TEAM, preemption_cause, preemption_rule
from workloads.status.explain.nodes import gang_too_large, names_only_other_flavors
from workloads.status.explain.quantities import units_of
from workloads.status.explain.types import STOP_OR_CHANGE, Explanation

_MORE_NEEDED = re.compile(r"insufficient unused quota for (\S+) in flavor (\S+), (\d+) more needed")
_MISMATCH = re.compile(r"flavor \S+ doesn't match node affinity")
_OVER_MAXIMUM = re.compile(r"insufficient quota for (\S+) in flavor (\S+),.*maximum capacity \((\d+)\)")
_TOPOLOGY = re.compile(r"topology \"?[^\"]*\"? (?:doesn't allow to fit|allows to fit only (\d+) out of (\d+))")
_EXCLUDED = re.compile(r"resource \"([^\"]+)\": \d+")
_HELD = re.compile(r"untolerated taint \{gpu-portal/held[^}]*\} in flavor ([a-z0-9.-]+)")
_WHEN_ONE_HAS_ENOUGH = "It starts when one node has enough; fewer units may start sooner."
_NO_DEVICE_CLASS = re.compile(
    r"failed to get DeviceClass ([a-z0-9.-]+): .*not found|DeviceClass ([a-z0-9.-]+) is not mapped"
)
# Whose work it was, and by which way through the queues: for operators, in the cluster itself.
_ANOTHERS = re.compile(r" \(UID: [^)]*\)|; preempt(?:or|ee) path: [^;]*")
_OUTSIDE = re.compile(r"Invalid value: (\[[^\]]*\]|\S+): requests must not be (above|below) the limitRange")


def pending(message: str, *, units: int, class_name: str, slug: str, workers: int = 1) -> Explanation:
    """Kueue's condition QuotaReserved=False. It lists every flavor of the resource; those of other classes are ruled
    out by their taint, so that a sentence about quota or topology is about the class's own. `units` are of each worker.
    """
    return replace(_pending(message, (units, workers), class_name, slug), raw=message, raw_from="Kueue")


def _pending(message: str, size: tuple[int, int], class_name: str, slug: str) -> Explanation:
    units, workers = size
    if "LimitRange constraints" in message:
        return _limit_range(message)
    if _MISMATCH.search(message):
        # Other classes' flavors are ruled out by their taint before.
        text = f"It asks for nodes as {class_name} described them when it was launched; that has changed since."
        remedy = "Started again, it asks for nodes as its class describes them now."
        return Explanation("flavor_mismatch", text, remedy, is_final=True, actions=STOP_OR_CHANGE)
    more_needed = _MORE_NEEDED.search(message)
    # Of several flavors of a class, whose nodes were relabelled, one is enough.
    if more_needed is None and (found := _OVER_MAXIMUM.search(message)):
        return Explanation(
            "exceeds_maximum",
            f"{units_of(units * workers, class_name)} cannot start with what your team may use now: "
            f"{found[3]} at most.",
            "It starts by itself once a grant allows it. Otherwise ask for fewer units, or request more quota.",
            is_final=True,
            actions=STOP_OR_CHANGE,
            facts={"units": units, "most_units": int(found[3])},
        )
    if any(flavor.startswith(f"{slug}-") for flavor in _HELD.findall(message)):
        return Explanation(
            "class_held",
            f"{class_name} was held until just now; Kueue looks at it again in a moment.",
            "It starts by itself.",
        )
    if found := _TOPOLOGY.search(message):
        short = sorted(set(_EXCLUDED.findall(message[found.start() :])))
        lacking = f": too little {', '.join(short)} is left" if short else ""
        if workers > 1:
            return gang_too_large(int(found[1] or 0), size, class_name, lacking)
        return Explanation(
            "no_node_fits",
            f"No single node has {units_of(units, class_name)} free right now{lacking}.",
            _WHEN_ONE_HAS_ENOUGH,
            facts={"units": units},
        )
    if names_only_other_flavors(message):
        # There was quota of its own class, and no node: Kueue went on to the others, which its taint rules out.
        text = f"No node takes {units_of(units * workers, class_name)} right now."
        return Explanation("no_node_fits", text, _WHEN_ONE_HAS_ENOUGH, facts={"units": units})
    if "no topology domains" in message:
        text = f"No node of {class_name} takes new work right now."
        return Explanation("nodes_closed", text, "It starts when a node is opened again; the operators know when.")
    if more_needed is not None:
        missing = int(more_needed[3])
        left = "your team's quota is in use"
        if missing < units * workers:
            left = f"it needs {units * workers}, more than your team's quota has left,"
        return Explanation(
            "waiting_for_quota",
            f"Waits for {units_of(missing, class_name)}: {left} and nothing more can be borrowed.",
            "It starts when running work of your team ends; stopping one of yours helps at once.",
            facts={"units": units, "missing_units": missing},
        )
    if found := _NO_DEVICE_CLASS.search(message):
        return _no_device_class(found[1] or found[2], class_name, is_there=found[1] is None)
    if "doesn't exist" in message:
        return Explanation(
            "queue_missing", "Your team's queue is not in the cluster yet.", "The portal makes it; wait a moment."
        )
    if "Pending the preemption" in message:
        return Explanation(
            "reclaiming", "Takes back units that another team had borrowed; it starts when they are free."
        )
    if not message:
        return Explanation("queued", "Waits in your team's queue.")
    return Explanation("queued", f"Waits in your team's queue. Kueue says: {message[:300]}", is_known=False)


def _no_device_class(name: str, class_name: str, *, is_there: bool) -> Explanation:
    if is_there:
        text = f"The queue system does not count the device class {name}, whose devices {class_name} gives out."
        return Explanation("device_class_not_counted", text, "Tell the operators: Kueue's configuration lacks it.")
    text = f"The cluster has no device class {name}, whose devices {class_name} gives out."
    return Explanation("device_class_missing", text, "Tell the operators: its driver is not installed, or was removed.")


def _limit_range(message: str) -> Explanation:
    found = _OUTSIDE.search(message)
    names = " and ".join(re.findall(r"[a-z][a-z0-9./-]*", found[1])) if found else "cpu or memory"
    if found and found[2] == "below":
        text = f"The namespace's limits refuse its pod: less {names} asked than one container must have."
        return Explanation(
            "below_limit_range", text, "Ask for more, or tell the operators.", is_final=True, actions=STOP_OR_CHANGE
        )
    text = f"The namespace's limits refuse its pod: more {names} asked than one container may have."
    return Explanation(
        "limit_range", text, "Ask for less, or tell the operators.", is_final=True, actions=STOP_OR_CHANGE
    )


def class_held(sentence: str, message: str) -> Explanation:
    """`sentence`: since when, for what, until when. Whatever Kueue said last, nothing new starts while it is held."""
    return Explanation(
        "class_held", sentence, "It starts by itself when the class is released.", message, "Kueue" if message else ""
    )


def preempted(message: str, rule: str = "") -> Explanation:
    """Never who took them: another team's name and work are its own. `rule`: as Kueue names it."""
    known = preemption_rule(rule, message)
    reason = "preempted_in_team" if known == IN_TEAM else "preempted"
    return Explanation(
        reason,
        f"Interrupted: {preemption_cause(known)}.",
        "It starts again by itself. What it had not saved is lost.",
        raw=_ANOTHERS.sub("", message),
        raw_from="Kueue",
    )
