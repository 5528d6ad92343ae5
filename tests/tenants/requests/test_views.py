"""Pages about quota and teams, over HTTP."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import AppliedObject
from portal.core.due import owner_label
from tenants.core import queries as core_queries
from tenants.grants import queries
from tenants.models import Membership, Namespace, Plan, QuotaLine, QuotaRequest, Tenant
from tests.support.rows import make, mirrored


def as_(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def limited(a100: GpuClass) -> GpuClass:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8)
    a100.refresh_from_db()
    return a100


def typed(units: dict[str, object], **changes: object) -> dict[str, object]:
    today = timezone.localdate()
    values: dict[str, object] = {
        "from_date": today,
        "until_date": today + timedelta(days=30),
        "justification": "Two trainings.",
        **{f"units-{slug}": value for slug, value in units.items()},
    }
    return {**values, **changes}


@pytest.fixture
def filed(team_a: Tenant, limited: GpuClass, alice: User) -> QuotaRequest:
    response = as_(alice).post("/teams/team-a/requests/new", typed({limited.slug: 2}))
    assert response.status_code == 302
    return QuotaRequest.objects.get()


def answer(request: QuotaRequest, **changes: object) -> dict[str, object]:
    """The decide form as the browser sends it when the approver edited nothing."""
    values: dict[str, object] = {"decision": "approve", "reason": ""}
    for line in request.lines.all():
        values |= {
            f"units-{line.pk}": line.asked_units,
            f"from-{line.pk}": f"{timezone.localdate(line.asked_from):%Y-%m-%d}",
            f"until-{line.pk}": f"{timezone.localdate(line.asked_until):%Y-%m-%d}",
        }
    return {**values, **changes}


def shown_in(page: Any, **changes: object) -> dict[str, object]:
    """Reads this page's decide form and returns what the browser sends when nothing was edited."""
    boxes = re.findall(r'name="((?:units|from|until)-[0-9]+)"[^>]* value="([^"]*)"', page.text)
    return {"decision": "approve", "reason": "", **dict(boxes), **changes}


# ---- filing a request --------------------------------------------------------------------------------------------


def test_an_owner_asks_and_lands_on_the_request(team_a: Tenant, limited: GpuClass, alice: User) -> None:
    client = as_(alice)
    form = client.get(f"/teams/team-a/requests/new?class={limited.slug}")
    assert form.status_code == 200
    assert f'name="units-{limited.slug}"' in form.text
    response = client.post("/teams/team-a/requests/new", typed({limited.slug: 2}), follow=True)
    assert response.status_code == 200
    assert "Two trainings." in response.text
    line = QuotaLine.objects.get()
    assert (line.asked_units, line.state) == (2, "pending")
    assert timezone.localdate(line.asked_until) == timezone.localdate() + timedelta(days=30)


