"""One set of rules for every interface: page, API, command and action answer alike, for every person in every state.

The table is generated: every state of a line × every verb × every person. The expected results are written here a
second time, in a dozen lines and independent of the code under test.
"""

from __future__ import annotations

import html
import io
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.models import Grant, Membership, Namespace, Plan, QuotaLine, QuotaRequest, RequestComment, Tenant
from tenants.requests import actions
from tenants.requests.comments import actions as comment_actions
from tenants.requests.decisions import actions as decision_actions
from tenants.requests.decisions.types import Decision, OverPromise
from tenants.requests.reclaims import actions as reclaim_actions
from tenants.requests.types import ReclaimLine, RequestedLine
from tests.support.http.answers import DONE, Answer, answers_agree, raced
from tests.support.http.visits import rows_of, signed_in_once, undone, visit
from tests.support.rows import make

STATES = ("pending", "approved", "denied", "withdrawn")
VERBS = ("approve", "deny", "withdraw", "comment", "ask back")
TEAM = ("owner", "manager", "member", "viewer", "filer")
APPROVERS = ("approver", "approver of another class", "approver in the team", "approver who filed it")
DEPUTIES = ("deputy", "deputy of another class")
PEOPLE = (*TEAM, *APPROVERS, *DEPUTIES, "operator", "stranger")
REASON = "No cards are left."
IN_A_FORM = (409, 422)  # a form is shown again with the conflict beside it


def expected(verb: str, who: str, state: str, *, is_reclaim: bool = False) -> str:
    """Returns the refusal's error code, "" for success. Only its filer may withdraw a request that takes units back."""
    if who in ("stranger", "deputy of another class"):
        return "not_found"
    if who == "deputy":
        # The delegate gets the same answer as the approver who named this person.
        return expected(verb, "approver", state, is_reclaim=is_reclaim)
    if is_reclaim and verb == "withdraw" and who in ("owner", "manager"):
        return "not_allowed"
    if verb == "comment":
        return "" if who in TEAM or (who in APPROVERS and "another" not in who) else "not_allowed"
    allowed = {
        "withdraw": ("owner", "manager", "filer", "approver who filed it"),
        "ask back": ("approver", "approver who filed it"),
    }.get(verb, ("approver",))
    if who in allowed:
        return "" if state == "pending" else "already_decided"
    if verb in ("approve", "deny") and who in APPROVERS:
        return {"class": "not_your_class", "team": "own_team", "it": "own_request"}[who.split()[-1]]
    return "not_allowed"


@pytest.fixture
def filed(team_a: Tenant, a100: GpuClass, alice: User) -> QuotaRequest:
    GpuClass.objects.update(promise_limit=8)
    now = timezone.now()
    line = RequestedLine(a100.slug, 2, now, now + timedelta(days=30))
    by = Actor(alice, "page")
    return actions.file_request("team-a", lines=[line], justification="Two trainings.", by=by)


@pytest.fixture
def taking(team_a: Tenant, a100: GpuClass, olga: User) -> QuotaRequest:
    """A request that takes units back, filed by an operator; the table makes another person its filer."""
    make.grant(team_a, a100, units=8)
    line = ReclaimLine(a100.slug, 2, timezone.now() + timedelta(days=9))
    return reclaim_actions.file_reclaim("team-a", lines=[line], justification="The course.", by=Actor(olga, "page"))


@pytest.fixture
def people(team_a: Tenant, alice: User, bob: User, charlie: User, dana: User, olga: User) -> Iterator[dict[str, User]]:
    """The people of the table, created after the request was filed."""
    elsewhere = make.gpu_class(team_a.namespaces.get().cluster, slug="mig", resource="nvidia.com/mig-1g.10gb")
    found = {
        "owner": alice,
        "manager": make.user("Mona"),
        "member": bob,
        "viewer": make.user("Vera"),
        "filer": make.user("Fred"),
        "approver": dana,
        "approver of another class": make.approver("Dora", gpu_class=elsewhere),
        "approver in the team": make.approver("Doro"),
        "approver who filed it": make.approver("Dinah"),
        "deputy": make.user("Dave"),
        "deputy of another class": make.user("Dirk"),
        "operator": olga,
        "stranger": charlie,
    }
    make.deputy(found["deputy"], of=found["approver"])
    make.deputy(found["deputy of another class"], of=found["approver of another class"])
    make.member(team_a, found["manager"], Membership.Role.MANAGER)
    make.member(team_a, found["viewer"], Membership.Role.VIEWER)
    # This person filed the request as a manager and is a viewer now: only the rights of the filer are left.
    make.member(team_a, found["filer"], Membership.Role.VIEWER)
    make.member(team_a, found["approver in the team"])
    QuotaRequest.objects.update(filed_by=found["filer"])
    with signed_in_once(found.values()):
        yield found


