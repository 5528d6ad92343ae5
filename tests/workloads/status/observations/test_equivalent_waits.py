"""Kueue tries one of several workloads with equal requests; its reported reason holds for the others too."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorWorkload
from desk.queue.queries import QueueFilter, read_queue
from tenants.models import Namespace, Tenant
from tests.support.rows import make, running
from tests.support.rows.waiting_runs import NEEDED, told, waits
from tests.workloads.advice.test_advice_facts import house, slices
from workloads.core import workload_sql
from workloads.models import Workload
from workloads.status import queries
from workloads.status.types import Status

__all__ = ["house", "slices"]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def first(house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    """Kueue tried this workload and reported that two GPUs are missing."""
    running.known(namespace_a.cluster_id)
    found: Workload = waits(namespace_a, a100, alice, "first")
    return found


def status_of(name: str) -> Status:
    """Returns the status as the run's own page reads it, without the other runs."""
    [row] = queries.workload_rows(workload_sql.with_related(Workload.objects.filter(name=name)))
    return row.status


def test_who_asks_for_the_same_waits_for_the_same_and_is_helped_by_the_same(
    namespace_a: Namespace, a100: GpuClass, slices: GpuClass, alice: User, by_alice: Actor, cluster: Cluster
) -> None:
    make.grant(namespace_a.tenant, slices, units=2)
    waits(namespace_a, a100, alice, "second", text="")
    waits(namespace_a, a100, alice, "third", text="")
    one, other = status_of("first"), status_of("third")
    assert (other.reason, other.sentence, other.facts["position"]) == (one.reason, one.sentence, 3)
    assert other.reason == "waiting_for_quota"
    assert other.explained is not None
    assert one.explained is not None
    assert (one.explained.raw, one.explained.raw_about) == (NEEDED, "")
    assert (other.explained.raw, other.explained.raw_about) == (NEEDED, "first")
    assert other.explained.raw_source == "Kueue (about first, an equivalent workload)"
    smaller, wait, *_ = told(by_alice)["third"].steps
    assert (smaller.verb, wait.verb) == ("smaller_slice", "wait")
    assert wait.why.startswith("2 workloads of your team are ahead.")
    rows = {row.workload: (row.place, row.status.reason) for row in read_queue(cluster, QueueFilter()).rows}
    assert rows == {name: (n, "waiting_for_quota") for n, name in enumerate(("first", "second", "third"), start=1)}


@pytest.mark.parametrize(
    "fields",
    [{"units": 1}, {"options": {"workers": 2}, "kind": "job"}],
    ids=["fewer units", "more workers"],
)
def test_who_asks_for_something_else_is_not_spoken_for(
    fields: dict[str, Any], namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    waits(namespace_a, a100, alice, "other", text="", **fields)
    assert status_of("other").reason == "queued"


def test_another_class_and_another_team_are_not_spoken_for(
    namespace_a: Namespace, a100: GpuClass, slices: GpuClass, alice: User, cluster: Cluster
) -> None:
    waits(namespace_a, slices, alice, "sliced", text="")
    theirs = make.tenant(cluster, slug="team-b").namespaces.get()
    waits(theirs, a100, alice, "theirs", text="")
    assert (status_of("sliced").reason, status_of("theirs").reason) == ("queued", "queued")


def test_who_goes_first_is_not_spoken_for(namespace_a: Namespace, a100: GpuClass, alice: User) -> None:
    """The run with higher priority may preempt less important work, so that the reason does not hold for it."""
    waits(namespace_a, a100, alice, "urgent", text="")
    record = {**MirrorWorkload.objects.get(job_uid__endswith=f"-{Workload.objects.get(name='urgent').pk}").record}
    MirrorWorkload.objects.filter(record=record).update(record={**record, "priority": 1000})
    assert status_of("urgent").reason == "queued"


def test_of_two_of_the_same_second_either_may_have_been_tried(
    first: Workload, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    """Kubernetes keeps no fractions of seconds, and the order by uid is not that in which they came."""
    waits(namespace_a, a100, alice, "second", text="")
    tried = MirrorWorkload.objects.get(job_uid=f"job-{first.pk}")
    second = f"job-{Workload.objects.get(name='second').pk}"
    MirrorWorkload.objects.filter(job_uid=second).update(created_at=tried.created_at, uid="0")
    assert tried.uid > "0"
    assert status_of("second").reason == "waiting_for_quota"


@pytest.mark.parametrize("text", ["Pending the preemption of 1 workload(s)", "Something new."])
def test_what_is_about_one_alone_is_not_said_of_others(
    text: str, first: Workload, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    of_first = MirrorWorkload.objects.get(job_uid=f"job-{first.pk}")
    of_first.record["conditions"][0]["message"] = text
    of_first.save()
    waits(namespace_a, a100, alice, "second", text="")
    assert status_of("second").sentence == "Waiting in your team's queue."


def test_it_costs_one_question_and_none_where_all_were_told(
    namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    def asked() -> int:
        with CaptureQueriesContext(
            connection,
        ) as found:
            queries.workload_rows(workload_sql.with_related(Workload.objects.all()))
        return len(found)

    all_told = asked()
    waits(namespace_a, a100, alice, "second")
    assert asked() == all_told
    for name in ("third", "fourth"):
        waits(namespace_a, a100, alice, name, text="")
    assert asked() == all_told + 1
