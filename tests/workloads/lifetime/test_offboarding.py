"""A user who leaves a team leaves no running notebook in it; runs that others started there continue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.events.texts import verb_text
from accounts.models import Delivery, Event, User
from accounts.people import actions as people_actions
from catalog.models import GpuClass
from cluster.client.kube import Kube
from portal.core import due
from portal.core.due import Deadline
from tenants.members import actions as member_actions
from tenants.models import Membership, Namespace, Tenant
from tests.support.rows import make, running
from workloads.launch import actions as workloads
from workloads.lifetime import offboarding
from workloads.models import Run, Workload
from workloads.runs.reconcile import reconcile
from workloads.tasks import wake_ended_runs, wake_orphans

pytestmark = pytest.mark.django_db


@pytest.fixture
def bobs(namespace_a: Namespace, a100: GpuClass, bob: User) -> Workload:
    return running.workload(namespace_a, a100, name="bobs", by=bob)


@pytest.fixture
def alices(namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    return running.workload(namespace_a, a100, name="alices", by=alice)


@pytest.fixture
def look(kube_worker: Kube) -> Callable[[Workload], Run]:
    """Reconciles the row as a worker does and returns its run. Nothing was sent to the cluster before."""

    def look_at(workload: Workload) -> Run:
        workload.refresh_from_db()
        reconcile(workload, Deadline(), kube=kube_worker)
        return workload.runs.get()

    return look_at


def asked_to_stop(workload: Workload) -> bool:
    return workload.runs.filter(stop_requested_at__isnull=False).exists()


def remove(team: Tenant, user: User, by: User) -> None:
    member_actions.remove_member(team.slug, user_id=user.pk, by=Actor(user=by, via="page"))


def make_viewer(team: Tenant, user: User, by: User) -> None:
    member_actions.set_role(team.slug, user_id=user.pk, role="viewer", by=Actor(user=by, via="page"))


@pytest.mark.parametrize("lose", [remove, make_viewer])
def test_a_notebook_ends_with_its_persons_right(
    bobs: Workload,
    team_a: Tenant,
    alice: User,
    bob: User,
    lose: Callable[[Tenant, User, User], None],
    look: Callable[[Workload], Run],
) -> None:
    lose(team_a, bob, alice)
    run = look(bobs)
    assert (run.outcome, run.reason) == ("stopped", "person_left")
    assert run.message == f"Stopped because {bob.name}, who started it, may no longer launch in {team_a.name}."
    event = Event.objects.get(verb="notebook.person_left")
    assert (event.actor, event.tenant, event.after) == (
        "system rule offboarding",
        "team-a",
        {"run": 1, "user": bob.email},
    )
    mails = Delivery.objects.filter(event=event)
    assert bob in [mail.user for mail in mails]
    assert "The team keeps its volumes and their data." in mails[0].body


def test_whoever_stays_keeps_what_runs(
    bobs: Workload, alices: Workload, team_a: Tenant, alice: User, bob: User
) -> None:
    remove(team_a, bob, alice)
    for workload in (alices, bobs):
        offboarding.stop_orphaned_run(workload.runs.get())
    assert asked_to_stop(bobs)
    assert not asked_to_stop(alices)


def test_a_job_goes_on(
    namespace_a: Namespace, a100: GpuClass, team_a: Tenant, alice: User, bob: User, kube_worker: Kube
) -> None:
    train = running.workload(namespace_a, a100, name="train", by=bob, kind="job")
    running.make_ready(train)
    Run.objects.update(stop_requested_at=None)
    remove(team_a, bob, alice)
    train.refresh_from_db()
    assert train.due_at is not None  # the row was woken, and is due again
    with pytest.raises(due.TryLater, match="namespace"):
        reconcile(train, Deadline(), kube=kube_worker)  # the run still has to be sent to the cluster
    assert not asked_to_stop(train)


def test_another_role_that_may_launch_changes_nothing(bobs: Workload, team_a: Tenant, alice: User, bob: User) -> None:
    member_actions.set_role("team-a", user_id=bob.pk, role="manager", by=Actor(user=alice, via="page"))
    offboarding.stop_orphaned_run(bobs.runs.get())
    assert not asked_to_stop(bobs)


def test_who_comes_back_in_time_keeps_it(bobs: Workload, team_a: Tenant, alice: User, bob: User) -> None:
    remove(team_a, bob, alice)
    Membership.objects.create(tenant=team_a, user=bob, role="member")
    offboarding.stop_orphaned_run(bobs.runs.get())
    assert not asked_to_stop(bobs)
    assert not Event.objects.filter(verb="notebook.person_left").exists()


def test_it_is_told_once(bobs: Workload, team_a: Tenant, alice: User, bob: User) -> None:
    remove(team_a, bob, alice)
    for _ in range(2):
        offboarding.stop_orphaned_run(bobs.runs.get())
    assert Event.objects.filter(verb="notebook.person_left").count() == 1


@pytest.mark.parametrize("lose", [remove, make_viewer])
def test_the_worker_looks_at_once(
    bobs: Workload,
    alices: Workload,
    team_a: Tenant,
    alice: User,
    bob: User,
    lose: Callable[[Tenant, User, User], None],
) -> None:
    running.make_ready(bobs)
    Workload.objects.update(due_at=None)
    lose(team_a, bob, alice)
    due_now = Workload.objects.filter(due_at__lte=timezone.now())
    assert list(due_now.values_list("name", flat=True)) == ["bobs"]  # the other workload has no Job in the cluster


def test_a_run_that_somebody_else_started_again_stays(bobs: Workload, team_a: Tenant, alice: User, bob: User) -> None:
    Run.objects.update(requested_by=alice)
    remove(team_a, bob, alice)
    offboarding.stop_orphaned_run(bobs.runs.get())
    assert not asked_to_stop(bobs)


# ---- a suspended account -----------------------------------------------------------------------------------------


def suspend(user: User, by: User) -> None:
    people_actions.suspend_user(user.pk, because="left the institute", by=Actor(user=by, via="page"))


def restore(user: User, by: User) -> None:
    people_actions.restore_user(user.pk, because="is back", by=Actor(user=by, via="page"))


def test_a_suspended_persons_notebook_ends_and_the_team_is_told(
    bobs: Workload, team_a: Tenant, alice: User, bob: User, olga: User, look: Callable[[Workload], Run]
) -> None:
    suspend(bob, olga)
    run = look(bobs)
    assert (run.outcome, run.reason) == ("stopped", "person_suspended")
    assert run.message == f"Stopped because the account of {bob.name}, who started it, is suspended."
    event = Event.objects.get(verb="notebook.person_suspended")
    assert (event.actor, event.tenant, event.after) == (
        "system rule offboarding",
        "team-a",
        {"run": 1, "user": bob.email},
    )
    assert verb_text(event.verb) == "stopped (its owner's account is suspended)"
    assert {mail.user for mail in Delivery.objects.filter(event=event)} == {alice}


@pytest.mark.parametrize("wakes", [offboarding.wake_orphaned_notebooks, offboarding.wake_suspended_notebooks])
def test_a_suspension_is_heard_of_however_it_came(
    wakes: Callable[[], int], bobs: Workload, alices: Workload, namespace_a: Namespace, a100: GpuClass, bob: User
) -> None:
    """A suspension takes effect also if a directory or a person changed the row, and not only by the portal's verb."""
    running.workload(namespace_a, a100, name="train", by=bob, kind="job")
    Workload.objects.update(due_at=None)
    assert wakes() == 0
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert wakes() == 1
    assert list(Workload.objects.filter(due_at__lte=timezone.now()).values_list("name", flat=True)) == ["bobs"]


