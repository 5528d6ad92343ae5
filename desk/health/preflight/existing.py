"""Objects that exist under the names that the portal uses, and priorities of others. Pure.

An object with the portal's label and owner is its own, of an earlier installation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cluster.manifests import names
from cluster.manifests.metadata import MANAGED_BY, MANAGED_LABEL, OWNER_LABEL
from desk.health.preflight.types import (
    ClusterFacts,
    PreflightFinding,
    Raw,
    failure,
    labels_of,
    listed,
    name_of,
    passed,
    warning,
)

PORTAL_NAMESPACE = "gpu-portal"
# The cluster-wide objects of deploy/base that are not only the portal's by their kind: plural → name → fields.
SHIPPED: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "priorityclasses": {names.PRIORITY_CLASS: {"value": 0, "preemptionPolicy": "Never"}},
    "workloadpriorityclasses": {
        "production": {"value": 1000},
        "interactive": {"value": 500},
        "batch": {"value": 100},
    },
    "topologies": {names.TOPOLOGY: {"spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}}},
    "resourceflavors": {names.PLAIN_FLAVOR: {"spec": {}}},
}
COHORT = names.COHORT


def check_names(facts: ClusterFacts) -> Iterator[PreflightFinding]:
    found = [*_shipped(facts), *_cohort(facts), *_namespaces(facts)]
    yield from found or [passed("names", "No object of others has a name that the portal uses.")]


def _shipped(facts: ClusterFacts) -> Iterator[PreflightFinding]:
    for plural, expected in SHIPPED.items():
        for name, fields in expected.items():
            one = facts.named(plural, name)
            if one is None or all(one.get(key) == value for key, value in fields.items()):
                continue
            told = f"The {one.get('kind', plural)} {name} exists, with other values than deploy/base gives it."
            do = "Its users would get the portal's values. Rename theirs first"
            yield failure("names", told, f"{do}, or delete it if nobody uses it.")


def _cohort(facts: ClusterFacts) -> Iterator[PreflightFinding]:
    foreign = [
        f"{plural} {name_of(one)}"
        for plural in ("cohorts", "clusterqueues")
        for one in facts.all(plural)
        if not _is_ours(one) and COHORT in (name_of(one), _cohort_of(one))
    ]
    if foreign:
        told = (
            f"Others use the cohort {COHORT}: {listed(foreign)}. Their queues would lend to teams and borrow from them."
        )
        do = f"Rename theirs, or choose another one: manage.py catalog settle --cohort {COHORT}-NAME."
        yield failure("names", told, do)


def _namespaces(facts: ClusterFacts) -> Iterator[PreflightFinding]:
    if (own := facts.named("namespaces", PORTAL_NAMESPACE)) and labels_of(own).get(MANAGED_LABEL) == MANAGED_BY:
        told = (
            f"The namespace {PORTAL_NAMESPACE} has the label {MANAGED_LABEL}={MANAGED_BY}, which marks those of teams."
        )
        yield failure("names", told, "Remove the label: the worker may write in every namespace with it.")
    marked = [one for one in facts.all("namespaces") if labels_of(one).get(MANAGED_LABEL) == MANAGED_BY]
    foreign = [name_of(one) for one in marked if not _is_ours(one) and name_of(one) != PORTAL_NAMESPACE]
    if foreign:
        told = f"These namespaces have the label {MANAGED_LABEL}={MANAGED_BY} and no owner: {listed(foreign)}."
        yield failure("names", told, "Remove the label: the worker may write in every namespace with it.")


def check_priorities(facts: ClusterFacts) -> Iterator[PreflightFinding]:
    above = [
        one
        for one in facts.all("priorityclasses")
        if one.get("globalDefault") and one.get("value", 0) > 0 and one.get("preemptionPolicy") != "Never"
    ]
    for one in above:
        told = f"Pods without a class get {name_of(one)} ({one['value']}): they preempt the workloads of teams."
        yield warning("priorities", told, "Set pod-priority-class in the site profile to a class with the same value.")
    if not above:
        yield passed("priorities", "Pods of others do not preempt workloads of teams by default.")


def _is_ours(one: Raw) -> bool:
    return labels_of(one).get(MANAGED_LABEL) == MANAGED_BY and OWNER_LABEL in labels_of(one)


def _cohort_of(one: Raw) -> str:
    spec = one.get("spec") or {}
    return str(spec.get("cohortName") or spec.get("parentName") or "")
