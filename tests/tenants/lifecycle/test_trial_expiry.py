"""A rule closes an unused trial after 14 days, with a warning three days before; a trial in use stays."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from portal.core.due import Deadline
from tenants.core import queries
from tenants.lifecycle.trial_expiry import actions as trial_expiry_actions
from tenants.models import Grant, Namespace, QuotaLine, Tenant
from tenants.onboarding.trials import actions as trial_actions
from tenants.provisioning import steps
from tests.support.http.pages import page
from tests.support.rows import make
from workloads.models import Run, Workload

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def trial(a100: GpuClass, charlie: User) -> Namespace:
    """Charlie's trial, which begins now; the emails about its beginning are deleted."""
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=1, starter=True)
    row = trial_actions.begin_trial(by=page(charlie)).namespaces.get()
    Delivery.objects.all().delete()
    return row


def idle_since(row: Namespace, days: float) -> None:
    """Sets the end of the grant to so many days ago."""
    end = queries.database_now() - days * DAY
    Grant.objects.filter(tenant=row.tenant).update(period=DateTimeTZRange(end - 8 * HOUR, end))


def look(row: Namespace, *, in_days: float = 0) -> float | None:
    """Runs the check in `in_days` days; returns the days from then to the next check, or None."""
    row.refresh_from_db()
    at = queries.database_now() + in_days * DAY
    then = trial_expiry_actions.check_idle(row, at)
    return None if then is None else round((then - at) / DAY, 2)


def wanted(row: Namespace) -> str:
    row.refresh_from_db()
    return row.wanted


def run(row: Namespace, gpu_class: GpuClass, *, ended: float | None = None) -> None:
    """Creates a run that ended so many days ago, or that is still running."""
    person = row.tenant.memberships.get().user
    number = Workload.objects.count()
    of = Workload.objects.create(
        tenant=row.tenant,
        namespace=row,
        name=f"work-{number}",
        kind="job",
        origin=f"work-{number}",
        gpu_class=gpu_class,
        units=1,
        image="python",
        created_by=person,
        due_at=None,
    )
    done = {} if ended is None else {"ended_at": queries.database_now() - ended * DAY, "outcome": "succeeded"}
    Run.objects.create(workload=of, number=1, spec={}, requested_by=person, **done)


def test_while_the_trial_lasts_it_is_looked_at_later(trial: Namespace) -> None:
    assert trial.is_trial
    assert look(trial) == 1
    idle_since(trial, 1)
    assert look(trial) == 10
    assert not Delivery.objects.exists()


def test_a_word_three_days_before_and_one_after(trial: Namespace, charlie: User) -> None:
    idle_since(trial, 10.9)
    assert look(trial) == 0.1
    idle_since(trial, 11)
    for _ in range(2):
        assert look(trial) == 3
    [letter] = Delivery.objects.all()
    assert letter.user == charlie
    assert letter.subject.startswith("Trial of Charlie will be closed on ")
    assert "To keep it, launch a workload or request quota" in letter.body
    assert Event.objects.get(verb="trial.reminded").actor == "system rule starter"

    assert look(trial, in_days=2.9) == 0.1
    assert wanted(trial) == "active"
    assert look(trial, in_days=3.01) is None
    assert wanted(trial) == "closed"
    event = Event.objects.get(verb="namespace.changed")
    assert event.actor == "system rule starter"
    assert event.after["because"].startswith("No workload has run in this trial since ")
    assert (
        Delivery.objects.latest("pk").subject
        == "Trial of Charlie is being closed: its objects in the cluster will be deleted"
    )
    assert trial.closes_at is not None
    assert trial.closes_at <= queries.database_now()
    assert trial.volumes_until == trial.closes_at + 30 * DAY
    assert look(trial, in_days=4) is None
    assert Delivery.objects.count() == 2


def test_one_that_was_idle_for_long_is_warned_before_it_is_closed(trial: Namespace) -> None:
    idle_since(trial, 100)
    assert look(trial) == 3
    assert wanted(trial) == "active"
    assert look(trial, in_days=3.01) is None
    assert wanted(trial) == "closed"


def test_a_run_keeps_it(trial: Namespace, a100: GpuClass) -> None:
    idle_since(trial, 100)
    run(trial, a100, ended=1)
    assert look(trial) == 10, "its end counts, not the grant's"
    run(trial, a100)
    assert look(trial, in_days=50) == 1
    assert (wanted(trial), Delivery.objects.count()) == ("active", 0)


def test_one_that_is_used_after_the_warning_is_not_closed(trial: Namespace, a100: GpuClass) -> None:
    idle_since(trial, 20)
    assert look(trial) == 3
    run(trial, a100)
    assert look(trial, in_days=3.01) == 1
    Run.objects.update(ended_at=queries.database_now(), outcome="succeeded")
    assert look(trial, in_days=4) is not None
    assert wanted(trial) == "active"
    # Idle again: the team gets a new warning and three more days.
    assert look(trial, in_days=20) == 3
    assert Event.objects.filter(verb="trial.reminded").count() == 2
    assert look(trial, in_days=23.01) is None
    assert wanted(trial) == "closed"


def test_who_waits_for_quota_or_has_some_keeps_it(trial: Namespace, a100: GpuClass) -> None:
    idle_since(trial, 20)
    waits = QuotaLine.objects.filter(rule="starter")
    waits.update(state="pending")
    assert look(trial) == 1
    waits.update(state="denied")
    grant = make.grant(trial.tenant, a100, units=1, since=queries.database_now() - 5 * HOUR)
    assert look(trial) == 1
    grant.delete()
    assert look(trial) == 3


def test_no_other_team_is_closed_by_it_and_none_pays_for_it(
    team_a: Tenant, namespace_a: Namespace, django_assert_num_queries: Callable[..., Any]
) -> None:
    later = queries.database_now() + 100 * DAY
    with django_assert_num_queries(0):
        assert trial_expiry_actions.check_idle(namespace_a, later) is None


@pytest.mark.usefixtures("clean_cluster")
def test_the_namespaces_own_clock_brings_it_there(trial: Namespace, kube_worker: Kube, unique: str) -> None:
    Namespace.objects.filter(pk=trial.pk).update(name=f"try-{unique}")
    idle_since(trial, 2)
    trial.refresh_from_db()
    clock = steps.work_on_namespace(trial, Deadline(), kube=kube_worker).clock
    assert clock is not None
    assert round((clock - queries.database_now()) / DAY, 2) == 9
    idle_since(trial, 12)
    steps.work_on_namespace(trial, Deadline(), kube=kube_worker)
    assert Event.objects.filter(verb="trial.reminded").count() == 1
