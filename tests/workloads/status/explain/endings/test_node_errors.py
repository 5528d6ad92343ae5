"""An error of a GPU that a node reports as the cause of an end that tells none: which report, of which run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from cluster.reads.observed import Pod, WarningEvent
from cluster.reads.xid import hardware_xid, xid_words, xids
from tests.workloads.cases.cluster_objects import AGO, NOW, WISH, warning
from tests.workloads.cases.problems import ended
from workloads.core.observation import Observation
from workloads.status.explain.endings.node_errors import REPORTED_WITHIN
from workloads.status.phase import status_of

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
SECOND = timedelta(seconds=1)


def over(text: str = "", **changes: object) -> Observation:
    """A pod that ran from AGO to NOW."""
    seen = ended(1, message=text)
    [pod] = seen.pods
    container = replace(pod.containers[0], ended_at=NOW, **changes)  # type: ignore[arg-type]
    return replace(seen, pods=(replace(pod, containers=(container,)),))


def report(message: str = XID, **changes: object) -> WarningEvent:
    found = replace(warning("Node", "GPUXidError", message), object_name="a100-1", first_at=NOW, last_at=NOW)
    return replace(found, **changes)  # type: ignore[arg-type]


def told(seen: Observation, *errors: WarningEvent) -> tuple[str, str]:
    found = status_of(WISH, replace(seen, gpu_errors=errors), now=NOW + timedelta(minutes=5))
    return found.reason, found.sentence


def test_the_error_is_added_and_not_claimed_to_be_the_cause() -> None:
    reason, sentence = told(over(), report())
    assert reason == "node_gpu_error"
    assert sentence == (
        "It ended with exit code 1. While it ran, node a100-1 reported XID 79 (GPU has fallen off the bus)."
    )


@pytest.mark.parametrize(
    "errors",
    [
        (),
        (report(object_name="a100-2"),),
        (report("NVRM: Xid (PCI:0000:3b:00): 31, pid=93"),),
        (report(first_at=AGO - SECOND, last_at=AGO - SECOND),),
        (report(first_at=NOW + REPORTED_WITHIN + SECOND, last_at=NOW + REPORTED_WITHIN + SECOND),),
    ],
    ids=["none", "another node", "of a program", "before it ran", "long after"],
)
def test_no_other_report_is_told(errors: tuple[WarningEvent, ...]) -> None:
    assert told(over(), *errors) == ("crashed", "It ended with exit code 1.")


@pytest.mark.parametrize(
    "error",
    [
        report(first_at=AGO - SECOND, last_at=AGO),
        report(first_at=NOW + REPORTED_WITHIN, last_at=NOW + REPORTED_WITHIN),
        report("GPU 3 reported NvidiaXID79Error"),
        report("no number", reason="XID79"),
    ],
    ids=["repeated while it ran", "just in time", "another spelling", "in the reason"],
)
def test_reports_at_the_edge_of_its_time_and_in_other_words(error: WarningEvent) -> None:
    assert told(over(), error)[0] == "node_gpu_error"


def test_what_tells_its_own_cause_needs_no_other() -> None:
    assert told(over("CUDA out of memory."), report())[0] == "out_of_gpu_memory"
    assert told(over("an illegal memory access was encountered"), report())[0] == "node_gpu_error"


def test_a_pod_whose_end_is_not_known_tells_nothing() -> None:
    seen = over()
    pod: Pod = replace(seen.pods[0], containers=())
    assert told(replace(seen, pods=(pod,)), report())[0] != "node_gpu_error"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (XID, (79,)),
        ("NVRM: Xid (0000:03:00): 6, PE0001", (6,)),
        ("XID 48 and Xid: 63", (48, 63)),
        ("ErrorCode 1234 xid", ()),
        ("Xid 12345", ()),
    ],
)
def test_the_numbers_of_a_text(text: str, codes: tuple[int, ...]) -> None:
    assert xids(text) == codes


def test_words_of_a_number() -> None:
    assert hardware_xid("Xid 31, then Xid 79") == 79
    assert hardware_xid("Xid 13") is None
    assert xid_words(79) == "XID 79 (GPU has fallen off the bus)"
    assert xid_words(999) == "XID 999"
