"""Who sees which idle runs, with which figures, and what keeping and stopping answer, on pages and in the API."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import ApiToken, Delivery, Event, User
from catalog.models import GpuClass
from desk.inbox.evidence import usage_evidence
from tenants.models import Namespace, Tenant
from tests.support.rows import make, running
from tests.usage.idle import rows
from usage.idle import actions, queries
from usage.idle.models import IdleRun
from usage.telemetry.models import RunHour
from workloads.models import NotebookWatch, Run

pytestmark = pytest.mark.django_db
PAGE = "/teams/team-a/workloads/train"
IN_10_MINUTES = timedelta(minutes=10)


@pytest.fixture
def run(namespace_a: Namespace, a100: GpuClass, alice: User) -> Run:
    """Alice's job of 2 units, idle since 90 minutes ago."""
    found = running.workload(namespace_a, a100, name="train", kind="job", by=alice, units=2).runs.get()
    rows.idle(found)
    return found


def page(client: Client, who: User, path: str = PAGE) -> str:
    client.force_login(who)
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


# ---- pages -----------------------------------------------------------------------------------------------------------


def test_the_workloads_page_has_evidence_countdown_and_the_button(run: Run, alice: User, client: Client) -> None:
    text = page(client, alice)
    assert "GPUs are idle</h2>" in text
    assert "58 of the last 60 minutes were measured, each with GPU activity below 5 %, mean 0.4 %" in text
    assert "40.0 GiB of GPU memory held" in text
    assert "2 units at 5.00 per hour, 7.50 since then" in text
    assert "Keep it, because…" in text
    assert "hourglass" not in text.partition('id="idle"')[2].partition("</section>")[0]
    IdleRun.objects.update(stops_at=timezone.now() + IN_10_MINUTES)
    for path in (PAGE, f"{PAGE}/idle"):
        part = page(client, alice, path).partition('id="idle"')[2]
        assert "stops <time" in part
        assert 'data-when="countdown"' in part


@pytest.mark.parametrize(
    "fields", [{"is_idle": False}, {"judged_at": timezone.now() - timedelta(days=1)}, {"stopping": True}]
)
def test_what_is_not_known_now_is_shown_nowhere(
    run: Run, alice: User, olga: User, client: Client, fields: dict[str, Any]
) -> None:
    if fields.pop("stopping", False):
        Run.objects.update(stop_requested_at=timezone.now())
    else:
        IdleRun.objects.update(**fields)
    assert "GPUs are idle" not in page(client, alice)
    assert "Idle GPUs" not in page(client, alice, "/teams/team-a/members")
    assert "No idle runs" in page(client, olga, "/operators/idle")
    assert call(client, alice, "GET", "")[1]["items"] == []


def test_keeping_is_honoured_shown_and_possible_once(
    run: Run, alice: User, bob: User, olga: User, client: Client
) -> None:
    IdleRun.objects.update(stops_at=timezone.now() + IN_10_MINUTES)
    client.force_login(alice)
    assert client.post(f"{PAGE}/idle/keep", {"hours": "3", "reason": "a demo  at four"}).headers["Location"] == PAGE
    row = IdleRun.objects.get()
    assert (row.kept_reason, row.kept_by, row.stops_at) == ("a demo at four", alice, None)
    assert row.kept_until is not None
    assert timedelta(hours=2.9) < row.kept_until - timezone.now() <= timedelta(hours=3)
    event = Event.objects.get(verb="run.idle_kept")
    assert (event.actor_id, event.after["reason"]) == (alice.pk, "a demo at four")
    for who, path in ((bob, PAGE), (bob, "/teams/team-a/members"), (olga, "/operators/idle")):
        assert "a demo at four" in page(client, who, path)
    assert "It was kept once since its GPUs are idle." in page(client, alice)
    again = client.post(f"{PAGE}/idle/keep", {"hours": "3", "reason": "more"})
    assert again.status_code == 409
    assert "It was kept once since its GPUs are idle." in again.content.decode()


@pytest.mark.parametrize("hours", ["", "x", "-1", "25", "99999999"])
def test_hours_that_are_none_are_refused(run: Run, alice: User, client: Client, hours: str) -> None:
    client.force_login(alice)
    answer = client.post(f"{PAGE}/idle/keep", {"hours": hours, "reason": "x"})
    assert answer.status_code == 422
    assert "Enter 1 to 24 h." in answer.content.decode()
    assert IdleRun.objects.get().kept_until is None


def test_a_keep_holds_back_the_rule_of_idle_notebooks_too(namespace_a: Namespace, a100: GpuClass, alice: User) -> None:
    found = running.workload(namespace_a, a100, by=alice).runs.get()
    rows.idle(found)
    now = timezone.now()
    NotebookWatch.objects.create(run=found, warned_at=now, stops_at=now + IN_10_MINUTES)
    row = actions.keep_idle("team-a", "one", hours=2, reason="a demo", by=Actor(alice, "page"))
    watch = NotebookWatch.objects.get()
    assert (watch.kept_until, watch.stops_at, watch.warned_at) == (row.kept_until, None, None)


