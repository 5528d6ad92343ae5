"""An adopted namespace after a confirmed move: the consents were for the previous cluster."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from cluster.apply.applied_objects import leave_previous_cluster
from cluster.client.kube import Kube
from cluster.models import AppliedObject
from devcluster.client.kube import Api
from operations.adoption.actions import undo_adoption
from operations.models import Adoption
from portal.core import due
from portal.core.due import Deadline, TryLater
from portal.core.errors import Refused
from tenants.models import Namespace
from tenants.provisioning import steps
from tests.operations.adoption import messy
from tests.operations.adoption.adopting import adopt as adopt_it
from tests.operations.adoption.adopting import close, undo
from workloads.models import Workload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clean_cluster")]


@pytest.fixture
def moved(admin: Api, one: Adoption, alice: User, operator: Actor, kube_worker: Kube) -> Adoption:
    """The rows say that it is adopted; in this cluster others have the namespace, as it was."""
    adopt_it(admin, one, alice, kube_worker)
    undo(one, operator, kube_worker)
    origin, adopted = Namespace.Origin.ADOPTED, {"adopted_at": one.proposed_at, "accepted_at": one.proposed_at}
    Namespace.objects.filter(pk=one.namespace_id).update(origin=origin)
    Adoption.objects.filter(pk=one.pk).update(undone_at=None, **adopted)
    leave_previous_cluster(one.namespace.cluster_id, runs=due.table_label(Workload))
    one.refresh_from_db()
    return one


def test_a_namespace_of_others_is_not_touched_until_both_consent_again(
    admin: Api, moved: Adoption, alice: User, operator: Actor, kube_worker: Kube
) -> None:
    name = moved.namespace.name
    before = messy.content_of(admin, name)
    with pytest.raises(TryLater) as waits:
        steps.work_on_namespace(Namespace.objects.get(pk=moved.namespace_id), Deadline(), kube=kube_worker)
    assert waits.value.code == AppliedObject.Result.FOREIGN
    assert messy.content_of(admin, name) == before
    undo(moved, operator, kube_worker)
    assert messy.content_of(admin, name) == before
    adopt_it(admin, moved, alice, kube_worker)


def test_a_closed_team_ends_without_a_change_to_it(
    admin: Api, moved: Adoption, operator: Actor, kube_worker: Kube
) -> None:
    name = moved.namespace.name
    before = messy.content_of(admin, name)
    assert close(moved, operator, kube_worker).gone_at is not None
    assert messy.content_of(admin, name) == before


def test_what_is_the_portals_own_now_is_not_given_back(
    namespace_a: Namespace, alice: User, olga: User, operator: Actor
) -> None:
    """After a move it was missing, so that the portal made it: the pages of the team go on."""
    long_ago = timezone.now()
    agreed = {"read_at": long_ago, "accepted_by": alice, "accepted_at": long_ago, "adopted_at": long_ago}
    row = Adoption.objects.create(namespace=namespace_a, proposed_by=olga, **agreed)
    client = Client()
    client.force_login(olga)
    for origin, is_offered in ((Namespace.Origin.ADOPTED, True), (Namespace.Origin.PORTAL, False)):
        Namespace.objects.filter(pk=namespace_a.pk).update(origin=origin)
        assert ("Undo the adoption" in client.get("/teams/team-a/adoption").text) is is_offered
    with pytest.raises(Refused, match="the portal made one of its own"):
        undo_adoption(row.pk, by=operator)
    assert Namespace.objects.get(pk=namespace_a.pk).origin == Namespace.Origin.PORTAL
    row.refresh_from_db()
    assert row.undo_requested_at is None