def bring(filed: QuotaRequest, state: str, people: dict[str, User]) -> None:
    line = filed.lines.get()
    dana = Actor(people["approver"], "page")
    if state == "withdrawn":
        actions.withdraw_request(filed.pk, by=Actor(people["filer"], "page"))
    elif state != "pending":
        decision_actions.decide_request(
            filed.pk, [Decision(line.pk, approve=state == "approved", reason=REASON)], by=dana
        )
    assert filed.lines.get().state == state


# ---- interfaces: action, page, API, command ----------------------------------------------------------------------


def by_action(verb: str, filed: QuotaRequest, who: User) -> Answer:
    by = Actor(who, "page")
    line = filed.lines.get()
    try:
        if verb in ("approve", "deny"):
            reason = REASON if verb == "deny" else ""
            decision_actions.decide_request(
                filed.pk, [Decision(line.pk, approve=verb == "approve", reason=reason)], by=by
            )
        elif verb == "withdraw":
            actions.withdraw_request(filed.pk, by=by)
        else:
            comment_actions.comment_request(filed.pk, text="Hm.", asks_back=verb == "ask back", by=by)
    except Refused as refused:
        return Answer(refused.refusal.status, refused.code, refused.refusal.message)
    return DONE


def by_page(verb: str, filed: QuotaRequest, who: User | None) -> Answer:
    line = filed.lines.get()
    path, body = f"/requests/{filed.pk}/", {}
    if verb in ("approve", "deny"):
        path += "decide"
        body = {
            "decision": verb,
            "reason": REASON if verb == "deny" else "",
            f"units-{line.pk}": line.asked_units,
            f"from-{line.pk}": f"{timezone.localdate(line.asked_from):%Y-%m-%d}",
            f"until-{line.pk}": f"{timezone.localdate(line.asked_until):%Y-%m-%d}",
        }
    elif verb == "withdraw":
        path += "withdraw"
    else:
        path += "comment"
        body = {"text": "Hm.", "asks_back": "yes" if verb == "ask back" else ""}
    answer = visit(who).post(path, body)
    if answer.status_code == 302 and "login" not in answer.headers["Location"]:
        return DONE
    return Answer(answer.status_code, None, " ".join(html.unescape(answer.content.decode()).split()))


def by_api(verb: str, filed: QuotaRequest, who: User | None) -> Answer:
    line = filed.lines.get()
    path, body = f"/api/v1/requests/{filed.pk}/", {}
    if verb in ("approve", "deny"):
        path += "decide"
        body = {"lines": [{"id": line.pk, "approve": verb == "approve", "reason": REASON if verb == "deny" else ""}]}
    elif verb == "withdraw":
        path += "withdraw"
    else:
        path += "comments"
        body = {"text": "Hm.", "asks_back": verb == "ask back"}
    answer: Any = visit(who).post(path, json.dumps(body), content_type="application/json")
    if answer.status_code in (200, 201):
        return DONE
    return Answer(answer.status_code, answer.json()["code"], answer.json()["message"])


def by_command(verb: str, filed: QuotaRequest, who: User | None) -> Answer:
    words = [verb, str(filed.pk), "--as", who.email if who else "nobody@example.org"]
    try:
        call_command("quota", *words, *(["--reason", REASON] if verb == "deny" else []), stdout=io.StringIO())
    except CommandError as error:
        return Answer(None, None, str(error))
    return DONE


def doors(verb: str) -> dict[str, Callable[[str, QuotaRequest, Any], Answer]]:
    found: dict[str, Callable[[str, QuotaRequest, Any], Answer]] = {"page": by_page, "API": by_api}
    return found | ({"command": by_command} if verb in ("approve", "deny", "withdraw") else {})


