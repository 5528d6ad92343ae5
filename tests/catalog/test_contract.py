"""What each way to share a card promises, in words."""

from typing import Any

import pytest

from catalog.contract import Axes, Promise, gib, promises


def axes(**values: Any) -> Axes:
    usual = {"vendor": "nvidia", "partition": "none", "sharing": "none", "replicas": 1, "memory_mib": 81920}
    return Axes(**{**usual, "interface": "device-plugin", **values})


WHOLE = axes()
SLICE = axes(partition="1g.10gb", memory_mib=9856)
SLICED = axes(sharing="time-slicing", replicas=4)
MPS = axes(sharing="mps", replicas=8)
SLICED_SLICE = axes(partition="1g.10gb", sharing="time-slicing", replicas=2, memory_mib=9856)
NO_GPU = axes(vendor="", memory_mib=None, interface="none")


def levels(of: Axes) -> dict[str, str]:
    return {promise.topic: promise.level for promise in promises(of)}


def said(of: Axes, topic: str) -> Promise:
    return next(promise for promise in promises(of) if promise.topic == topic)


def test_a_whole_card_is_yours() -> None:
    assert levels(WHOLE) == {
        "Memory": "yes",
        "Compute": "yes",
        "Faults": "yes",
        "Jitter": "yes",
        "Telemetry": "yes",
        "Interruption": "part",
    }
    assert said(WHOLE, "Memory").text == "all 80 GiB."


def test_a_slice_is_fenced_but_a_reset_of_the_card_ends_it() -> None:
    assert [levels(SLICE)[topic] for topic in ("Memory", "Compute", "Faults")] == ["yes", "yes", "part"]
    assert said(SLICE, "Memory").text == "9.6 GiB, fenced in hardware."


def test_time_slicing_promises_nothing_about_neighbours() -> None:
    assert set(levels(SLICED).values()) - {"part"} == {"no"}
    assert said(SLICED, "Memory").text.startswith("up to 3 others use the same memory")
    assert "not a part of a card" in said(SLICED, "Compute").text


def test_a_time_sliced_slice_shares_the_slice() -> None:
    assert said(SLICED_SLICE, "Memory").text.startswith("1 other uses")
    assert "not a part of a slice" in said(SLICED_SLICE, "Compute").text


def test_mps_limits_but_does_not_fence() -> None:
    assert [levels(MPS)[topic] for topic in ("Memory", "Compute", "Faults")] == ["part", "part", "no"]
    assert "12.5 %" in said(MPS, "Compute").text


@pytest.mark.parametrize("kind", [SLICED, MPS])
def test_nobody_can_tell_who_did_what_on_a_shared_card(kind: Axes) -> None:
    assert said(kind, "Telemetry").level == "no"


@pytest.mark.parametrize("kind", [WHOLE, SLICE, SLICED, MPS, SLICED_SLICE, NO_GPU])
def test_memory_compute_and_faults_come_first(kind: Axes) -> None:
    assert [promise.topic for promise in promises(kind)[:3]] == ["Memory", "Compute", "Faults"]


def test_memory_that_no_node_reports_gets_no_figure() -> None:
    unknown = axes(memory_mib=None)
    assert said(unknown, "Memory").text == "all of the card."


def test_sizes_are_rounded_to_what_people_read() -> None:
    assert (gib(81920), gib(9856)) == ("80 GiB", "9.6 GiB")
