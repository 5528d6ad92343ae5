"""All checks, in the order in which an operator would fix what they find; as text and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from desk.health.preflight import admission, existing, kueue, network, nodes, platform
from desk.health.preflight.types import ClusterFacts, Level, PreflightFinding, failure, listed, passed, warning
from portal.ui.text import plural

Check = Callable[[ClusterFacts], Iterator[PreflightFinding]]


def check_rights(facts: ClusterFacts) -> Iterator[PreflightFinding]:
    if facts.missing_rights:
        told = f"The kubeconfig may not install the portal; it lacks: {listed(facts.missing_rights, limit=30)}."
        yield failure("rights", told, "Use that of a cluster administrator for kubectl apply -k deploy.")
    else:
        yield passed("rights", "The kubeconfig may create what deploy/ contains.")


# Check → the lists that it needs. Of a list that could not be read nothing is concluded.
CHECKS: tuple[tuple[Check, tuple[str, ...]], ...] = (
    (platform.check_kubernetes, ()),
    (check_rights, ()),
    (kueue.check_api, ()),
    (kueue.check_manager, ("deployments",)),
    (kueue.check_settings, ("deployments", "deviceclasses")),
    (network.check_names, ("services", "daemonsets")),
    (network.check_enforcement, ("daemonsets", "nodes")),
    (platform.check_storage, ("storageclasses", "nodes")),
    (nodes.check_gpus, ("nodes", "resourceslices")),
    (nodes.check_operators, ("daemonsets", "clusterpolicies")),
    (
        existing.check_names,
        (*existing.SHIPPED, "cohorts", "clusterqueues", "namespaces"),
    ),
    (existing.check_priorities, ("priorityclasses",)),
    (admission.check_trials, ()),
    (admission.check_changes, ()),
)
_MARKS = {Level.PASS: "pass", Level.WARN: "WARN", Level.FAIL: "FAIL"}


def findings(facts: ClusterFacts) -> list[PreflightFinding]:
    found: list[PreflightFinding] = []
    for check, needed in CHECKS:
        if not any(one in facts.unread for one in needed):
            found += check(facts)
    for name, why in sorted(facts.unread.items()):
        told = f"Unknown: the cluster does not list {name}. {why}"
        found.append(warning("unread", told, "Use a kubeconfig that may list them."))
    return found


def is_possible(found: Sequence[PreflightFinding]) -> bool:
    return all(one.level is not Level.FAIL for one in found)


def text_lines(found: Sequence[PreflightFinding]) -> Iterator[str]:
    for one in found:
        yield f"{_MARKS[one.level]}  {one.check}: {one.sentence}"
        if one.do:
            yield f"      → {one.do}"
    fails, warns = (sum(one.level is level for one in found) for level in (Level.FAIL, Level.WARN))
    yield ""
    if fails:
        yield f"The portal cannot be installed yet: {plural(fails, 'failure')}, {plural(warns, 'warning')}."
    else:
        yield f"The portal can be installed: no failures, {plural(warns, 'warning')}."


def as_json(found: Sequence[PreflightFinding]) -> dict[str, Any]:
    lines = [{"check": one.check, "level": one.level.value, "sentence": one.sentence, "do": one.do} for one in found]
    return {"possible": is_possible(found), "findings": lines}
