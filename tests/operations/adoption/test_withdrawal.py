"""A proposal that is withdrawn: nothing changes in the cluster, and another team may adopt the namespace."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from cluster.client.kube import Kube
from desk.home.queries import namespace_by_name
from devcluster.client.kube import Api
from operations.adoption import actions, queries
from operations.adoption.recording import record_taken
from operations.models import Adoption
from portal.core.due import DONE, Deadline
from portal.core.errors import Refused
from tenants.lifecycle.closing.actions import mark_deleted
from tenants.models import Namespace
from tenants.provisioning import steps
from tests.operations.adoption import messy
from tests.operations.adoption.adopting import accept, adopt, consent, undo, work
from workloads.forecast.queries import outside_units
from workloads.gateway.stream_access import may_watch

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clean_cluster")]
State = Adoption.State


@pytest.fixture
def now() -> datetime:
    return timezone.now()


def release(row: Adoption, kube: Kube) -> None:
    """What the worker does for a team that is closed at once."""
    steps.work_on_namespace(Namespace.objects.get(pk=row.namespace_id), Deadline(), kube=kube)


def test_another_team_may_adopt_it(
    admin: Api, one: Adoption, alice: User, bob: User, operator: Actor, kube_worker: Kube
) -> None:
    name, cluster = one.namespace.name, one.namespace.cluster
    before = messy.content_of(admin, name)
    with pytest.raises(Refused, match="it is or was the namespace of a team"):
        actions.propose_adoption(cluster, name, slug="second", name="Second", owner=bob.email, by=operator)
    withdrawn = actions.withdraw_adoption(one.pk, by=operator)
    assert withdrawn.state is State.WITHDRAWN
    release(one, kube_worker)
    assert messy.content_of(admin, name) == before
    second = actions.propose_adoption(cluster, name, slug="second", name="Second", owner=bob.email, by=operator)
    consent(admin, name, "second")
    work(second, kube_worker)
    accept(second, bob)
    work(second, kube_worker)
    assert second.state is State.ADOPTED
    assert queries.adoption_of_team(operator, one.namespace.tenant.slug).state is State.WITHDRAWN
    # The first team has nothing of the second.
    people = {user: Actor(user, via="page") for user in (alice, bob)}
    assert [may_watch(by, name) for by in people.values()] == [False, True]
    assert (home := namespace_by_name(name)) is not None
    assert home.tenant.slug == "second"
    # Nor do the pages of the first team show what is in the namespace.
    first = Namespace.objects.get(pk=one.namespace_id)
    assert (first.name, first.name_in_cluster) == (f"{first.pk}~{name}", name)
    assert outside_units(first) == {}
    with pytest.raises(Refused, match="is closed"):
        actions.accept_adoption(one.pk, [], by=Actor(alice, via="page"))
    assert Namespace.objects.get(name=name).tenant.slug == "second"


def test_after_an_undo_too(admin: Api, one: Adoption, alice: User, operator: Actor, kube_worker: Kube) -> None:
    adopt(admin, one, alice, kube_worker)
    with pytest.raises(Refused, match="Undo it first"):
        actions.withdraw_adoption(one.pk, by=operator)
    undo(one, operator, kube_worker)
    actions.withdraw_adoption(one.pk, by=operator)
    name = one.namespace.name
    release(one, kube_worker)
    assert queries.is_foreign_namespace(one.namespace.cluster, name)


def test_a_namespace_of_the_portal_keeps_its_name(namespace_a: Namespace, now: datetime) -> None:
    """Its objects in reports and archives are those of its team."""
    closed = {"wanted": "closed", "closes_at": now, "volumes_until": now}
    Namespace.objects.filter(pk=namespace_a.pk).update(**closed)
    mark_deleted(namespace_a, now)
    assert Namespace.objects.get(pk=namespace_a.pk).name == namespace_a.name
    Namespace.objects.filter(pk=namespace_a.pk).update(gone_at=None, origin=Namespace.Origin.ADOPTED)
    mark_deleted(namespace_a, now)
    row = Namespace.objects.get(pk=namespace_a.pk)
    assert (row.name, row.name_in_cluster) == (f"{row.pk}~{namespace_a.name}", namespace_a.name)


def test_what_is_gone_is_left_alone(namespace_a: Namespace, now: datetime) -> None:
    """Whoever wakes it: another team may be in the namespace."""
    ended = {"wanted": "closed", "closes_at": now, "volumes_until": now, "gone_at": now}
    Namespace.objects.filter(pk=namespace_a.pk).update(**ended)
    namespace_a.refresh_from_db()
    no_cluster: Any = None
    assert steps.work_on_namespace(namespace_a, Deadline(), kube=no_cluster) is DONE


def test_an_undo_while_the_worker_takes_it_over_wins(
    admin: Api, one: Adoption, alice: User, operator: Actor, kube_worker: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = one.namespace.name
    before = messy.content_of(admin, name)
    consent(admin, name, name)
    work(one, kube_worker)
    accept(one, alice)

    def undo_first(*args: object) -> None:
        actions.undo_adoption(one.pk, by=operator)
        record_taken(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("operations.adoption.reconcile.record_taken", undo_first)
    work(one, kube_worker)
    assert one.state is State.UNDOING
    assert Namespace.objects.get(pk=one.namespace_id).origin == Namespace.Origin.UNADOPTED
    work(one, kube_worker)
    assert one.state is State.UNDONE
    assert messy.content_of(admin, name) == before


def test_who_may_withdraw(one: Adoption, alice: User, bob: User, operator: Actor) -> None:
    for who, why in ((alice, "Only operators"), (bob, "Not found")):
        with pytest.raises(Refused, match=why):
            actions.withdraw_adoption(one.pk, by=Actor(who, via="page"))
    actions.withdraw_adoption(one.pk, by=operator)
    with pytest.raises(Refused, match="nothing to withdraw"):
        actions.withdraw_adoption(one.pk, by=operator)
