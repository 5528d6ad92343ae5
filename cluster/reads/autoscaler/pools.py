"""Which NodePools of Karpenter could add a node for a pod, what keeps them from it, and which nodes are ordered. Pure.

A NodePool does not name its instance types. A label that providers set from these counts as possible, so a pool may
seem to fit although it does not. What is said about pools is therefore said of all that may fit, never of some.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from cluster.reads.observed import Condition, WithConditions
from cluster.reads.taints import is_tolerated
from cluster.reads.units import REPELLING_EFFECTS

# Domains of labels that may follow from an instance type. Karpenter adds no node for any other label that its pool
# lacks.
_OF_INSTANCE_TYPES = re.compile(r"(?:.+\.)?(?:kubernetes\.io|k8s\.io)|karpenter\..+")


@dataclass(frozen=True)
class PodNeed:
    """What one pod needs of a new node. `requests`: by resource, in the amounts of the mirror (cpu in millicores)."""

    labels: Mapping[str, str]
    tolerations: tuple[Mapping[str, str], ...]
    requests: Mapping[str, int]
    # Its units: a node without them is of no use.
    resource: str


@dataclass(frozen=True)
class NewNode:
    """What is decided about a node before it exists."""

    labels: Mapping[str, str]
    requirements: tuple[Mapping[str, object], ...]
    taints: tuple[Mapping[str, str], ...]

    def may_suit(self, pod: PodNeed) -> bool:
        repelled = (taint for taint in self.taints if taint["effect"] in REPELLING_EFFECTS)
        return all(is_tolerated(taint, pod.tolerations) for taint in repelled) and all(
            self._may_have(key, value) for key, value in pod.labels.items()
        )

    def _may_have(self, key: str, value: str) -> bool:
        if key in self.labels:
            return self.labels[key] == value
        rules = [rule for rule in self.requirements if rule["key"] == key]
        if rules:
            return all(_allows(rule, value) for rule in rules)
        domain, slash, _name = key.partition("/")
        return bool(slash) and _OF_INSTANCE_TYPES.fullmatch(domain) is not None


def _allows(rule: Mapping[str, object], value: str) -> bool:
    """Requirements are met by a node that Karpenter chooses so; of numbers nothing is concluded."""
    values = rule["values"]
    match rule["operator"]:
        case "In":
            return isinstance(values, list) and value in values
        case "NotIn":
            return isinstance(values, list) and value not in values
        case "DoesNotExist":
            return False
    return True


@dataclass(frozen=True)
class Shortfall:
    """A pool's limit is too low for another node for the pod: `used` of `limit` are in use, `needed` are requested."""

    resource: str
    limit: int
    used: int
    needed: int


@dataclass(frozen=True)
class NodePool(WithConditions):
    """`resources`: of its nodes together; None: not counted yet."""

    name: str
    node: NewNode
    limits: Mapping[str, int]
    resources: Mapping[str, int] | None
    conditions: tuple[Condition, ...] = ()

    @property
    def unready(self) -> Condition | None:
        """A pool without the condition has just been created."""
        ready = self.condition("Ready")
        return ready if ready is not None and ready.status == "False" else None

    def shortfall(self, pod: PodNeed) -> Shortfall | None:
        """Returns the limit that certainly forbids another node for the pod; its units come first. A pool with more
        left may still lack an instance type that is small enough.
        """
        if self.resources is None:
            return None
        needs = {pod.resource: pod.requests.get(pod.resource, 0), "nodes": 1, **pod.requests}
        for resource, needed in needs.items():
            limit, used = self.limits.get(resource), self.resources.get(resource, 0)
            if limit is not None and needed and limit - used < needed:
                return Shortfall(resource, limit, used, needed)
        return None


@dataclass(frozen=True)
class NodeClaim(WithConditions):
    """A node that Karpenter has ordered. `capacity` is empty until the provider has accepted the order."""

    name: str
    pool: str
    node: NewNode
    created_at: datetime
    is_deleting: bool
    requests: Mapping[str, int]
    capacity: Mapping[str, int]
    conditions: tuple[Condition, ...] = ()

    def is_coming_for(self, pod: PodNeed) -> bool:
        offered = (self.capacity or self.requests).get(pod.resource, 0)
        is_coming = not self.is_deleting and not self.is_true("Initialized")
        return is_coming and offered >= pod.requests.get(pod.resource, 0) and self.node.may_suit(pod)


@dataclass(frozen=True)
class Autoscaler:
    """Karpenter's view of one pod that waits for a node: the pools that may add one, and the latest order of a node
    that suits the pod. The order may be for another pod.
    """

    pools: tuple[NodePool, ...] = ()
    coming: NodeClaim | None = None
    # By pool, where its limit forbids a node.
    shortfalls: Mapping[str, Shortfall] = field(default_factory=dict)


def autoscaler_for(pod: PodNeed, pools: Iterable[NodePool], claims: Iterable[NodeClaim]) -> Autoscaler:
    found = tuple(sorted((pool for pool in pools if pool.node.may_suit(pod)), key=lambda pool: pool.name))
    coming = [claim for claim in claims if claim.is_coming_for(pod)]
    short = {pool.name: lack for pool in found if (lack := pool.shortfall(pod)) is not None}
    return Autoscaler(found, max(coming, key=lambda one: (one.created_at, one.name), default=None), short)