@pytest.mark.parametrize("wakes", [offboarding.wake_orphaned_notebooks, offboarding.wake_suspended_notebooks])
def test_looking_for_them_costs_one_query_and_asks_nobody_twice(
    wakes: Callable[[], int], bobs: Workload, bob: User, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(1):
        wakes()
    User.objects.filter(pk=bob.pk).update(is_active=False)
    offboarding.stop_orphaned_run(bobs.runs.get())
    with django_assert_num_queries(1):
        assert wakes() == 0


def test_a_membership_that_nobody_said_was_removed(bobs: Workload, bob: User, team_a: Tenant) -> None:
    Workload.objects.update(due_at=None)
    Membership.objects.filter(tenant=team_a, user=bob).delete()
    assert offboarding.wake_suspended_notebooks() == 0
    assert offboarding.wake_orphaned_notebooks() == 1


@pytest.mark.parametrize(("task", "every_s"), [(wake_ended_runs, 5.0), (wake_orphans, 60.0)])
def test_how_often_it_is_looked_for(task: Any, every_s: float) -> None:
    """All live runs are read only once a minute."""
    [entry] = [one for one in settings.CELERY_BEAT_SCHEDULE.values() if one["task"] == task.name]
    assert entry["schedule"] == every_s


def test_a_suspended_persons_job_goes_on(
    namespace_a: Namespace, a100: GpuClass, bob: User, olga: User, kube_worker: Kube
) -> None:
    train = running.workload(namespace_a, a100, name="train", by=bob, kind="job")
    suspend(bob, olga)
    with pytest.raises(due.TryLater, match="namespace"):
        reconcile(train, Deadline(), kube=kube_worker)
    assert not asked_to_stop(train)


def test_who_is_restored_in_time_keeps_it(bobs: Workload, bob: User, olga: User) -> None:
    """The suspension is removed after the worker has read the run and before it ends the run."""
    suspend(bob, olga)
    run = bobs.runs.select_related("requested_by").get()
    restore(bob, olga)
    offboarding.stop_orphaned_run(run)
    assert not asked_to_stop(bobs)
    assert not Event.objects.filter(verb="notebook.person_suspended").exists()


def test_who_is_restored_later_starts_it_again_themselves(
    bobs: Workload, a100: GpuClass, team_a: Tenant, bob: User, olga: User, look: Callable[[Workload], Run]
) -> None:
    make.grant(team_a, a100, units=1)
    suspend(bob, olga)
    assert look(bobs).outcome == "stopped"
    restore(bob, olga)
    assert look(bobs).number == 1  # nothing restarted by itself
    again = workloads.start("team-a", "bobs", by=Actor(user=User.objects.get(pk=bob.pk), via="page"))
    assert again.number == 2
    offboarding.stop_orphaned_run(again)
    assert again.stop_requested_at is None
    assert offboarding.wake_orphaned_notebooks() == 0