def test_a_refusal_stands_beside_its_line_and_keeps_what_was_typed(
    team_a: Tenant, limited: GpuClass, alice: User
) -> None:
    mig = make.gpu_class(limited.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb", name="A slice")
    response = as_(alice).post("/teams/team-a/requests/new", typed({limited.slug: 2, "mig": 0}))
    assert response.status_code == 422
    rows = {row["slug"]: row for row in response.context["rows"]}
    assert rows[mig.slug]["error"] == "Your team has no quota of A slice to release."
    assert rows[limited.slug]["error"] == ""
    assert rows[limited.slug]["value"] == "2"
    assert not QuotaRequest.objects.exists()


def test_units_that_are_no_number_are_told_beside_the_field(team_a: Tenant, limited: GpuClass, alice: User) -> None:
    response = as_(alice).post("/teams/team-a/requests/new", typed({limited.slug: "two"}))
    assert response.status_code == 422
    assert response.context["rows"][0]["error"]


def test_nothing_typed_is_a_problem_of_the_whole_form(team_a: Tenant, limited: GpuClass, alice: User) -> None:
    response = as_(alice).post("/teams/team-a/requests/new", typed({}))
    assert response.status_code == 422
    assert "Enter units for at least one class (at most 20)." in response.text


def test_a_class_that_is_asked_already_shows_why_instead_of_a_field(
    filed: QuotaRequest, limited: GpuClass, alice: User
) -> None:
    page = as_(alice).get(f"/teams/team-a/requests/new?class={limited.slug}")
    assert "is already pending" in page.text
    assert f'name="units-{limited.slug}"' not in page.text


def test_a_member_reads_but_does_not_ask(filed: QuotaRequest, bob: User, limited: GpuClass) -> None:
    client = as_(bob)
    assert client.get("/teams/team-a/requests").status_code == 200
    assert client.get(f"/requests/{filed.pk}").status_code == 200
    assert client.post("/teams/team-a/requests/new", typed({limited.slug: 2})).status_code == 403


@pytest.mark.parametrize(
    "path",
    ["/requests/{pk}", "/teams/team-a/requests", "/teams/team-a/requests/new", "/teams/team-a/members"],
)
def test_a_stranger_sees_nothing(filed: QuotaRequest, charlie: User, path: str) -> None:
    assert as_(charlie).get(path.format(pk=filed.pk)).status_code == 404


@pytest.mark.parametrize("verb", ["decide", "withdraw"])
def test_a_stranger_decides_and_withdraws_nothing(filed: QuotaRequest, charlie: User, verb: str) -> None:
    assert as_(charlie).post(f"/requests/{filed.pk}/{verb}", answer(filed)).status_code == 404
    assert filed.lines.get().state == "pending"


def test_the_list_filters_by_state(filed: QuotaRequest, alice: User) -> None:
    client = as_(alice)
    for state, count in {"": 1, "pending": 1, "approved": 0, "denied": 0, "withdrawn": 0, "nonsense": 0}.items():
        assert len(client.get("/teams/team-a/requests", {"state": state}).context["requests"]) == count


def test_withdrawing(filed: QuotaRequest, alice: User) -> None:
    client = as_(alice)
    client.post(f"/requests/{filed.pk}/withdraw")
    assert filed.lines.get().state == "withdrawn"
    again = client.post(f"/requests/{filed.pk}/withdraw")
    assert again.status_code == 409


def test_who_is_told_is_said_as_it_is(team_a: Tenant, limited: GpuClass, alice: User) -> None:
    make.grant(team_a, limited, units=4)
    client = as_(alice)
    less = typed({limited.slug: 2}, until_date=timezone.localdate() + timedelta(days=9))
    given_back = client.post("/teams/team-a/requests/new", less, follow=True)
    assert "A rule approved your request automatically." in given_back.text
    assert "Approvers are notified" not in given_back.text
    more = client.post("/teams/team-a/requests/new", typed({limited.slug: 9}), follow=True)
    assert "Approvers are notified" in more.text


# ---- temporary increases -----------------------------------------------------------------------------------------


def test_a_boost_is_asked_beside_a_new_total_with_dates_of_its_own(
    team_a: Tenant, limited: GpuClass, alice: User
) -> None:
    mig = make.gpu_class(limited.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb")
    make.grant(team_a, limited, units=4)
    client, today = as_(alice), timezone.localdate()
    form = client.get(f"/teams/team-a/requests/new?class={limited.slug}").text
    example = "Example: +2 gives 6 in total, then 4 again when it expires."
    assert f"Temporary increase: added to the current quota for its dates. {example}" in form
    boost = {
        f"kind-{limited.slug}": "boost",
        f"from-{limited.slug}": today + timedelta(days=3),
        f"until-{limited.slug}": today + timedelta(days=9),
        "kind-mig": "base",
    }
    response = client.post("/teams/team-a/requests/new", typed({limited.slug: 2, "mig": 1}, **boost), follow=True)
    lines = {line.gpu_class_id: line for line in QuotaLine.objects.all()}
    on_top, total = lines[limited.pk], lines[mig.pk]
    assert (on_top.kind, on_top.asked_units, total.kind, total.asked_units) == ("boost", 2, "base", 1)
    assert timezone.localdate(on_top.asked_from) == today + timedelta(days=3)
    assert timezone.localdate(on_top.asked_until) == today + timedelta(days=9)
    assert timezone.localdate(total.asked_until) == today + timedelta(days=30)
    assert "temporary increase +2" in response.text
    assert "new total 0 → 1" in response.text


def test_a_boost_without_dates_has_those_of_the_request(team_a: Tenant, limited: GpuClass, alice: User) -> None:
    as_(alice).post("/teams/team-a/requests/new", typed({limited.slug: 2}, **{f"kind-{limited.slug}": "boost"}))
    line = QuotaLine.objects.get()
    assert line.kind == "boost"
    assert timezone.localdate(line.asked_until) == timezone.localdate() + timedelta(days=30)


@pytest.mark.parametrize(
    ("units", "kind", "until", "error"),
    [
        ("0", "boost", "", "Enter at least 1 unit for a temporary increase."),
        ("2", "gift", "", "Choose base (new total) or boost (temporary increase)."),
        ("2", "boost", "2020-01-01", "The end of the period must be after its start and in the future."),
        ("2", "boost", "soon", "To: Enter a valid date."),
        ("", "boost", "", "Enter units, or clear the other fields of this class."),
        ("", "base", "2030-01-01", "Enter units, or clear the other fields of this class."),
    ],
)
def test_what_is_wrong_with_a_boost_stands_beside_its_line(
    team_a: Tenant, limited: GpuClass, alice: User, units: str, kind: str, until: str, error: str
) -> None:
    make.gpu_class(limited.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb")
    line = {f"kind-{limited.slug}": kind, f"until-{limited.slug}": until}
    response = as_(alice).post("/teams/team-a/requests/new", typed({limited.slug: units, "mig": 1}, **line))
    assert response.status_code == 422
    rows = {row["slug"]: row for row in response.context["rows"]}
    assert (rows[limited.slug]["error"], rows["mig"]["error"]) == (error, "")
    assert (rows[limited.slug]["kind"], rows[limited.slug]["until_value"]) == (kind, until)
    assert f'id="units-{limited.slug}-error"' in response.text
    assert ('value="boost" selected' in response.text) is (kind == "boost")
    assert not QuotaRequest.objects.exists()


# ---- deciding about a request ------------------------------------------------------------------------------------


def test_an_approver_finds_it_looks_and_approves(filed: QuotaRequest, dana: User, team_a: Tenant) -> None:
    client = as_(dana)
    inbox = client.get("/inbox")
    assert [row["pk"] for row in inbox.context["rows"]] == [filed.pk]
    page = client.get(f"/requests/{filed.pk}")
    assert page.context["show_decide"]
    assert page.context["may_decide"] is None
    assert "no class exceeds its allocation limit" in page.text
    done = client.post(f"/requests/{filed.pk}/decide", answer(filed), follow=True)
    assert done.redirect_chain
    assert list(queries.units_in_force(team_a.pk, core_queries.database_now()).values()) == [2]
    assert client.get("/inbox").context["rows"] == []


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Tokyo"])
def test_dates_that_nobody_edited_keep_the_moment_that_was_asked(
    team_a: Tenant, limited: GpuClass, alice: User, dana: User, settings: Any, zone: str
) -> None:
    """West of Greenwich the last instant of a day falls on the next day in UTC."""
    settings.TIME_ZONE = zone
    as_(alice).post("/teams/team-a/requests/new", typed({limited.slug: 2}))
    line = QuotaLine.objects.get()
    client = as_(dana)
    page = client.get(f"/requests/{line.request_id}")
    assert client.post(f"/requests/{line.request_id}/decide", shown_in(page)).status_code == 302
    line.refresh_from_db()
    assert line.decided_until == line.asked_until


def test_fewer_units_and_other_dates_are_decided_as_edited(filed: QuotaRequest, dana: User) -> None:
    line = filed.lines.get()
    sooner = timezone.localdate() + timedelta(days=10)
    edited = {f"units-{line.pk}": 1, f"until-{line.pk}": sooner, "reason": "One for a start."}
    as_(dana).post(f"/requests/{filed.pk}/decide", answer(filed, **edited))
    line.refresh_from_db()
    assert (line.decided_units, timezone.localdate(line.decided_until)) == (1, sooner)


def test_a_refusal_stands_beside_its_line_of_the_decision(filed: QuotaRequest, dana: User) -> None:
    line = filed.lines.get()
    response = as_(dana).post(f"/requests/{filed.pk}/decide", answer(filed, **{f"units-{line.pk}": 1}))
    assert response.status_code == 422
    assert "you approve less than requested" in response.context["page"]["lines"][0]["errors"]
    assert filed.lines.get().state == "pending"


def test_over_promising_is_shown_before_and_needs_the_tick(filed: QuotaRequest, limited: GpuClass, dana: User) -> None:
    other = make.tenant(limited.cluster, slug="team-b", namespace=f"b-{limited.slug}")
    make.grant(other, limited, units=8)
    client = as_(dana)
    page = client.get(f"/requests/{filed.pk}")
    assert "would exceed its allocation limit of 8 by 2" in page.context["page"]["over_promised"]
    assert "At most 8 GPUs allocated before, 10 after; allocation limit 8, exceeded by 2" in page.content.decode()
    assert client.post(f"/requests/{filed.pk}/decide", answer(filed)).status_code == 422
    ticked = answer(filed, over_promise="yes", reason="They end on Friday.")
    assert client.post(f"/requests/{filed.pk}/decide", ticked).status_code == 302


def test_the_tick_is_offered_when_only_the_approvers_own_units_go_over(filed: QuotaRequest, dana: User) -> None:
    line = filed.lines.get()
    client = as_(dana)
    tick = 'name="over_promise"'
    page = client.get(f"/requests/{filed.pk}")
    assert tick not in page.text
    more = {**shown_in(page), f"units-{line.pk}": 10}
    refused = client.post(f"/requests/{filed.pk}/decide", more)
    assert "Select &#x27;Overcommit anyway&#x27;" in refused.text
    assert tick in refused.text
    without_reason = client.post(f"/requests/{filed.pk}/decide", {**more, "over_promise": "yes"})
    assert "Enter a comment that explains the overcommit." in without_reason.text
    assert tick in without_reason.text
    last = {**more, "over_promise": "yes", "reason": "They end on Friday."}
    assert client.post(f"/requests/{filed.pk}/decide", last).status_code == 302


@pytest.mark.parametrize(
    ("box", "typed_in", "told"),
    [
        ("units", "two", "Units: Enter a whole number."),
        ("units", "", "Units: This field is required."),
        ("from", "soon", "From: Enter a valid date."),
        ("until", "2026-02-31", "To: Enter a valid date."),
    ],
)
def test_what_cannot_be_read_is_told_beside_its_line(
    filed: QuotaRequest, dana: User, box: str, typed_in: str, told: str
) -> None:
    line = filed.lines.get()
    client = as_(dana)
    page = client.get(f"/requests/{filed.pk}")
    sent = shown_in(page, **{f"{box}-{line.pk}": typed_in})
    refused = client.post(f"/requests/{filed.pk}/decide", sent)
    assert refused.status_code == 422
    assert refused.context["page"]["lines"][0]["errors"] == told
    assert told in refused.text


def test_a_decision_that_is_neither_yes_nor_no_is_told(filed: QuotaRequest, dana: User) -> None:
    client = as_(dana)
    sent = shown_in(client.get(f"/requests/{filed.pk}"), decision="maybe")
    assert "maybe is not one of the available choices" in client.post(f"/requests/{filed.pk}/decide", sent).text


def test_the_promise_curve_shows_before_and_after(filed: QuotaRequest, limited: GpuClass, dana: User) -> None:
    make.grant(make.tenant(limited.cluster, slug="team-b", namespace=f"b-{limited.slug}"), limited, units=5)
    page = as_(dana).get(f"/requests/{filed.pk}")
    curve = page.context["page"]["curves"][0]
    assert (curve.before[0].units, curve.after[0].units, curve.limit) == (5, 7, 8)
    assert "Allocation of" in page.text


def test_a_period_that_is_over_does_not_fit(filed: QuotaRequest, dana: User) -> None:
    past = timezone.now() - timedelta(days=9)
    filed.lines.update(asked_from=past, asked_until=past + timedelta(days=2))
    client = as_(dana)
    page = client.get(f"/requests/{filed.pk}").context["page"]
    assert page["lines"][0]["fits"].startswith("The requested period has ended")
    assert page["curves"] == []
    assert client.post(f"/requests/{filed.pk}/decide", answer(filed)).status_code == 422


def test_an_approver_of_one_class_decides_its_line_of_a_mixed_request(
    team_a: Tenant, limited: GpuClass, alice: User
) -> None:
    full = make.gpu_class(limited.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb", name="A slice")
    GpuClass.objects.filter(pk=full.pk).update(promise_limit=1)
    as_(alice).post("/teams/team-a/requests/new", typed({limited.slug: 2, "mig": 3}))
    filed = QuotaRequest.objects.get()
    mine, others = filed.lines.get(gpu_class=limited), filed.lines.get(gpu_class=full)
    client = as_(make.approver("Dora", gpu_class=limited))
    page = client.get(f"/requests/{filed.pk}")
    assert f'name="units-{mine.pk}"' in page.text
    assert f'name="units-{others.pk}"' not in page.text
    assert "You do not decide requests for A slice." in page.text
    assert "Approve 1 line" in page.text
    assert page.context["page"]["over_promised"] == ""
    assert client.post(f"/requests/{filed.pk}/decide", shown_in(page)).status_code == 302
    assert {line.gpu_class_id: line.state for line in filed.lines.all()} == {
        limited.pk: "approved",
        full.pk: "pending",
    }
    again = client.post(f"/requests/{filed.pk}/decide", shown_in(page))
    assert again.status_code == 403
    assert "You do not decide requests for A slice." in again.text


def test_who_comes_second_is_told_that_it_is_decided(filed: QuotaRequest, dana: User) -> None:
    client = as_(dana)
    sent = answer(filed)
    client.post(f"/requests/{filed.pk}/decide", sent)
    again = client.post(f"/requests/{filed.pk}/decide", sent)
    assert again.status_code == 409
    assert "This line is already approved" in again.text


def test_a_closed_teams_request_is_denied_by_page_and_leaves_the_inbox(
    filed: QuotaRequest, namespace_a: Namespace, dana: User
) -> None:
    make.close(namespace_a.name)
    client = as_(dana)
    page = client.get(f"/requests/{filed.pk}")
    refused = client.post(f"/requests/{filed.pk}/decide", shown_in(page))
    assert refused.status_code == 422
    assert "This team is being closed" in refused.text
    client.post(f"/requests/{filed.pk}/decide", shown_in(page, decision="deny", reason="It closes."))
    assert client.get("/inbox").context["rows"] == []


def test_that_a_class_was_retired_is_shown_before_somebody_approves(
    filed: QuotaRequest, limited: GpuClass, dana: User
) -> None:
    GpuClass.objects.filter(pk=limited.pk).update(life_cycle="retiring")
    client = as_(dana)
    page = client.get(f"/requests/{filed.pk}")
    line = page.context["page"]["lines"][0]
    assert "being retired: the team has 0" in line["fits"]
    assert line["fits_tone"] == "bad"
    refused = client.post(f"/requests/{filed.pk}/decide", shown_in(page))
    assert "being retired: the team has 0" in refused.context["page"]["lines"][0]["errors"]


def test_denying_by_page(filed: QuotaRequest, dana: User) -> None:
    client = as_(dana)
    assert client.post(f"/requests/{filed.pk}/decide", answer(filed, decision="deny")).status_code == 422
    client.post(f"/requests/{filed.pk}/decide", answer(filed, decision="deny", reason="Use a slice."))
    assert filed.lines.get().state == "denied"


def test_the_requester_who_approves_elsewhere_does_not_decide_here(filed: QuotaRequest, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(roles=["approver"])
    make.ApproverFor.objects.create(user=alice)
    response = as_(alice).post(f"/requests/{filed.pk}/decide", answer(filed))
    assert response.status_code == 403
    assert filed.lines.get().state == "pending"


def test_the_inbox_is_for_approvers(alice: User, olga: User, dana: User) -> None:
    assert as_(alice).get("/inbox").status_code == 403
    assert as_(olga).get("/inbox").status_code == 403
    assert as_(dana).get("/inbox").status_code == 200


def test_the_plan_is_shown_object_by_object(filed: QuotaRequest, dana: User) -> None:
    planned = {
        "kind": "ResourceQuota", "namespace": "x", "name": "gpu-portal", "change": "change", "result": "accepted",
        "code": "", "text": "", "difference": ["- spec.hard.pods: 1", "+ spec.hard.pods: 2"],
    }  # fmt: skip
    same = {**planned, "kind": "LimitRange", "change": "same", "difference": []}
    refused = {**planned, "kind": "ClusterQueue", "result": "refused", "text": "No.", "difference": []}
    Plan.objects.update(objects_planned=[planned, same, refused], made_at=timezone.now())
    page = as_(dana).get(f"/requests/{filed.pk}")
    plan = page.context["page"]["plan"]
    assert plan["headline"] == "2 objects would change, 1 rejected"
    assert plan["unchanged"] == "1 object unchanged."
    assert "spec.hard.pods: 2" in page.text


# ---- team page ---------------------------------------------------------------------------------------------------


def test_the_team_page_says_object_by_object_whether_the_cluster_agrees(
    team_a: Tenant, namespace_a: Namespace, alice: User
) -> None:
    common: dict[str, Any] = {"cluster": namespace_a.cluster, "owner": owner_label(namespace_a), "namespace": "x"}
    difference = {"fields": ["spec.hard.pods"], "manager": "kubectl-edit", "since": "2026-11-21T10:00:00+00:00"}
    for kind, changes in {
        "LimitRange": {"result": "applied"},
        "NetworkPolicy": {"result": "refused", "text": "Not allowed."},
        "ServiceAccount": {"result": "foreign", "text": "Somebody else's."},
        "ResourceQuota": {"result": "applied", "difference": difference},
        "RoleBinding": {"result": "terminating"},
        "LocalQueue": {"result": "applied", "difference": {"gone": True}},
        "ClusterQueue": {"result": "applied", "code": "repaired", "text": "Drift repaired: it was changed."},
    }.items():
        AppliedObject.objects.create(kind=kind, name="gpu-portal", **common, **changes)
    page = as_(alice).get("/teams/team-a/members")
    counts = "1 applied, 1 repaired, 1 rejected, 1 name conflict, 1 missing, 1 drifted, 1 terminating"
    assert page.context["namespace"]["counts"].startswith(counts)
    for word in ("Repaired", "Drift repaired: it was changed.", "Missing", "The cluster rejected the object."):
        assert word in page.text
    for word in ("Not allowed.", "Somebody else&#x27;s.", "kubectl-edit", "Terminating"):
        assert word in page.text


def test_an_owner_adds_and_removes_members(team_a: Tenant, alice: User, charlie: User) -> None:
    client = as_(alice)
    client.post("/teams/team-a/members/add", {"email": charlie.email, "role": "member"})
    assert Membership.objects.filter(tenant=team_a, user=charlie, role="member").exists()
    again = client.post("/teams/team-a/members/add", {"email": charlie.email, "role": "member"})
    assert again.status_code == 422
    assert "already a member of the team" in again.text
    client.post(f"/teams/team-a/members/{charlie.pk}/remove")
    assert not Membership.objects.filter(tenant=team_a, user=charlie).exists()


def test_an_address_that_gets_no_mail_is_told_beside_the_field(team_a: Tenant, alice: User) -> None:
    response = as_(alice).post("/teams/team-a/members/add", {"email": "nobody@localhost", "role": "member"})
    assert response.status_code == 422
    assert "is not an email address. Enter an address" in response.text


def test_a_member_manages_nobody_but_may_leave(team_a: Tenant, bob: User, alice: User) -> None:
    client = as_(bob)
    assert client.post("/teams/team-a/members/add", {"email": "x@example.org", "role": "member"}).status_code == 403
    assert client.post(f"/teams/team-a/members/{alice.pk}/remove").status_code == 403
    page = client.get("/teams/team-a/members")
    leave = f"/teams/team-a/members/{bob.pk}/remove"
    assert re.findall(r'action="([^"]*/remove)"', page.text) == [leave]
    assert "Leave" in page.text
    left = client.post(leave, follow=True)
    assert (left.status_code, left.redirect_chain[0][0]) == (200, "/")
    assert client.get("/teams/team-a/members").status_code == 404


def test_the_only_owner_sees_a_button_beside_everybody_else(team_a: Tenant, alice: User, bob: User) -> None:
    page = as_(alice).get("/teams/team-a/members")
    assert re.findall(r'action="([^"]*/remove)"', page.text) == [f"/teams/team-a/members/{bob.pk}/remove"]


# ---- number of queries -------------------------------------------------------------------------------------------


def file_many(tenant: Tenant, filed_by: User, classes: list[GpuClass]) -> None:
    now = timezone.now()
    for gpu_class in classes:
        request = QuotaRequest.objects.create(tenant=tenant, filed_by=filed_by, justification="x")
        QuotaLine.objects.create(
            request=request, tenant=tenant, gpu_class=gpu_class, asked_units=1, asked_from=now,
            asked_until=now + timedelta(days=9),
        )  # fmt: skip


def test_the_list_costs_the_same_with_one_request_and_with_many(team_a: Tenant, limited: GpuClass, alice: User) -> None:
    mirrored.hardware_seen(limited.cluster)
    classes = [make.gpu_class(limited.cluster, slug=f"c{n}", resource=f"example.com/c{n}") for n in range(12)]
    alices = as_(alice)

    def cost(number: int) -> int:
        with CaptureQueriesContext(connection) as of_list:
            assert len(alices.get("/teams/team-a/requests").context["requests"]) == number
        return len(of_list)

    file_many(team_a, alice, classes[:1])
    with_one = cost(1)
    file_many(team_a, alice, classes[1:])
    assert cost(12) == with_one
    assert with_one <= 30
