"""`manage.py quota …` acts as a person, with that person's rights; a refusal is one sentence and changes nothing."""

from __future__ import annotations

import io
import re
import shlex
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass
from desk.management.commands.quota import Command
from tenants.core import queries as core_queries
from tenants.grants import queries
from tenants.models import Grant, Namespace, QuotaLine, QuotaRequest, Tenant
from tenants.requests.comments import actions
from tests.support.rows import make


def quota(*words: object) -> str:
    out = io.StringIO()
    call_command("quota", *[str(word) for word in words], stdout=out)
    return out.getvalue()


def refused(*words: object) -> str:
    with pytest.raises(CommandError) as error:
        quota(*words)
    assert error.value.returncode == 1
    told = str(error.value)
    assert "\n" not in told
    return told


def until(days: int = 30) -> str:
    return f"{timezone.localdate() + timedelta(days=days):%Y-%m-%d}"


@pytest.fixture
def limited(a100: GpuClass) -> GpuClass:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8)
    a100.refresh_from_db()
    return a100


@pytest.fixture
def filed(team_a: Tenant, limited: GpuClass, alice: User, dana: User) -> QuotaRequest:
    quota(
        "file", "team-a", "--line", f"{limited.slug}=2", "--until", until(), "--because", "Tests.", "--as", alice.email
    )
    return QuotaRequest.objects.get()


# ---- filing a request --------------------------------------------------------------------------------------------


def test_a_request_is_filed_as_the_person(team_a: Tenant, limited: GpuClass, alice: User) -> None:
    mig = make.gpu_class(limited.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb")
    told = quota(
        "file", "team-a", "--line", f"{limited.slug}=2", "--line", "mig=3:boost",
        "--from", until(1), "--until", until(9), "--because", "Two trainings.", "--as", "Alice@example.org",
    )  # fmt: skip
    request = QuotaRequest.objects.get()
    assert f"Request {request.pk} of team-a: pending" in told
    assert "Two trainings." in told
    lines = {line.gpu_class_id: line for line in request.lines.all()}
    assert (lines[limited.pk].kind, lines[limited.pk].asked_units) == ("base", 2)
    assert (lines[mig.pk].kind, lines[mig.pk].asked_units) == ("boost", 3)
    assert timezone.localdate(lines[mig.pk].asked_from) == timezone.localdate() + timedelta(days=1)
    assert timezone.localdate(lines[mig.pk].asked_until) == timezone.localdate() + timedelta(days=9)
    event = Event.objects.get(verb="request.filed")
    assert (event.actor, event.via) == ("Alice", "command")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"--line": "nothing=2"}, "lines[0].gpu_class: There is no class 'nothing'. See the catalog."),
        ({"--line": "a100"}, "line: 'a100' is not a valid line. Use a100=2 or a100=2:boost."),
        ({"--line": "a100=2:gift"}, "line: 'a100=2:gift' is not a valid line. Use a100=2 or a100=2:boost."),
        ({"--until": "tomorrow"}, "until: 'tomorrow' is not a valid date. Use the format 2027-03-31."),
        ({"--because": " "}, "justification: Enter a justification of at most 2,000 characters."),
        ({"--as": "bob@example.org"}, "Only owners and managers of the team can request quota. Ask one of them."),
        ({"--as": "nobody@example.org"}, "as: No user has the address 'nobody@example.org'."),
    ],
)
def test_what_is_wrong_is_one_sentence(
    team_a: Tenant, limited: GpuClass, changes: dict[str, str], sentence: str
) -> None:
    words = {"--line": f"{limited.slug}=2", "--until": until(), "--because": "Tests.", "--as": "alice@example.org"}
    assert refused("file", "team-a", *[word for pair in (words | changes).items() for word in pair]) == sentence
    assert not QuotaRequest.objects.exists()
    assert not Event.objects.exists()


