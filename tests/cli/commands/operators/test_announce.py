"""`gpu ops announce` and `gpu announcements`: what their pages do, from a shell."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Announcement, Tenant
from tests.cli.command import Gpu, unheard
from tests.support.rows import make

pytestmark = pytest.mark.django_db
TOMORROW = timezone.now().astimezone(UTC).date() + timedelta(days=1)
OPS = ("ops", "announce")


@pytest.fixture
def gpu(gpu_of: Callable[..., Gpu], olga: User) -> Gpu:
    return gpu_of(olga, "read", "admin")


def test_publish_list_show_change_and_withdraw(gpu: Gpu, team_a: Tenant, a100: GpuClass) -> None:
    made = gpu(*OPS, "publish", "New switches", "--text", "Save your work.", "--until", f"{TOMORROW}", "--severity",
               "warning", "--for-team", "team-a", "--acknowledge")  # fmt: skip
    row = Announcement.objects.get()
    number = str(row.pk)
    assert (made.code, made.err) == (0, "")
    assert made.out.startswith(f"Announcement {number}: New switches (now).\n  severity: warning\n")
    assert "audience: teams: team-a (2 people now)" in made.out
    assert "acknowledged by: 0 of 2 people" in made.out
    assert row.period.upper == datetime.fromisoformat(f"{TOMORROW}T23:59:59+00:00"), "the last day is included"

    listed = gpu(*OPS, "list")
    assert listed.out.splitlines()[0].split()[:3] == ["ANNOUNCEMENT", "STATE", "SEVERITY"]
    assert "teams: team-a" in listed.out
    assert gpu(*OPS, "list", "--json").json["items"][0]["title"] == "New switches"

    later = TOMORROW + timedelta(days=2)
    assert f"until: {later} 09:00 UTC" in gpu(*OPS, "change", number, "--until", f"{later}T09:00").out
    assert gpu(*OPS, "show", number, "--json").json["ends_at"] == f"{later}T09:00:00Z"
    assert "(withdrawn)" in gpu(*OPS, "withdraw", number).out
    over = gpu(*OPS, "withdraw", number, "--json")
    assert (over.code, over.json["code"], over.err.strip()) == (6, "is_over", "This announcement is over.")
    assert number not in gpu(*OPS, "list").out
    assert "withdrawn" in gpu(*OPS, "list", "--all").out

    of_class = gpu(*OPS, "publish", "Tonight", "--text", "x", "--until", f"{TOMORROW}", "--class", a100.slug, "--json")
    assert (of_class.json["audience"], of_class.json["classes"]) == ("classes", [a100.slug])
    both = gpu(
        *OPS, "publish", "x", "--text", "x", "--until", f"{TOMORROW}", "--class", a100.slug, "--for-team", "team-a"
    )
    assert both.code == 6, "the portal refuses it, not the command"


def test_a_lost_answer_publishes_once(gpu: Gpu) -> None:
    def lost(request: httpx.Request) -> httpx.Response | None:
        gpu.between.answer(request)
        raise httpx.ReadTimeout("no way", request=request)

    gpu.between.faults = [lost, unheard(httpx.ConnectError)]
    assert gpu(*OPS, "publish", "Once", "--text", "x", "--until", f"{TOMORROW}").code == 0
    assert Announcement.objects.count() == 1


def test_each_person_reads_and_acknowledges(
    gpu: Gpu, gpu_of: Callable[..., Gpu], bob: User, team_a: Tenant, a100: GpuClass
) -> None:
    heir = make.gpu_class(a100.cluster, slug="h100", name="H100", node_labels={"gpu": "h100"})
    GpuClass.objects.filter(pk=a100.pk).update(life_cycle="retiring", successor=heir)
    gpu(*OPS, "publish", "Old cards", "--text", "They go.\nSoon.", "--until", f"{TOMORROW}", "--class", a100.slug,
        "--acknowledge")  # fmt: skip
    number, bobs = str(Announcement.objects.get().pk), gpu_of(bob, "read", "request")
    read = bobs("announcements")
    assert read.out.startswith(f"{number}: Old cards (information, until {TOMORROW} 23:59 UTC, to be acknowledged)\n")
    assert "  They go.\n  Soon.\n" in read.out
    assert f"  {a100.slug} is being retired. Launch on H100 instead" in read.out
    assert "Successor: h100." in read.out
    assert ", acknowledged 20" in bobs("announcements", "--acknowledge", number).out
    assert bobs("announcements", "--json").json["items"][0]["acknowledged_at"] is not None
    assert bobs("announcements", "--acknowledge", "987654").code == 6


def test_for_all_others_there_is_none(gpu_of: Callable[..., Gpu], bob: User, gpu: Gpu) -> None:
    gpu(*OPS, "publish", "x", "--text", "x", "--until", f"{TOMORROW}")
    number, bobs = str(Announcement.objects.get().pk), gpu_of(bob, "read", "admin")
    for words in (("list",), ("show", number), ("withdraw", number), ("change", number, "--until", f"{TOMORROW}")):
        assert bobs(*OPS, *words).code == 6
    assert Announcement.objects.get().withdrawn_at is None
