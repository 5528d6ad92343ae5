"""A foreign object has one of the portal's names before the portal creates it, or replaces its object: it is never
touched, and the row shows the reason.

When it is removed, the portal continues by itself.
"""

from __future__ import annotations

from typing import Any

import pytest

from cluster.models import AppliedObject
from devcluster.client.kube import Api
from portal.core.due import owner_label
from tests.faults.eyes import eyes_on
from tests.faults.scenes import CLUSTER_WIDE, NAMESPACED, OBJECTS, PATHS, Key, Scene, Stage, ids, let_time_pass
from tests.support.waiting import wait_until

MANAGED = "app.kubernetes.io/managed-by"
BODIES: dict[str, dict[str, Any]] = {
    "LimitRange": {"spec": {"limits": [{"type": "Container", "default": {"cpu": "8"}}]}},
    "ResourceQuota": {"spec": {"hard": {"pods": "7"}}},
    "NetworkPolicy": {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}},
    "RoleBinding": {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}},
    "LocalQueue": {"spec": {"clusterQueue": "theirs"}},
    "ClusterQueue": {"spec": {"namespaceSelector": {}}},
    "Cohort": {"spec": {}},
    "ResourceFlavor": {"spec": {}},
}


class Intruder:
    """A foreign object with one of the portal's names."""

    def __init__(self, stage: Stage, scene: Scene, key: Key) -> None:
        self.admin: Api = stage.admin
        kind, word = key
        name = next((name for name, stands in scene.words if stands == word), word)
        self.path, self.kind, self.name = PATHS[kind], kind, name
        self.namespace = "" if kind in CLUSTER_WIDE else str(getattr(scene.row, "name", ""))

    def comes(self) -> None:
        version = self.path.rpartition("/")[0]
        metadata = {"name": self.name, "labels": {"whose": "theirs"}}
        body = {"apiVersion": version, "kind": self.kind, "metadata": metadata, **BODIES.get(self.kind, {})}
        self.admin.create(body, namespace=self.namespace)
        self.before = self.stamp()

    def stamp(self) -> tuple[str, Any, Any]:
        """The object's identity without the status that controllers write, which changes its resource version."""
        found = self.admin.get(self.path, self.name, namespace=self.namespace)
        managers = [one for one in found["metadata"]["managedFields"] if one["manager"] == "gpu-portal"]
        return found["metadata"]["uid"], {**found, "metadata": found["metadata"]["labels"], "status": None}, managers

    def leaves(self) -> None:
        self.admin.delete(self.path, self.name, namespace=self.namespace)
        wait_until(lambda: self.admin.find(self.path, self.name, namespace=self.namespace) is None, within_s=60)


def told_as_foreign(scene: Scene, intruder: Intruder) -> None:
    row = AppliedObject.objects.get(
        owner=owner_label(scene.row), kind=intruder.kind, namespace=intruder.namespace, name=intruder.name
    )
    assert (row.result, row.uid) == (AppliedObject.Result.FOREIGN, "")
    assert f"{intruder.kind} named {intruder.name} already exists that the portal did not create" in row.text
    assert scene.row.error_code == "foreign"
    assert row.text in scene.row.error_text


@pytest.mark.parametrize(("sort", "key"), OBJECTS, ids=ids)
def test_it_was_there_before(stage: Stage, sort: str, key: Key) -> None:
    calm = stage.scene(sort, "calm")
    stage.look(calm)
    scene = stage.scene(sort, "before")
    if key[0] in NAMESPACED:
        # It was created between the portal's namespace and the objects in it.
        ours = {MANAGED: "gpu-portal", "gpu-portal/owner": owner_label(scene.row)}
        metadata = {"name": scene.row.name, "labels": ours}  # type: ignore[union-attr]
        stage.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    intruder = Intruder(stage, scene, key)
    intruder.comes()
    stage.look(scene)
    let_time_pass(scene)
    stage.look(scene)
    assert intruder.stamp() == intruder.before
    told_as_foreign(scene, intruder)
    is_open = any(
        queue["spec"].get("stopPolicy", "None") == "None"
        for (kind, _name), queue in stage.raw(scene).items()
        if kind == "ClusterQueue" and intruder.kind != kind
    )
    assert not is_open, "nothing is admitted before its walls stand"
    intruder.leaves()
    stage.settle(scene)
    assert stage.state(scene) == stage.state(calm)


@pytest.mark.parametrize(("sort", "key"), [one for one in OBJECTS if one[1][0] != "Namespace"], ids=ids)
def test_it_took_the_place_of_ours(stage: Stage, sort: str, key: Key) -> None:
    scene = stage.scene(sort, "after")
    eyes = eyes_on(stage, scene)
    stage.look(scene)
    stage.settle(scene)
    eyes.look()
    wanted = stage.state(scene)
    intruder = Intruder(stage, scene, key)
    intruder.leaves()
    intruder.comes()
    eyes.look()
    stage.look(scene)
    let_time_pass(scene)
    stage.look(scene)
    assert intruder.stamp() == intruder.before
    told_as_foreign(scene, intruder)
    intruder.leaves()
    stage.settle(scene)
    assert stage.state(scene) == wanted


def test_a_namespace_in_the_place_of_ours_gets_nothing(stage: Stage) -> None:
    """The portal does not even try to write into it, whether or not the admission policy would refuse."""
    scene = stage.team("gone")
    eyes = eyes_on(stage, scene)
    stage.look(scene)
    eyes.look()
    intruder = Intruder(stage, scene, ("Namespace", "NAME"))
    intruder.leaves()
    intruder.comes()
    eyes.look()
    before = len(stage.writes())
    stage.look(scene)
    assert {call.resource for call in stage.writes()[before:]} == {"namespaces"}
    assert intruder.stamp() == intruder.before
    told_as_foreign(scene, intruder)
