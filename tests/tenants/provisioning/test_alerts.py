"""Email about objects of a namespace that the cluster refuses: each object once, to operators and to the team."""

from __future__ import annotations

import pytest

from accounts.models import Delivery, Event, User
from cluster.models import AppliedObject
from portal.core.due import owner_label
from tenants.models import Namespace
from tenants.provisioning.alerts import actions as alert_actions

pytestmark = pytest.mark.usefixtures("olga", "bob")


def look(row: Namespace, **refused: str) -> list[str]:
    """Ends a reconcile that left these objects refused; returns the sorted names of those who got an email."""
    before = set(Delivery.objects.values_list("pk", flat=True))
    mine = AppliedObject.objects.filter(owner=owner_label(row))
    mine.delete()
    for kind, text in refused.items():
        AppliedObject.objects.create(
            cluster=row.cluster,
            owner=owner_label(row),
            kind=kind,
            namespace=row.name,
            name="gpu-portal",
            result="refused",
            text=text,
        )
    alert_actions.alert_new_refusals(row)
    # The worker then stores this on the row (portal.core.due.fail, finish).
    row.error_code = "refused" if refused else ""
    return sorted(sent.user.name for sent in Delivery.objects.exclude(pk__in=before) if sent.user)


def test_operators_and_the_team_hear_of_a_refusal_once(namespace_a: Namespace, alice: User) -> None:
    assert look(namespace_a) == []
    assert look(namespace_a, ResourceQuota="is forbidden by a policy") == ["Alice", "Olga"]
    assert look(namespace_a, ResourceQuota="is forbidden by a policy") == []
    mail = Delivery.objects.get(user=alice)
    assert mail.subject == "Objects of Team A could not be applied"
    assert "ResourceQuota gpu-portal: is forbidden by a policy" in mail.body
    assert "/teams/team-a" in mail.body
    event = Event.objects.get(verb="namespace.refused")
    assert (event.tenant, event.after["objects"]) == ("team-a", ["ResourceQuota gpu-portal"])


def test_an_outage_in_between_is_no_new_occasion(namespace_a: Namespace) -> None:
    assert look(namespace_a, LimitRange="no") == ["Alice", "Olga"]
    namespace_a.error_code = "cluster_unavailable"
    assert look(namespace_a, LimitRange="no") == []


def test_another_object_or_the_same_one_later_is_told_again(namespace_a: Namespace) -> None:
    assert look(namespace_a, LimitRange="no") == ["Alice", "Olga"]
    assert look(namespace_a, LimitRange="no", RoleBinding="neither") == ["Alice", "Olga"]
    assert look(namespace_a) == []
    assert look(namespace_a, LimitRange="no") == ["Alice", "Olga"]
