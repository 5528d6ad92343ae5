"""The input of a standing check (`CheckedSite`, from `queries.py`) and its result (`Finding`). Values only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from catalog.discovery import inventory
from catalog.discovery import types as discovery_types
from catalog.discovery.types import ClassProposal, Device
from catalog.interconnect.types import Measurement
from cluster.manifests.site import DEFAULT, SiteProfile

HOSTNAME = "kubernetes.io/hostname"


class Severity(StrEnum):
    """`ERROR`: the catalog is wrong for teams, or workloads stay pending. `WARNING`: it may become an error."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


@dataclass(frozen=True, order=True)
class Subject:
    """What a finding is about: sort "class", "node", "queue", "product" or "catalog"; what its remedy is done to: also
    "proposal". `slug`: of a class.
    """

    sort: str
    name: str = ""
    slug: str = ""


@dataclass(frozen=True)
class Finding:
    """`since`: the state is at least this old; None: unknown. `remedy_on`: what the remedy is done to, if that is not
    the subject.
    """

    code: str
    severity: Severity
    subject: Subject
    sentence: str
    remedy: str
    since: datetime | None = None
    remedy_on: Subject | None = None


@dataclass(frozen=True)
class CheckedNode:
    """`capacity` of devices in units. `ready_since`: of the Ready condition, whatever its status. `state_since`: the
    label mig.config.state is at least this old.
    """

    seen: discovery_types.NodeFacts
    capacity: Mapping[str, int]
    is_ready: bool = True
    ready_since: datetime | None = None
    state_since: datetime | None = None
    uid: str = ""

    @property
    def name(self) -> str:
        return self.seen.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.seen.labels

    @cached_property
    def devices(self) -> dict[str, int]:
        """Allocatable units by resource, including an explicit 0 of a plugin."""
        found = self.seen.allocatable
        return {name: int(units) for name, units in sorted(found.items()) if discovery_types.is_device(name)}


@dataclass(frozen=True)
class CheckedClass:
    """A class of the catalog. `flavor`: its name in queues. `is_open`: active or retiring, so visible to users."""

    id: int
    slug: str
    name: str
    resource: str
    flavor: str
    node_labels: Mapping[str, str]
    is_open: bool = True
    is_draft: bool = False
    product: str = ""
    partition: str = "none"
    sharing: str = "none"
    replicas: int = 1
    interface: str = "device-plugin"
    device_class: str = ""
    device_selector: str = ""
    memory_mib: int | None = None
    is_autoscaled: bool = False
    # What was found when its selector was tried: a value of DeviceTrial.Verdict, "" if it was not; and in whose words.
    trial: str = ""
    trial_text: str = ""

    @property
    def subject(self) -> Subject:
        return Subject("class", self.name, self.slug)

    @property
    def is_dra(self) -> bool:
        return self.interface == "dra"

    def selects(self, node: CheckedNode) -> bool:
        return all(node.labels.get(name) == value for name, value in self.node_labels.items())


@dataclass(frozen=True)
class CheckedQueue:
    """A ClusterQueue of the portal: flavor → the resources that it counts of it."""

    name: str
    cells: Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class CheckedSite:
    """The input of all checks. `dismissed`: slugs of proposals that staff decided not to offer.

    `queues` None: this cluster has no Kueue, and queues are not checked.
    """

    nodes: tuple[CheckedNode, ...] = ()
    slices: tuple[Device, ...] = ()
    classes: tuple[CheckedClass, ...] = ()
    queues: tuple[CheckedQueue, ...] | None = ()
    dismissed: frozenset[str] = frozenset()
    # Device class → how Kueue counts it: discovery.queries.counted_device_classes.
    counted: Mapping[str, str] = field(default_factory=dict)
    # Of the cluster; None: unknown.
    device_classes: frozenset[str] | None = None
    profile: SiteProfile = DEFAULT
    # Names of those in the cluster. None: not read.
    storage_classes: Collection[str] | None = None
    # By node, the last of each kind.
    measured: Mapping[str, tuple[Measurement, ...]] = field(default_factory=dict)

    @cached_property
    def open(self) -> tuple[CheckedClass, ...]:
        return tuple(sorted((one for one in self.classes if one.is_open), key=lambda one: one.slug))

    @cached_property
    def slices_of(self) -> dict[str, tuple[Device, ...]]:
        found: dict[str, list[Device]] = {}
        for one in self.slices:
            found.setdefault(one.node, []).append(one)
        return {node: tuple(devices) for node, devices in found.items()}

    @cached_property
    def alike(self) -> dict[str, tuple[str, ...]]:
        """One node → all nodes that are equal for every class and for discovery: a thousand nodes are a few kinds."""
        asked = {label for offer in self.classes for label in offer.node_labels}
        found: dict[object, list[str]] = {}
        for node in sorted(self.nodes, key=lambda node: node.name):
            seen = node.seen
            key = (
                frozenset((k, v) for k, v in seen.labels.items() if k != HOSTNAME or k in asked),
                frozenset(seen.allocatable.items()),
                tuple(tuple(sorted(taint.items())) for taint in seen.taints),
                # The names of devices differ from node to node.
                node.name if node.name in self.slices_of else "",
            )
            found.setdefault(key, []).append(node.name)
        return {names[0]: tuple(names) for names in found.values()}

    @cached_property
    def _first(self) -> tuple[CheckedNode, ...]:
        return tuple(node for node in self.nodes if node.name in self.alike)

    @cached_property
    def discovery(self) -> discovery_types.Discovery:
        """Covers only the nodes that represent others in `alike`: its units and nodes are those of these alone."""
        return inventory.discover([node.seen for node in self._first], self.slices, self.counted)

    @cached_property
    def kinds(self) -> dict[str, tuple[ClassProposal, ...]]:
        """Node → its hardware, as discovery would propose classes for it."""
        found: dict[str, tuple[ClassProposal, ...]] = {}
        for node in self._first:
            has = inventory.discover([node.seen], self.slices_of.get(node.name, ()), self.counted).proposals
            found |= dict.fromkeys(self.alike[node.name], has)
        return found

    def kind_of(self, node: CheckedNode, offer: CheckedClass) -> ClassProposal | None:
        """The capacity that this class selects on this node; None: nothing."""
        if not offer.selects(node):
            return None
        return next((one for one in self.kinds[node.name] if counts_kind(offer, one)), None)

    @cached_property
    def held(self) -> dict[int, dict[str, ClassProposal]]:
        """Open class → its nodes that have units of it."""
        found: dict[int, dict[str, ClassProposal]] = {offer.id: {} for offer in self.open}
        for node in self._first:
            for offer in self.open if self.kinds[node.name] else ():
                if (kind := self.kind_of(node, offer)) is not None:
                    found[offer.id] |= dict.fromkeys(self.alike[node.name], kind)
        return found


def counts_kind(offer: CheckedClass, kind: ClassProposal) -> bool:
    """True if the class counts this kind, without labels. The selector of a DRA class is CEL, not evaluated here."""
    if offer.is_dra:
        return kind.device_class == offer.device_class and kind.partition == offer.partition
    return kind.interface == offer.interface and kind.resource == offer.resource


def counted(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}es" if unit == "class" else f"{number} {unit}s"


def labels_text(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(labels.items())) or "no label"
