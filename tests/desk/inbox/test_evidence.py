"""What an approver sees of a team's use beside its quota: measured values, no guesses."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import Scope, User
from catalog.models import GpuClass
from desk.inbox import evidence
from tenants.models import Namespace, QuotaRequest, Tenant
from tenants.requests import actions
from tenants.requests.decisions import actions as decision_actions
from tenants.requests.decisions.types import Decision
from tests.support.rows import make, mirrored
from tests.support.rows.usage import file, looked, ran, the_hour, used
from tests.usage.right_size.test_queries import measured
from tests.usage.telemetry.rows import held_run


@pytest.fixture
def mig(a100: GpuClass) -> GpuClass:
    return make.gpu_class(
        a100.cluster,
        slug="a100-1g",
        name="A slice",
        partition="1g.10gb",
        resource="nvidia.com/mig-1g.10gb",
        weight="0.1429",
        node_labels={"nvidia.com/mig-1g.10gb.sharing-strategy": "none"},
    )


def page(request: QuotaRequest, by: User) -> Any:
    client = Client()
    client.force_login(by)
    answer = client.get(f"/requests/{request.pk}")
    assert answer.status_code == 200
    return answer


def told(answer: Any) -> dict[str, list[str]]:
    """Returns name of a fact → its cells, as on the page."""
    table = answer.text.split('<table class="table facts">')[1].split("</table>")[0]
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', table)
    return {name: re.findall(r"<td>(.*?)</td>", cells) for name, cells in rows}


# ---- request page ------------------------------------------------------------------------------------------------


def test_the_approver_sees_what_the_team_used_and_how_long_it_waited(
    a100: GpuClass, mig: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User, bob: User, dana: User
) -> None:
    looked(a100)
    # Three units over the 720 hours of the measured period.
    used(namespace_a, a100, peak=8, total=3 * 60 * 720)
    ran(namespace_a, a100, bob, units=2, waited=timedelta(seconds=30))
    ran(namespace_a, a100, alice, waited=timedelta(minutes=4.5))
    filed = file(team_a, alice, **{a100.slug.replace("-", "_"): 4, "a100_1g": 14})
    answer = page(filed, dana)
    found = told(answer)
    assert answer.context["page"]["facts"]["columns"] == [a100.name, mig.name]
    assert found["Peak, 30 days"] == ["8", "0"]
    assert found["Mean, 30 days"] == ["3", "0"]
    assert found["Queued over 1 min"] == ["1 of 2 runs", "–"]
    assert found["Median wait"] == ["2.5 min", "–"]
    assert found["Requested, in physical GPUs"] == ["4", "2"]
    assert answer.context["page"]["facts"]["note"] == ""
    assert [name for name, _ in answer.context["page"]["facts"]["members"]] == ["Bob", "Alice"]
    assert "<dt>Bob</dt><dd>4 GPU-hours</dd>" in answer.text
    assert "<dt>Alice</dt><dd>2 GPU-hours</dd>" in answer.text


@pytest.mark.parametrize(
    ("fields", "units", "told_as"),
    [
        ({"weight": "0.1429"}, 7, "1"),
        ({"weight": "0.1429"}, 3, "0.43"),
        ({"weight": "0.1429"}, 8, "1.14, on at least 2"),
        ({"weight": "0.1333"}, 15, "2, on at least 3"),
        # Seven of 2g take as much as two GPUs, but one holds only three of them.
        ({"partition": "2g.20gb", "weight": "0.2857"}, 7, "2, on at least 3"),
        ({"partition": "3g.40gb", "weight": "0.5"}, 3, "1.5, on at least 2"),
        ({"partition": "4g.40gb", "weight": "0.5714"}, 7, "4, on at least 7"),
        ({"partition": "2g.20gb", "product": "NVIDIA-B400", "weight": "0.2857"}, 7, "2"),
        ({"partition": "none", "weight": "1"}, 3, "3"),
        (
            {"partition": "none", "sharing": "time-slicing", "replicas": 4, "units_per_workload": 1, "weight": "0.25"},
            5,
            "1.25, on at least 2",
        ),
    ],
)
def test_what_is_asked_for_in_slices_is_told_in_gpus_and_on_how_many_at_least(
    mig: GpuClass, team_a: Tenant, alice: User, dana: User, fields: dict[str, Any], units: int, told_as: str
) -> None:
    GpuClass.objects.filter(pk=mig.pk).update(**fields)
    assert told(page(file(team_a, alice, a100_1g=units), dana))["Requested, in physical GPUs"] == [told_as]


def test_what_nobody_looked_at_is_unknown_and_not_zero(a100: GpuClass, team_a: Tenant, alice: User, dana: User) -> None:
    answer = page(file(team_a, alice, **{a100.slug.replace("-", "_"): 4}), dana)
    found = told(answer)
    assert (found["Peak, 30 days"], found["Mean, 30 days"]) == (["unknown"], ["unknown"])
    assert (found["Queued over 1 min"], found["Median wait"]) == (["–"], ["–"])
    assert "peak and mean are unknown, not 0" in answer.text
    assert "No workloads of this team ran in the last 30 days." in answer.text


def test_what_was_looked_at_in_part_says_so(a100: GpuClass, team_a: Tenant, alice: User, dana: User) -> None:
    looked(a100, hours=73)
    answer = page(file(team_a, alice, **{a100.slug.replace("-", "_"): 4}), dana)
    since = f"{timezone.localtime(the_hour(72)):%-d %b %Y}"
    assert answer.context["page"]["facts"]["note"] == (
        f"Peak and mean cover 10 % of the last 30 days. Usage was first measured on {since}."
    )


def test_what_was_decided_before_is_listed_newest_first(
    a100: GpuClass, mig: GpuClass, team_a: Tenant, alice: User, dana: User
) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8)
    slug = a100.slug.replace("-", "_")
    for units, given in ((9, None), (4, 2)):
        filed = file(team_a, alice, **{slug: units})
        decision = Decision(filed.lines.get().pk, approve=given is not None, units=given, reason="Not all at once.")
        decision_actions.decide_request(filed.pk, [decision], by=Actor(dana, "page"))
    of_another = file(team_a, alice, a100_1g=1)
    actions.withdraw_request(of_another.pk, by=Actor(alice, "page"))
    answer = page(file(team_a, alice, **{slug: 5}), dana)
    asks = answer.context["page"]["asks"]
    assert [(one["sentence"], one["state"], one["who"]) for one in asks] == [
        (f"{a100.name}, requested 4 GPUs in total, granted 2", "approved", "Dana"),
        (f"{a100.name}, requested 9 GPUs in total", "denied", "Dana"),
    ]
    assert "Not all at once." in answer.text


def test_the_team_is_not_shown_what_only_who_decides_needs(a100: GpuClass, team_a: Tenant, alice: User) -> None:
    answer = page(file(team_a, alice, **{a100.slug.replace("-", "_"): 4}), alice)
    assert answer.context["page"]["facts"] is None
    assert answer.context["page"]["asks"] == []
    assert "Usage by member" not in answer.text


def test_the_approver_of_a_renewal_sees_that_less_would_be_enough(
    a100: GpuClass, mig: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User, dana: User
) -> None:
    now = timezone.now()
    looked(a100)
    used(namespace_a, a100, peak=2, total=60, back=700)
    make.grant(team_a, a100, units=8, since=now - timedelta(days=40), until=now + timedelta(days=5))
    filed = file(team_a, alice, **{a100.slug.replace("-", "_"): 8, "a100_1g": 7})
    found = told(page(filed, dana))
    assert (found["Would be enough"], found["Activity of held units"]) == (["2 of 8", "–"], ["–", "–"])
    # The team is told nothing while its request is pending.
    assert [one["smaller_total"] for one in answer_to(alice).json()["classes"]] == [None]
    facts = Client()
    facts.force_login(dana)
    [whole, _] = facts.get(f"/api/v1/requests/{filed.pk}/facts").json()["classes"]
    assert whole["smaller_total"]["units"] == 2
    actions.withdraw_request(filed.pk, by=Actor(alice, "page"))
    [said] = [one["smaller_total"] for one in answer_to(alice).json()["classes"]]
    assert said == {
        "units": 2,
        "until": f"{timezone.localtime(now + timedelta(days=5)):%Y-%m-%d}",
        "why": "In 30 days at most 2 of 8 GPUs were in use at the same time.",
    }


def test_activity_of_what_was_held(
    a100: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User, dana: User
) -> None:
    hour = the_hour()
    run = held_run(namespace_a, a100, alice, hour - timedelta(hours=4), hour, units=2)
    filed = file(team_a, alice, **{a100.slug.replace("-", "_"): 8})
    assert told(page(filed, dana))["Activity of held units"] == ["unknown"]
    measured(run, hour - timedelta(hours=1), busy=2, memory_mib=1, total_mib=2, activity=33)
    assert told(page(filed, dana))["Activity of held units"] == ["33 %, measured for 25 %"]
    [found] = answer_to(alice).json()["classes"]
    assert (found["activity"], found["activity_seen_share"]) == (0.33, 0.25)


def test_the_number_of_queries_does_not_grow_with_runs_members_and_hours(
    a100: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User, bob: User, dana: User
) -> None:
    looked(a100, hours=3)
    filed = file(team_a, alice, **{a100.slug.replace("-", "_"): 4})
    page(filed, dana)
    with CaptureQueriesContext(
        connection,
    ) as few:
        page(filed, dana)
    for number in range(12):
        ran(namespace_a, a100, bob if number % 2 else alice, waited=timedelta(seconds=30))
        used(namespace_a, a100, peak=2, total=60, back=number)
    with CaptureQueriesContext(connection) as many:
        page(filed, dana)
    assert len(many) == len(few)


def test_all_of_it_takes_eight_queries(
    a100: GpuClass, mig: GpuClass, team_a: Tenant, django_assert_num_queries: Any
) -> None:
    """Five of the 30 days, two of the totals, and one that finds no idle run."""
    with django_assert_num_queries(8):
        evidence.usage_evidence(team_a, [a100, mig])


def test_the_pool_is_told_apart_from_the_team(
    a100: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User, dana: User
) -> None:
    def busy(name: str, namespace: str, **card: int) -> dict[str, Any]:
        return mirrored.pod(name, node="a100-1", namespace=namespace, gpu_class=a100.slug, **card)

    one, two = {"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 2}
    mirrored.hardware_seen(a100.cluster, Pod=[busy("a", namespace_a.name, **one), busy("b", "team-b", **two)])
    found = told(page(file(team_a, alice, **{a100.slug.replace("-", "_"): 4}), dana))
    assert (found["In use by this team"], found["In use by all teams"]) == (["1"], ["3"])
    assert (found["Allocatable in the cluster"], found["Free now"]) == (["16"], ["13"])


# ---- evidence stored with a decision -----------------------------------------------------------------------------


@pytest.mark.parametrize("door", ["page", "api"])
def test_a_decision_keeps_what_was_measured(
    door: str, a100: GpuClass, mig: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User, dana: User
) -> None:
    GpuClass.objects.update(promise_limit=8)
    looked(a100)
    used(namespace_a, a100, peak=8, total=3 * 60 * 720)
    ran(namespace_a, a100, alice, waited=timedelta(minutes=4))
    filed = file(team_a, alice, **{a100.slug.replace("-", "_"): 4, "a100_1g": 1})
    client = Client()
    if door == "page":
        client.force_login(dana)
        boxes = re.findall(r'name="((?:units|from|until)-[0-9]+)"[^>]* value="([^"]*)"', page(filed, dana).text)
        typed = {"decision": "approve", "reason": "", **dict(boxes)}
        assert client.post(f"/requests/{filed.pk}/decide", typed).status_code == 302
    else:
        _, token = api_token_actions.create_token(
            name="ci", scopes=[Scope.DECIDE], expires_in_days=7, by=Actor(dana, "page")
        )
        body = {"lines": [{"id": line.pk, "approve": True} for line in filed.lines.all()]}
        answer = client.post(
            f"/api/v1/requests/{filed.pk}/decide",
            body,
            content_type="application/json",
            headers={"Authorization": f"Bearer {token}"},
        )
        assert answer.status_code == 200, answer.content
    [whole, sliced] = [line.facts for line in filed.lines.order_by("pk")]
    names = ("held", "peak", "mean", "seen_share", "runs", "runs_waited", "median_wait_s")
    assert [whole[name] for name in names] == [0, 8, 3.0, pytest.approx(1, abs=0.01), 1, 1, 240.0]
    assert [sliced[name] for name in names[1:3]] == [0, 0.0]


# ---- /api/v1/teams/<slug>/usage --------------------------------------------------------------------------------


def answer_to(by: User, tenant: str = "team-a") -> Any:
    name = f"script {by.tokens.count()}"
    _, token = api_token_actions.create_token(name=name, scopes=[Scope.READ], expires_in_days=7, by=Actor(by, "page"))
    return Client(headers={"Authorization": f"Bearer {token}"}).get(f"/api/v1/teams/{tenant}/usage")


def test_a_member_reads_the_same_numbers_by_the_api(
    a100: GpuClass, mig: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User, bob: User
) -> None:
    looked(a100)
    make.grant(team_a, mig, units=7)
    used(namespace_a, a100, peak=8, total=3 * 60 * 720)
    ran(namespace_a, a100, bob, units=2, waited=timedelta(seconds=30))
    mirrored.hardware_seen(a100.cluster)
    found = answer_to(bob).json()
    assert datetime.fromisoformat(found["until"]) - datetime.fromisoformat(found["since"]) == timedelta(days=30)
    assert found["members"] == [{"name": "Bob", "gpu_hours": 4.0}]
    sliced, whole = sorted(found["classes"], key=lambda one: one["gpu_class"] != mig.slug)
    assert {**whole, "seen_share": 1} == {
        "gpu_class": a100.slug,
        "held": 0,
        "used": 0,
        "peak": 8,
        "mean": 3.0,
        "seen_share": 1,
        "runs": 1,
        "runs_waited": 0,
        "median_wait_s": 30.0,
        "cards_per_unit": 1.0,
        "activity": None,
        "activity_seen_share": 0.0,
        "smaller_total": None,
    }
    assert (sliced["held"], sliced["cards_per_unit"], sliced["median_wait_s"]) == (7, 0.1429, None)


def test_the_api_says_null_where_nobody_looked(a100: GpuClass, team_a: Tenant, alice: User) -> None:
    make.grant(team_a, a100, units=2)
    [found] = answer_to(alice).json()["classes"]
    assert (found["used"], found["peak"], found["mean"], found["seen_share"]) == (None, None, None, 0.0)


def test_a_stranger_is_told_of_no_team_and_an_approver_of_all(
    a100: GpuClass, team_a: Tenant, charlie: User, dana: User
) -> None:
    assert answer_to(charlie).status_code == 404
    assert answer_to(dana, "team-x").status_code == 404
    assert answer_to(dana).json()["classes"] == []


def test_the_apis_queries_do_not_grow_with_classes_and_runs(
    a100: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User, dana: User
) -> None:
    mirrored.hardware_seen(a100.cluster)
    make.grant(team_a, a100, units=2)
    answer_to(dana)
    with CaptureQueriesContext(connection) as few:
        answer_to(dana)
    for number in range(6):
        one = make.gpu_class(a100.cluster, slug=f"c{number}")
        make.grant(team_a, one, units=1)
        ran(namespace_a, one, alice, waited=timedelta(0))
        used(namespace_a, one, peak=1, total=60)
    with CaptureQueriesContext(connection) as many:
        answer_to(dana)
    assert len(many) == len(few)


# ---- numbers as text ---------------------------------------------------------------------------------------------


A100 = "NVIDIA-A100-SXM4-80GB"


@pytest.mark.parametrize(
    ("fields", "cards"),
    [
        ({}, Fraction(1)),
        ({"weight": "2.5"}, Fraction(1)),
        # The profiles of an unknown GPU are not known: the weight stands for them.
        ({"partition": "3g.40gb", "weight": "0.4286"}, Fraction(3, 7)),
        # Of compute and memory the larger share, whatever the unit counts in totals.
        ({"partition": "1g.20gb", "product": A100, "weight": "0.1429"}, Fraction(1, 4)),
        ({"partition": "3g.40gb", "product": A100, "weight": "0.4286"}, Fraction(1, 2)),
        ({"partition": "1g.20gb", "product": "NVIDIA-H100-80GB-HBM3", "weight": "0.5"}, Fraction(1, 4)),
        ({"partition": "1g.6gb", "product": "NVIDIA-A30", "weight": "0.1429"}, Fraction(1, 4)),
        # The weight that discovery proposes where 3g fills a GPU with 2g and two of 1g.
        ({"partition": "3g.40gb", "product": A100, "weight": "0.4667"}, Fraction(7, 15)),
        ({"partition": "1g.10gb", "weight": "0.0333", "sharing": "time-slicing", "replicas": 4}, Fraction(1, 30)),
        (
            {"partition": "1g.10gb", "product": A100, "weight": "0.5", "sharing": "time-slicing", "replicas": 4},
            Fraction(1, 28),
        ),
        ({"sharing": "time-slicing", "replicas": 4, "weight": "0.2000"}, Fraction(1, 4)),
        ({"interface": "none", "resource": "", "weight": "0"}, None),
    ],
)
def test_a_unit_as_physical_cards(fields: dict[str, Any], cards: Fraction | None) -> None:
    one = GpuClass(**fields)
    assert evidence.cards_per_unit(one) == cards


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0.0, "0 s"), (12.34, "12.3 s"), (90.0, "1.5 min"), (5400.0, "1.5 h"), (259_200.0, "3 days")],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert evidence._duration(seconds) == text
