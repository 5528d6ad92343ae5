"""Each drift is recorded: who changed what, how often, and what became of it. Health and the team's history show it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from cluster.apply.drift import record_drift
from cluster.models import AppliedObject, Cluster, ObjectDrift
from portal.core.due import owner_label
from tenants.models import Namespace

pytestmark = pytest.mark.django_db
EDITED = {"fields": ["spec.hard.pods"], "manager": "kubectl-edit", "since": "2026-11-25T10:00:00Z"}


@pytest.fixture
def quota(cluster: Cluster, namespace_a: Namespace) -> AppliedObject:
    return AppliedObject.objects.create(
        cluster=cluster,
        owner=owner_label(namespace_a),
        kind="ResourceQuota",
        namespace=namespace_a.name,
        name="gpu-portal",
        result=AppliedObject.Result.APPLIED,
        code="repaired",
    )


def at(minute: int, **more: Any) -> dict[str, Any]:
    return {**EDITED, "since": f"2026-11-25T10:{minute:02}:00Z", **more}


def test_changes_are_counted_and_retries_are_not(quota: AppliedObject) -> None:
    for minute in (0, 0, 1, 2):
        record_drift(quota, at(minute))
    record_drift(quota, at(3, manager="argocd"))
    record_drift(quota, {"gone": True, "fields": [], "manager": "", "since": "2026-11-25T10:04:00Z"})
    found = {(one.manager, one.is_deletion): one.times for one in ObjectDrift.objects.all()}
    assert found == {("kubectl-edit", False): 3, ("argocd", False): 1, ("", True): 1}


def test_the_last_outcome_counts(quota: AppliedObject) -> None:
    record_drift(quota, at(0))
    quota.result = AppliedObject.Result.REFUSED
    record_drift(quota, at(0))
    assert ObjectDrift.objects.get().outcome == "refused"


def test_old_records_end(quota: AppliedObject) -> None:
    record_drift(quota, at(0))
    ObjectDrift.objects.update(last_at=timezone.now() - timedelta(days=91))
    record_drift(quota, at(1, manager="argocd"))
    assert [one.manager for one in ObjectDrift.objects.all()] == ["argocd"]


def test_health_and_the_teams_history_say_it(quota: AppliedObject, alice: User, charlie: User, olga: User) -> None:
    record_drift(quota, at(0))
    record_drift(quota, at(1))
    for person, page in ((olga, "/health"), (alice, "/teams/team-a/history")):
        client = Client()
        client.force_login(person)
        text = " ".join(client.get(page).content.decode().split())
        assert "spec.hard.pods changed by kubectl-edit. 2 times since" in text, page
        assert "Repaired" in text
    stranger = Client()
    stranger.force_login(charlie)
    assert stranger.get("/teams/team-a/history").status_code == 404
