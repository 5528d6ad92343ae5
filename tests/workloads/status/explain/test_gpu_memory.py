"""Admitted by units, without a free device of the requested memory: the numbers are of the devices that have it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.workloads.cases.cluster_objects import NOW, SUSPENDED, WISH, pending
from workloads.core.class_nodes import SizedDevices
from workloads.core.observation import Observation
from workloads.status.explain.scheduling import unschedulable
from workloads.status.phase import status_of

MESSAGE = "0/3 nodes are available: 2 node(s) didn't match Pod's node affinity/selector, 1 cannot allocate all claims."
SEEN = SizedDevices(40, 1, in_all=4, there=2, used=2, free=0, most_on_one_node=0)
HOLDS = "It holds its units meanwhile."


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        (SEEN, f"Admitted, but no free device has at least 40 GiB: 2 of 4 do, all in use. {HOLDS}"),
        (
            replace(SEEN, used=1),
            "Admitted, but no free device has at least 40 GiB: 2 of 4 do, 1 in use, the others on closed nodes. "
            f"{HOLDS}",
        ),
        (
            replace(SEEN, units=2, there=3, used=1, free=2, most_on_one_node=1),
            "Admitted, but no node has 2 free devices with at least 40 GiB: 2 of 3 are free, at most 1 on one node. "
            f"{HOLDS}",
        ),
        (
            replace(SEEN, there=0, used=0),
            f"Admitted, but no device of its class has at least 40 GiB now. {HOLDS}",
        ),
    ],
)  # fmt: skip
def test_no_device_with_enough_memory(seen: SizedDevices, sentence: str) -> None:
    told = unschedulable(MESSAGE, devices=seen)
    assert (told.reason, told.sentence, told.raw) == ("gpu_memory_unavailable", sentence, MESSAGE)


@pytest.mark.parametrize("seen", [None, replace(SEEN, used=0, free=2, most_on_one_node=2)])
def test_if_enough_are_free_or_none_were_counted_something_else_is_missing(seen: SizedDevices | None) -> None:
    assert unschedulable(MESSAGE, devices=seen).reason == "devices_unavailable"


def test_kueue_finds_too_few_in_the_whole_cluster() -> None:
    text = (
        "ResourceClaimTemplate one-1: insufficient matching devices for CEL selector in DeviceClass gpu.nvidia.com: "
        "1 device(s) match in the cluster but 2 requested"
    )
    told = status_of(replace(WISH, gpu_memory_gib=40), Observation(SUSPENDED, pending(text)), now=NOW)
    assert told.reason == "gpu_memory_unavailable"
    assert told.sentence == "2 units of A100 with at least 40 GiB requested; the cluster has 1 in all."
    assert told.facts == {"gpu_memory_gib": 40, "units": 2, "fitting_units": 1}
