"""Every standing check: one case that it finds, and a neighbour of it that it must not."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from accounts.core.actor import system_actor
from catalog.checks import suite
from catalog.checks.queries import check_report
from catalog.checks.queues import EXCLUDED_PREFIXES
from catalog.checks.types import CheckedClass, CheckedNode, CheckedQueue, CheckedSite, Finding, Severity, Subject
from catalog.classes.proposals import actions
from catalog.discovery import queries
from catalog.discovery import types as discovery_types
from catalog.interconnect.types import AllReduce, Links, Measurement, NodeState
from catalog.models import DismissedProposal, GpuClass
from cluster.manifests.site import site_profile
from cluster.models import Cluster, MirrorEpoch, MirrorKind
from tests.support.rows import make, mirrored

A100 = "NVIDIA-A100-SXM4-80GB"
GPU = "nvidia.com/gpu"
TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def node(
    name: str = "n1",
    devices: Mapping[str, int] | None = None,
    *,
    taints: tuple[Mapping[str, str], ...] = (TAINT,),
    capacity: Mapping[str, int] | None = None,
    product: str = A100,
    labels: Mapping[str, str] | None = None,
    **fields: Any,
) -> CheckedNode:
    """Four whole A100 GPUs, not shared, by default. Keys of `labels` without their prefix `nvidia.com/`."""
    has = {GPU: 4} if devices is None else devices
    usual = {"gpu.product": product, "gpu.sharing-strategy": "none", "gpu.replicas": "1", "gpu.memory": "81920"}
    all_labels = {f"nvidia.com/{key}": value for key, value in {**usual, **(labels or {})}.items() if value}
    seen = discovery_types.NodeFacts(name, all_labels, taints, {"cpu": 64, "memory": 256, **has})
    return CheckedNode(seen, capacity if capacity is not None else has, **fields)


def offer(name: str = "A100", *, labels: Mapping[str, str] | None = None, id: int = 1, **fields: Any) -> CheckedClass:
    """A class of whole A100 GPUs, open, selected by product and sharing strategy, by default."""
    selector = {"gpu.product": A100, "gpu.sharing-strategy": "none"} if labels is None else labels
    values: dict[str, Any] = {"resource": GPU, "product": A100, "memory_mib": 81920, **fields}
    node_labels = {f"nvidia.com/{key}": value for key, value in selector.items()}
    return CheckedClass(
        id=id, slug=name.lower(), name=name, flavor=f"{name.lower()}-1", node_labels=node_labels, **values
    )


def dra(resource: str = "dra.portal/h100", device_class: str = "gpu.nvidia.com") -> CheckedClass:
    fields: dict[str, Any] = {"interface": "dra", "device_class": device_class, "device_selector": "true"}
    return offer("H100", labels={"gpu.product": "H100"}, resource=resource, product="H100", memory_mib=None, **fields)


def site(*nodes: CheckedNode, classes: tuple[CheckedClass, ...] = (), **fields: Any) -> CheckedSite:
    return CheckedSite(nodes=nodes, classes=classes, **{"counted": mirrored.MAPPED, **fields})


NODE = Subject("node", "n1")


@dataclass(frozen=True)
class Case:
    """`finds` has exactly one finding of this check, whose sentence has `words`; `neighbour` has none."""

    code: str
    finds: CheckedSite
    neighbour: CheckedSite
    words: str
    subject: Subject = NODE


A_CLASS = Subject("class", "A100", "a100")
OF_DRA = Subject("class", "H100", "h100")
SLICED = {"gpu.sharing-strategy": "time-slicing", "gpu.replicas": "4"}
SLICES = {GPU: 0, "nvidia.com/mig-1g.10gb": 7}
BY_PRODUCT = {"gpu.product": A100}
TIME_SLICED = offer(labels=BY_PRODUCT, sharing="time-slicing", replicas=4)
H100_SLICE = discovery_types.Device("gpu.nvidia.com", "n1", {"productName": "H100"}, 81559)
CUT = {"gpu.replicas": "0", "mig.strategy": "mixed"}


def many(number: int, *, resources: int = 1) -> tuple[CheckedClass, ...]:
    """Classes whose only problem is their number; each has a label of its own."""
    return tuple(
        offer(f"c{n:03}", id=n, labels={"gpu.product": f"p{n}"}, resource=f"nvidia.com/r{n % resources}")
        for n in range(number)
    )


def habana(labels: Mapping[str, str]) -> CheckedNode:
    """A node whose Gaudi device plugin does not run."""
    return CheckedNode(discovery_types.NodeFacts("n1", labels, (), {"cpu": 64, "memory": 256}), {})


def profiles(*names: str) -> CheckedSite:
    return site(node(devices={f"nvidia.com/mig-{name}": 1 for name in names}, labels=CUT))


DRIVER = {"cuda.driver-version.full": "570.86.15"}


def measured(*rates: int | None, links: str = "NV12", driver: str = "") -> dict[str, tuple[Measurement, ...]]:
    """Of nodes n1, n2, …: the links of the first and NV12 of the others, and the all_reduce of each; None: none."""
    state, on = NodeState(driver=driver), NOON.date()
    found: dict[str, tuple[Measurement, ...]] = {}
    for number, rate in enumerate(rates, 1):
        name, link = f"n{number}", links if number == 1 else "NV12"
        parts = [Measurement(name, on, Links((("X", link), (link, "X"))), state=state)]
        if rate is not None:
            parts.append(Measurement(name, on, all_reduce=AllReduce(2, 2**33, Decimal(rate)), state=state))
        found[name] = tuple(parts)
    return found


THREE = (node("n1"), node("n2"), node("n3"))

CASES = [
    Case(
        "unlike_links",
        site(*THREE, classes=(offer(),), measured=measured(None, None, links="SYS")),
        site(*THREE, classes=(offer(),), measured=measured(None, None)),
        "The links between the GPUs of A100 differ by node: 2 GPUs, all SYS on n1; 2 GPUs, all NV12 on n2.",
        A_CLASS,
    ),
    Case(
        "slow_links",
        site(*THREE, classes=(offer(),), measured=measured(200, 230, 232)),
        site(*THREE, classes=(offer(),), measured=measured(210, 230, 232)),
        "all_reduce on node n1 reached 200 GB/s with 2 GPUs, 8 GiB, 13% below the median of A100, 230 GB/s of 3 nodes.",
    ),
    Case(
        "old_measurement",
        site(node(labels=DRIVER), classes=(offer(),), measured=measured(None, driver="550.54.14")),
        # Without its label nothing is known of the driver.
        site(node(), classes=(offer(),), measured=measured(None, driver="550.54.14")),
        "it was recorded with driver 550.54.14, and the node has 570.86.15 now.",
    ),
    Case(
        "class_without_nodes",
        site(node(product="NVIDIA-L4"), classes=(offer(),)),
        site(node(), classes=(offer(),)),
        "No node provides class A100: none of 1 node has nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB, ",
        A_CLASS,
    ),
    Case(
        "class_without_nodes",
        site(node(devices={GPU: 0}), classes=(offer(),)),
        site(node(devices={GPU: 0}), node("n2"), classes=(offer(),)),
        "Class A100 has 1 node (n1), but none of them advertises nvidia.com/gpu.",
        A_CLASS,
    ),
    Case(
        "class_without_nodes",
        site(node(is_ready=False, ready_since=NOON), classes=(offer(),)),
        site(node(is_ready=False), node("n2"), classes=(offer(),)),
        "No node of class A100 is ready: n1.",
        A_CLASS,
    ),
    Case(
        "class_without_nodes",
        site(node(product="L4"), classes=(dra(),)),
        site(node(devices={}, product="H100"), classes=(dra(),), slices=(H100_SLICE,)),
        "No node provides class H100",
        Subject("class", "H100", "h100"),
    ),
    Case(
        "resource_not_offered",
        site(node(), node("n2")),
        site(node(), node("n2"), classes=(offer(),)),
        "No class offers 8 units of nvidia.com/gpu (A100 SXM4 80GB) on n1, n2.",
    ),
    Case(
        "resource_not_offered",
        site(node(), classes=(offer(is_open=False, is_draft=True),)),
        site(node(), dismissed=frozenset({"a100-sxm4-80gb"})),
        "No class offers 4 units",
    ),
    Case(
        "slices_not_offered",
        site(node(devices=SLICES, labels=CUT)),
        site(
            node(devices=SLICES, labels=CUT), classes=(offer(resource="nvidia.com/mig-1g.10gb", partition="1g.10gb"),)
        ),
        "No class offers 7 slices (1g.10gb) of nvidia.com/mig-1g.10gb",
    ),
    Case(
        "label_contradicts_class",
        site(node(labels={**SLICED, "gpu.replicas": "8"}), classes=(TIME_SLICED,)),
        site(node(labels=SLICED), classes=(TIME_SLICED,)),
        "Class A100 states replicas 4, but the labels of n1 state 8.",
        A_CLASS,
    ),
    Case(
        "label_contradicts_class",
        site(node(), classes=(TIME_SLICED,)),
        site(node(labels=SLICED, devices={}), classes=(TIME_SLICED,)),
        "Class A100 states sharing time-slicing, but the labels of n1 state none.",
        A_CLASS,
    ),
    Case(
        "label_contradicts_class",
        site(node(product="NVIDIA-L4"), classes=(offer(labels={"gpu.sharing-strategy": "none"}),)),
        site(node(product="NVIDIA-L4"), classes=(offer(labels={"gpu.sharing-strategy": "none"}, product=""),)),
        "states product NVIDIA-A100-SXM4-80GB, but the labels of n1 state NVIDIA-L4",
        A_CLASS,
    ),
    Case(
        "label_contradicts_class",
        site(node(labels={"gpu.memory": "40960"}), classes=(offer(),)),
        site(node(labels={"gpu.memory": ""}), classes=(offer(),)),
        "states memory 81920 MiB, but the labels of n1 state 40960 MiB",
        A_CLASS,
    ),
    Case(
        "exclusive_on_shared",
        site(node(labels=SLICED), classes=(offer(labels=BY_PRODUCT),)),
        site(node(labels=SLICED), classes=(offer(),)),
        "but each GPU of n1 is shared among 4 by time-slicing, and a share is exposed as nvidia.com/gpu.",
        A_CLASS,
    ),
    Case(
        "exclusive_on_shared",
        site(node(labels={**SLICED, "gpu.sharing-strategy": "mps"}), classes=(offer(labels=BY_PRODUCT),)),
        site(
            node(labels=SLICED, devices={GPU: 0, f"{GPU}.shared": 16}),
            classes=(offer(labels=BY_PRODUCT, resource=f"{GPU}.shared"),),
        ),
        "4 by mps",
        A_CLASS,
    ),
    Case(
        "exclusive_on_shared",
        site(node(labels=SLICED), node("n2"), classes=(offer(labels=BY_PRODUCT),)),
        site(node(labels=SLICED), classes=(TIME_SLICED,)),
        "but each GPU of n1 is shared",
        A_CLASS,
    ),
    Case(
        "many_time_slices",
        site(
            node(labels={**SLICED, "gpu.replicas": "5"}),
            classes=(offer(labels=BY_PRODUCT, sharing="time-slicing", replicas=5),),
        ),
        site(node(labels=SLICED), classes=(TIME_SLICED,)),
        "Class A100 is time-sliced ×5 on one GPU: while all pods compute, each waits for 4 others,",
        A_CLASS,
    ),
    Case(
        "many_time_slices",
        site(classes=(offer(sharing="time-slicing", replicas=8, partition="1g.10gb"),)),
        site(classes=(offer(sharing="mps", replicas=8),)),
        "time-sliced ×8 on one slice: while all pods compute, each waits for 7 others, and the memory of the slice",
        A_CLASS,
    ),
    Case(
        "unlike_products",
        site(node(), node("n2", product="NVIDIA-L4"), classes=(offer(labels={}, memory_mib=None),)),
        site(node(), node("n2", product="NVIDIA-L4", devices={}), classes=(offer(labels={}, memory_mib=None),)),
        "Class A100 mixes 2 products: NVIDIA-A100-SXM4-80GB on n1; NVIDIA-L4 on n2.",
        A_CLASS,
    ),
    Case(
        "unlike_interconnects",
        site(node(labels={"gpu.machine": "DGX"}), node("n2", labels={"gpu.machine": "PCIe-box"}), classes=(offer(),)),
        site(node(labels={"gpu.machine": "DGX"}), node("n2", labels={"gpu.machine": "DGX"}), classes=(offer(),)),
        "mixes 2 machines, with possibly different interconnects: DGX, PCIe-box",
        A_CLASS,
    ),
    Case(
        "unlike_interconnects",
        site(node(labels={"gpu.clique": "c.1"}), node("n2"), classes=(offer(),)),
        site(node(labels={"gpu.clique": "c.1"}), node("n2", labels={"gpu.clique": "c.2"}), classes=(offer(),)),
        "nodes in an NVLink clique (n1) and nodes without a clique (n2)",
        A_CLASS,
    ),
    Case(
        "same_capacity",
        site(node(labels={"zone": "a"}), classes=(offer("B", labels={"zone": "a"}, id=2), offer())),
        site(node(labels={"zone": "b"}), classes=(offer("B", labels={"zone": "a"}, id=2), offer())),
        "Class B selects the same nvidia.com/gpu as A100 on n1: the capacity is counted twice.",
        Subject("class", "B", "b"),
    ),
    Case(
        "same_capacity",
        site(classes=(offer("B", id=2), offer())),
        site(classes=(offer("B", id=2, resource=f"{GPU}.shared"), offer())),
        "Class B selects the same nvidia.com/gpu as A100: ",
        Subject("class", "B", "b"),
    ),
    Case(
        "selector_is_part",
        site(node(), classes=(offer("B", labels=BY_PRODUCT, id=2), offer())),
        site(node(), classes=(offer("B", labels={**BY_PRODUCT, "gpu.sharing-strategy": "mps"}, id=2), offer())),
        "Class B selects nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB, which is only part of what A100 selects",
        Subject("class", "B", "b"),
    ),
    Case(
        "resource_not_covered",
        site(node(), classes=(offer(),), queues=(CheckedQueue("team-a", {"a100-1": frozenset({"nvidia.com/other"})}),)),
        site(
            node(),
            classes=(offer(),),
            queues=(CheckedQueue("team-a", {"a100-1": frozenset({GPU})}), CheckedQueue("team-b", {})),
        ),
        "Pods of class A100 request nvidia.com/gpu, which queue team-a neither covers for that class nor excludes",
        A_CLASS,
    ),
    Case(
        "device_class_not_mapped",
        site(classes=(dra(),), counted={"gpu.nvidia.com": ""}),
        # Not tried yet.
        site(classes=(dra(),), counted={}),
        "Class H100 requests device class gpu.nvidia.com, but Kueue does not count it",
        OF_DRA,
    ),
    Case(
        "device_class_not_mapped",
        site(classes=(dra(resource="dra.portal/other"),)),
        site(classes=(dra(resource="dra.portal/other"),), queues=None),
        "Kueue counts it as dra.portal/h100, not as dra.portal/other",
        OF_DRA,
    ),
    Case(
        "device_class_missing",
        site(classes=(dra(),), device_classes=frozenset({"mig.nvidia.com"})),
        site(classes=(dra(),), device_classes=None),
        "device class gpu.nvidia.com, which the cluster does not have",
        OF_DRA,
    ),
    Case(
        "selector_refused",
        site(classes=(replace(dra(), trial="refused", trial_text="1:7: undefined field 'foo'"),)),
        site(classes=(replace(dra(), trial="counted"),)),
        "The API server refuses the CEL selector of class H100: 1:7: undefined field 'foo'. Its workloads never start.",
        OF_DRA,
    ),
    Case(
        "selector_refused",
        site(classes=(replace(dra(), trial="failed", trial_text="no such key: memory"),)),
        site(classes=(replace(dra(), trial="unknown"),)),
        "fails on a device of the cluster: no such key: memory",
        OF_DRA,
    ),
    Case(
        "no_device_matches",
        site(classes=(replace(dra(), trial="no-device"),)),
        site(classes=(replace(dra(), trial="no-device", is_autoscaled=True),)),
        "No device of device class gpu.nvidia.com matches the CEL selector of class H100",
        OF_DRA,
    ),
    Case(
        "queue_limit",
        site(classes=many(65)),
        site(classes=many(64)),
        "65 classes use nvidia.com/r0; Kueue supports at most 64 flavors per group.",
        Subject("catalog"),
    ),
    Case(
        "queue_limit",
        site(classes=many(16, resources=16)),
        site(classes=many(15, resources=15)),
        "The catalog has 16 resources, which with the queue's own is 17 groups",
        Subject("catalog"),
    ),
    Case(
        "queue_limit",
        site(classes=many(256, resources=15)),
        site(classes=many(255, resources=15)),
        "The catalog has 256 classes, which with the queue's own flavor is 257",
        Subject("catalog"),
    ),
    Case(
        "queue_limit",
        site(classes=(offer(labels={f"l{n}": "x" for n in range(9)}),)),
        site(classes=(offer(labels={f"l{n}": "x" for n in range(8)}),)),
        "Class A100 has 9 labels; Kueue supports at most 8 per flavor.",
        A_CLASS,
    ),
    Case(
        "layout_not_named",
        site(node(devices={**SLICES, GPU: 3}, labels={"mig.config": "all-balanced"})),
        site(node(devices={**SLICES, GPU: 3}, labels={"mig.config": "one-cut-three-whole"})),
        "Node n1 has 3 whole and slices 1g.10gb, but its layout “all-balanced” does not contain 3 whole.",
    ),
    Case(
        "layout_not_named",
        site(node(devices={**SLICES, "nvidia.com/mig-2g.20gb": 1}, labels={"mig.config": "all-1g.10gb"})),
        site(node(devices=SLICES, labels={"mig.config": "all-1g.10gb"})),
        "does not contain slices 2g.20gb",
    ),
    Case(
        "layout_not_named",
        site(node(devices=SLICES, labels={"mig.config": "all-disabled"})),
        site(node(devices=SLICES, labels={"mig.config": "all-disabled", "mig.config.state": "pending"})),
        "does not contain slices",
    ),
    Case(
        "layout_not_named",
        site(node(devices={**SLICES, GPU: 3})),
        site(node(devices=SLICES)),
        "Node n1 has 3 whole and slices 1g.10gb, but it has no label nvidia.com/mig.config.",
    ),
    Case(
        "mig_invalid",
        site(node(product=f"{A100}-MIG-INVALID", devices={GPU: 0})),
        site(node(product=f"{A100}-MIG-1g.10gb", devices={GPU: 28})),
        "Node n1 reports NVIDIA-A100-SXM4-80GB-MIG-INVALID",
    ),
    Case(
        "mig_state",
        site(node(labels={"mig.config": "all-1g.10gb", "mig.config.state": "pending"}, state_since=NOON)),
        site(node(labels={"mig.config": "all-1g.10gb", "mig.config.state": "success"}, state_since=NOON)),
        "Node n1 is being set to layout “all-1g.10gb”: the MIG manager reports pending.",
    ),
    Case(
        "mig_state",
        site(node(labels={"mig.config.state": "failed"})),
        site(node()),
        "the MIG manager reports failed. It is not known since when.",
    ),
    Case(
        "unhealthy_devices",
        site(node(devices={GPU: 5}, capacity={GPU: 8})),
        site(node(devices={GPU: 8}, capacity={GPU: 8})),
        "3 of 8 nvidia.com/gpu on node n1 are not healthy",
    ),
    Case(
        "no_devices_left",
        site(node(devices={GPU: 0}, capacity={GPU: 8})),
        site(node(devices={GPU: 5}, capacity={GPU: 8})),
        "None of the 8 nvidia.com/gpu of node n1 is allocatable: the device plugin has stopped",
    ),
    Case(
        "plugin_advertises_none",
        site(node(devices={GPU: 0})),
        site(node(devices=SLICES)),
        "The device plugin of node n1 advertises 0 nvidia.com/gpu.",
    ),
    Case(
        "plugin_advertises_none",
        site(node(devices={GPU: 0, "nvidia.com/mig-1g.10gb": 0})),
        site(node(devices={GPU: 0}), slices=(H100_SLICE,)),
        "advertises 0 nvidia.com/gpu and 0 nvidia.com/mig-1g.10gb",
    ),
    Case(
        "nothing_advertised",
        site(habana({"habana.ai/device.count": "8"})),
        site(habana({"habana.ai/device.count": "0", "intel.feature.node.kubernetes.io/gaudi": "false"})),
        "n1",
    ),
    Case(
        "nothing_advertised",
        site(node(devices={}, labels={"gpu.present": "true"})),
        site(node(labels={"gpu.present": "true"})),
        "The labels of node n1 state GPUs of nvidia.com, but nothing is advertised",
    ),
    Case(
        "nothing_advertised",
        site(CheckedNode(discovery_types.NodeFacts("n1", {"amd.com/gpu.family": "AI"}, (TAINT,), {"cpu": 8}), {})),
        site(
            CheckedNode(discovery_types.NodeFacts("n1", {"amd.com/gpu.family": "AI"}, (TAINT,), {"amd.com/gpu": 8}), {})
        ),
        "GPUs of amd.com",
    ),
    Case(
        "nothing_advertised",
        site(
            CheckedNode(
                discovery_types.NodeFacts("n1", {"gpu.intel.com/device-id.0300-e211.present": "true"}, (TAINT,), {}), {}
            )
        ),
        site(node(devices={}, labels={"gpu.present": "true"}), slices=(H100_SLICE,)),
        "GPUs of gpu.intel.com",
    ),
    Case(
        "no_taint",
        site(node(taints=())),
        site(node(), node("cpu", devices={}, taints=())),
        "GPU node n1 has no NoSchedule taint",
    ),
    Case(
        "no_taint",
        site(node(taints=({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},))),
        site(node(taints=({"key": "dedicated", "effect": "NoExecute"},))),
        "GPU node n1 has no NoSchedule taint",
    ),
    Case(
        "too_many_profiles",
        profiles("1g.10gb", "1g.10gb.me", "2g.20gb", "3g.40gb"),
        profiles("1g.10gb", "2g.20gb", "3g.40gb"),
        "has 4 MIG profiles (1g.10gb, 1g.10gb.me, 2g.20gb, 3g.40gb)",
        Subject("product", A100),
    ),
    Case(
        "site_profile",
        site(profile=site_profile({"dns-adresses": "169.254.20.10"})),
        site(profile=site_profile({"dns-addresses": "169.254.20.10"})),
        "unknown key dns-adresses",
        Subject("catalog"),
    ),
    Case(
        "storage_class_missing",
        site(profile=site_profile({"storage-classes": "fast\nefs ReadWriteMany"}), storage_classes={"fast", "slow"}),
        site(profile=site_profile({"storage-classes": "fast"}), storage_classes={"fast"}),
        "offers the storage class efs, which the cluster does not have",
        Subject("catalog"),
    ),
]


def found(of: CheckedSite, code: str) -> list[Finding]:
    return [one for one in suite.check_site(of) if one.code == code]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code}: {case.words[:40]}")
def test_a_check_finds_its_case_and_not_the_neighbour(case: Case) -> None:
    (finding,) = found(case.finds, case.code)
    assert finding.subject == case.subject
    assert case.words in finding.sentence
    assert finding.sentence.endswith(".")
    assert finding.remedy
    assert found(case.neighbour, case.code) == []


def test_every_check_has_a_case() -> None:
    told = {case.code for case in CASES}
    assert {name for one in suite.CHECKS if (name := one.__name__) != "queue_limits"} | {"queue_limit"} == told


def test_since_when_is_told_where_the_cluster_tells_it() -> None:
    pending = node(labels={"mig.config.state": "pending"}, state_since=NOON)
    assert found(site(pending), "mig_state")[0].since == NOON
    assert found(site(replace(pending, state_since=None)), "mig_state")[0].since is None
    down = node("n2", is_ready=False, ready_since=NOON.replace(hour=11))
    (finding,) = found(site(down, node(is_ready=False, ready_since=NOON), classes=(offer(),)), "class_without_nodes")
    assert finding.since == NOON, "the class has had nothing since its last node went"


def test_retired_and_draft_classes_are_not_checked() -> None:
    wrong = offer(labels={"gpu.product": "gone"})
    assert found(site(classes=(wrong,)), "class_without_nodes")
    assert suite.check_site(site(classes=(replace(wrong, is_open=False),))) == ()
    assert suite.check_site(site(classes=(replace(wrong, is_open=False, is_draft=True),))) == ()


def test_a_draft_is_named_where_it_would_help() -> None:
    (finding,) = found(site(node(), classes=(offer(is_open=False, is_draft=True),)), "resource_not_offered")
    assert finding.remedy == "The draft class A100 would offer them: activate it."


def test_devices_that_kueue_does_not_count_are_named() -> None:
    device = replace(H100_SLICE, driver="gpu.example.com")
    (finding,) = found(site(node(devices={}), slices=(device,)), "resource_not_offered")
    assert "gpu.example.com" in finding.sentence


def test_findings_do_not_depend_on_the_order_of_what_was_seen() -> None:
    everything = CheckedSite(
        nodes=tuple(
            replace(one, seen=replace(one.seen, name=f"{number}-{one.name}"))
            for number, case in enumerate(CASES)
            for one in case.finds.nodes
        ),
        classes=tuple(
            replace(one, id=10 * number + one.id, slug=f"{number}-{one.slug}", name=f"{number} {one.name}")
            for number, case in enumerate(CASES)
            for one in case.finds.classes[:5]
        ),
    )
    expected = suite.check_site(everything)
    assert len(expected) > 30
    assert [one.severity for one in expected] == sorted((o.severity for o in expected), key=list(Severity).index)
    mixed = list(everything.nodes), list(everything.classes)
    for part in mixed:
        random.Random(4).shuffle(part)
    assert suite.check_site(replace(everything, nodes=tuple(mixed[0]), classes=tuple(mixed[1]))) == expected


def test_queues_exclude_what_kueue_is_told_to_exclude() -> None:
    shipped = Path(__file__).parents[3] / "deploy" / "kueue" / "manager-config.yaml"
    resources = yaml.safe_load(shipped.read_text())["resources"]
    assert tuple(resources["excludeResourcePrefixes"]) == EXCLUDED_PREFIXES


# ---- checks with the mirror --------------------------------------------------------------------------------------


def accepted(cluster: Cluster) -> None:
    proposed = queries.discover_cluster(cluster)
    assert proposed is not None
    actions.accept_proposals(list(proposed.proposals), by=system_actor("test"), cluster=cluster)


def test_a_catalog_of_everything_that_was_proposed_has_nothing_wrong(cluster: Cluster) -> None:
    """On the simulated hardware ten containers share an Intel GPU, and A100 GPUs are divided into four profiles."""
    mirrored.hardware_seen(cluster)
    accepted(cluster)
    answer = check_report(cluster)
    assert answer.is_current
    assert [(one.code, one.severity) for one in answer.findings or ()] == [
        ("many_time_slices", Severity.HINT),
        ("too_many_profiles", Severity.HINT),
    ]


def test_without_a_mirror_nothing_is_said_to_be_well(cluster: Cluster) -> None:
    assert check_report(cluster).findings is None
    mirrored.hardware_seen(cluster)
    assert check_report(cluster).findings
    MirrorEpoch.objects.all().delete()
    assert check_report(cluster).findings is None
    assert check_report(cluster).problem


def test_the_storage_classes_of_the_site_are_compared_with_those_of_the_cluster(cluster: Cluster) -> None:
    cluster.site = {"storage-classes": "fast\nefs ReadWriteMany"}
    mirrored.seen(cluster, StorageClass=[mirrored.with_metadata({"metadata": {"name": "fast"}})])
    missing = [one for one in check_report(cluster).findings or () if one.code == "storage_class_missing"]
    assert len(missing) == 1
    assert "efs" in missing[0].sentence
    MirrorKind.objects.filter(kind="StorageClass").delete()
    assert not [one for one in check_report(cluster).findings or () if one.code == "storage_class_missing"]


def test_dismissed_capacity_is_no_finding(cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster)
    before = {one.sentence for one in check_report(cluster).findings or ()}
    DismissedProposal.objects.create(cluster=cluster, slug="gaudi", reason="Kept for the vendor's test.")
    (gone,) = before - {one.sentence for one in check_report(cluster).findings or ()}
    assert gone == "No class offers 8 units of habana.ai/gaudi (Intel Gaudi) on gaudi."


@pytest.mark.parametrize("nodes", [10, 1000])
def test_the_number_of_queries_does_not_grow(cluster: Cluster, nodes: int, django_assert_num_queries: Any) -> None:
    one = mirrored.hardware.read("mixed").nodes[0]
    named = [mirrored.ready({**one, "metadata": {**one["metadata"], "name": f"n{n}"}}) for n in range(nodes)]
    mirrored.seen(cluster, Node=named)
    for number in range(nodes // 100):
        make.gpu_class(cluster, slug=f"a100-{number}")
    with django_assert_num_queries(7):
        assert check_report(cluster).findings is not None
    assert GpuClass.objects.count() == nodes // 100


def test_a_device_class_that_is_not_there_is_not_to_be_mapped() -> None:
    missing = site(classes=(dra(),), counted={"gpu.nvidia.com": ""}, device_classes=frozenset())
    codes = [one.code for one in suite.check_site(missing)]
    assert "device_class_missing" in codes
    assert "device_class_not_mapped" not in codes


@pytest.mark.parametrize(
    ("counted", "said"),
    [
        ("", "Add {name: dra.portal/h100, deviceClassNames: [gpu.nvidia.com]} to resources.deviceClassMappings"),
        ("dra.portal/all", "by {name: dra.portal/h100, deviceClassNames: [gpu.nvidia.com]} and restart Kueue"),
    ],
)
def test_the_remedy_is_the_line_that_is_missing(counted: str, said: str) -> None:
    """Never to change the resource of an open class, which is refused."""
    found = suite.check_site(site(classes=(dra(),), counted={"gpu.nvidia.com": counted}))
    (remedy,) = [one.remedy for one in found if one.code == "device_class_not_mapped"]
    assert said in remedy
    assert "Correct the resource" not in remedy
