"""The Due protocol with several workers at once."""

from __future__ import annotations

import random
import threading
import time

import pytest
from django.conf import LazySettings
from django.db import transaction
from django.db.models import F

from cluster.models import Cluster
from portal.core import due
from tenants.models import Namespace
from tests.support.rows.due_rows import due_row, in_s
from tests.support.threads import in_threads


@pytest.mark.django_db(transaction=True)
def test_workers_that_claim_at_once_get_each_row_once(cluster: Cluster) -> None:
    rows = {due_row(cluster, f"team-{number}").pk for number in range(12)}
    claims: list[int] = []
    start = threading.Barrier(6)

    def worker() -> None:
        start.wait()
        while (found := due.claim(Namespace)) is not None:
            claims.append(found.row.pk)

    in_threads(6, worker)

    assert sorted(claims) == sorted(rows)


@pytest.mark.django_db(transaction=True)
def test_a_claim_does_not_wait_for_a_row_that_is_being_changed(cluster: Cluster) -> None:
    """SKIP LOCKED: an action's long transaction on one row must not hold up all others."""
    being_changed = due_row(cluster, "being-changed", since_s=100)
    other = due_row(cluster, "other")
    found: list[int] = []

    def worker() -> None:
        claim = due.claim(Namespace)
        assert claim is not None
        found.append(claim.row.pk)

    with transaction.atomic():
        Namespace.objects.select_for_update().get(pk=being_changed.pk)
        in_threads(1, worker)

    assert found == [other.pk]


@pytest.mark.django_db(transaction=True)
def test_who_claims_a_row_that_is_being_woken_sees_what_it_was_woken_for(cluster: Cluster) -> None:
    """The row is due already. If it were claimed before the commit, it would be reconciled too early and then not
    again.
    """
    row = due_row(cluster, "team-a")
    found: list[int] = []

    def worker() -> None:
        claim = due.claim(Namespace)
        found.append(claim.row.pk if claim else 0)

    with transaction.atomic():
        due.wake(Namespace, [row.pk])
        in_threads(1, worker)
    in_threads(1, worker)

    assert found == [0, row.pk]


# ---- workers that end at random ------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_workers_that_die_at_random_never_overlap_and_lose_no_touch(cluster: Cluster, settings: LazySettings) -> None:
    """Eight threads drain three rows; half of the runs die before or after their effect; a ninth keeps touching."""
    settings.LEASE_S = 0.4
    rows = [due_row(cluster, f"team-{number}") for number in range(3)]
    locks = {row.pk: threading.Lock() for row in rows}
    applied = dict.fromkeys(locks, 0)
    overlaps: list[int] = []
    touches_left = threading.Semaphore(60)
    over = threading.Event()

    def run(found: due.Claim[Namespace], dice: random.Random, budget_ends: float) -> None:
        """The effect is the generation read, written only within the budget, which is shorter than the lease."""
        if dice.random() < 0.25 or time.monotonic() > budget_ends:
            return
        lock = locks[found.row.pk]
        if not lock.acquire(blocking=False):
            overlaps.append(found.row.pk)
            return
        try:
            applied[found.row.pk] = found.generation
        finally:
            lock.release()
        if dice.random() < 0.25:
            return
        due.finish(found)

    def worker() -> None:
        dice = random.Random(threading.get_ident())
        while not over.is_set():
            budget_ends = time.monotonic() + settings.LEASE_S / 2
            found = due.claim(Namespace)
            if found is None:
                over.wait(0.005)
            else:
                run(found, dice, budget_ends)

    def toucher() -> None:
        while touches_left.acquire(blocking=False):
            due.touch(Namespace, rows[touches_left._value % 3].pk)
            over.wait(0.01)
        deadline = threading.Event()
        for _ in range(1200):
            if not Namespace.objects.exclude(observed_generation=F("generation"), leased_until=None).exists():
                break
            deadline.wait(0.02)
        over.set()

    in_threads(8, worker, toucher)

    assert overlaps == []
    for row in Namespace.objects.all():
        assert row.generation == 21
        assert row.observed_generation == row.generation == applied[row.pk]
        assert in_s(row.due_at) > 500
