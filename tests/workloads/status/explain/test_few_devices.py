"""Kueue counts the devices of all drivers before it looks for a node."""

from __future__ import annotations

import pytest

from tests.workloads.cases.cluster_objects import NOW, SUSPENDED, WISH, pending
from workloads.core.observation import Observation
from workloads.status.phase import status_of

TEXT = (
    "spec.podSets[0].template.spec.resourceClaims[0].devices.requests[0].exactly.selectors: Internal error: "
    "ResourceClaimTemplate one-1: insufficient matching devices for CEL selector in DeviceClass gpu.nvidia.com: "
    "{} device(s) match in the cluster but 2 requested"
)


@pytest.mark.parametrize(
    ("count", "reason", "sentence"),
    [
        (
            0, "no_units_offered",
            "No units of A100 are in the cluster: no driver reports a matching device (gpu.nvidia.com).",
        ),
        (1, "no_node_fits", "No single node has 2 units of A100 free: the cluster has 1 in all."),
    ],
)  # fmt: skip
def test_fewer_devices_than_requested(count: int, reason: str, sentence: str) -> None:
    told = status_of(WISH, Observation(SUSPENDED, pending(TEXT.format(count))), now=NOW)
    assert (told.reason, told.sentence) == (reason, sentence)
    assert told.explained is not None
    assert told.explained.raw == TEXT.format(count)
