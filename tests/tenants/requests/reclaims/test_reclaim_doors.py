"""Taking units back by page, API and command: the same answer everywhere, and what the pages show of it."""

from __future__ import annotations

import html
import io
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Event, Role, User
from catalog.classes import queries as catalog
from catalog.models import GpuClass, Pool
from cluster.client.kube import Kube
from portal.core.due import Deadline
from portal.core.errors import Refused
from tenants.models import Grant, Membership, Namespace, Plan, QuotaRequest, Tenant
from tenants.provisioning import reconcile, steps
from tenants.requests import actions as request_actions
from tenants.requests.decisions import actions
from tenants.requests.decisions.types import Decision
from tenants.requests.reclaims import actions as reclaim_actions
from tenants.requests.types import ReclaimLine, RequestedLine
from tests.support.http.answers import DONE, Answer, raced
from tests.support.http.visits import undone
from tests.support.rows import make

WHY = "The course needs them."
DAYS = 9


@pytest.fixture
def grant(team_a: Tenant, a100: GpuClass) -> Grant:
    GpuClass.objects.update(promise_limit=8)
    return make.grant(team_a, a100, units=8)


@pytest.fixture
def people(
    grant: Grant, team_a: Tenant, alice: User, bob: User, charlie: User, dana: User, olga: User
) -> dict[str, User]:
    elsewhere = make.gpu_class(grant.gpu_class.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb")
    found = {
        "owner": alice,
        "member": bob,
        "approver": dana,
        "approver of another class": make.approver("Dora", gpu_class=elsewhere),
        "approver in the team": make.approver("Doro"),
        "operator": olga,
        "operator in the team": make.user("Otto", roles=[Role.OPERATOR]),
        "auditor": make.user("Audra", roles=[Role.AUDITOR]),
        "stranger": charlie,
    }
    make.member(team_a, found["approver in the team"], Membership.Role.VIEWER)
    make.member(team_a, found["operator in the team"])
    return found


EXPECTED = {
    "owner": "not_allowed",
    "member": "not_allowed",
    "approver": "",
    "approver of another class": "not_your_class",
    "approver in the team": "own_team",
    "operator": "",
    "operator in the team": "own_team",
    "auditor": "not_allowed",
    "stranger": "not_found",
}


def signed_in(who: User) -> Client:
    client = Client()
    client.force_login(who)
    return client


def text(response: Any) -> str:
    return " ".join(html.unescape(response.content.decode()).split())


def day(after: int) -> str:
    return f"{timezone.localdate() + timedelta(days=after):%Y-%m-%d}"


def by_action(grant: Grant, who: User, units: int, after: int) -> Answer:
    line = ReclaimLine(grant.gpu_class.slug, units, midnight(after))
    try:
        reclaim_actions.file_reclaim("team-a", lines=[line], justification=WHY, by=Actor(who, "page"))
    except Refused as refused:
        return Answer(refused.refusal.status, refused.code, refused.refusal.message)
    return DONE


def midnight(after: int) -> Any:
    now = timezone.localtime()
    return (now + timedelta(days=after)).replace(hour=0, minute=0, second=0, microsecond=0)


def by_page(grant: Grant, who: User, units: int, after: int) -> Answer:
    typed = {"units": units, "from_date": day(after), "justification": WHY}
    answer = signed_in(who).post(f"/teams/team-a/grants/{grant.pk}/reclaim", typed)
    return DONE if answer.status_code == 302 else Answer(answer.status_code, None, text(answer))


def by_api(grant: Grant, who: User, units: int, after: int) -> Answer:
    starts = midnight(after).isoformat()
    line = {"gpu_class": grant.gpu_class.slug, "units": units, "kind": "reclaim", "starts_at": starts}
    body = {"team": "team-a", "justification": WHY, "lines": [line]}
    answer: Any = signed_in(who).post("/api/v1/requests", json.dumps(body), content_type="application/json")
    if answer.status_code == 201:
        return DONE
    return Answer(answer.status_code, answer.json()["code"], answer.json()["message"])


def by_command(grant: Grant, who: User, units: int, after: int) -> Answer:
    words = ["reclaim", "team-a", "--line", f"{grant.gpu_class.slug}={units}", "--from", day(after), "--because", WHY]
    try:
        call_command("quota", *words, "--as", who.email, stdout=io.StringIO())
    except CommandError as error:
        return Answer(None, None, str(error))
    return DONE


DOORS: dict[str, Callable[[Grant, User, int, int], Answer]] = {"page": by_page, "API": by_api, "command": by_command}


def outcome() -> list[Any]:
    lines = QuotaRequest.objects.values_list(
        "filed_by", "justification", "lines__kind", "lines__asked_units", "lines__asked_from", "lines__asked_until"
    )
    return [list(lines), list(Event.objects.values_list("verb", "actor")), list(Grant.objects.values_list("period"))]


@pytest.mark.parametrize("who", list(EXPECTED))
def test_every_door_gives_the_same_answer_to_who_takes_back(grant: Grant, people: dict[str, User], who: str) -> None:
    before = outcome()
    with undone():
        reference = by_action(grant, people[who], 3, DAYS)
        done = outcome()
    assert (reference.code or "") == EXPECTED[who]
    for door, ask in DOORS.items():
        with undone():
            said = ask(grant, people[who], 3, DAYS)
            if reference == DONE:
                assert (door, said, outcome()) == (door, DONE, done)
                continue
            assert outcome() == before
            assert said.sentence is not None
            assert (reference.sentence or "") in said.sentence or said.status == reference.status == 404
            assert door != "API" or said == reference


@pytest.mark.parametrize(
    ("units", "after", "code"),
    [
        (3, 6, "notice_too_short"),
        (8, DAYS, "not_lower"),
        (9, DAYS, "more_than_held"),
        (3, 40, "nothing_held"),
    ],
)
def test_every_door_refuses_in_the_same_words(grant: Grant, olga: User, units: int, after: int, code: str) -> None:
    reference = by_action(grant, olga, units, after)
    assert reference.code == code
    # The earliest possible time in the sentence changes with the clock, so it is not compared.
    sentence = (reference.sentence or "").split(". Choose")[0]
    for ask in DOORS.values():
        said = ask(grant, olga, units, after)
        assert said.sentence is not None
        assert sentence in said.sentence
        assert said.status in (None, 422)
    assert not QuotaRequest.objects.exists()


def test_the_api_says_what_a_line_of_taking_back_may_have(grant: Grant, olga: User) -> None:
    line = {"gpu_class": grant.gpu_class.slug, "units": 3, "kind": "reclaim", "starts_at": midnight(DAYS).isoformat()}
    asked = {"gpu_class": grant.gpu_class.slug, "units": 3}

    def post(*lines: dict[str, Any]) -> tuple[int, str | None]:
        body = {"team": "team-a", "justification": WHY, "lines": lines}
        answer: Any = signed_in(olga).post("/api/v1/requests", json.dumps(body), content_type="application/json")
        return answer.status_code, answer.json().get("field")

    assert post(line | {"ends_at": midnight(20).isoformat()}) == (422, "lines[0].ends_at")
    assert post(asked) == (422, "lines[0].ends_at")
    assert post(line, asked | {"ends_at": midnight(20).isoformat()}) == (422, "lines")
    assert not QuotaRequest.objects.exists()
    assert post(line) == (201, None)
    shown = signed_in(olga).get(f"/api/v1/requests/{QuotaRequest.objects.get().pk}").json()["lines"][0]
    assert (shown["kind"], shown["asked_units"], shown["notice_days"]) == ("reclaim", 3, DAYS - 1)


# ---- pages ---------------------------------------------------------------------------------------------------------


def test_only_staff_who_may_see_the_way_in(grant: Grant, people: dict[str, User]) -> None:
    for who in ("owner", "member", "auditor", "operator in the team"):
        assert "Reduce quota" not in text(signed_in(people[who]).get("/teams/team-a/grants"))
    page = signed_in(people["operator"]).get("/teams/team-a/grants")
    assert f'href="/teams/team-a/grants/{grant.pk}/reclaim"' in page.content.decode()
    told = text(signed_in(people["approver of another class"]).get("/teams/team-a/grants"))
    assert "can reduce its quota" in told
    form = text(signed_in(people["operator"]).get(f"/teams/team-a/grants/{grant.pk}/reclaim"))
    assert "has 8 GPUs, which expire on" in form
    assert f'value="{day(8)}"' in form, "the first whole day after a week"


def test_request_and_last_day_say_what_happens(
    grant: Grant, team_a: Tenant, alice: User, dana: User, olga: User
) -> None:
    assert by_page(grant, olga, 3, DAYS) == DONE
    filed = QuotaRequest.objects.get()
    page = text(signed_in(alice).get(f"/requests/{filed.pk}"))
    assert "quota reduction to 3" in page
    assert f"Notice to the team: {DAYS - 1} days." in page
    assert "Only the person who proposed this reduction can withdraw it." in page
    card = text(signed_in(alice).get("/teams/team-a/grants"))
    assert "Proposed: 3 GPUs from" in card
    assert f"request #{filed.pk}</a>" in card
    [told] = signed_in(alice).get("/api/v1/teams/team-a/grants").json()["items"]
    assert {name: told["reclaim"][name] for name in ("request", "is_pending", "units")} == {
        "request": filed.pk,
        "is_pending": True,
        "units": 3,
    }
    assert "Withdraw" in text(signed_in(olga).get(f"/requests/{filed.pk}"))
    decide = signed_in(dana).get(f"/requests/{filed.pk}")
    assert "readonly" in decide.content.decode()

    actions.decide_request(filed.pk, [Decision(filed.lines.get().pk, approve=True)], by=Actor(dana, "page"))
    card = text(signed_in(alice).get("/teams/team-a/grants"))
    assert f"the original expiry was {timezone.localtime(grant.period.upper):%-d %b %Y}" in card
    assert "Reduced to 3 GPUs after this expiry" in card
    rest, cut = signed_in(alice).get("/api/v1/teams/team-a/grants").json()["items"]
    assert (cut["reclaim"]["is_pending"], rest["reclaim"]) == (False, None)
    assert "proposed to reduce quota in" in text(signed_in(alice).get("/teams/team-a/history"))


def test_the_page_decides_it(grant: Grant, dana: User, olga: User) -> None:
    assert by_page(grant, olga, 3, DAYS) == DONE
    filed = QuotaRequest.objects.get()
    line = filed.lines.get()
    typed = {
        "decision": "approve",
        f"units-{line.pk}": "4",
        f"from-{line.pk}": day(DAYS + 2),
        f"until-{line.pk}": f"{timezone.localdate(line.asked_until):%Y-%m-%d}",
        f"grace-{line.pk}": "",
    }
    client = signed_in(dana)
    too_soon = client.post(f"/requests/{filed.pk}/decide", typed | {f"from-{line.pk}": day(DAYS - 1)})
    assert too_soon.status_code == 422
    assert "The team was notified of" in text(too_soon)
    assert client.post(f"/requests/{filed.pk}/decide", typed).status_code == 302
    cut, rest = Grant.objects.order_by("period")
    assert (cut.units, rest.units, cut.period.upper, rest.period.lower) == (
        8,
        4,
        midnight(DAYS + 2),
        midnight(DAYS + 2),
    )


def test_the_page_costs_the_same_with_one_grant_and_with_many(
    grant: Grant, team_a: Tenant, olga: User, django_assert_max_num_queries: Any
) -> None:
    client, path = signed_in(olga), f"/teams/team-a/grants/{grant.pk}/reclaim"
    with django_assert_max_num_queries(12) as few:
        assert client.get(path).status_code == 200
    for number in range(6):
        since = timezone.now() + timedelta(days=40 + 10 * number)
        make.grant(team_a, grant.gpu_class, units=1, since=since, until=since + timedelta(days=9))
        make.tenant(grant.gpu_class.cluster, slug=f"team-{number}", namespace=f"{grant.gpu_class.slug}-{number}")
    with django_assert_max_num_queries(12) as many:
        assert client.get(path).status_code == 200
    assert len(few) == len(many)


# ---- concurrent requests -------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_32_who_ask_and_take_back_have_one_winner(grant: Grant, alice: User, olga: User) -> None:
    slug, now = grant.gpu_class.slug, timezone.now()
    asked = RequestedLine(slug, 9, now, now + timedelta(days=20))
    taken = ReclaimLine(slug, 3, now + timedelta(days=DAYS))
    verbs: list[Callable[[], Any]] = [
        lambda: request_actions.file_request("team-a", lines=[asked], justification=WHY, by=Actor(alice, "page")),
        lambda: reclaim_actions.file_reclaim("team-a", lines=[taken], justification=WHY, by=Actor(olga, "page")),
    ]
    answers = raced(verbs * 16)
    assert answers.count("") == 1
    assert set(answers) == {"", "already_pending"}
    assert QuotaRequest.objects.count() == 1


# ---- plan of a team's quota ----------------------------------------------------------------------------------------


def test_the_plan_lowers_the_total_and_keeps_boosts(
    grant: Grant, team_a: Tenant, namespace_a: Namespace, olga: User, kube_worker: Kube, clean_cluster: None
) -> None:
    make.grant(team_a, grant.gpu_class, units=2, kind=Grant.Kind.BOOST)
    reconcile.reconcile_pool(Pool.objects.create(cluster=namespace_a.cluster), Deadline(), kube=kube_worker)
    steps.work_on_namespace(namespace_a, Deadline(), kube=kube_worker)
    assert by_action(grant, olga, 3, DAYS) == DONE
    row = Plan.objects.get()
    steps.work_on_plan(row, Deadline(), kube=kube_worker)
    row.refresh_from_db()
    changed = {one["kind"]: one["difference"] for one in row.objects_planned if one["change"] != "same"}
    path = (
        f"spec.resourceGroups[0].flavors[{catalog.flavor_name(grant.gpu_class)}].resources[nvidia.com/gpu].nominalQuota"
    )
    assert changed["ClusterQueue"] == [f"- {path}: 10", f"+ {path}: 5"]
