"""Units that triggers count equal a count in Python from the same rows, while pods, claims and nodes come and go."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.utils import timezone

from cluster.models import Cluster, MirrorNode, MirrorObject, MirrorPod, MirrorUnits, MirrorUse
from cluster.reads.units import SLICES, used_by_namespace

pytestmark = pytest.mark.django_db

CARD, DRIVER = "nvidia.com/gpu", "gpu.nvidia.com"
NODES, TEAMS, CLAIMS = ("n1", "n2", "n3"), ("team-a", "team-b"), ("c1", "c2", "c3")
# (slug, resource, size of a unit), as a catalog would ask.
ASKED = [("card", CARD, 1), ("cores", "cpu", 1500), ("dra", SLICES, 1)]
MOMENTS = 150


@dataclass
class Churn:
    """Random changes. Claims are written before the pods that name them, after them, or never."""

    cluster: Cluster
    dice: random.Random
    count: int = 0

    def happen(self) -> None:
        steps: list[Callable[[], object]] = [self.add_pod, self.add_claim, self.change_pods, self.change_claim]
        steps += [self.add_node, lambda: self.some(MirrorPod).delete(), lambda: self.some(MirrorObject).delete()]
        steps += [*[self.add_pod] * 4, *[self.add_claim] * 4, lambda: self.some(MirrorNode).delete()]
        self.dice.choice(steps)()

    def some(self, model: Any) -> Any:
        """Up to three rows at once: a trigger runs once per statement."""
        found = model.objects.filter(cluster_id=self.cluster.pk).order_by("pk")
        keys = list(found.values_list("pk", flat=True))
        return found.model.objects.filter(pk__in=self.dice.sample(keys, min(len(keys), self.dice.randint(1, 3))))

    def add_node(self) -> None:
        amounts = {"cpu": 64_000, CARD: 8}
        name = self.dice.choice(NODES)
        if not MirrorNode.objects.filter(cluster_id=self.cluster.pk, name=name).exists():
            record = {"labels": {}, "taints": [], "capacity": amounts, "allocatable": amounts}
            MirrorNode.objects.create(**self.row(name, ""), ready=True, schedulable=True, record=record)

    def add_pod(self) -> None:
        claims = self.dice.sample(CLAIMS, self.dice.randint(0, 3))
        amounts = {CARD: self.dice.choice([1, 4]), "cpu": self.dice.choice([500, 1500, 1600, 4000]), "memory": 1}
        requests = {name: amounts[name] for name in self.dice.sample(list(amounts), self.dice.randint(0, 3))}
        MirrorPod.objects.create(
            **self.row(f"p{self.count}", self.dice.choice(TEAMS), owner=self.dice.choice(["", "me", "me"])),
            **self.pod_columns(),
            gpu_class=self.dice.choice(["", "card", "cores", "dra", "dra", "gone"]),
            record={"requests": requests, **({"claims": claims} if self.dice.random() < 0.8 else {})},
        )

    def pod_columns(self) -> dict[str, str]:
        phase = self.dice.choice(["Pending", "Running", "Running", "Succeeded", "Failed"])
        return {"node": self.dice.choice(["", *NODES]), "phase": phase}

    def change_pods(self) -> None:
        self.some(MirrorPod).update(**self.pod_columns())

    def add_claim(self) -> None:
        name, namespace = self.dice.choice(CLAIMS), self.dice.choice(TEAMS)
        if not MirrorObject.objects.filter(cluster_id=self.cluster.pk, name=name, namespace=namespace).exists():
            row = self.row(name, namespace)
            MirrorObject.objects.create(**row, kind="ResourceClaim", record={"devices": self.devices()})

    def change_claim(self) -> None:
        self.some(MirrorObject).update(record={"devices": self.devices()})

    def devices(self) -> list[dict[str, str]]:
        """Devices of a pool that no slice lists: what a pod holds does not depend on slices."""
        return [{"driver": DRIVER, "pool": "p", "device": f"d{one}"} for one in range(self.dice.randint(0, 4))]

    def row(self, name: str, namespace: str, owner: str = "") -> dict[str, Any]:
        self.count += 1
        identity = {"cluster_id": self.cluster.pk, "namespace": namespace, "name": name, "uid": f"u{self.count}"}
        return {**identity, "owner": owner, "resource_version": 1, "created_at": timezone.now()}


def test_every_change_is_counted(cluster: Cluster, unique: str) -> None:
    other_cluster = Cluster.objects.create(name=f"other-{unique}", notebooks_domain="notebooks.localhost")
    both = [Churn(cluster, random.Random(4)), Churn(other_cluster, random.Random(5))]
    seen: Counter[str] = Counter()
    for _ in range(MOMENTS):
        for churn in both:
            churn.happen()
        for churn in both:
            counted = held(churn.cluster)
            assert used_by_namespace(churn.cluster.pk, ASKED) == counted
            for team in TEAMS:
                of_team = {key: units for key, units in counted.items() if key[0] == team}
                assert used_by_namespace(churn.cluster.pk, ASKED, namespaces=[team]) == of_team
            assert on_nodes(churn.cluster) == asked_on_nodes(churn.cluster)
            seen.update(slug for _, slug in counted)
    assert min(seen[slug] for slug, _, _ in ASKED) > MOMENTS / 10, seen
    MirrorPod.objects.filter(cluster_id=cluster.pk).delete()
    assert not MirrorUse.objects.filter(cluster_id=cluster.pk).exists()
    assert held(other_cluster)


def held(cluster: Cluster) -> dict[tuple[str, str], int]:
    """(namespace, slug) → units held, summed pod by pod."""
    claims = {
        (one.namespace, one.name): len(one.record["devices"])
        for one in MirrorObject.objects.filter(cluster_id=cluster.pk, kind="ResourceClaim")
    }
    sizes = {slug: (resource, size) for slug, resource, size in ASKED}
    found: Counter[tuple[str, str]] = Counter()
    for pod in alive(cluster):
        if pod.owner and pod.gpu_class in sizes:
            resource, size = sizes[pod.gpu_class]
            if resource == SLICES:
                amount = sum(claims.get((pod.namespace, name), 0) for name in pod.record.get("claims", []))
            else:
                amount = pod.record["requests"].get(resource, 0)
            found[pod.namespace, pod.gpu_class] += -(-amount // size)
    return {key: units for key, units in found.items() if units}


def asked_on_nodes(cluster: Cluster) -> dict[tuple[str, str], int]:
    """(node, resource) → what all its pods request, including foreign pods."""
    nodes = set(MirrorNode.objects.filter(cluster_id=cluster.pk).values_list("name", flat=True))
    found: Counter[tuple[str, str]] = Counter({(node, resource): 0 for node in nodes for resource in (CARD, "cpu")})
    for pod in alive(cluster):
        if pod.node in nodes:
            found.update({(pod.node, name): pod.record["requests"].get(name, 0) for name in (CARD, "cpu")})
    return dict(found)


def on_nodes(cluster: Cluster) -> dict[tuple[str, str], int]:
    return {(one.node, one.resource): one.used for one in MirrorUnits.objects.filter(cluster_id=cluster.pk)}


def alive(cluster: Cluster) -> list[MirrorPod]:
    pods = MirrorPod.objects.filter(cluster_id=cluster.pk)
    return [pod for pod in pods if pod.node and pod.phase not in ("Succeeded", "Failed")]
