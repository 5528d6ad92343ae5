"""Two maintenances that want one node: only one gets it, and the other leaves nothing."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Event, User
from cluster.models import Cluster
from operations.maintenance import actions, policy
from operations.models import Maintenance, MaintenanceNode
from portal.core.errors import Refusal, Refused
from tests.support.rows import mirrored

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def plan(cluster: Cluster, olga: User) -> Callable[[list[str]], Maintenance]:
    mirrored.hardware_seen(cluster)
    now = timezone.now()
    window = {"holds_from": now, "starts_at": now, "ends_at": now + timedelta(hours=1)}
    by = Actor(olga, via="page")
    return lambda nodes: actions.plan_maintenance(cluster, nodes, kind="other", reason="A fan.", **window, by=by)


def test_two_at_the_same_moment_get_no_node_in_common(
    plan: Callable[[list[str]], Maintenance], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have found the node free before one of them writes."""
    both, refusal_of = Barrier(2, timeout=20), policy.nodes_refusal

    def together(names: list[str], **found: Any) -> Refusal | None:
        both.wait()
        return refusal_of(names, **found)

    monkeypatch.setattr(policy, "nodes_refusal", together)

    def one(nodes: list[str]) -> str:
        try:
            return str(plan(nodes).pk)
        except Refused as refused:
            return refused.refusal.code
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as two:
        answers = list(two.map(one, (["a100-1", "a100-2"], ["a100-2", "a100-mig"])))
    row = Maintenance.objects.get()
    assert sorted(answers) == sorted([str(row.pk), "in_maintenance"])
    assert MaintenanceNode.objects.filter(maintenance=row).count() == MaintenanceNode.objects.count() == 2
    assert Event.objects.filter(verb="maintenance.planned").count() == 1


def test_a_node_that_is_released_is_free_while_others_of_its_maintenance_are_not(
    plan: Callable[[list[str]], Maintenance], olga: User
) -> None:
    first = plan(["a100-1", "a100-2"])
    MaintenanceNode.objects.filter(name="a100-1").update(step="done")
    with pytest.raises(Refused):
        plan(["a100-1", "a100-2"])
    second = plan(["a100-1"])
    actions.cancel_maintenance(first.pk, by=Actor(olga, via="page"))
    second.refresh_from_db()
    assert second.cancel_requested_at is None