def test_for_a_stranger_there_is_no_team(filed: QuotaRequest, charlie: User, limited: GpuClass) -> None:
    nothing = "Not found: the address is wrong, or you are not a member of its team."
    who = ("--as", charlie.email)
    assert refused("withdraw", filed.pk, *who) == nothing
    assert refused("approve", filed.pk, *who) == nothing
    assert refused("deny", filed.pk, "--reason", "No.", *who) == nothing
    assert refused("suspend", "team-a", *who) == nothing
    wish = ("--line", f"{limited.slug}=1", "--until", until(), "--because", "x")
    assert refused("file", "team-a", *wish, *who) == nothing


def test_a_suspended_person_does_nothing(filed: QuotaRequest, dana: User) -> None:
    User.objects.filter(pk=dana.pk).update(is_active=False)
    assert refused("approve", filed.pk, "--as", dana.email).startswith("as: The account of 'dana@example.org'")
    assert filed.lines.get().state == "pending"


# ---- listing requests --------------------------------------------------------------------------------------------


def test_requests_are_listed_and_shown(filed: QuotaRequest, limited: GpuClass, dana: User, alice: User) -> None:
    actions.comment_request(filed.pk, text="For how long?", asks_back=True, by=Actor(user=dana, via="page"))
    assert quota("list").split()[:3] == [str(filed.pk), "team-a", "pending"]
    assert f"{limited.slug} =2" in quota("list", "--team", "team-a", "--state", "pending")
    assert quota("list", "--state", "denied") == "No requests.\n"
    shown = quota("show", filed.pk)
    assert f"line {filed.lines.get().pk}: {limited.slug} =2 until " in shown
    assert "Dana requests information: For how long?" in shown
    assert refused("show", 999_999).startswith("Not found")
    assert refused("list", "--state", "maybe").startswith("state: Unknown state 'maybe'. Use one of pending, approved,")
    assert refused("list", "--team", "nobody").startswith("Not found")
    assert refused("list", "--limit", "0") == "limit: limit must be a whole number from 1 to 200."


def test_a_long_list_says_that_there_is_more(filed: QuotaRequest, team_a: Tenant, alice: User) -> None:
    quota("withdraw", filed.pk, "--as", alice.email)
    line = filed.lines.get()
    again = ("--line", f"{line.gpu_class.slug}=1", "--until", until(), "--because", "x", "--as", alice.email)
    quota("file", "team-a", *again)
    listed = quota("list", "--limit", "1").splitlines()
    assert len(listed) == 2
    assert listed[1].startswith("More requests exist")


# ---- deciding about a request ------------------------------------------------------------------------------------


def test_an_approver_approves_with_fewer_units_and_a_reason(filed: QuotaRequest, dana: User, team_a: Tenant) -> None:
    line = filed.lines.get()
    fewer = ("approve", filed.pk, "--line", f"{line.pk}=1", "--as", dana.email)
    assert refused(*fewer) == "lines[0].reason: Enter a comment on why you approve less than requested."
    assert filed.lines.get().state == "pending"
    assert "approved =1 until" in quota(*fewer, "--reason", "One to start with.")
    assert list(queries.units_in_force(team_a.pk, core_queries.database_now()).values()) == [1]
    assert Event.objects.get(verb="request.decided").via == "command"
    assert "already" in refused("approve", filed.pk, "--as", dana.email)


