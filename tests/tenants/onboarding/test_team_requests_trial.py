"""Trying the portal without a team: one unit of a starter class for eight hours, granted by a rule, once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, Scope, User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.core import queries
from tenants.grants import queries as grant_queries
from tenants.models import Grant, QuotaLine, Tenant
from tenants.onboarding.trials import actions as trial_actions
from tenants.onboarding.trials import queries as trial_queries
from tests.support.http.callers import caller, post
from tests.support.http.pages import page
from tests.support.rows import make


def refused(verb: Callable[[], Any]) -> str:
    with pytest.raises(Refused) as error:
        verb()
    return error.value.code


@pytest.fixture
def starter(a100: GpuClass) -> GpuClass:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=1, starter=True)
    a100.refresh_from_db()
    return a100


def test_one_unit_for_eight_hours_by_rule(starter: GpuClass, charlie: User) -> None:
    tenant = trial_actions.begin_trial(by=page(charlie))
    assert tenant.slug.startswith("try-charlie-")
    assert [(one.user, one.role) for one in tenant.memberships.all()] == [(charlie, "owner")]
    assert tenant.namespaces.get().due_at is not None
    now = queries.database_now()
    assert grant_queries.units_in_force(tenant.pk, now) == {starter.pk: 1}
    assert grant_queries.units_in_force(tenant.pk, now + timedelta(hours=7, minutes=59)) == {starter.pk: 1}
    assert grant_queries.units_in_force(tenant.pk, now + timedelta(hours=8)) == {}
    assert Grant.objects.get().grace == timedelta(0)
    line = QuotaLine.objects.get()
    assert (line.rule, line.decided_by, line.state, line.facts["limit"]) == ("starter", None, "approved", 1)
    assert Event.objects.get(verb="request.decided").actor == "system rule starter"
    begun = Event.objects.get(verb="trial.begun")
    assert (begun.actor_id, begun.tenant, begun.after) == (charlie.pk, tenant.slug, {"class": starter.slug, "hours": 8})
    [told] = Delivery.objects.all()
    assert (told.user, told.subject) == (charlie, "Your trial has started")


def test_once_for_each_person_and_not_for_members(starter: GpuClass, team_a: Tenant, bob: User, charlie: User) -> None:
    GpuClass.objects.filter(pk=starter.pk).update(promise_limit=8)
    assert refused(lambda: trial_actions.begin_trial(by=page(bob))) == "has_team"
    tenant = trial_actions.begin_trial(by=page(charlie))
    assert refused(lambda: trial_actions.begin_trial(by=page(charlie))) == "tried_before"
    tenant.memberships.all().delete()
    assert refused(lambda: trial_actions.begin_trial(by=page(charlie))) == "tried_before"
    reader = Actor(user=make.user("Rita"), via="token x", scopes=frozenset({Scope.READ}))
    assert refused(lambda: trial_actions.begin_trial(by=reader)) == "missing_scope"


def test_never_more_than_there_is(starter: GpuClass, charlie: User) -> None:
    trial_actions.begin_trial(by=page(make.user("Nora")))
    found = trial_queries.trial_offer(page(charlie), at=queries.database_now())
    assert found is not None
    assert found.refusal is not None
    assert found.refusal.code == "no_trial_now"
    assert f"the allocation limit of {starter.name} (1) is reached" in found.refusal.message
    assert refused(lambda: trial_actions.begin_trial(by=page(charlie))) == "no_trial_now"
    assert Tenant.objects.count() == 1
    # The capacity of the class is unknown, so the rule promises nothing.
    Grant.objects.all().delete()
    GpuClass.objects.filter(pk=starter.pk).update(promise_limit=None)
    assert refused(lambda: trial_actions.begin_trial(by=page(charlie))) == "no_trial_now"


def test_of_several_starter_classes_one_that_has_a_unit(starter: GpuClass, charlie: User) -> None:
    trial_actions.begin_trial(by=page(make.user("Nora")))
    other = make.gpu_class(starter.cluster, slug=f"z{starter.slug}", name="Other", starter=True, promise_limit=1)
    tenant = trial_actions.begin_trial(by=page(charlie))
    assert grant_queries.units_in_force(tenant.pk, queries.database_now()) == {other.pk: 1}


@pytest.mark.parametrize("change", [{"starter": False}, {"visibility": "named"}, {"life_cycle": "retired"}])
def test_without_a_starter_class_there_is_nothing_to_try(
    starter: GpuClass, charlie: User, change: dict[str, Any]
) -> None:
    GpuClass.objects.filter(pk=starter.pk).update(**change)
    assert trial_queries.trial_offer(page(charlie), at=queries.database_now()) is None
    assert refused(lambda: trial_actions.begin_trial(by=page(charlie))) == "not_found"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_same_person", [True, False])
def test_the_last_unit_is_tried_once(starter: GpuClass, charlie: User, is_same_person: bool) -> None:
    people, answers = [charlie, charlie if is_same_person else make.user("Nora")], []
    ready = threading.Barrier(2)

    def begin(user: User) -> None:
        ready.wait()
        try:
            trial_actions.begin_trial(by=page(user))
            answers.append("done")
        except Refused as error:
            answers.append(error.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=begin, args=(user,)) for user in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ["done", "tried_before" if is_same_person else "no_trial_now"]
    assert Grant.objects.count() == 1


def test_a_script_tries_as_well(starter: GpuClass, charlie: User) -> None:
    begun = post(caller(charlie), "/api/v1/trials")
    assert (begun.status_code, begun.json()["slug"]) == (201, Tenant.objects.get().slug)
    again = post(caller(charlie), "/api/v1/trials")
    assert (again.status_code, again.json()["code"]) == (409, "tried_before")


def test_the_card(starter: GpuClass, charlie: User) -> None:
    client = Client()
    client.force_login(charlie)
    start = " ".join(client.get("/start").content.decode().split())
    assert "Start trial" in start
    assert "for 8 hours" in start
    begun = client.post("/start/trial")
    tenant = Tenant.objects.get()
    assert begun["Location"] == f"/teams/{tenant.slug}"
    again = " ".join(client.get("/start").content.decode().split())
    assert "You have already used your trial." in again
    assert client.post("/start/trial").status_code == 409
    GpuClass.objects.update(starter=False)
    assert "Start trial" not in client.get("/start").content.decode()
