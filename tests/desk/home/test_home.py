"""A team's home page from rows: held and lent units by class, running and preemptible work, queued work and why."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import MirrorKind, MirrorObject, MirrorPod
from desk.capacity.lending import LentUnits
from desk.home import queries
from desk.home.fragments import fragments, versions
from tenants.models import Membership, Namespace, Tenant
from tests.support.rows import make, running
from tests.support.rows.homes import block, cohort, lent, ready, stranger
from tests.support.rows.usage import held
from tests.support.rows.waiting_runs import NEEDED, mirror_wait, runs, waits
from workloads.models import NotebookWatch, Run, Workload
from workloads.status.workload_row import SHOWN_OF_A_CLASS

pytestmark = pytest.mark.django_db
HOME = "/teams/team-a"


@pytest.fixture
def team_b(team_a: Tenant) -> Namespace:
    return make.tenant(team_a.namespaces.get().cluster, slug="team-b").namespaces.get()


# ---- lent units ------------------------------------------------------------------------------------------------------


def test_lent_is_what_nobody_else_can_have_lent(
    team_a: Tenant, namespace_a: Namespace, team_b: Namespace, a100: GpuClass, bob: User
) -> None:
    make.grant(team_a, a100, units=4)
    make.grant(team_b.tenant, a100, units=1)
    running.known(namespace_a.cluster_id)
    assert lent(namespace_a) == LentUnits(0, 0)

    ready(team_b, a100, "theirs", bob, units=3)
    cohort(namespace_a, a100, spare=0)

    assert lent(namespace_a) == LentUnits(2, 2)
    assert queries.home_state(team_b).holdings[0].borrowed == 2
    assert lent(team_b) == LentUnits(0, 0)


def test_where_others_can_have_lent_it_the_answer_is_a_range(
    team_a: Tenant, namespace_a: Namespace, team_b: Namespace, a100: GpuClass, bob: User
) -> None:
    make.grant(team_a, a100, units=4)
    ready(team_b, a100, "theirs", bob, units=3)

    # The mirror has not seen the cohort.
    assert lent(namespace_a) == LentUnits(0, 3)
    cohort(namespace_a, a100, spare=1)
    assert lent(namespace_a) == LentUnits(2, 3)
    make.grant(make.tenant(namespace_a.cluster, slug="team-c"), a100, units=1)
    assert lent(namespace_a) == LentUnits(1, 3)
    found = queries.home_state(namespace_a).holdings[0]
    assert found.lent is not None
    assert found.lent.text == "1 to 3"


def test_what_the_team_uses_itself_is_not_lent(
    team_a: Tenant, namespace_a: Namespace, team_b: Namespace, a100: GpuClass, alice: User, bob: User
) -> None:
    make.grant(team_a, a100, units=3)
    ready(namespace_a, a100, "ours", alice, units=2)
    ready(team_b, a100, "theirs", bob, units=3)
    cohort(namespace_a, a100, spare=0)
    assert lent(namespace_a) == LentUnits(1, 1)


def test_without_a_mirror_nothing_is_a_number(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, client: Client
) -> None:
    make.grant(team_a, a100, units=4)
    found = queries.home_state(namespace_a).holdings[0]
    assert (found.granted, found.used, found.borrowed, found.lent, found.queued) == (4, None, None, None, None)
    client.force_login(alice)
    page = client.get(HOME).content.decode()
    assert page.count(">–</dd>") == 4
    assert "usage unknown" in page


def test_what_others_borrow_changes_the_version(
    team_a: Tenant, namespace_a: Namespace, team_b: Namespace, a100: GpuClass, bob: User
) -> None:
    """No hint about this namespace announces this change."""
    GpuClass.objects.update(borrowing_limit=4)
    make.grant(team_a, a100, units=4)
    running.known(namespace_a.cluster_id)
    before = versions([namespace_a.name])[namespace_a.name]
    assert versions([namespace_a.name])[namespace_a.name] == before

    ready(team_b, a100, "theirs", bob, units=3)

    assert versions([namespace_a.name])[namespace_a.name] != before


# ---- running workloads -----------------------------------------------------------------------------------------------


def answers(namespace: Namespace) -> dict[str, str]:
    return {row.name: row.can_be_interrupted for row in queries.home_state(namespace).running}


def test_the_latest_on_borrowed_units_can_be_interrupted(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    make.grant(team_a, a100, units=2)
    ready(namespace_a, a100, "old", alice, minutes_ago=30)
    ready(namespace_a, a100, "work", alice, minutes_ago=40, kind="job")
    ready(namespace_a, a100, "new", alice, minutes_ago=10)
    assert answers(namespace_a) == {
        "new": "only by production workloads of your team",
        "old": "only by production workloads of your team",
        "work": "yes, borrowed units may be reclaimed",
    }
    make.grant(team_a, a100, units=1, kind="boost")
    assert answers(namespace_a)["work"] == "only by workloads of your team with higher priority"
    assert queries.home_state(namespace_a).running_groups[0].text == "3 of 3 GPUs in use"


def test_what_runs_in_a_grace_is_safe_until_it_ends(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    now = timezone.now()
    make.grant(team_a, a100, units=1, since=now - timedelta(days=1), until=now - timedelta(hours=1))
    ready(namespace_a, a100, "ours", alice)
    assert answers(namespace_a) == {"ours": "not before the grace period ends"}


def test_each_row_has_one_verb_and_what_is_blocked_on_a_node_runs(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, client: Client
) -> None:
    make.grant(team_a, a100, units=4)
    ready(namespace_a, a100, "there", alice)
    ready(namespace_a, a100, "work", alice, kind="job")
    ready(namespace_a, a100, "wrong", alice)
    block("wrong")
    state = queries.home_state(namespace_a)
    assert {row.name: (row.verb, row.label) for row in state.running} == {
        "there": ("open", "Open"),
        "work": ("log", "Log"),
        "wrong": ("fix", "Fix image"),
    }
    assert state.waiting == []
    assert state.attention is not None
    assert state.attention.title == "1 workload is blocked."
    assert [one.name for one in state.attention.concerns] == ["wrong"]
    client.force_login(alice)
    page = client.get(HOME).content.decode()
    assert f'href="{HOME}/workloads/wrong/change"' in page
    assert 'class="home no' not in page
    Membership.objects.filter(user=alice).update(role="viewer")
    assert 'class="home no-open no-fix"' in client.get(HOME).content.decode()


# ---- queued workloads and warnings -----------------------------------------------------------------------------------


def test_what_waits_is_told_by_class_with_the_first_known_end(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    make.grant(team_a, a100, units=2)
    ends_at = timezone.now() + timedelta(hours=2)
    for name, hours in (("long", 3), ("short", 0)):
        ready(namespace_a, a100, name, alice)
        Run.objects.filter(workload__name=name).update(ends_at=ends_at + timedelta(hours=hours))
    running.workload(namespace_a, a100, name="one", by=alice)
    running.workload(namespace_a, a100, name="two", by=alice)
    other = make.gpu_class(namespace_a.cluster, slug="other", name="Other")
    running.workload(namespace_a, other, name="else", by=alice, kind="job")

    found = {group.name: group for group in queries.home_state(namespace_a).waiting_groups}

    mine = found[a100.name]
    assert mine.title == f"2 notebooks, {a100.name}"
    assert mine.sentence == "All 2 GPUs of your team's quota are in use. Queued workloads request 2 GPUs."
    assert (mine.next_end, mine.next_end_at) == ("short", ends_at)
    assert [row.name for row in mine.rows] == ["one", "two"]
    theirs = found["Other"]
    assert (theirs.title, theirs.next_end) == ("1 job, Other", "")
    assert theirs.sentence == "Your team has no quota for this class now. Queued workloads request 1 GPU."


def test_what_was_put_back_waits_while_its_pod_still_holds_its_cards(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    make.grant(team_a, a100, units=4)
    mirror_wait(runs(namespace_a, a100, alice, "train", units=2), NEEDED)
    MirrorPod.objects.update(deleting_since=timezone.now())
    running.known(namespace_a.cluster_id)
    state = queries.home_state(namespace_a)
    assert ([row.name for row in state.waiting], state.running) == (["train"], [])
    assert [(one.used, one.queued) for one in state.holdings] == [(2, 2)]


def test_an_idle_notebook_matters_while_own_work_waits_for_its_class(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    make.grant(team_a, a100, units=1)
    run = ready(namespace_a, a100, "idle", alice)
    since = timezone.now() - timedelta(hours=1)
    NotebookWatch.objects.create(run=run, idle_since=since, due_at=None)
    assert queries.home_state(namespace_a).attention is None

    running.workload(namespace_a, a100, name="waits", by=alice)

    found = queries.home_state(namespace_a).attention
    assert found is not None
    assert found.title == "1 notebook is idle while workloads are queued."
    assert [(one.name, one.since) for one in found.concerns] == [("idle", since)]


# ---- GPU-hours and expiring quota ------------------------------------------------------------------------------------


def test_hours_of_the_month_are_by_member_with_cards_apart_from_parts(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, bob: User
) -> None:
    GpuClass.objects.update(price_per_unit_hour="2.50")
    a100.refresh_from_db()
    slice_ = make.gpu_class(namespace_a.cluster, slug="slice", partition="1g.10gb", weight="0.25")
    first = timezone.localtime().replace(day=1, hour=0, minute=0, second=0, microsecond=0)

    def ran(name: str, gpu_class: GpuClass, by: User, *, units: int, hours: float, before: float = 0) -> None:
        run = running.workload(namespace_a, gpu_class, name=name, by=by, units=units).runs.get()
        Run.objects.filter(pk=run.pk).update(
            started_at=first - timedelta(hours=before), ended_at=first + timedelta(hours=hours), outcome="stopped"
        )
        held(run)

    ran("a", a100, alice, units=2, hours=3, before=5)
    ran("b", a100, bob, units=1, hours=1)
    ran("c", slice_, bob, units=4, hours=2)
    ran("last-month", a100, bob, units=1, hours=-1, before=2)
    # A later change of the price does not apply to these runs.
    GpuClass.objects.update(price_per_unit_hour="9")
    for number in range(4):
        ran(f"o{number}", a100, make.user(f"Other{number}"), units=1, hours=0.5)

    month = queries.home_state(namespace_a).month

    assert [(one.name, one.whole, one.parts) for one in month.members] == [
        ("Alice", 6.0, 0.0), ("Bob", 1.0, 2.0), ("Other0", 0.5, 0.0), ("Other1", 0.5, 0.0), ("2 others", 1.0, 0.0),
    ]  # fmt: skip
    assert (month.team.whole, month.team.parts, month.members[0].cost) == (9.0, 2.0, Decimal("15.00"))
    assert month.team.cost == Decimal("22.50")


def test_the_next_ends_are_told_soonest_first(team_a: Tenant, namespace_a: Namespace, a100: GpuClass) -> None:
    now = timezone.now()
    late = make.grant(team_a, a100, units=4, until=now + timedelta(days=40))
    soon = make.grant(team_a, a100, units=2, until=now + timedelta(days=3), kind="boost")
    make.grant(team_a, make.gpu_class(namespace_a.cluster, slug="x"), units=1, until=now - timedelta(minutes=1))
    found = queries.home_state(namespace_a).ends
    assert [(one.units, one.at) for one in found] == [(2, soon.period.upper), (4, late.period.upper)]
    assert found[0].runs_until == soon.period.upper + soon.grace


# ---- pods that the portal did not start ------------------------------------------------------------------------------


def test_pods_of_no_run_that_hold_devices_are_shown_as_what_they_are(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, client: Client
) -> None:
    make.grant(team_a, a100, units=4)
    run = ready(namespace_a, a100, "ours", alice)
    Workload.objects.filter(pk=run.workload_id).update(deleted_at=timezone.now())  # its pod is still terminating
    ready(namespace_a, a100, "too", alice)
    made = stranger(namespace_a, "by-hand")
    forged = MirrorPod.objects.get(run="too-1")
    record = {**forged.record, "job_uid": ""}
    stranger(namespace_a, "forged", owner=forged.owner, run=forged.run, record=record)
    stranger(namespace_a, "without", record={"requests": {"cpu": 1}})
    stranger(namespace_a, "over", phase="Succeeded")
    stranger(namespace_a, "unbound", node="")

    found = queries.home_state(namespace_a).not_ours

    assert [(one.name, one.units, one.node) for one in found] == [
        ("by-hand", "2 nvidia.com/gpu", "a100-2"),
        ("forged", "1 nvidia.com/gpu", "a100-2"),
    ]
    assert found[0].since == made.created_at
    client.force_login(alice)
    assert "Pods outside the portal" in client.get(HOME).content.decode()


def test_claims_of_pods_of_no_run_are_shown(team_a: Tenant, namespace_a: Namespace) -> None:
    def claim(name: str, used_by: list[str]) -> None:
        MirrorObject.objects.create(
            cluster_id=namespace_a.cluster_id, kind="ResourceClaim", namespace=namespace_a.name, name=name, uid=name,
            resource_version=1, created_at=timezone.now(),
            record={"used_by": used_by, "devices": [{"driver": "gpu.nvidia.com", "pool": "h100-1", "device": name}]},
        )  # fmt: skip

    stranger(namespace_a, "by-hand", node="h100-1", record={"requests": {}})
    claim("held", ["by-hand"])
    claim("gone", ["over"])
    claim("kept", [])
    assert [(one.name, one.units, one.node) for one in queries.home_state(namespace_a).not_ours] == [
        ("by-hand", "1 gpu.nvidia.com", "h100-1"),
        ("claim kept", "1 gpu.nvidia.com", ""),
    ]


# ---- page, stream and API agree --------------------------------------------------------------------------------------


def test_page_stream_and_api_show_the_same(
    team_a: Tenant, namespace_a: Namespace, team_b: Namespace, a100: GpuClass, alice: User, bob: User, client: Client
) -> None:
    make.grant(team_a, a100, units=4)
    ready(namespace_a, a100, "there", alice)
    running.workload(namespace_a, a100, name="waits", by=alice, units=2)
    ready(team_b, a100, "theirs", bob, units=2)
    stranger(namespace_a, "by-hand")
    MirrorKind.objects.update(resource_version="70")
    MirrorKind.objects.filter(kind="Job").update(listed_at=None)
    client.force_login(alice)
    body = client.get("/api/v1/teams/team-a/live").json()
    assert body["versions"] == {"Job": None, "Pod": "70", "Workload": "70"}
    running.known(namespace_a.cluster_id)
    page = client.get(HOME).content.decode()
    body = client.get("/api/v1/teams/team-a/live").json()

    state = queries.home_state(namespace_a)
    assert [one["lent"] for one in body["holdings"]] == [{"least": 0, "most": 2}]
    assert (body["holdings"][0]["used"], body["holdings"][0]["queued"]) == (1, 2)
    assert body["running"][0]["rows"][0]["verb"] == "open"
    assert body["waiting"][0]["sentence"] == state.waiting_groups[0].sentence
    assert [one["name"] for one in body["not_ours"]] == ["by-hand"]
    assert body["month"]["team"]["name"] == "Team"
    assert [one["units"] for one in body["ends"]] == [4]
    streamed = {name: text for _view, part in fragments(namespace_a.name, [""]) for name, text in (part or {}).items()}
    assert len(streamed) == 8
    for name, html in streamed.items():
        assert f'id="{name}"' in html.decode()
        assert f'sse-swap="{name}"' in page
        assert "csrfmiddlewaretoken" not in html.decode()
    assert "theirs" not in page
    assert "up to 2" in page


@pytest.mark.parametrize("path", ["/api/v1/teams/team-a/live", HOME])
def test_strangers_learn_nothing(team_a: Tenant, charlie: User, client: Client, path: str) -> None:
    client.force_login(charlie)
    assert client.get(path).status_code == 404


def test_queries_do_not_grow_with_what_runs_waits_and_is_borrowed(
    team_a: Tenant, namespace_a: Namespace, team_b: Namespace, a100: GpuClass, alice: User, bob: User
) -> None:
    make.grant(team_a, a100, units=40)
    counts = []
    for number in range(4):
        for which in range(3):
            name = f"x{number}-{which}"
            ready(namespace_a, a100, name, alice)
            running.workload(namespace_a, a100, name=f"w{name}", by=bob)
            ready(team_b, a100, f"t{name}", bob)
            stranger(namespace_a, f"s{name}")
        with CaptureQueriesContext(connection) as captured:
            state = queries.home_state(namespace_a)
        counts.append(len(captured))
    assert (len(state.running), len(state.waiting), len(state.not_ours)) == (12, 12, 12)
    assert counts[1] == counts[2] == counts[3] <= 26, counts


def test_of_hundreds_the_page_shows_the_first(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, client: Client
) -> None:
    make.grant(team_a, a100, units=40)
    for number in range(SHOWN_OF_A_CLASS + 2):
        ready(namespace_a, a100, f"runs-{number}", alice)
        waits(namespace_a, a100, alice, f"waits-{number:02}")
    client.force_login(alice)
    page, steps = (client.get(path).content.decode() for path in (HOME, f"{HOME}/next-steps"))
    first = [f"waits-{number:02}" for number in range(SHOWN_OF_A_CLASS)]
    assert re.findall(r'id="helps-([\w-]+)"', page) == first
    assert set(re.findall(r'id="helps-([\w-]+)"', steps)) == set(first)
    assert len(re.findall(rf'<th scope="row"><div><a href="{HOME}/workloads/runs-\d+"', page)) == SHOWN_OF_A_CLASS
    assert page.count(f'<a href="{HOME}/workloads?state=active">2 more of {a100.name}</a>') == 2
    body = client.get("/api/v1/teams/team-a/live").json()
    assert len(body["running"][0]["rows"]) == len(body["waiting"][0]["rows"]) == SHOWN_OF_A_CLASS + 2