# ---- expected outcomes -------------------------------------------------------------------------------------------


def rows() -> str:
    """Returns all rows that a verb may change."""
    return rows_of(QuotaRequest, QuotaLine, Grant, RequestComment, Plan, Namespace, Event, Delivery)


def outcome() -> list[Any]:
    """Returns what a verb has changed, without the time and the interface."""
    return [
        list(QuotaLine.objects.order_by("pk").values_list("state", "decided_units", "decided_by", "reason")),
        list(Grant.objects.order_by("pk").values_list("units", "kind")),
        list(RequestComment.objects.order_by("pk").values_list("author", "text", "asks_back")),
        list(Event.objects.order_by("pk").values_list("verb", "actor", "row")),
        list(Delivery.objects.order_by("pk").values_list("user", "subject")),
    ]


# ---- tests of the table ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", STATES)
def test_every_door_gives_the_same_answer_to_everybody(
    filed: QuotaRequest, people: dict[str, User], state: str
) -> None:
    bring(filed, state, people)
    assert disagreements(filed, people, state) == {}


@pytest.mark.parametrize("state", ["pending", "approved"])
def test_every_door_gives_the_same_answer_about_taking_back(
    taking: QuotaRequest, people: dict[str, User], state: str
) -> None:
    bring(taking, state, people)
    assert disagreements(taking, people, state) == {}


def asked(verb: str, state: str, *, is_reclaim: bool = False) -> list[str]:
    """Returns everyone while pending; once decided, only owner, stranger and those whose expected answer changed."""

    def said(who: str, state: str) -> str:
        return expected(verb, who, state, is_reclaim=is_reclaim)

    two = ("owner", "stranger")
    return [who for who in PEOPLE if state == "pending" or who in two or said(who, state) != said(who, "pending")]


