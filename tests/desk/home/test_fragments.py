"""The doors process detects that the pages of a namespace may have changed when the hint was lost."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import InternalError, connection
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Event, Notice, User
from catalog.models import GpuClass
from cluster.models import AppliedObject, Cluster, MirrorKind, MirrorNode, MirrorObject, MirrorPod
from desk.home import queries
from desk.home.fragments import PersonState, fragments, people_fragments, versions
from portal.core.hints import person_channel
from portal.core.sql import snapshot
from tenants.models import Grant, Namespace, Tenant
from tests.support.rows import make, running
from workloads.models import Run, Workload

pytestmark = pytest.mark.django_db

CHANGES: dict[str, Callable[[], object]] = {
    "suspended": lambda: Namespace.objects.update(wanted=Namespace.Wanted.SUSPENDED),
    "the namespace meets a problem": lambda: Namespace.objects.update(error_code="cluster_unavailable"),
    "a workload meets a problem": lambda: Workload.objects.update(error_code="cluster_unavailable"),
    "admitted": lambda: Run.objects.update(admitted_at=timezone.now()),
    "preempted": lambda: Run.objects.update(preemptions=1),
    "a pod goes": lambda: MirrorPod.objects.all().delete(),
    "a workload is gone": lambda: Workload.objects.update(deleted_at=timezone.now()),
    "its job is sent": lambda: sent(AppliedObject.Result.REFUSED),
    "its job is sent again": lambda: AppliedObject.objects.update(sent_at=timezone.now()),
    "put back": lambda: Run.objects.update(put_back_at=timezone.now()),
    "its run ends": lambda: Run.objects.update(ended_at=timezone.now(), outcome=Run.Outcome.LOST),
    "a workload is to be deleted": lambda: Workload.objects.update(delete_requested_at=timezone.now()),
    "its queue is held": lambda: MirrorObject.objects.filter(kind="ClusterQueue").update(resource_version=9_999),
    "its limits change": lambda: MirrorObject.objects.filter(kind="LimitRange").update(resource_version=9_999),
    # The other grant ends later.
    "the end of a grant comes nearer": lambda: Grant.objects.filter(units=1).update(
        period=DateTimeTZRange(timezone.now() - timedelta(days=1), timezone.now() + timedelta(days=1))
    ),
    "its grace is over": lambda: Grant.objects.filter(units=2).update(grace=timedelta(0)),
    "a grant begins later": lambda: to_come(),
}
AROUND: dict[str, Callable[[], object]] = {
    "a class is held": lambda: GpuClass.objects.update(held_since=timezone.now(), held_reason="They are repaired."),
    "a class gets a name": lambda: GpuClass.objects.update(name="Another"),
    "a node is in trouble": lambda: MirrorNode.objects.update(ready=False),
    "the mirror is not heard of": lambda: MirrorKind.objects.filter(kind="Pod").update(problem="It refused."),
    "the mirror is to be listed": lambda: MirrorKind.objects.update(listed_at=None),
}


def sent(result: AppliedObject.Result) -> AppliedObject:
    namespace = Namespace.objects.get()
    return AppliedObject.objects.create(
        cluster=namespace.cluster,
        namespace=namespace.name,
        kind="Job",
        name=f"one-{result}",
        result=result,
        sent_at=timezone.now() - timedelta(minutes=1),
    )


def to_come() -> Grant:
    start = timezone.now() + timedelta(days=2)
    gpu_class = make.gpu_class(Cluster.objects.get(), slug="to-come")
    return make.grant(Tenant.objects.get(), gpu_class, units=1, since=start)


@pytest.fixture
def name(team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> str:
    make.grant(team_a, a100, units=4)
    other = make.gpu_class(namespace_a.cluster, slug="other")
    make.grant(team_a, other, units=1, until=timezone.now() + timedelta(days=10))
    ended = make.grant(team_a, make.gpu_class(namespace_a.cluster, slug="ended"), units=2)
    past = DateTimeTZRange(timezone.now() - timedelta(days=2), timezone.now() - timedelta(minutes=1))
    Grant.objects.filter(pk=ended.pk).update(period=past, grace=timedelta(hours=1))
    for kind, at in (("ClusterQueue", ""), ("LimitRange", namespace_a.name)):
        MirrorObject.objects.create(
            cluster_id=namespace_a.cluster_id,
            kind=kind,
            namespace=at,
            name=namespace_a.name,
            uid=kind,
            resource_version=1,
            created_at=timezone.now(),
            record={"stop_policy": "None", "reserved": {}, "quota": {}, "conditions": [], "limits": []},
        )
    node = {"ready_since": None, "ready_reason": "", "ready_message": "", "labels": {}, "images": {}}
    MirrorNode.objects.create(
        cluster_id=namespace_a.cluster_id,
        name="a100-1",
        uid="node",
        resource_version=1,
        created_at=timezone.now(),
        ready=True,
        schedulable=True,
        record=node,
    )
    running.make_ready(running.workload(namespace_a, a100, by=alice))
    Run.objects.update(admitted_at=None)
    sent(AppliedObject.Result.APPLIED)
    return namespace_a.name


@pytest.mark.parametrize("what", [*CHANGES, *AROUND])
def test_a_change_changes_the_version(name: str, what: str) -> None:
    before = versions([name])
    assert versions([name]) == before

    (CHANGES | AROUND)[what]()

    assert versions([name]) != before


def test_the_age_of_the_mirror_is_as_the_page_says(name: str) -> None:
    """The version has the age that the page showed, even if the age differs when the version is read."""
    before = rendered(name)
    assert before == versions([name])[name]
    AROUND["the mirror is not heard of"]()
    assert rendered(name) == versions([name])[name] != before


def rendered(name: str) -> Hashable:
    rendering = fragments(name, [""])
    assert next(rendering)
    assert next(rendering)
    with pytest.raises(StopIteration) as end:
        next(rendering)
    found: Hashable = end.value.value
    return found


@pytest.mark.django_db(transaction=True)
def test_what_is_rendered_is_of_one_moment(name: str) -> None:
    """A change during rendering is neither in the page nor in its version, so the next comparison detects it."""
    before, rendering = versions([name]), fragments(name, ["", "never-there"])
    parts = [next(rendering)]
    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(_stop_everything).result()
    parts += [next(rendering) for _ in range(2)]
    with pytest.raises(StopIteration) as end:
        next(rendering)
    assert end.value.value == before[name]
    assert versions([name]) != before
    assert [view for view, _part in parts] == ["never-there", "", ""]
    assert parts[1][1] is not None
    assert b"/workloads/one" in parts[1][1]["state_running"]
    assert not connection.in_atomic_block
    Run.objects.update(preemptions=2)


def _stop_everything() -> None:
    try:
        Run.objects.update(ended_at=timezone.now(), outcome=Run.Outcome.STOPPED)
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_nothing_is_written_by_a_rendering(name: str) -> None:
    with pytest.raises(InternalError, match="read-only"), snapshot():
        Run.objects.update(preemptions=1)
    Run.objects.update(preemptions=2)


def test_what_is_not_there_has_a_version(name: str) -> None:
    """A namespace that does not exist has a version, so that a comparison detects its removal."""
    assert versions(["never-there"]) == {"never-there": (None, None)}
    assert versions([name]) != {name: (None, None)}


def test_versions_cost_the_same_however_much_there_is(name: str, a100: GpuClass, alice: User) -> None:
    """Every rendering reads a version: at most 6 queries."""
    with CaptureQueriesContext(connection) as of_little:
        versions([name])
    for number in range(3):
        running.make_ready(running.workload(Namespace.objects.get(), a100, name=f"more-{number}", by=alice))
    with CaptureQueriesContext(connection) as of_many:
        versions([name, "team-b", "team-c"])
    assert len(of_little) == len(of_many) <= 6


def test_without_kueue_its_kinds_are_not_waited_for(namespace_a: Namespace) -> None:
    """Kinds of Kueue are not watched in a cluster that does not serve them."""
    Cluster.objects.update(queue_system=Cluster.QueueSystem.NONE)
    running.known(namespace_a.cluster_id, "Node", "Job", "Pod")

    state = queries.home_state(Namespace.objects.get())

    assert state.as_of is not None
    assert not state.is_stale
    assert versions([namespace_a.name])[namespace_a.name] != never_read(namespace_a)


def test_a_queue_that_is_not_heard_of_makes_the_page_old(namespace_a: Namespace) -> None:
    """Without current Workloads the page is stale: Jobs and pods do not show what is queued and why."""
    running.known(namespace_a.cluster_id)
    before = versions([namespace_a.name])
    assert not queries.home_state(Namespace.objects.get()).is_stale

    MirrorKind.objects.filter(kind="Workload").update(problem="The API server refused to show it.")

    assert queries.home_state(Namespace.objects.get()).is_stale
    old = versions([namespace_a.name])
    assert old != before
    MirrorKind.objects.filter(kind="Workload").update(listed_at=None)
    assert versions([namespace_a.name]) != old
    assert queries.home_state(Namespace.objects.get()).as_of is None


def never_read(namespace: Namespace) -> object:
    MirrorKind.objects.all().delete()
    return versions([namespace.name])[namespace.name]


def test_a_change_for_the_next_run_is_sent_to_the_workloads_page(name: str) -> None:
    """Its configuration stood there as it was when the page was opened."""

    def told() -> str:
        [(_view, found)] = fragments(name, ["one"])
        assert found is not None
        return found["state_configuration"].decode()

    before = told()
    assert "Next run" not in before
    Workload.objects.update(units=2)
    assert before != told()
    assert "Next run" in told()


def test_the_unread_notices_and_the_announcements_of_many_people_are_two_queries(alice: User, bob: User) -> None:
    event = Event.objects.create(verb="x.y", via="page")
    late = {"at": timezone.now() + timedelta(days=1)}
    for who, values in ((bob, {}), (bob, {}), (bob, late), (bob, {"read_at": timezone.now()})):
        Notice.objects.create(user=who, event=event, kind="team", subject="News", **values)
    channels = [person_channel(who.pk) for who in (alice, bob)]
    with CaptureQueriesContext(connection) as taken:
        found = versions(channels)
    assert found == {channels[0]: PersonState(0, ""), channels[1]: PersonState(2, "")}
    assert len(taken) == 2
    with CaptureQueriesContext(connection) as taken:
        rendered = people_fragments(channels)
    assert len(taken) == 2
    assert {channel: version for channel, (_parts, version) in rendered.items()} == versions(channels)
    assert b">2<" in rendered[channels[1]][0]["state_notices"]
