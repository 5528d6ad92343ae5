"""What a node's labels say of its GPUs that a measurement depends on. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from catalog.discovery.products import PRODUCT_LABELS
from catalog.interconnect.types import NodeState, whole_number

COUNT = "nvidia.com/gpu.count"


def driver_version(labels: Mapping[str, str]) -> str:
    """Of NVIDIA's driver; "" if unknown."""
    if full := labels.get("nvidia.com/cuda.driver-version.full"):
        return full
    numbers = [labels.get(f"nvidia.com/cuda.driver-version.{one}", "") for one in ("major", "minor", "revision")]
    return ".".join(one for one in numbers if one)


def gpu_count(labels: Mapping[str, str]) -> int | None:
    """Physical GPUs; None: the node does not say it."""
    return whole_number(labels.get(COUNT, ""))


def state_of(labels: Mapping[str, str], uid: str) -> NodeState:
    return NodeState(uid[:64], labels.get(PRODUCT_LABELS["nvidia"], "")[:120], driver_version(labels)[:60])


def outdated(then: NodeState, now: NodeState) -> str:
    """Why what was measured may no longer hold, as the rest of a sentence; "" if nothing says so.

    What one of the two does not say is unknown, and no reason.
    """
    if then.product and now.product and then.product != now.product:
        return f"the node was recorded as {then.product} and is {now.product} now"
    if then.driver and now.driver and then.driver != now.driver:
        return f"it was recorded with driver {then.driver}, and the node has {now.driver} now"
    if then.uid and now.uid and then.uid != now.uid:
        return "the node was added to the cluster again since"
    return ""
