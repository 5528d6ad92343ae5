"""An approver's inbox: groups with their reasons, the units that a selected set would promise, and filters."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace, Plan, QuotaLine, RequestComment, Rule, Tenant
from tenants.requests.rules.policy import IncreaseBounds
from tests.support.rows import make, mirrored
from tests.support.rows.inbox import ACCEPTED, DAY, as_, in_use, many, team, text, waits
from tests.support.rows.usage import looked
from tests.usage.activity.test_team_activity import measured
from workloads.models import Run


@pytest.fixture
def limited(a100: GpuClass) -> GpuClass:
    """A class of which at most 8 units may be promised."""
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8)
    a100.refresh_from_db()
    return a100


def rows(user: User, address: str = "/inbox") -> dict[int, tuple[str, tuple[str, ...]]]:
    """Returns for each request its group and reasons."""
    response = as_(user).get(address)
    assert response.status_code == 200
    return {row["pk"]: (str(row["group"]), row["reasons"]) for row in response.context["rows"]}


# ---- groups of requests ------------------------------------------------------------------------------------------


def test_what_measured_use_justifies_is_one_click(
    team_a: Tenant, namespace_a: Namespace, limited: GpuClass, alice: User, dana: User
) -> None:
    make.grant(team_a, limited, units=4)
    in_use(namespace_a, limited, alice, units=4)
    request = waits(team_a, limited, alice, units=6)
    group, reasons = rows(dana)[request.pk]
    assert group == "one_click"
    assert reasons == (
        f"{limited.name}, 4 to 6: of 4 units, peak usage in the last 30 days was 4 and average usage 4, 100 % of the "
        "runs waited.",
        "Within the allocation limit at all times.",
        "Dry run accepted: 1 object would change.",
    )
    page = text(as_(dana).get("/inbox"))
    assert '<h2 id="group-one_click">Ready to approve <span class="count">1</span></h2>' in page
    assert '<h2 id="group-conflict">Conflict <span class="count">0</span></h2>' in page


def test_the_rules_own_bounds_are_asked(
    team_a: Tenant, namespace_a: Namespace, limited: GpuClass, alice: User, dana: User
) -> None:
    make.grant(team_a, limited, units=4)
    in_use(namespace_a, limited, alice, units=4)
    request = waits(team_a, limited, alice, units=6)
    # A test that commits may have emptied the table.
    defaults = {"is_on": False, **asdict(IncreaseBounds(units_max=5))}
    Rule.objects.update_or_create(name="increase", defaults=defaults)
    group, reasons = rows(dana)[request.pk]
    assert (group, len(reasons)) == ("look", 1)
    assert "A total of 6" in reasons[0]


def test_activity_is_read_only_if_a_bound_compares_it(
    team_a: Tenant, namespace_a: Namespace, limited: GpuClass, alice: User, dana: User
) -> None:
    """One query more for all requests of the page; and a run that held units unmeasured is no evidence."""
    make.grant(team_a, limited, units=4)
    in_use(namespace_a, limited, alice, units=4)
    request = waits(team_a, limited, alice, units=6)
    defaults = {"is_on": False, **asdict(IncreaseBounds())}
    Rule.objects.update_or_create(name="increase", defaults=defaults)
    rows(dana)
    with CaptureQueriesContext(connection) as without:
        assert rows(dana)[request.pk][0] == "one_click"
    Rule.objects.filter(name="increase").update(activity_percent_min=30)
    with CaptureQueriesContext(connection) as compared:
        group, reasons = rows(dana)[request.pk]
    assert len(compared) == len(without) + 1
    assert (group, len(reasons)) == ("look", 1)
    assert "is unknown: it was not measured in the last 30 days." in reasons[0]
    run = Run.objects.get()
    hour = run.started_at.replace(minute=0, second=0, microsecond=0)
    for back in range(3):
        measured(run, hour + timedelta(hours=back), minutes=60, percent=31)
    assert rows(dana)[request.pk][0] == "one_click"


def test_a_renewal_needs_no_use_and_unknown_use_is_a_look(
    team_a: Tenant, limited: GpuClass, alice: User, dana: User
) -> None:
    running = make.grant(team_a, limited, units=4)
    renewal = waits(team_a, limited, alice, units=4, since=running.period.upper)
    assert rows(dana)[renewal.pk][0] == "one_click"
    QuotaLine.objects.filter(request=renewal).update(asked_units=5)
    group, reasons = rows(dana)[renewal.pk]
    assert group == "look"
    assert reasons == (f"The team's usage of {limited.name} is unknown: it was not measured in the last 30 days.",)


def test_a_plan_counts_from_what_was_filed_and_decided_last(
    team_a: Tenant, limited: GpuClass, alice: User, dana: User
) -> None:
    make.grant(team_a, limited, units=4)
    request = waits(team_a, limited, alice, units=2)
    assert rows(dana)[request.pk][0] == "one_click"
    other = make.gpu_class(limited.cluster, slug="other", promise_limit=9)
    decided = waits(team_a, other, alice, units=1)
    QuotaLine.objects.filter(request=decided).update(state="denied", decided_at=timezone.now())
    assert rows(dana) == {request.pk: ("look", ("The plan is not ready yet.",))}
    Plan.objects.filter(request=request).update(made_at=timezone.now())
    assert rows(dana)[request.pk][0] == "one_click"
    Plan.objects.filter(request=request).update(generation=2)
    assert rows(dana)[request.pk] == ("look", ("The plan is not ready yet.",))
    Plan.objects.filter(request=request).update(error_text="The cluster did not answer.")
    assert rows(dana)[request.pk] == ("look", ("The plan failed: The cluster did not answer.",))
    Plan.objects.filter(request=request).update(error_code="observe_only")
    assert rows(dana)[request.pk] == ("look", ("The plan waits: the portal only observes the cluster.",))


def test_a_plan_that_the_cluster_refuses_is_a_conflict(
    team_a: Tenant, limited: GpuClass, alice: User, dana: User
) -> None:
    make.grant(team_a, limited, units=4)
    refused = {**ACCEPTED, "result": "refused", "code": "Invalid"}
    foreign = {**ACCEPTED, "result": "refused", "code": "foreign"}
    request = waits(team_a, limited, alice, units=2, plan=[ACCEPTED, refused, foreign])
    group, reasons = rows(dana)[request.pk]
    assert group == "conflict"
    assert reasons == (
        "1 planned object cannot be created: an object with that name exists that the portal did not create.",
        "The cluster rejected 1 planned object in the dry run.",
    )


def test_requests_that_fit_alone_and_not_together_name_each_other(
    cluster: Cluster, limited: GpuClass, charlie: User, dana: User
) -> None:
    one = waits(team(cluster, "one"), limited, charlie, units=5)
    two = waits(team(cluster, "two"), limited, charlie, units=4)
    later = waits(team(cluster, "three"), limited, charlie, units=8, since=timezone.now() + 90 * DAY)
    alone = waits(team(cluster, "four"), limited, charlie, units=9)
    found = rows(dana)
    since = f"{timezone.now():%-d %b %Y}"
    fits_alone = f"{limited.name} fits alone, but with #{{}} it exceeds the allocation limit by 1 from {since}."
    assert found[one.pk][0] == found[two.pk][0] == found[alone.pk][0] == "conflict"
    assert found[one.pk][1][0] == fits_alone.format(two.pk)
    assert found[two.pk][1][0] == fits_alone.format(one.pk)
    assert found[alone.pk][1][0] == f"{limited.name} would exceed its allocation limit of 8 by 1."
    assert found[later.pk][0] == "look"


def test_what_others_decide_counts_against_the_limit_and_makes_a_look(
    cluster: Cluster, limited: GpuClass, charlie: User
) -> None:
    other = make.gpu_class(cluster, slug="other", name="Other", promise_limit=9)
    erin = make.approver("Erin", gpu_class=limited)
    holder = team(cluster, "one")
    make.grant(holder, limited, units=4)
    request = waits(holder, limited, charlie, units=2)
    assert rows(erin)[request.pk][0] == "one_click"
    QuotaLine.objects.create(
        request=request, tenant=holder, gpu_class=other, asked_units=1, asked_from=timezone.now(),
        asked_until=timezone.now() + DAY,
    )  # fmt: skip
    group, reasons = rows(erin)[request.pk]
    assert group == "look"
    assert "You do not decide requests for Other. Other approvers decide them." in reasons


def test_no_limit_known_is_a_look_and_no_conflict(team_a: Tenant, a100: GpuClass, alice: User, dana: User) -> None:
    request = waits(team_a, a100, alice, units=2)
    group, reasons = rows(dana)[request.pk]
    assert group == "look"
    assert f"The capacity of {a100.name} is unknown: no current cluster data and no allocation limit." in reasons


def test_what_cannot_be_approved_as_asked_is_a_look(
    team_a: Tenant, namespace_a: Namespace, limited: GpuClass, alice: User, dana: User
) -> None:
    now = timezone.now()
    make.grant(team_a, limited, units=4, until=now + 10 * DAY)
    make.grant(team_a, limited, units=1, since=now + 20 * DAY, until=now + 40 * DAY)
    request = waits(team_a, limited, alice, units=3)
    group, reasons = rows(dana)[request.pk]
    on = f"{now + 20 * DAY:%-d %b %Y}"
    assert (group, reasons) == ("look", (f"A total of 1 of {limited.name} is already granted from {on}.",))
    GpuClass.objects.filter(pk=limited.pk).update(life_cycle="retiring")
    QuotaLine.objects.filter(request=request).update(asked_units=5)
    assert "being retired: the team has 4" in rows(dana)[request.pk][1][0]
    QuotaLine.objects.filter(request=request).update(asked_from=now - 9 * DAY, asked_until=now - DAY)
    assert rows(dana)[request.pk][1][0] == "The requested period has ended."
    make.close(namespace_a.name)
    assert rows(dana)[request.pk][1][0].startswith("This team is being closed")


def test_asked_back_is_a_look(team_a: Tenant, limited: GpuClass, alice: User, dana: User) -> None:
    make.grant(team_a, limited, units=4)
    request = waits(team_a, limited, alice, units=2)
    RequestComment.objects.create(request=request, author=dana, text="For how long?", asks_back=True)
    assert rows(dana)[request.pk] == ("look", ("Information requested: the team has not answered yet.",))


# ---- selected requests -------------------------------------------------------------------------------------------


def test_the_ticked_set_is_drawn_together_and_decides_nothing(
    cluster: Cluster, limited: GpuClass, charlie: User, dana: User
) -> None:
    mig = make.gpu_class(
        cluster, slug="a100-1g", name="A slice", partition="1g.10gb", resource="nvidia.com/mig-1g.10gb",
        weight="0.1429", promise_limit=20,
    )  # fmt: skip
    holder = team(cluster, "one")
    make.grant(holder, limited, units=2)
    one = waits(holder, limited, charlie, units=5)
    two = waits(team(cluster, "two"), limited, charlie, units=4, days=10)
    three = waits(team(cluster, "three"), mig, charlie, units=7)
    client = as_(dana)
    alone = client.get(f"/inbox?part=set&request={one.pk}&request={three.pk}")
    found = alone.context["set"]
    assert "<html" not in alone.text
    assert (found.count, found.verdict, found.is_good) == (
        2,
        "Together they stay within all allocation limits at all times.",
        True,
    )
    assert [(each.curve.name, each.more) for each in found.classes] == [
        ("A slice", "+7 slices, 1 physical GPU"),
        (limited.name, "+3 GPUs"),
    ]
    both = client.get(f"/inbox?request={one.pk}&request={two.pk}")
    found = both.context["set"]
    until = f"{timezone.localtime() + 10 * DAY:%-d %b %Y}"
    assert not found.is_good
    assert found.verdict == (
        f"Together they exceed an allocation limit: {limited.name} by 1, 9 of 8, "
        f"from {timezone.localtime():%-d %b %Y} to {until}."
    )
    assert found.classes[0].curve.name == limited.name
    assert [step.units for step in found.classes[0].curve.before][:2] == [2, 0]
    assert [step.units for step in found.classes[0].curve.after][:2] == [9, 5]
    page = text(both)
    assert found.verdict in page
    assert page.count(" checked") == 2
    assert set(QuotaLine.objects.values_list("state", flat=True)) == {"pending"}


def test_the_set_says_when_it_cannot_know(team_a: Tenant, a100: GpuClass, alice: User, dana: User) -> None:
    request = waits(team_a, a100, alice, units=2)
    found = as_(dana).get(f"/inbox?part=set&request={request.pk}").context["set"]
    assert not found.is_good
    assert found.verdict == f"Unknown whether it fits: no current cluster data or no allocation limit for {a100.name}."


def test_the_set_is_of_what_waits_for_this_person(
    cluster: Cluster, limited: GpuClass, charlie: User, dana: User
) -> None:
    other = make.gpu_class(cluster, slug="other", promise_limit=9)
    erin = make.approver("Erin", gpu_class=other)
    request = waits(team(cluster, "one"), limited, charlie, units=2)
    address = f"/inbox?part=set&request={request.pk}&request=x&request=99999999999999999999"
    assert as_(erin).get(address).context["set"] is None
    assert as_(dana).get(address).context["set"].count == 1
    assert "No requests are selected" in as_(erin).get("/inbox?part=set").text
    assert as_(charlie).get(address).status_code == 403


# ---- filters and pagination --------------------------------------------------------------------------------------


def test_filters_are_in_the_address(cluster: Cluster, limited: GpuClass, charlie: User, dana: User) -> None:
    other = make.gpu_class(cluster, slug="other", promise_limit=9)
    holder = team(cluster, "one")
    make.grant(holder, limited, units=4)
    clear = waits(holder, limited, charlie, units=2)
    new = waits(team(cluster, "two"), other, charlie, units=1)
    assert rows(dana).keys() == {clear.pk, new.pk}
    assert rows(dana, "/inbox?team=two").keys() == {new.pk}
    assert rows(dana, "/inbox?team=TWO").keys() == {new.pk}
    assert rows(dana, f"/inbox?class={limited.slug}").keys() == {clear.pk}
    assert rows(dana, "/inbox?group=one_click").keys() == {clear.pk}
    assert rows(dana, "/inbox?group=look&team=two&class=other").keys() == {new.pk}
    page = text(as_(dana).get(f"/inbox?group=look&class={limited.slug}"))
    assert "No matching requests" in page
    page = text(as_(dana).get("/inbox?group=look&team=two"))
    assert 'value="two"' in page
    assert '<input type="hidden" name="group" value="look">' in page
    assert "2 requests pending" in page


@pytest.mark.parametrize("limit", [8, 1000])
def test_it_costs_the_same_with_5_and_with_50_requests_and_however_many_teams(
    cluster: Cluster, a100: GpuClass, charlie: User, dana: User, limit: int
) -> None:
    """Measured with all requests fitting, and with some that do not fit, where competing requests are read."""
    GpuClass.objects.update(promise_limit=limit)
    mirrored.hardware_seen(cluster)
    looked(a100, hours=30)
    client = as_(dana)

    def cost(number: int) -> tuple[int, int]:
        with CaptureQueriesContext(connection) as of_page:
            found = client.get("/inbox").context["rows"]
        assert len(found) == number
        ticks = "".join(f"&request={row['pk']}" for row in found)
        with CaptureQueriesContext(connection) as of_set:
            assert client.get(f"/inbox?part=set{ticks}").context["set"].count == number
        return len(of_page), len(of_set)

    many(cluster, a100, charlie, 5)
    with_five = cost(5)
    many(cluster, a100, charlie, 45, first=5)
    for index in range(60):
        make.grant(team(cluster, f"holder{index}"), a100, units=1)
    assert cost(50) == with_five
    assert with_five[0] <= 50
    assert with_five[1] <= 30


def test_more_than_a_page_goes_on_by_a_cursor(cluster: Cluster, limited: GpuClass, charlie: User, dana: User) -> None:
    many(cluster, limited, charlie, 52)
    first = as_(dana).get("/inbox?class=" + limited.slug)
    assert len(first.context["rows"]) == 50
    cursor = first.context["next_cursor"]
    second = as_(dana).get(f"/inbox?class={limited.slug}&cursor={cursor}")
    assert len(second.context["rows"]) == 2
    assert f'name="cursor" value="{cursor}"' in second.text
    shown = [row["pk"] for row in (*first.context["rows"], *second.context["rows"])]
    assert shown == sorted(shown)
