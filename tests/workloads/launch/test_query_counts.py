"""The queries of a launch, and of the page that the browser requests while the worker sends the Job."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from cluster.models import Cluster, MirrorEpoch, MirrorKind
from tenants.models import Tenant
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.status.queries import status_kinds

pytestmark = pytest.mark.django_db


@pytest.fixture
def known_mirror(cluster: Cluster) -> None:
    now = timezone.now()
    MirrorEpoch.objects.create(cluster_id=cluster.pk, epoch=1, heard_at=now)
    for kind in status_kinds(cluster):
        MirrorKind.objects.create(cluster_id=cluster.pk, kind=kind, epoch=1, listed_at=now, heard_at=now)


def test_a_launch(granted: Tenant, job: LaunchSpec, by_alice: Actor, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(7):  # savepoint and its release; team, target; workload, run, event
        actions.launch("team-a", job, by=by_alice)


@pytest.mark.usefixtures("known_mirror")
def test_the_page_of_a_first_run(
    granted: Tenant, job: LaunchSpec, by_alice: Actor, alice: User, client: Client, django_assert_num_queries: Any
) -> None:
    actions.launch("team-a", job, by=by_alice)
    client.force_login(alice)
    # session, user, team; workload, last run, what was sent; mirror: age, jobs, queue, pods; own units; events; whether
    # its GPUs are idle or have faults; its nodes, for their maintenance; teams of the bar
    with django_assert_num_queries(16):
        assert client.get("/teams/team-a/workloads/train").status_code == 200


@pytest.mark.usefixtures("known_mirror")
def test_the_page_of_a_run_that_is_over_asks_what_the_next_would_need(
    granted: Tenant, job: LaunchSpec, by_alice: Actor, alice: User, client: Client, django_assert_num_queries: Any
) -> None:
    workload = actions.launch("team-a", job, by=by_alice)
    workload.runs.update(ended_at=timezone.now(), outcome="failed")
    client.force_login(alice)
    with django_assert_num_queries(15):
        page = client.get("/teams/team-a/workloads/train")
    assert "Start again" in page.content.decode()