def test_the_teams_page_lists_a_bounded_number(
    run: Run, namespace_a: Namespace, a100: GpuClass, alice: User, client: Client
) -> None:
    for number in range(11):
        rows.idle(running.workload(namespace_a, a100, name=f"w{number}", by=alice, kind="job").runs.get())
    text = page(client, alice, "/teams/team-a/members")
    assert 'Idle GPUs <span class="count">12</span>' in text
    assert "32.50 per hour" in text, "2 units and 11, at 2.50"
    assert "and 2 more" in text
    assert text.index(">train</a>") < text.index(">w0</a>"), "the costliest first"


def test_an_approver_reads_who_holds_without_using(run: Run, team_a: Tenant, a100: GpuClass) -> None:
    [(name, text)] = usage_evidence(team_a, [a100]).idle
    assert name == "train (Alice)"
    assert text.startswith(f"2 units of {a100.name}, no GPU activity since ")
    assert text.endswith("5.00 per hour; 40.0 GiB of GPU memory held")
    assert usage_evidence(make.tenant(a100.cluster, slug="team-b"), [a100]).idle == ()


def test_three_clicks_from_an_operators_start_page_to_a_text_for_the_person(
    run: Run, olga: User, client: Client
) -> None:
    client.force_login(olga)
    start = client.get("/", follow=True)
    assert start.request["PATH_INFO"] == "/operators"
    assert 'href="/operators/idle"' in start.content.decode()
    assert "7.50 so far" in start.content.decode()
    text = page(client, olga, "/operators/idle")
    assert "Message for Alice" in text
    assert "Hello Alice," in text
    assert "your job train of Team A holds 2 units of A100" in text
    assert "Please stop it if you do not need it now: http" in text


def test_an_operator_stops_with_a_reason_that_users_get(run: Run, alice: User, olga: User, client: Client) -> None:
    client.force_login(olga)
    assert client.post("/operators/idle/team-a/train/stop", {"reason": " "}).status_code == 422
    answer = client.post("/operators/idle/team-a/train/stop", {"reason": "Team B waits for them"})
    assert answer.headers["Location"] == "/operators/idle"
    found = Run.objects.get()
    assert found.stop_requested_at is not None
    assert found.stop_message == "Stopped by an operator: Team B waits for them."
    [mail] = Delivery.objects.all()
    assert (mail.user, mail.subject) == (alice, "train of Team A was stopped by an operator")
    assert "Team B waits for them. Its GPUs were idle: 58 of the last 60 minutes" in mail.body
    again = client.post("/operators/idle/team-a/train/stop", {"reason": "again"})
    assert again.status_code == 409
    assert Delivery.objects.count() == 1


def test_a_run_that_is_used_again_is_not_stopped_from_an_old_page(run: Run, olga: User, client: Client) -> None:
    IdleRun.objects.update(is_idle=False)
    client.force_login(olga)
    assert client.post("/operators/idle/team-a/train/stop", {"reason": "x"}).status_code == 409
    assert Run.objects.get().stop_requested_at is None


# ---- the last days ---------------------------------------------------------------------------------------------------


def measured(run: Run, hour: Any, *, seen: int, busy: int = 0, measure: str = "utilisation") -> None:
    RunHour.objects.create(
        run=run, hour=hour, namespace=run.workload.namespace, gpu_class=run.workload.gpu_class, measure=measure,
        seen_minutes=(1 << seen) - 1, busy_minutes=(1 << busy) - 1, activity_sum=1, activity_max=1, busy_devices_max=0,
    )  # fmt: skip


def test_who_wastes_most_this_week(namespace_a: Namespace, a100: GpuClass, alice: User, bob: User) -> None:
    """Bob: 2 units × (30 + 60) idle minutes of 120 measured ones. Alice: 1 unit × 30 of 60."""
    GpuClass.objects.update(price_per_unit_hour="2.5")
    a100.refresh_from_db()
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    since = hour - timedelta(days=9)
    of_bob = rows.holder(namespace_a, a100, since=since, by=bob, name="b", units=2)
    of_alice = rows.holder(namespace_a, a100, since=since, by=alice, name="a")
    shared = rows.holder(namespace_a, a100, since=since, by=alice, name="s")
    busy = rows.holder(namespace_a, a100, since=since, by=make.user("Carl"), name="c")
    measured(of_bob, hour - timedelta(hours=2), seen=60, busy=30)
    measured(of_bob, hour - timedelta(hours=3), seen=60)
    measured(of_bob, hour - timedelta(days=8), seen=60)
    measured(of_alice, hour - timedelta(hours=2), seen=60, busy=30)
    measured(shared, hour - timedelta(hours=2), seen=60, measure="shared")
    measured(busy, hour - timedelta(hours=2), seen=60, busy=60)
    found, more = queries.wasted_week()
    assert [(one.person, one.runs, one.idle_hours, one.measured_hours, one.percent, one.cost) for one in found] == [
        ("Bob", 1, Decimal("3.00"), Decimal("4.00"), 75, Decimal("7.50")),
        ("Alice", 1, Decimal("0.50"), Decimal("1.00"), 50, Decimal("1.25")),
    ]
    assert more == 0


