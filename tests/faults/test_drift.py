"""Each of the portal's objects is deleted, edited or relabelled by another client: the drift is seen, recorded and
repaired, and nothing else changes.

The watcher's part is done by the real mirror on the real objects (`eyes.py`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from cluster.apply import messages
from cluster.manifests.metadata import OWNER_LABEL
from cluster.mirror.records.kinds import KINDS
from cluster.mirror.records.types import MANAGED_LABEL
from cluster.models import AppliedObject, ObjectDrift
from portal.core.due import owner_label
from tenants.models import Namespace
from tenants.provisioning.apply import queue_of
from tests.faults.eyes import Eyes, eyes_on
from tests.faults.random_edits.edits import JSON_PATCH
from tests.faults.scenes import CLUSTER_WIDE, EDITS, OBJECTS, PATHS, Key, Scene, Stage, ids
from tests.support.waiting import wait_until

# Fields that the portal never sends: an apply alone would leave them there. At the top level, in maps of ours and of
# others, and as items of lists, with and without keys.
ADDITIONS: dict[Key, list[dict[str, Any]]] = {
    ("Namespace", "NAME"): [{"metadata": {"labels": {"pod-security.kubernetes.io/audit": "privileged"}}}],
    ("ResourceQuota", "gpu-portal"): [{"spec": {"hard": {"count/leases.coordination.k8s.io": "0"}}}],
    ("NetworkPolicy", "gpu-portal-ingress"): [{"spec": {"podSelector": {"matchLabels": {"only": "these"}}}}],
    ("ServiceAccount", "gpu-portal"): [
        {"imagePullSecrets": [{"name": "evil"}]},
        {"secrets": [{"name": "one"}, {"name": "other"}]},
    ],
    ("ClusterQueue", "NAME"): [
        {"spec": {"fairSharing": {"weight": "3"}}},
        {"spec": {"admissionChecksStrategy": {"admissionChecks": [{"name": "nobody-answers"}]}}},
    ],
    ("LocalQueue", "gpu-portal"): [{"spec": {"fairSharing": {"weight": "3"}}}],
    ("Cohort", "NAME"): [{"spec": {"fairSharing": {"weight": "3"}}}],
}


class Case:
    """A settled scene that is watched, and one of its objects."""

    def __init__(self, stage: Stage, sort: str, key: Key) -> None:
        self.stage = stage
        self.scene: Scene = stage.scene(sort, "drift")
        self.eyes: Eyes = eyes_on(stage, self.scene)
        stage.look(self.scene)
        stage.settle(self.scene)
        self.eyes.look()
        next_second()
        self.wanted = stage.state(self.scene)
        kind, word = key
        name = next((name for name, stands in self.scene.words if stands == word), word)
        self.path, self.name, self.kind = PATHS[kind], name, kind
        self.namespace = "" if kind in CLUSTER_WIDE else self.scene.row.name  # type: ignore[union-attr]
        self.rest(timezone.now() + timedelta(hours=1))

    def again(self) -> None:
        """The object is repaired, and everything is settled as in the beginning."""
        next_second()
        self.rest(timezone.now() + timedelta(hours=1))

    def rest(self, due_at: Any) -> None:
        type(self.scene.row)._base_manager.filter(pk=self.scene.row.pk).update(due_at=due_at)

    def patch(self, body: dict[str, Any]) -> None:
        self.stage.admin.patch(self.path, self.name, body, namespace=self.namespace)

    def relabel(self, label: str, value: str | None) -> None:
        self.patch({"metadata": {"labels": {label: value}}})

    def row(self) -> AppliedObject:
        return AppliedObject.objects.get(
            owner=owner_label(self.scene.row), kind=self.kind, namespace=self.namespace, name=self.name
        )

    def is_awake(self) -> bool:
        due_at = self.scene.again().due_at
        return due_at is not None and due_at <= timezone.now()

    def repair(self) -> None:
        """Watcher and worker run in turns until neither finds a change."""
        before = len(self.stage.writes())
        self.stage.look(self.scene)
        written = {(call.resource, call.name) for call in self.stage.writes()[before:] if call.name}
        assert written <= {(self.path.rpartition("/")[2], self.name)}, "nothing else was written"
        self.eyes.look()
        self.stage.settle(self.scene)
        self.eyes.look()
        assert self.stage.state(self.scene) == self.wanted
        assert self.row().difference == {}
        assert self.row().code == "repaired"
        told = ObjectDrift.objects.filter(kind=self.kind, namespace=self.namespace, name=self.name)
        assert told.latest("last_at").outcome == ObjectDrift.Outcome.REPAIRED


def next_second() -> None:
    """Waits for the next second. Managed fields have times in seconds: a repair in the second of the creation looks as
    if another client had removed the defaults of the first apply, and costs one more apply.
    """
    before = timezone.now().replace(microsecond=0)
    wait_until(lambda: timezone.now().replace(microsecond=0) > before)


def noted(case: Case) -> dict[str, Any]:
    case.eyes.look()
    assert case.is_awake(), "the owner is told"
    found: dict[str, Any] = case.row().difference
    assert found["since"]
    return found


@pytest.mark.parametrize("sort", EDITS)
def test_these_are_all_of_our_objects(stage: Stage, sort: str) -> None:
    scene = stage.scene(sort, "all")
    stage.look(scene)
    assert {tuple(name.split(" ")) for name in stage.state(scene)} == EDITS[sort].keys()
    assert all(KINDS[kind].is_applied for kind, _name in EDITS[sort])


@pytest.mark.parametrize(("sort", "key"), OBJECTS, ids=ids)
def test_edited_added_to_relabelled_and_deleted(stage: Stage, sort: str, key: Key) -> None:
    """Edits, additions, relabelling and deletion, one after the other; each is repaired before the next."""
    case = Case(stage, sort, key)
    edited(case, EDITS[sort][key])
    for body in ADDITIONS.get(key, []):
        case.again()
        added(case, body)
    case.again()
    unrecorded(case)
    case.again()
    copied(case)
    case.again()
    given_away(case)
    case.again()
    disowned(case)
    if case.kind != "Namespace":  # of which see below
        case.again()
        deleted(case)


def edited(case: Case, body: dict[str, Any]) -> None:
    case.patch(body)
    found = noted(case)
    assert found["fields"]
    assert found["manager"] in ("devcluster", "")
    case.repair()


def added(case: Case, body: dict[str, Any]) -> None:
    case.patch(body)
    found = noted(case)
    assert found["fields"]
    assert found["manager"] == "devcluster"
    case.repair()


def unrecorded(case: Case) -> None:
    """Empties managedFields: nobody can say any more what was changed."""
    records: Any = [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]
    case.stage.admin.patch(case.path, case.name, records, namespace=case.namespace, content_type=JSON_PATCH)
    assert noted(case)["fields"] == ["metadata.managedFields"]
    case.repair()


def copied(case: Case) -> None:
    """Sends the object as it is from a file, and then owns what the API server has set by default."""
    body = case.stage.raw(case.scene)[(case.kind, case.name)]
    metadata = {key: one for key, one in body["metadata"].items() if key in ("name", "namespace", "labels")}
    version = case.path.rpartition("/")[0]
    rest = {key: one for key, one in body.items() if key != "status"}
    case.stage.admin.apply({"apiVersion": version, "kind": case.kind, **rest, "metadata": metadata})
    case.eyes.look()
    if case.row().difference:
        case.repair()


def deleted(case: Case) -> None:
    before = case.row().uid
    case.stage.admin.delete(case.path, case.name, namespace=case.namespace)
    wait_until(lambda: case.stage.admin.find(case.path, case.name, namespace=case.namespace) is None)
    assert noted(case)["gone"] is True
    case.repair()
    assert case.row().uid != before


def given_away(case: Case) -> None:
    """Removes the owner's label, then changes it."""
    for value in (None, "tenants.namespace.987654321"):
        case.rest(timezone.now() + timedelta(hours=1))
        case.relabel(OWNER_LABEL, value)
        assert any(field.startswith("metadata.labels") for field in noted(case)["fields"]), value
        case.repair()


