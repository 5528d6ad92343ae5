"""Home page and list have an Open button for each ready notebook, only for users who may open it."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Membership, Namespace, Tenant
from tests.support.rows import make, running
from workloads.models import Run

pytestmark = pytest.mark.django_db
HOME, LIST = "/teams/team-a", "/teams/team-a/workloads"


@pytest.fixture
def three(namespace_a: Namespace, a100: GpuClass, alice: User) -> None:
    """A ready notebook, a notebook that is not ready yet, and a running job."""
    running.make_ready(running.workload(namespace_a, a100, name="there", by=alice))
    running.workload(namespace_a, a100, name="coming", by=alice)
    running.make_ready(running.workload(namespace_a, a100, name="work", kind="job", by=alice))


def opened(client: Client, who: User, path: str) -> list[str]:
    """Returns the names whose Open form is on the page."""
    client.force_login(who)
    page = client.get(path).content.decode()
    buttons = re.findall(r'form="opens" formaction="/teams/team-a/workloads/([a-z]+)/open"', page)
    return buttons if 'id="opens"' in page else []


@pytest.mark.parametrize("path", [HOME, LIST])
def test_what_is_ready_opens_from_its_row(three: None, path: str, bob: User, olga: User, client: Client) -> None:
    assert opened(client, bob, path) == ["there"]
    assert opened(client, olga, path) == []
    Membership.objects.filter(user=bob).update(role="viewer")
    assert opened(client, bob, path) == []


def test_home_says_until_when_it_runs(three: None, alice: User, client: Client) -> None:
    client.force_login(alice)
    assert 'data-when="countdown"' not in client.get(HOME).content.decode()
    Run.objects.filter(workload__name="there").update(ends_at=timezone.now() + timedelta(hours=3))
    assert 'data-when="countdown"' in client.get(HOME).content.decode()


def test_home_offers_no_launch_to_a_team_that_holds_nothing(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, client: Client
) -> None:
    client.force_login(alice)
    before = client.get(HOME).content.decode()
    assert "No running workloads" in before
    assert "Launch a notebook" not in before
    make.grant(team_a, a100, units=1)
    after = client.get(HOME).content.decode()
    assert "Launch a notebook" in after


def test_what_cannot_start_again_says_why(namespace_a: Namespace, a100: GpuClass, alice: User, client: Client) -> None:
    make.grant(namespace_a.tenant, a100, units=1)
    client.force_login(alice)
    running.workload(namespace_a, a100, name="over", by=alice)
    page = f"{LIST}/over"
    assert "Start again" not in client.get(page).content.decode()
    Run.objects.update(ended_at=timezone.now(), outcome="stopped")
    assert 'action="/teams/team-a/workloads/over/start"' in client.get(page).content.decode()
    GpuClass.objects.filter(pk=a100.pk).update(life_cycle="retiring")
    refused = client.get(page).content.decode()
    assert 'aria-describedby="start-why"' in refused
    assert 'action="/teams/team-a/workloads/over/start"' not in refused
