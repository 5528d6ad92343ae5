"""What becomes of each thing in a namespace that a team takes over."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from cluster.manifests.adoption.labels import (
    ADOPT_LABEL,
    BEFORE_ANNOTATION,
    adoption_patch,
    is_adopted,
    label_changes,
    release_patch,
)
from cluster.manifests.namespace import namespace_objects
from cluster.manifests.specs import NamespaceSpec, QuotaSpec
from operations.adoption.findings import READ_KINDS, Finding, ForeignPod, findings_of, is_blocked, losses
from tests.operations.adoption import messy

SPEC = NamespaceSpec(
    name="lab",
    owner="tenants.namespace.1",
    group="gpu-portal:lab",
    cohort="gpu-portal",
    quota=QuotaSpec(devices={}, cpu=0, memory_gib=0),
    cells=(),
    is_held=True,
)
WANTED = namespace_objects(SPEC)
Json = dict[str, Any]


def namespace(**labels: str) -> Json:
    return {"metadata": {"name": "lab", "uid": "u", "resourceVersion": "7", "labels": labels}}


def read(
    *bodies: Json, pods: Collection[ForeignPod] = (), labels: dict[str, str] | None = None, taken: Any = ()
) -> list[Finding]:
    found: dict[str, list[Any]] = {kind: [] for kind in READ_KINDS}
    for body in bodies:
        found[body["kind"]].append(body)
    told = findings_of(namespace(**labels or {}), pods, found, WANTED, taken)
    return [one for one in told if one.code != "own_quota"]


def said(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(str(one.effect), one.kind, one.name) for one in findings]


def test_of_an_empty_namespace_only_the_quota_of_the_team_is_told() -> None:
    [one] = findings_of(namespace(), [], {kind: [] for kind in READ_KINDS}, WANTED, ())
    assert (str(one.effect), one.kind, one.name) == ("lost", "ResourceQuota", "gpu-portal")
    assert "configmaps" in one.text


@pytest.mark.parametrize(
    ("kind", "effect", "word"),
    [
        ("ResourceQuota", "kept", "requests.nvidia.com/gpu 0 of 4"),
        ("LimitRange", "kept", "refuses pods above its maximum"),
        ("LocalQueue", "kept", "ClusterQueue none"),
        ("RoleBinding", "kept", "User mallory@example.org keeps the rights of ClusterRole edit"),
        ("NetworkPolicy", "kept", "stays open"),
        ("PersistentVolumeClaim", "kept", "5Gi"),
        ("Deployment", "lost", "replacements"),
        ("StatefulSet", "lost", "replacements"),
        ("CronJob", "lost", "New ones are refused"),
        ("Service", "lost", "only pods of this namespace"),
    ],
)
def test_each_kind_has_its_sentence(kind: str, effect: str, word: str) -> None:
    [one] = read(messy.thing(kind))
    assert (str(one.effect), one.kind) == (effect, kind)
    assert word in one.text


def test_a_bare_pod_stays_and_its_devices_and_connections_are_told() -> None:
    found = read(pods=[ForeignPod("bare", None, {messy.GPU: 2})])
    assert said(found) == [("lost", "Pod", "all"), ("kept", "Pod", "bare"), ("kept", "Pod", "nvidia.com/gpu")]
    assert "It holds 2 nvidia.com/gpu." in found[1].text
    assert "can use 2 less" in found[2].text


def test_pods_of_a_controller_that_is_not_read_are_told_once() -> None:
    pods = [ForeignPod(f"worker-{number}", ("RayCluster", "ray"), {}) for number in (1, 2)]
    found = [one for one in read(pods=pods) if one.kind == "RayCluster"]
    assert said(found) == [("lost", "RayCluster", "all")]
    assert "They have 2 pods." in found[0].text


def test_a_job_in_another_queue_is_lost_unless_it_is_over() -> None:
    job = messy.thing("Job")
    [one] = read(job)
    assert str(one.effect) == "lost"
    assert one.name == "all"
    assert "1 Job (queued)." in one.text
    assert "when queue research admits them" in one.text
    assert read({**job, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}) == []


def test_a_name_that_the_team_needs_blocks_it() -> None:
    inside = {**messy.thing("ResourceQuota"), "metadata": {"name": "gpu-portal"}}
    found = read(inside, taken=[("ClusterQueue", "", "lab")])
    blocked = [(one.kind, one.name) for one in found if one.effect == "blocked"]
    assert blocked == [("ClusterQueue", "lab"), ("ResourceQuota", "gpu-portal")]
    assert is_blocked([one.as_json() for one in found])


def test_a_namespace_that_is_being_deleted_is_not_adopted() -> None:
    body = namespace()
    body["metadata"]["deletionTimestamp"] = "2026-11-27T21:00:00Z"
    one, *_ = findings_of(body, [], {kind: [] for kind in READ_KINDS}, WANTED, ())
    assert (str(one.effect), one.code) == ("blocked", "terminating")


def test_labels_that_change_are_told_and_come_back() -> None:
    theirs = {
        "pod-security.kubernetes.io/enforce": "privileged",
        "pod-security.kubernetes.io/audit": "baseline",
        "owner": "physics",
        ADOPT_LABEL: "lab",
    }
    found = read(labels=theirs)
    assert [(one.name, str(one.effect)) for one in found] == [
        ("pod-security.kubernetes.io/audit", "changed"),
        ("pod-security.kubernetes.io/enforce", "changed"),
    ]
    before = namespace(**theirs)
    assert label_changes(before, WANTED[0])["pod-security.kubernetes.io/enforce"] == "restricted"
    after = _patched(before, adoption_patch(before, WANTED[0]))
    assert is_adopted(after)
    assert after["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    # Since then: the portal removed what is drift, and somebody set a label.
    del after["metadata"]["labels"]["pod-security.kubernetes.io/audit"]
    after["metadata"]["labels"]["cost-center"] = "9"
    given_back = _patched(after, release_patch(after, WANTED[0]))
    assert given_back["metadata"]["labels"] == {key: value for key, value in theirs.items() if key != ADOPT_LABEL} | {
        "cost-center": "9"
    }
    assert BEFORE_ANNOTATION not in given_back["metadata"]["annotations"]


def test_only_losses_are_accepted() -> None:
    found = [one.as_json() for one in read(messy.thing("Deployment"), messy.thing("LimitRange"))]
    assert losses(found) == {("controller", "Deployment", "web")}


def _patched(body: Json, patch: Json) -> Json:
    """A merge patch, of labels and annotations only."""
    metadata = dict(body["metadata"])
    for name in ("labels", "annotations"):
        merged = {**metadata.get(name, {}), **patch["metadata"][name]}
        metadata[name] = {key: value for key, value in merged.items() if value is not None}
    return {**body, "metadata": metadata}