def disagreements(filed: QuotaRequest, people: dict[str, User], state: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    is_reclaim = filed.lines.get().kind == QuotaLine.Kind.RECLAIM
    cells = [(verb, who) for verb in VERBS for who in asked(verb, state, is_reclaim=is_reclaim)]
    for verb, name in cells:
        who = people[name]
        with undone():
            if name == "approver who filed it":
                QuotaRequest.objects.update(filed_by=who)
            before = rows()
            with undone():
                reference = by_action(verb, filed, who)
                done = outcome()
                changed = rows() != before
            wanted = expected(verb, name, state, is_reclaim=is_reclaim)
            if (reference.code or "") != wanted or changed is not (reference == DONE):
                found[f"{verb}: {name}: action"] = (reference, changed)
            for door, ask in doors(verb).items():
                with undone():
                    said = ask(verb, filed, who)
                    agrees = answers_agree(door, said, reference, page_conflict=IN_A_FORM)
                    if not agrees or (outcome() != done if said == DONE else rows() != before):
                        found[f"{verb}: {name}: {door}"] = (said, rows() != before)
    return found


def test_nobody_gets_in_by_no_door(filed: QuotaRequest, people: dict[str, User]) -> None:
    before = rows()
    for verb in VERBS:
        page, api = by_page(verb, filed, None), by_api(verb, filed, None)
        assert (page.status, api.status, api.code) == (302, 401, "not_signed_in")
        if "command" in doors(verb):
            assert by_command(verb, filed, None).sentence == "as: No user has the address 'nobody@example.org'."
    assert rows() == before


@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_every_door_keeps_the_same_facts_with_a_decision(
    filed: QuotaRequest, people: dict[str, User], verb: str
) -> None:
    kept = {}
    for door, ask in doors(verb).items():
        with undone():
            assert ask(verb, filed, people["approver"]) == DONE
            kept[door] = set(QuotaLine.objects.get().facts)
    assert kept["page"] == kept["API"] == kept["command"]
    with undone():
        by_action(verb, filed, people["approver"])
        own = set(QuotaLine.objects.get().facts)
    assert own < kept["page"]


def test_the_table_has_every_outcome() -> None:
    """Without every outcome, the test above could pass without comparing anything."""
    cells = [(verb, who, state) for verb in VERBS for state in STATES for who in asked(verb, state)]
    codes = {expected(*cell) for cell in cells}
    assert len(cells) > 100
    assert codes == {"", "not_found", "not_allowed", "not_your_class", "own_team", "own_request", "already_decided"}
    assert {state for verb, who, state in cells if verb == "withdraw" and not expected(verb, who, state)} == {"pending"}


# ---- concurrent decisions ----------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_32_who_decide_and_withdraw_have_one_winner(filed: QuotaRequest, people: dict[str, User]) -> None:
    line, dana, alice = filed.lines.get(), Actor(people["approver"], "page"), Actor(people["owner"], "page")
    verbs: list[Callable[[], Any]] = [
        lambda: decision_actions.decide_request(filed.pk, [Decision(line.pk, approve=True)], by=dana),
        lambda: decision_actions.decide_request(filed.pk, [Decision(line.pk, approve=False, reason=REASON)], by=dana),
        lambda: actions.withdraw_request(filed.pk, by=alice),
        lambda: actions.withdraw_request(filed.pk, by=Actor(people["filer"], "page")),
    ]
    answers = raced(verbs * 8)
    assert answers.count("") == 1
    assert set(answers) <= {"", "already_decided", "busy"}
    won = ("approved", "denied", "withdrawn", "withdrawn")[answers.index("") % 4]
    line.refresh_from_db()
    assert line.state == won
    assert Event.objects.filter(verb__in=["request.decided", "request.withdrawn"]).count() == 1
    assert Grant.objects.count() == (1 if won == "approved" else 0)


LIMIT = 5


@pytest.fixture
def asking(a100: GpuClass, alice: User, dana: User) -> Callable[[int], list[QuotaLine]]:
    """32 teams, each of which requests so many of the LIMIT units."""

    def ask(units: int) -> list[QuotaLine]:
        GpuClass.objects.update(promise_limit=LIMIT)
        now = timezone.now()
        asked = RequestedLine(a100.slug, units, now, now + timedelta(days=30))
        for number in range(32):
            team = make.tenant(a100.cluster, slug=f"team-{number}", namespace=f"{a100.slug}-{number}")
            make.member(team, alice, Membership.Role.OWNER)
            actions.file_request(team.slug, lines=[asked], justification="Training.", by=Actor(alice, "page"))
        return list(QuotaLine.objects.order_by("pk"))

    return ask


@pytest.mark.django_db(transaction=True)
def test_32_who_give_the_last_units_have_one_winner(asking: Callable[[int], list[QuotaLine]], dana: User) -> None:
    by = Actor(dana, "page")
    lines = asking(LIMIT)
    answers = raced([giving(line, by) for line in lines])
    assert answers.count("") == 1
    assert set(answers) <= {"", "over_promised", "busy"}
    assert [grant.units for grant in Grant.objects.all()] == [LIMIT]
    assert Event.objects.filter(verb="request.decided").count() == 1


@pytest.mark.django_db(transaction=True)
def test_nothing_is_over_promised_without_the_tick_at_any_moment(
    asking: Callable[[int], list[QuotaLine]], dana: User
) -> None:
    """Half of the 32 approvals override the limit. The recorded events are replayed decision by decision."""
    by = Actor(dana, "page")
    lines = asking(1)
    ticked = OverPromise(True, "They end on Friday.")
    answers = raced([giving(line, by, ticked if index % 2 else None) for index, line in enumerate(lines)])
    assert set(answers) <= {"", "over_promised", "busy"}
    promised, over = 0, 0
    for event in Event.objects.filter(verb="request.decided").order_by("id"):
        [line] = event.after["lines"]
        promised += line["units"]
        is_over = promised > LIMIT
        over += is_over
        assert ("over_promised" in event.after) is is_over
        if is_over:
            assert event.after["because"] == ticked.reason
            assert QuotaLine.objects.get(pk=line["line"]).facts["over_promise"] == ticked.reason
    assert promised == sum(grant.units for grant in Grant.objects.all()) == answers.count("")
    assert promised >= LIMIT
    assert over == promised - LIMIT
    refused = {index for index, answer in enumerate(answers) if answer == "over_promised"}
    assert all(index % 2 == 0 for index in refused)


def giving(line: QuotaLine, by: Actor, over_promise: OverPromise | None = None) -> Callable[[], Any]:
    decision = Decision(line.pk, approve=True)
    return lambda: decision_actions.decide_request(line.request_id, [decision], by=by, over_promise=over_promise)