def disowned(case: Case) -> None:
    """Removes the managed label. Without it the worker may not touch a cluster-wide object: the refusal is shown until
    an administrator restores the label.
    """
    case.relabel(MANAGED_LABEL, None)
    assert any(field.startswith("metadata.labels") for field in noted(case)["fields"])
    if case.kind not in CLUSTER_WIDE:
        return case.repair()
    stage = case.stage
    stage.look(case.scene)
    row = case.row()
    assert row.result == AppliedObject.Result.REFUSED
    assert "admission policy for the portal" in messages.refusal_sentence(row.code, row.text)
    case.relabel(MANAGED_LABEL, "gpu-portal")
    stage.settle(case.scene)
    assert stage.state(case.scene) == case.wanted
    return None


def test_the_whole_namespace_deleted(stage: Stage) -> None:
    case = Case(stage, "namespace", ("Namespace", "NAME"))
    stage.admin.delete(case.path, case.name)
    wait_until(lambda: stage.admin.find(case.path, case.name) is None)
    assert noted(case)["gone"] is True
    stage.look(case.scene)
    case.eyes.look()
    stage.settle(case.scene)
    assert stage.state(case.scene) == case.wanted


def test_a_queue_without_its_label_is_read_as_ours(stage: Stage) -> None:
    """If it were read as absent, it would be sent again on hold and without the flavors that only running workloads
    need.
    """
    case = Case(stage, "namespace", ("ClusterQueue", "NAME"))
    row = case.scene.row
    assert isinstance(row, Namespace)
    before = queue_of(row, stage.kube)
    case.relabel(OWNER_LABEL, None)
    assert before.is_open
    assert queue_of(row, stage.kube) == before
