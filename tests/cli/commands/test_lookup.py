"""What users and programs get: tables, sentences, the API's own body."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace, Tenant
from tests.cli.command import Gpu, answered
from tests.support.rows import make, running
from tests.support.rows.usage import budget
from tests.usage.faults import rows as fault_rows
from tests.usage.idle import rows as idle_rows
from tests.usage.reports.october import ran
from workloads.models import Run

pytestmark = pytest.mark.django_db


def test_classes_capacity_and_quota_are_tables(gpu: Gpu, granted: Tenant, a100: GpuClass) -> None:
    for command, heading in (("classes", "CLASS"), ("capacity", "ALLOCATED TO TEAMS"), ("quota", "QUOTA")):
        done = gpu(command)
        assert (done.code, done.err) == (0, "")
        assert heading in done.out.splitlines()[0]
        assert a100.slug in done.out


def test_json_is_the_apis_own_body_and_nothing_else(gpu: Gpu, granted: Tenant, a100: GpuClass) -> None:
    assert [one["slug"] for one in gpu("classes", "--json").json["items"]] == [a100.slug]
    assert gpu("capacity", "--json").json["items"][0]["promised"] == 2
    assert gpu("quota", "--json").json["holdings"][0]["granted"] == 2


def test_status_and_why_of_a_notebook_that_is_ready(
    gpu: Gpu, granted: Tenant, namespace_a: Namespace, a100: GpuClass, bob: User
) -> None:
    running.make_ready(running.workload(namespace_a, a100, name="one", by=bob))

    listed, one, why = gpu("status"), gpu("status", "one"), gpu("why", "one")

    assert [line.split()[:2] for line in listed.out.splitlines()] == [["NAME", "KIND"], ["one", "notebook"]]
    assert one.out.startswith("one: ready. ")
    assert "/teams/team-a/workloads/one" in one.out
    assert why.out.startswith("one: ready (")
    assert gpu("status", "one", "--json").json["run"]["number"] == 1


def test_why_tells_facts_estimate_and_what_helps(
    gpu: Gpu, granted: Tenant, namespace_a: Namespace, a100: GpuClass, bob: User
) -> None:
    found = running.workload(namespace_a, a100, name="one", kind="job", by=bob)
    Run.objects.filter(workload=found).update(
        ended_at="2026-11-01T10:00:00Z", outcome="failed", reason="exit_code", message="It ended with 3.", exit_code=3
    )
    body = gpu("why", "one", "--json").json
    why = gpu("why", "one").out
    assert why.startswith("one: failed (exit_code). It ended with 3.")
    assert "exit_code: 3" in " ".join(why.split())
    assert all(step["title"] in why and step["url"] in why for step in body["status"]["next_steps"])


def test_all_pages_of_a_list_are_one(
    gpu: Gpu, granted: Tenant, namespace_a: Namespace, a100: GpuClass, bob: User
) -> None:
    for number in range(5):
        running.workload(namespace_a, a100, name=f"w{number}", by=bob)
    first = gpu("status", "--json").json["items"][:2]
    # Its address names another host, which must not get the token.
    gpu.between.faults = [
        answered(200, body={"items": first, "next": "https://elsewhere.example.org/x?cursor=y&limit=2"})
    ]
    gpu.between.faults += [answered(200, body={"items": [], "next": None})]

    listed = gpu("status", "--json").json

    assert [one["name"] for one in listed["items"]] == ["w4", "w3"]
    assert listed["next"] is None
    assert {request.url.host for request in gpu.between.asked} == {"testserver"}
    assert gpu.between.asked[-1].url.params["cursor"] == "y"


def test_usage_of_a_month_as_a_table_as_json_and_as_csv(
    gpu: Gpu, granted: Tenant, namespace_a: Namespace, a100: GpuClass, bob: User
) -> None:
    GpuClass.objects.update(price_per_unit_hour="2.5")
    a100.refresh_from_db()
    since = datetime(2026, 5, 4, 10, tzinfo=UTC)
    ran(namespace_a, a100, bob, since, since + timedelta(minutes=90), units=2)
    done = gpu("usage", "--month", "2026-05")
    heading, line, total = done.out.splitlines()
    assert heading.split() == ["PERSON", "CLASS", "PRIORITY", "UNIT-HOURS", "GPU-HOURS", "COST", "IDLE", "COST", "NOTE"]
    assert line.split() == ["Bob", a100.slug, "interactive", "3.00", "3.00", "7.50", "not", "measured", "–"]
    assert total.split() == ["Total", "2026-05", "–", "–", "–", "3.00", "7.50", "not", "measured", "–"]
    assert gpu("usage", "--month", "2026-05", "--json").json["totals"]["all"]["cost"] == "7.50"
    as_csv = gpu("usage", "--month", "2026-05", "--csv")
    assert (as_csv.code, as_csv.err) == (0, "")
    assert [(row["email"], row["cost"]) for row in csv.DictReader(io.StringIO(as_csv.out))] == [(bob.email, "7.50")]
    assert len(gpu("usage", "--csv").out.splitlines()) == 1


def test_the_budget_and_its_forecast(gpu: Gpu, granted: Tenant) -> None:
    assert gpu("budget", "--json").json["amount"] is None
    budget(granted, amount="100", cost="120.5", at_limit="stop")
    done = gpu("budget")
    assert [text in done.out for text in ("100.00", "120.50 (120%)", "unknown", "stop", "Nothing starts until")] == [
        True,
    ] * 5  # fmt: skip
    assert gpu("budget", "--json").json["percent"] == 120


def test_idle_runs_are_a_table(gpu: Gpu, granted: Tenant, namespace_a: Namespace, a100: GpuClass, bob: User) -> None:
    assert len(gpu("idle").out.splitlines()) == 1
    found = running.workload(namespace_a, a100, name="train", kind="job", by=bob, units=2)
    idle_rows.idle(found.runs.get(), memory_mib=None)
    done = gpu("idle")
    assert (done.code, done.err) == (0, "")
    line = done.out.splitlines()[1].split()
    assert line[:5] == ["team-a", "train", "Bob", a100.slug, "2"]
    assert line[-4:] == ["–", "7.50", "5.0000", "–"], "an unknown memory is a dash"
    assert gpu("idle", "--team", "team-a", "--json").json["items"][0]["seen_minutes"] == 58


def test_faults_of_gpus_are_a_table(
    gpu: Gpu, granted: Tenant, namespace_a: Namespace, a100: GpuClass, bob: User
) -> None:
    assert len(gpu("faults").out.splitlines()) == 1
    found = running.workload(namespace_a, a100, name="train", kind="job", by=bob)
    fault_rows.fault(a100.cluster, found.runs.get(), node="gpu-1", device="GPU-1", kind="row_remap_failure", code=0)
    fault_rows.fault(a100.cluster, found.runs.get(), device="GPU-2", cleared_at=timezone.now())
    done = gpu("faults")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[1].split()[-7:] == [
        "open", "gpu-1", "GPU-1", "row", "remapping", "failure", "team-a/train",
    ]  # fmt: skip
    assert [one["state"] for one in gpu("faults", "--all", "--json").json["items"]] == ["cleared", "open"]
    assert [one["state"] for one in gpu("faults", "--team", "team-a", "--json").json["items"]] == ["open"]


def test_usage_of_no_month_is_refused(gpu: Gpu, granted: Tenant) -> None:
    for more in ((), ("--csv",)):
        refused = gpu("usage", "--month", "May", *more)
        assert (refused.code, refused.out) == (6, "")
        assert "'May' is not a month. Use the form YYYY-MM" in refused.err
    assert gpu("usage", "--csv", "--json").code == 2


def test_others_words_cannot_move_the_cursor(
    gpu: Gpu, granted: Tenant, namespace_a: Namespace, a100: GpuClass, bob: User
) -> None:
    found = running.workload(namespace_a, a100, name="one", kind="job", by=bob)
    said = "\x1b[2Jgone\u202e [red]not markup[/red]"
    Run.objects.filter(workload=found).update(ended_at="2026-11-01T10:00:00Z", outcome="failed", message=said)

    for done in (gpu("status", "one"), gpu("status"), gpu("why", "one")):
        assert not {"\x1b", "\u202e"} & set(done.out)
        assert "gone" in done.out
        assert "[red]not markup[/red]" in done.out


def test_open_prints_the_page_and_bothers_no_browser_in_a_pipe(
    gpu: Gpu, granted: Tenant, namespace_a: Namespace, a100: GpuClass, bob: User
) -> None:
    running.workload(namespace_a, a100, name="one", by=bob)
    assert gpu("open", "one").out.endswith("/teams/team-a/workloads/one\n")
    assert gpu.browsed == []


def test_a_stranger_meets_nothing(
    gpu_of: Callable[..., Gpu], granted: Tenant, namespace_a: Namespace, a100: GpuClass, bob: User, charlie: User
) -> None:
    running.workload(namespace_a, a100, name="one", by=bob)
    stranger = gpu_of(charlie, "read")
    for arguments in (("status",), ("status", "one"), ("why", "one"), ("quota",), ("usage",), ("usage", "--csv")):
        done = stranger(*arguments, "--team", "team-a")
        assert (done.code, done.out) == (6, "")
        assert "Not found: the address is wrong" in done.err


def test_who_is_in_several_teams_says_which(
    gpu: Gpu, granted: Tenant, namespace_a: Namespace, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make.tenant(namespace_a.cluster, slug="team-b", namespace=f"{namespace_a.name}-b")
    make.member(other, bob)
    for command in ("status", "quota"):
        refused = gpu(command)
        assert refused.code == 2
        assert "--team" in refused.err
    assert gpu("status", "--team", "team-a").code == 0
    monkeypatch.setenv("GPU_TEAM", "team-a")
    assert gpu("quota").code == 0
