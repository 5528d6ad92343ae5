"""What faults mean: plain sentences for each kind and code, and no cordon for an error of a program."""

from __future__ import annotations

import pytest

from cluster.reads.xid import PROGRAM_XIDS
from usage.faults.policy import cordon_command, may_name_runs, meaning_of, title_of
from usage.faults.types import FaultKey, FaultKind, measured_of, pods_of, signals_of
from usage.telemetry.types import Series

KNOWN = [(FaultKind.XID, code) for code in (13, 31, 43, 45, 48, 63, 64, 74, 79, 94, 95, 119, 120, 999)] + [
    (kind, 0) for kind in FaultKind if kind is not FaultKind.XID
]


@pytest.mark.parametrize(("kind", "code"), KNOWN)
def test_every_fault_says_what_it_is_whether_work_is_lost_and_what_to_do(kind: FaultKind, code: int) -> None:
    meaning = meaning_of(kind, code)
    for text in (meaning.what, meaning.loss, meaning.do, meaning.operators):
        assert text.endswith("."), text
        assert text[0].isupper(), text
    assert "lost" in meaning.loss or "wrong values" in meaning.loss or "failed" in meaning.loss
    assert title_of(kind, code).startswith(f"XID {code}: " if kind is FaultKind.XID else meaning.name)


@pytest.mark.parametrize(("kind", "code"), KNOWN)
def test_a_cordon_is_never_proposed_for_an_error_of_a_program(kind: FaultKind, code: int) -> None:
    is_program = kind is FaultKind.XID and code in PROGRAM_XIDS
    is_heat = kind in (FaultKind.HOT, FaultKind.THROTTLED)
    assert meaning_of(kind, code).is_program == is_program
    expected = "" if is_program or is_heat else "kubectl cordon gpu-1"
    assert cordon_command(kind, code, "gpu-1") == expected
    assert cordon_command(kind, code, "") == ""


@pytest.mark.parametrize(
    ("code", "runs", "is_shared", "expected"),
    [(31, 1, False, True), (31, 2, False, False), (31, 1, True, False), (79, 2, False, True), (79, 1, True, True)],
)
def test_an_error_of_a_program_is_of_one_run(code: int, runs: int, is_shared: bool, expected: bool) -> None:
    assert may_name_runs(FaultKind.XID, code, runs=runs, is_shared=is_shared) is expected


def series(points: tuple[tuple[float, float], ...] = ((0.0, 79.0),), **labels: str) -> Series:
    return Series({"fault": "xid", "UUID": "GPU-1", "hostname": "n", "modelName": "A100", **labels}, points)


def test_of_two_series_of_a_kind_the_larger_value_counts() -> None:
    found = signals_of([series(((0.0, 2.0),), fault="nvlink_errors"), series(((0.0, 5.0),), fault="nvlink_errors")])
    assert [one.value for one in found.values()] == [5.0]


@pytest.mark.parametrize(
    "bad",
    [
        series(UUID=""),
        series(UUID='GPU-1"}'),
        series(UUID="GPU-1|GPU-2"),
        series(UUID="x" * 81),
        series(GPU_I_ID="a"),
        series(fault="melted"),
        series(()),
    ],
)
def test_what_no_exporter_writes_is_left_out(bad: Series) -> None:
    assert signals_of([bad]) == {}
    assert measured_of([bad]) == set()
    assert [pod for pod in pods_of([bad]) if pod] == []


def test_a_node_of_any_length_fits() -> None:
    [one] = signals_of([series(hostname="n" * 999, modelName="m" * 999)]).values()
    assert (len(one.node), len(one.model)) == (253, 80)
    assert one.key == FaultKey(one.key.device, FaultKind.XID, 79)