# ---- the API ---------------------------------------------------------------------------------------------------------


def call(
    client: Client, who: User, method: str, path: str, body: dict[str, Any] | None = None, *, scopes: str = "read"
) -> tuple[int, Any]:
    by = Actor(user=who, via="page")
    name = f"t{Event.objects.count()}"
    row, token = api_token_actions.create_token(name=name, scopes=["read"], expires_in_days=1, by=by)
    # People create tokens of the scope admin with a second factor.
    ApiToken.objects.filter(pk=row.pk).update(scopes=scopes.split())
    headers = {"Authorization": f"Bearer {token}"}
    ask: Callable[..., Any] = client.get if method == "GET" else client.post
    values = {} if method == "GET" else {"data": body or {}, "content_type": "application/json"}
    answer = ask(f"/api/v1/idle-holders{path}", headers=headers, **values)
    return answer.status_code, answer.json()


def test_the_list_is_of_ones_own_teams_and_of_all_for_staff(
    run: Run, a100: GpuClass, alice: User, charlie: User, olga: User, client: Client
) -> None:
    other = make.tenant(a100.cluster, slug="team-b").namespaces.get()
    rows.idle(running.workload(other, a100, name="theirs", kind="job", by=olga).runs.get())

    def names(who: User, query: str = "") -> list[str]:
        return [one["workload"] for one in call(client, who, "GET", query)[1]["items"]]

    assert names(alice) == ["train"]
    assert names(charlie) == []
    assert sorted(names(olga)) == ["theirs", "train"]
    assert names(olga, "?team=team-b") == ["theirs"]
    assert call(client, alice, "GET", "?team=team-b")[0] == 404
    first = call(client, olga, "GET", "?limit=1")[1]
    rest = call(client, olga, "GET", f"?{first['next'].partition('?')[2]}")[1]
    assert {first["items"][0]["workload"], rest["items"][0]["workload"]} == {"theirs", "train"}
    assert rest["next"] is None


def test_an_item_has_the_evidence(run: Run, a100: GpuClass, alice: User, client: Client) -> None:
    IdleRun.objects.update(memory_mib=None)
    [one] = call(client, alice, "GET", "")[1]["items"]
    assert {name: one[name] for name in ("team", "workload", "run", "person", "gpu_class", "units")} == {
        "team": "team-a", "workload": "train", "run": 1, "person": "Alice", "gpu_class": a100.slug, "units": 2,
    }  # fmt: skip
    assert (one["minutes"], one["seen_minutes"], one["activity_percent"], one["memory_mib"]) == (60, 58, 0.4, None)
    assert (Decimal(one["cost_per_hour"]), one["cost_since"]) == (5, "7.50")
    assert (one["stops_at"], one["kept_until"], one["kept_by"]) == (None, None, "")


def test_keeping_by_the_api(run: Run, alice: User, bob: User, charlie: User, client: Client) -> None:
    body = {"hours": 2, "reason": "a demo"}
    assert call(client, bob, "POST", "/train/keep", body, scopes="launch")[0] == 403
    assert call(client, charlie, "POST", "/train/keep?team=team-a", body, scopes="launch")[0] == 404
    assert call(client, alice, "POST", "/train/keep", body)[1]["code"] == "missing_scope"
    status, one = call(client, alice, "POST", "/train/keep", body, scopes="launch")
    assert (status, one["kept_reason"], one["kept_by"]) == (200, "a demo", "Alice")
    status, refused = call(client, alice, "POST", "/train/keep", body, scopes="launch")
    assert (status, refused["code"]) == (409, "already_kept")


def test_a_stretch_that_is_over_cannot_be_kept(run: Run, alice: User, client: Client) -> None:
    IdleRun.objects.all().delete()
    status, refused = call(client, alice, "POST", "/train/keep", {"hours": 1, "reason": "x"}, scopes="launch")
    assert (status, refused["code"]) == (409, "not_idle")


def test_only_operators_stop_by_the_api(run: Run, alice: User, olga: User, client: Client) -> None:
    body = {"reason": "Others wait"}
    for one in (alice, olga):
        make.second_factor(one)
    status, refused = call(client, alice, "POST", "/train/stop", body, scopes="admin")
    assert (status, refused["code"]) == (404, "not_found")
    status, found = call(client, olga, "POST", "/train/stop?team=team-a", body, scopes="admin")
    assert (status, found["status"]["phase"]) == (200, "stopping")


# ---- cost ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/operators/idle", "/teams/team-a/members"])
def test_a_list_takes_as_many_queries_for_many_as_for_one(
    run: Run, namespace_a: Namespace, a100: GpuClass, alice: User, olga: User, client: Client, path: str
) -> None:
    client.force_login(olga)

    def queries_of_page() -> int:
        client.get(path)
        with CaptureQueriesContext(connection) as found:
            client.get(path)
        return len(found)

    few = queries_of_page()
    for number in range(5):
        rows.idle(running.workload(namespace_a, a100, name=f"w{number}", by=alice, kind="job").runs.get())
    assert queries_of_page() == few
