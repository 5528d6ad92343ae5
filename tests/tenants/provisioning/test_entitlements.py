"""Units in force → cells of the ClusterQueue and hard limits of the ResourceQuota, as tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cluster.manifests.specs import QuotaCell
from cluster.reads.cluster_queue import ABSENT_QUEUE, LiveClusterQueue, LiveQuotaCell
from tenants.provisioning import entitlements
from tenants.provisioning.entitlements import ClassShare

A100 = ClassShare(
    slug="a100",
    resource="nvidia.com/gpu",
    flavor="a100-11111111",
    device_class="",
    cpu_per_unit=8,
    memory_gib_per_unit=64,
    borrowing_limit=0,
    in_force=2,
)
MPS = replace(A100, slug="a100-mps", flavor="a100-mps-22222222", cpu_per_unit=2, memory_gib_per_unit=16, in_force=0)
MIG = replace(MPS, slug="mig", resource="nvidia.com/mig-1g.10gb", flavor="mig-33333333")
H100 = replace(
    A100, slug="h100", resource="dra.portal/h100", flavor="h100-44444444", device_class="gpu.nvidia.com", in_force=1
)
CPU = replace(A100, slug="cpu", resource="", flavor="", cpu_per_unit=1, memory_gib_per_unit=4, in_force=10)
STORAGE = replace(CPU, slug="storage", is_storage=True, in_force=50)


def live(*cells: tuple[str, str, int, int, int]) -> LiveClusterQueue:
    """(resource, flavor, nominal, borrowing limit, used)."""
    return LiveClusterQueue(
        is_open=True,
        cells={(resource, flavor): LiveQuotaCell(*numbers) for resource, flavor, *numbers in cells},
    )


def test_only_what_a_tenant_has_or_may_borrow_is_in_its_queue() -> None:
    borrowable = replace(MPS, borrowing_limit=4)
    cells = entitlements.queue_cells([A100, borrowable, MIG, H100, CPU], ABSENT_QUEUE)
    assert cells == (
        QuotaCell("dra.portal/h100", "h100-44444444", 1, 0),
        QuotaCell("nvidia.com/gpu", "a100-11111111", 2, 0),
        QuotaCell("nvidia.com/gpu", "a100-mps-22222222", 0, 4),
    )


def test_a_class_whose_flavor_is_not_there_yet_stays_out() -> None:
    assert entitlements.queue_cells([replace(A100, is_flavor_ready=False)], ABSENT_QUEUE) == ()


def test_a_flavor_stays_in_the_queue_while_something_runs_on_it() -> None:
    released = replace(A100, in_force=0)
    running = live(("nvidia.com/gpu", "a100-11111111", 2, 0, 1))
    assert entitlements.queue_cells([released], running) == (QuotaCell("nvidia.com/gpu", "a100-11111111", 0, 0),)
    closed = live(("nvidia.com/gpu", "a100-11111111", 0, 0, 0))
    assert entitlements.queue_cells([released], closed) == ()


def test_a_flavor_is_closed_before_it_leaves() -> None:
    """A workload may have been admitted to it after the queue was read; the next reconcile would see it."""
    released = replace(A100, in_force=0)
    still_open = live(("nvidia.com/gpu", "a100-11111111", 2, 0, 0))
    assert entitlements.queue_cells([released], still_open) == (QuotaCell("nvidia.com/gpu", "a100-11111111", 0, 0),)
    assert entitlements.leaving_cells([released], still_open)
    borrowable = live(("nvidia.com/gpu", "a100-11111111", 0, 3, 0))
    assert entitlements.queue_cells([released], borrowable) == (QuotaCell("nvidia.com/gpu", "a100-11111111", 0, 0),)


@pytest.mark.parametrize(
    ("in_force", "keepable", "borrowing_limit", "used", "nominal", "limit", "kept"),
    [
        (0, 4, 0, 4, 0, 0, 4),
        (0, 4, 0, 1, 0, 0, 1),
        (0, 4, 2, 6, 0, 0, 4),
        (1, 4, 2, 3, 1, 0, 2),
        (1, 4, 2, 1, 1, 2, 0),
        (4, 4, 2, 6, 4, 2, 0),
        (6, 4, 2, 5, 6, 2, 0),
        (0, 4, 2, 0, 0, 2, 0),
        (2, 0, 0, 3, 2, 0, 0),
    ],
    ids=[
        "all that was granted runs on",
        "as runs end it falls",
        "what was borrowed is not kept",
        "beyond what is in force nothing is borrowed",
        "what runs is in force: as ever",
        "another grant follows: as ever",
        "a larger grant follows: as ever",
        "nothing runs: as ever",
        "no grace",
    ],
)
def test_in_a_grace_what_runs_is_kept_beside_the_queue_and_nothing_new_fits_in_it(
    in_force: int, keepable: int, borrowing_limit: int, used: int, nominal: int, limit: int, kept: int
) -> None:
    share = replace(A100, in_force=in_force, keepable=keepable, borrowing_limit=borrowing_limit)
    running = live(("nvidia.com/gpu", "a100-11111111", 4, borrowing_limit, used))
    assert entitlements.queue_cells([share], running) == (QuotaCell("nvidia.com/gpu", "a100-11111111", nominal, limit),)
    expected = (QuotaCell("nvidia.com/gpu", "a100-11111111", kept),) if kept else ()
    assert entitlements.grace_cells([share], running) == expected


def test_in_a_grace_both_flavors_of_relabelled_nodes_share_what_was_granted() -> None:
    share = replace(A100, flavor="a100-99999999", in_force=1, keepable=4)
    running = live(("nvidia.com/gpu", "a100-11111111", 3, 0, 3), ("nvidia.com/gpu", "a100-99999999", 1, 0, 2))
    assert entitlements.queue_cells([share], running) == (
        QuotaCell("nvidia.com/gpu", "a100-11111111", 1, 0),
        QuotaCell("nvidia.com/gpu", "a100-99999999", 0, 0),
    )
    assert entitlements.grace_cells([share], running) == (
        QuotaCell("nvidia.com/gpu", "a100-11111111", 2),
        QuotaCell("nvidia.com/gpu", "a100-99999999", 1),
    )


def test_relabelled_nodes_promise_nothing_twice() -> None:
    """The class has a new flavor; what still runs on the old flavor is subtracted from the quota of the new one."""
    relabelled = replace(A100, flavor="a100-99999999", in_force=4)
    running = live(("nvidia.com/gpu", "a100-11111111", 4, 0, 3))
    assert entitlements.queue_cells([relabelled], running) == (
        QuotaCell("nvidia.com/gpu", "a100-11111111", 3, 0),
        QuotaCell("nvidia.com/gpu", "a100-99999999", 1, 0),
    )


def test_lowering_touches_only_what_falls() -> None:
    cells = (
        QuotaCell("nvidia.com/gpu", "falls", 2, 0),
        QuotaCell("nvidia.com/gpu", "is-new", 3, 1),
        QuotaCell("nvidia.com/gpu", "rises", 5, 4),
    )
    now = live(("nvidia.com/gpu", "falls", 4, 2, 0), ("nvidia.com/gpu", "rises", 3, 4, 0))
    assert entitlements.lowered_cells(cells, now) == (
        QuotaCell("nvidia.com/gpu", "falls", 2, 0),
        QuotaCell("nvidia.com/gpu", "is-new", 0, 0),
        QuotaCell("nvidia.com/gpu", "rises", 3, 4),
    )


def test_the_fuse_is_twice_what_may_be_admitted_over_all_classes_of_a_name() -> None:
    quota = entitlements.resource_quota([A100, replace(MPS, in_force=1, borrowing_limit=2)], ABSENT_QUEUE)
    assert quota.devices == {"requests.nvidia.com/gpu": 2 * (2 + 3)}
    assert quota.cpu == 2 * (2 * 8 + 3 * 2)
    assert quota.memory_gib == 2 * (2 * 64 + 3 * 16)


def test_the_fuse_does_not_fall_below_what_is_admitted() -> None:
    lowered = replace(A100, in_force=1)
    running = live(("nvidia.com/gpu", "a100-11111111", 4, 0, 4))
    assert entitlements.resource_quota([lowered], running).devices == {"requests.nvidia.com/gpu": 8}


def test_names_of_the_catalog_that_a_tenant_may_not_use_are_zero_not_absent() -> None:
    quota = entitlements.resource_quota([A100, MIG, replace(H100, in_force=0)], ABSENT_QUEUE)
    assert quota.devices == {
        "gpu.nvidia.com.deviceclass.resource.k8s.io/devices": 0,
        "requests.nvidia.com/gpu": 4,
        "requests.nvidia.com/mig-1g.10gb": 0,
    }


def test_a_class_without_gpus_is_a_fuse_of_cpu_and_memory_only() -> None:
    quota = entitlements.resource_quota([CPU], ABSENT_QUEUE)
    assert (dict(quota.devices), quota.cpu, quota.memory_gib) == ({}, 20, 80)
    assert entitlements.queue_cells([CPU], ABSENT_QUEUE) == ()


def test_slugs_that_begin_alike_are_different_classes() -> None:
    """`a100` must not match `a100-mps` as a prefix when usage is assigned to flavors."""
    running = live(("nvidia.com/gpu", "a100-mps-22222222", 0, 4, 9))
    assert entitlements.resource_quota([A100], running).devices == {"requests.nvidia.com/gpu": 4}


SENT_AT = datetime(2026, 11, 21, 9, 10, tzinfo=UTC)
SENT = int(SENT_AT.timestamp()) % 1000


@pytest.mark.parametrize(
    ("age_s", "pending", "number", "again"),
    [
        (0, 1, SENT + 1, True),
        (4, 1, SENT + 2, True),
        (11, 1, SENT + 3, False),
        (9000, 1, SENT + 3, False),
        (4, 0, 7, True),
        (9000, 0, 7, False),
    ],
)
def test_a_queue_with_work_that_waits_is_woken_after_its_flavor_changed(
    age_s: int, pending: int, number: int, again: bool
) -> None:
    shares = [replace(A100, flavor_sent_at=SENT_AT), replace(MIG, flavor_sent_at=SENT_AT + timedelta(days=1))]
    queue = LiveClusterQueue(is_open=True, pending=pending, wakes=7)
    now = SENT_AT + timedelta(seconds=age_s)
    assert entitlements.wake_counter(shares, queue, now) == number
    assert entitlements.is_to_wake_again(shares, now) is again


def test_a_queue_of_no_class_wakes_nobody() -> None:
    assert entitlements.wake_counter([A100], replace(LiveClusterQueue(), pending=3, wakes=1), SENT_AT) == 1


def test_storage_bounds_volumes_and_gives_nothing_else() -> None:
    """Storage has no safety margin above it: a claim counts while it exists, and no successor exists beside it."""
    with_storage = entitlements.resource_quota([A100, STORAGE], ABSENT_QUEUE)
    assert with_storage == replace(entitlements.resource_quota([A100], ABSENT_QUEUE), storage_gib=50)
    assert entitlements.queue_cells([A100, STORAGE], ABSENT_QUEUE) == entitlements.queue_cells([A100], ABSENT_QUEUE)


def test_without_a_storage_class_volumes_are_not_bounded_and_with_one_nothing_granted_is_none() -> None:
    assert entitlements.resource_quota([A100, CPU], ABSENT_QUEUE).storage_gib is None
    assert entitlements.resource_quota([replace(STORAGE, in_force=0)], ABSENT_QUEUE).storage_gib == 0
