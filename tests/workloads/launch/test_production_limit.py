"""The units of a class that one team may use for production work: set by staff; refusals have number, field, remedy."""

from __future__ import annotations

import contextlib
from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.classes import actions as catalog
from catalog.models import GpuClass, Image
from portal.core.errors import Refused
from tenants.models import Tenant
from tests.support.rows import make
from tests.support.threads import in_threads
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.priorities import policy as priority_policy
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Workload
from workloads.runs import restart


def wanted(a100: GpuClass, name: str, units: int, priority: str = "production", workers: int = 1) -> LaunchSpec:
    options = Options(priority=priority, workers=workers)
    return LaunchSpec(name=name, kind="job", gpu_class=a100.slug, units=units, image="python", options=options)


@pytest.fixture
def team(team_a: Tenant, a100: GpuClass, images: list[Image]) -> Tenant:
    make.grant(team_a, a100, units=8)
    return team_a


@pytest.mark.parametrize(
    ("units", "others", "limit", "words"),
    [
        (8, 8, None, ""),
        (4, 0, 4, ""),
        (2, 2, 4, ""),
        (
            3,
            2,
            4,
            "A team can use at most 4 of A100 with production priority at a time: 3 requested, 2 already running or "
            "queued.",
        ),
        (1, 0, 0, "Operators do not allow production priority on A100. Choose interactive or batch."),
    ],
)
def test_the_rule(units: int, others: int, limit: int | None, words: str) -> None:
    found = priority_policy.production_limit_refusal("A100", units, others=others, limit=limit)
    assert (found is not None) == bool(words)
    if found is not None:
        assert found.message.startswith(words)
        assert (found.code, found.field) == ("production_limit", "priority")


@pytest.mark.django_db
def test_a_team_has_so_much_and_no_more(team: Tenant, a100: GpuClass, by_alice: Actor, olga: User) -> None:
    catalog.edit_class(a100.pk, by=Actor(olga, "page"), production_limit=4)
    assert Event.objects.filter(after={"production_limit": 4}).count() == 1
    actions.launch("team-a", wanted(a100, "one", 1, workers=2), by=by_alice)
    actions.launch("team-a", wanted(a100, "usual", 4, "batch"), by=by_alice)
    with pytest.raises(Refused, match="3 requested, 2 already running or queued") as refused:
        actions.launch("team-a", wanted(a100, "two", 3), by=by_alice)
    assert refused.value.refusal.status == 422
    assert not Workload.objects.filter(name="two").exists()
    actions.launch("team-a", wanted(a100, "two", 2), by=by_alice)
    with pytest.raises(Refused, match="1 requested, 4 already running or queued"):
        actions.launch("team-a", wanted(a100, "three", 1), by=by_alice)

    # Declared work is checked when it starts; ended runs do not count, and a run does not count against itself.
    actions.declare("team-a", wanted(a100, "three", 1), by=by_alice)
    with pytest.raises(Refused, match="1 requested, 4 already running or queued"):
        actions.start("team-a", "three", by=by_alice)
    restart.restart("team-a", "two", by=by_alice)
    Run.objects.filter(workload__name="one").update(ended_at="2026-01-01T00:00:00Z", outcome="stopped")
    actions.start("team-a", "three", by=by_alice)


@pytest.mark.django_db
def test_another_teams_work_is_its_own(
    team: Tenant, a100: GpuClass, by_alice: Actor, charlie: User, unique: str
) -> None:
    GpuClass.objects.update(production_limit=2)
    other = make.tenant(a100.cluster, slug="team-c", namespace=f"team-c-{unique}")
    make.member(other, charlie, role="owner")  # type: ignore[arg-type]
    make.grant(other, a100, units=8)
    actions.launch("team-c", wanted(a100, "theirs", 2), by=Actor(charlie, "page"))
    actions.launch("team-a", wanted(a100, "ours", 2), by=by_alice)


@pytest.mark.django_db
def test_without_a_limit_nothing_more_is_asked(team: Tenant, a100: GpuClass, by_alice: Actor) -> None:
    with CaptureQueriesContext(connection) as usual:
        actions.launch("team-a", wanted(a100, "one", 1, "batch"), by=by_alice)
    with CaptureQueriesContext(connection) as first:
        actions.launch("team-a", wanted(a100, "two", 1), by=by_alice)
    assert len(first) == len(usual)


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_the_second_counts_the_first(team: Tenant, a100: GpuClass, by_alice: Actor) -> None:
    GpuClass.objects.update(production_limit=2)

    done: list[str] = []

    def launch(name: str) -> None:
        with contextlib.suppress(Refused):
            actions.launch("team-a", wanted(a100, name, 2), by=by_alice)
            done.append(name)

    in_threads(0, lambda: None, *(partial(launch, name) for name in ("one", "two", "three")))
    assert len(done) == 1
