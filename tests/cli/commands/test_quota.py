"""Asking for quota and answering it from a shell."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Grant, QuotaLine, QuotaRequest, Tenant
from tenants.requests.comments.actions import comment_request
from tests.cli.command import Gpu

pytestmark = pytest.mark.django_db
ASKED = ("--until", "2027-03-31", "--because", "Two trainings.")


@pytest.fixture
def gpu(gpu_of: Callable[..., Gpu], alice: User) -> Gpu:
    """The command of an owner, who may request quota for the team."""
    return gpu_of(alice, "read", "request")


@pytest.fixture
def danas(gpu_of: Callable[..., Gpu], dana: User, team_a: Tenant) -> Gpu:
    return gpu_of(dana, "read", "decide")


def test_ask_see_it_in_the_inbox_and_approve(gpu: Gpu, danas: Gpu, team_a: Tenant, a100: GpuClass) -> None:
    GpuClass.objects.update(promise_limit=4)
    filed = gpu("request", "new", f"{a100.slug}=2", *ASKED)
    assert filed.code == 0
    line = QuotaLine.objects.get()
    assert filed.out.startswith(f"Request {line.request_id} of team team-a: pending.")
    assert line.asked_until.isoformat() == "2027-03-31T23:59:59+00:00"  # the last day is included
    assert f"{a100.slug} " in gpu("request", "list", "--state", "pending").out

    waiting = danas("inbox", "list")
    assert waiting.code == 0
    assert f"{line.request_id} " in waiting.out
    assert danas("inbox", "list", "--json").json["items"][0]["group"] in waiting.out

    approved = danas(
        "inbox", "approve", str(line.request_id), "--line", f"{line.pk}=1", "--reason", "One to start with."
    )
    assert approved.code == 0, approved.err
    assert "approved" in approved.out
    assert Grant.objects.get().units == 1
    assert "has no pending lines." in danas("inbox", "approve", str(line.request_id)).err


def test_a_no_has_a_reason_that_the_team_reads(gpu: Gpu, danas: Gpu, team_a: Tenant, a100: GpuClass) -> None:
    gpu("request", "new", f"{a100.slug}=2", *ASKED)
    number = str(QuotaLine.objects.get().request_id)
    assert danas("inbox", "deny", number).code == 2
    assert danas("inbox", "deny", number, "--reason", "They are reserved.").code == 0
    assert "They are reserved." in gpu("request", "show", number).out


def test_show_prints_justification_comments_and_facts(gpu: Gpu, danas: Gpu, team_a: Tenant, a100: GpuClass) -> None:
    GpuClass.objects.update(promise_limit=4)
    gpu("request", "new", f"{a100.slug}=2", *ASKED)
    request = QuotaRequest.objects.get()
    comment_request(request.pk, text="Until when?", asks_back=True, by=Actor(User.objects.get(name="Dana"), "page"))
    number = str(request.pk)
    for show in (danas("inbox", "show", number), danas("request", "show", number)):
        assert show.code == 0, show.err
        for text in ("Two trainings.", "Dana requests information: Until when?", "Allocation limit", "Group: "):
            assert text in show.out
    team = gpu("request", "show", number)
    assert "Two trainings." in team.out
    assert "Until when?" in team.out
    assert "Allocation limit" not in team.out
    assert gpu("request", "show", number, "--json").json["facts"] is None
    assert danas("inbox", "show", number, "--json").json["facts"]["classes"][0]["limit"] == 4
    assert gpu("inbox", "show", number).code == 6
    assert "Two trainings." in danas("inbox", "list").out


def test_wait_ends_with_the_decision_and_its_exit_code(gpu: Gpu, danas: Gpu, team_a: Tenant, a100: GpuClass) -> None:
    GpuClass.objects.update(promise_limit=4)
    for units, answer, code in ((2, ("approve",), 0), (3, ("deny", "--reason", "No."), 1)):
        gpu("request", "new", f"{a100.slug}={units}", *ASKED)
        number = str(QuotaLine.objects.latest("pk").request_id)

        def decide(answer: tuple[str, ...] = answer, number: str = number) -> None:
            assert danas("inbox", *answer, number).code == 0

        gpu.meanwhile = iter([lambda: None, decide])
        done = gpu("request", "wait", number, "--json")
        assert (done.code, done.json["state"]) == (code, {0: "approved", 1: "denied"}[code])
        again = gpu("request", "wait", number)
        assert (again.code, again.err) == (code, "")


def test_wait_for_a_decision_that_does_not_come(gpu: Gpu, team_a: Tenant, a100: GpuClass) -> None:
    gpu("request", "new", f"{a100.slug}=2", *ASKED)
    number = str(QuotaLine.objects.get().request_id)
    done = gpu("request", "wait", number, "--timeout", "20s")
    assert done.code == 3
    assert f"Request {number} of team team-a: pending." in done.err
    assert "Timed out after 20s: the request is pending." in done.err
    assert 20 <= sum(gpu.slept) < 26
    gpu("request", "withdraw", number)
    assert gpu("request", "wait", number).code == 1
    assert gpu("request", "wait", number, "--timeout", "soon").code == 2
    assert gpu("request", "wait", "999999").code == 6


def test_withdraw(gpu: Gpu, team_a: Tenant, a100: GpuClass) -> None:
    gpu("request", "new", f"{a100.slug}=2:boost", *ASKED)
    line = QuotaLine.objects.get()
    assert line.kind == "boost"
    assert "withdrawn" in gpu("request", "withdraw", str(line.request_id)).out


@pytest.mark.parametrize("line", ["a100", "a100=", "a100=-1", "=2", "a100=2:reclaim", "a100=2.5"])
def test_what_is_no_line_is_told_before_anybody_is_asked(gpu: Gpu, team_a: Tenant, line: str) -> None:
    refused = gpu("request", "new", line, *ASKED, "--team", "team-a")
    assert (refused.code, gpu.between.asked) == (2, [])
    assert "CLASS=UNITS" in refused.err


def test_a_refusal_is_the_portals_own_sentence_and_for_programs_its_body(gpu: Gpu, team_a: Tenant) -> None:
    refused = gpu("request", "new", "nothing=2", *ASKED)
    assert (refused.code, refused.out) == (6, "")
    told = gpu("request", "new", "nothing=2", *ASKED, "--json")
    assert told.code == 6
    assert (told.json["code"], told.json["message"]) == ("unknown_class", refused.err.strip())
    assert told.json["field"] == "lines[0].gpu_class"
