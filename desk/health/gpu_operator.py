"""Whether NVIDIA's GPU Operator is ready, as its ClusterPolicy and NVIDIADrivers say, and which classes need it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from catalog.models import GpuClass
from cluster.models import Cluster, MirrorNode, MirrorObject
from cluster.reads import queries as mirror
from cluster.reads.observed import Condition, conditions

POLICY, DRIVER = "ClusterPolicy", "NVIDIADriver"
# A node that joins, or a driver that is upgraded, makes it notReady for as long as its pods start.
PATIENCE = timedelta(minutes=15)
NOT_READY, IGNORED = "notReady", "ignored"
# Devices that NVIDIA's software offers; of DRA: the device classes of its driver.
_ON_NVIDIA = Q(resource__startswith="nvidia.com/") | Q(device_class__endswith="nvidia.com")
_EFFECTS = {
    POLICY: "Nodes keep the devices that they report. A new node, or one whose software changes, may report none.",
    DRIVER: "Nodes keep their driver. On a new node, or one that is upgraded, no program may be able to use a GPU.",
}


@dataclass(frozen=True)
class OperatorObject:
    """A ClusterPolicy or NVIDIADriver. `state`: as the operator reports it, "" if it has not. `since`: None if it does
    not say. `message`: its reason for not being ready, "" without. `version`: of the driver, "" if it names none.
    """

    kind: str
    name: str
    state: str
    since: datetime | None
    message: str
    version: str
    is_wrong: bool

    @property
    def sentence(self) -> str:
        if self.state == IGNORED:
            return "It is ignored: another ClusterPolicy is in force."
        if not self.is_wrong:
            return ""
        return f"{self.message or 'It does not say why.'} {_EFFECTS[self.kind]}".strip()

    @property
    def do(self) -> str:
        if self.state == IGNORED:
            return f"Delete it: kubectl delete clusterpolicy {self.name}."
        if not self.is_wrong:
            return ""
        return (
            "Nodes lists the nodes with parts that do not work, and the page of a node names the part. All of it: "
            f"kubectl describe {self.kind.lower()} {self.name}."
        )


@dataclass(frozen=True)
class GpuOperator:
    """`objects`: () if the operator is not installed. `has_nvidia`: a node has the label nvidia.com/gpu.present.
    `classes`: (slug, name) of the classes that need NVIDIA's software.
    """

    objects: tuple[OperatorObject, ...]
    has_nvidia: bool
    classes: tuple[tuple[str, str], ...]

    @property
    def wrong(self) -> tuple[OperatorObject, ...]:
        return tuple(one for one in self.objects if one.is_wrong)


def gpu_operator(cluster: Cluster, now: datetime) -> GpuOperator | None:
    """None while the mirror does not know. At most four queries."""
    if not mirror.is_known(cluster.pk, POLICY, DRIVER):
        return None
    rows = MirrorObject.objects.filter(cluster_id=cluster.pk, kind__in=(POLICY, DRIVER)).order_by("kind", "name")
    objects = tuple(_object(row, now) for row in rows)
    labels = MirrorNode.objects.filter(
        cluster_id=cluster.pk, record__labels__contains={"nvidia.com/gpu.present": "true"}
    )
    classes = GpuClass.objects.filter(_ON_NVIDIA, cluster=cluster, life_cycle=GpuClass.LifeCycle.ACTIVE)
    return GpuOperator(objects, labels.exists(), tuple(classes.order_by("slug").values_list("slug", "name")))


def _object(row: MirrorObject, now: datetime) -> OperatorObject:
    found = conditions(row.record)
    state = row.record["state"]
    # "Error" is true with a message, or "Ready" is false; operators before 22.9 report the state alone.
    cause = _condition(found, "Error", "True") or _condition(found, "Ready", "False")
    ready = _condition(found, "Ready", "True") or cause
    since = ready.since if ready else None
    is_old = since is None or now - since > PATIENCE
    return OperatorObject(
        kind=row.kind,
        name=row.name,
        state=state,
        since=since,
        message=cause.message if cause and state == NOT_READY else "",
        version=row.record["version"],
        is_wrong=state == IGNORED or (state == NOT_READY and is_old),
    )


def _condition(found: Collection[Condition], type: str, status: str) -> Condition | None:
    return next((one for one in found if (one.type, one.status) == (type, status)), None)
