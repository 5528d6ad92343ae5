"""Why a gang that requires one rack waits: by Kueue's message, or by the nodes if that names only other classes."""

from __future__ import annotations

from dataclasses import replace

from tests.workloads.cases.advice import GANG, in_queue
from tests.workloads.cases.cluster_objects import NOW, SUSPENDED, WISH, pending
from workloads.advice.advice import advice
from workloads.advice.facts import AdviceFacts
from workloads.core.class_nodes import ClassNode, ClassNodes
from workloads.core.observation import Observation
from workloads.status.phase import status_of
from workloads.status.types import Phase, Status

RACK, ZONE, HOST = "example.org/rack", "example.org/zone", "kubernetes.io/hostname"
WAITS = replace(WISH, kind="job", units=1, workers=8, required_level=RACK)
SIX = 'couldn\'t assign flavors to pod set main: topology "gpu-portal-racks" allows to fit only 6 out of 8 pod(s)'
OTHERS = (
    'couldn\'t assign flavors to pod set main: Flavor "h100-15a5ec9e" does not contain the requested level, '
    "untolerated taint {gpu-portal/class a100-3g NoSchedule <nil>} in flavor a100-3g-1a39cc2e"
)
OWN = f"{WISH.class_slug}-15a5ec9e"
LOST = f'couldn\'t assign flavors to pod set main: Flavor "{OWN}" does not contain the requested level'


def node(name: str, free: int, *places: str | None, size: int = 8) -> ClassNode:
    return ClassNode(
        name,
        capacity=size,
        allocatable=size,
        used=size - free,
        cpu_free=64,
        memory_free_gib=512,
        places=(*places, name),
    )


def nodes(*found: ClassNode) -> ClassNodes:
    return ClassNodes(found, units=1, cpu=1, memory_gib=1, levels=(ZONE, RACK, HOST), level=RACK)


def told(message: str, *found: ClassNode) -> Status:
    return status_of(WAITS, Observation(SUSPENDED, pending(message), nodes=nodes(*found)), now=NOW)


def test_by_the_message_alone() -> None:
    found = in_queue(SIX, WAITS)
    assert (found.phase, found.reason, found.facts["fit"]) == (Phase.QUEUED, "level_fits_in_part", 6)
    assert found.sentence.startswith(f"Only 6 of 8 workers with 1 unit of A100 each fit in one {RACK} now")
    # The same message of a gang that requires no level is not about one rack.
    assert in_queue(SIX, replace(WAITS, required_level="")).reason == "gang_fits_in_part"


def test_domains_are_told_apart_by_all_labels_above_and_nodes_without_one_are_ignored() -> None:
    """Both zones have a rack 1. The node without a rack has most free units, and Kueue places nothing there."""
    found = told(
        OTHERS, node("a", 5, "z1", "1"), node("b", 4, "z2", "1"), node("c", 8, "z1", None), node("d", 1, "z1", "1")
    )
    assert (found.reason, found.facts["fit"]) == ("level_fits_in_part", 6)
    assert found.phase is Phase.QUEUED, "16 GPUs are in rack 1 of zone 1"


def test_what_no_rack_ever_has_room_for_is_not_promised() -> None:
    found = told(SIX, node("a", 6, "z1", "1", size=6), node("b", 6, "z1", "2", size=6))
    assert (found.phase, found.reason) == (Phase.BLOCKED, "level_fits_in_part")
    assert "None has units for more than 6 workers" in found.sentence


def test_a_level_that_the_class_has_lost() -> None:
    assert (in_queue(LOST, WAITS).phase, in_queue(LOST, WAITS).reason) == (Phase.BLOCKED, "level_missing")
    # Flavors of other classes that lack it say nothing about this one.
    assert in_queue(OTHERS, WAITS).reason != "level_missing"


def verbs(facts: AdviceFacts) -> list[str]:
    found = advice(in_queue(SIX, WAITS), facts)
    assert found is not None
    return [step.verb for step in found.steps]


def test_less_is_suggested_only_if_it_starts_now() -> None:
    assert GANG.own is not None
    rack = replace(GANG.own.figures, granted=20, used=0, on_one_node=3, free_on=(3, 3, 0, 0))
    gang = replace(GANG, each=1, workers=8, own=replace(GANG.own, figures=rack), level=RACK)
    free = replace(rack, free_on=(3, 3, 3, 3))
    assert verbs(replace(gang, anywhere=free)) == ["change", "fewer_workers", "wait"]
    assert verbs(replace(gang, anywhere=replace(free, free_on=(3, 3, 1, 0)))) == ["fewer_workers", "wait"]
    assert verbs(replace(gang, anywhere=replace(free, granted=7))) == ["fewer_workers", "wait"]
    assert verbs(replace(gang, anywhere=free, may_change=False)) == ["wait"]