def test_named_lines_only(filed: QuotaRequest, limited: GpuClass, alice: User, dana: User) -> None:
    quota("withdraw", filed.pk, "--as", alice.email)
    make.gpu_class(limited.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb", promise_limit=8)
    two = ("--line", f"{limited.slug}=1", "--line", "mig=1")
    quota("file", "team-a", *two, "--until", until(), "--because", "x", "--as", alice.email)
    request = QuotaRequest.objects.latest("pk")
    first, second = request.lines.order_by("pk")
    assert refused("approve", request.pk, "--line", "one", "--as", dana.email).startswith(
        "line: 'one' is not a valid line"
    )
    assert refused("approve", request.pk, "--line", filed.lines.get().pk, "--as", dana.email).startswith("Not found")
    quota("approve", request.pk, "--line", first.pk, "--as", dana.email)
    assert [line.state for line in request.lines.order_by("pk")] == ["approved", "pending"]
    quota("deny", request.pk, "--reason", "No slices left.", "--as", dana.email)
    second.refresh_from_db()
    assert (second.state, second.reason) == ("denied", "No slices left.")


def test_over_promising_needs_its_reason(filed: QuotaRequest, limited: GpuClass, dana: User) -> None:
    other = make.tenant(limited.cluster, slug="team-b", namespace=f"b-{limited.slug}")
    make.grant(other, limited, units=8)
    assert refused("approve", filed.pk, "--as", dana.email).startswith(
        "over_promise: This exceeds the allocation limit of"
    )
    blank = ("approve", filed.pk, "--over-promise", " ", "--as", dana.email)
    assert refused(*blank).startswith("over_promise_reason: This exceeds the allocation limit of")
    assert Grant.objects.count() == 1
    quota("approve", filed.pk, "--over-promise", "They end on Friday.", "--as", dana.email)
    assert QuotaLine.objects.get().facts["over_promise"] == "They end on Friday."


@pytest.mark.parametrize("who", ["alice", "bob", "olga"])
def test_who_is_no_approver_decides_nothing(filed: QuotaRequest, request: pytest.FixtureRequest, who: str) -> None:
    email = request.getfixturevalue(who).email
    assert refused("approve", filed.pk, "--as", email) == "Only approvers can decide requests."
    assert refused("deny", filed.pk, "--reason", "No.", "--as", email) == "Only approvers can decide requests."
    assert filed.lines.get().state == "pending"


def test_withdrawing_twice_is_refused(filed: QuotaRequest, alice: User, bob: User) -> None:
    assert refused("withdraw", filed.pk, "--as", bob.email).startswith("Only the requester, an owner or a manager")
    assert f"Request {filed.pk} of team-a: withdrawn" in quota("withdraw", filed.pk, "--as", alice.email)
    assert refused("withdraw", filed.pk, "--as", alice.email).startswith("This request has no pending lines")


# ---- suspending and closing a team -------------------------------------------------------------------------------


def test_an_operator_suspends_resumes_and_closes(namespace_a: Namespace, olga: User, alice: User) -> None:
    told = quota("suspend", "team-a", "--because", "Moving racks.", "--as", olga.email)
    assert Event.objects.get(verb="namespace.changed").after == {"wanted": "suspended", "because": "Moving racks."}
    assert told == quota("suspend", "team-a", "--as", olga.email)
    assert refused("close", "team-a", "--as", alice.email) == "Only operators can do this."
    now = ("--grace-hours", "0", "--keep-days", "0")
    for verb, wanted, terms in (("suspend", "suspended", ()), ("resume", "active", ()), ("close", "closed", now)):
        said = quota(verb, "team-a", *terms, "--as", olga.email)
        assert said.startswith(f"Namespace {namespace_a.name} of team-a is set to {wanted}.\n")
        namespace_a.refresh_from_db()
        assert namespace_a.wanted == wanted
    assert refused("resume", "team-a", "--as", olga.email).startswith("This team was closed on ")
    assert Event.objects.filter(verb="namespace.changed", actor="Olga", via="command").count() == 3  # again is nothing


# ---- examples of the documentation -------------------------------------------------------------------------------


def test_the_examples_of_the_documentation_are_taken() -> None:
    text = (Path(__file__).parents[3] / "docs" / "api.md").read_text().replace("\\\n", " ")
    lines = re.findall(r"^python manage\.py quota (.+)$", text, re.MULTILINE)
    parser = Command().create_parser("manage.py", "quota")
    verbs = {parser.parse_args(shlex.split(line)).verb for line in lines}
    asking = {"list", "show", "file", "renew", "withdraw", "approve", "deny", "reclaim"}
    assert verbs == asking | {"suspend", "resume", "close", "delegate", "undelegate"}
