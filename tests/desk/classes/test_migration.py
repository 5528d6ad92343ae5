"""A class that is being retired: its users see what to do and where to go, on the pages of the class and the team."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from catalog.classes.life_cycle import migration_advice
from catalog.models import GpuClass
from tenants.models import Announcement, Tenant
from tests.support.rows import make

pytestmark = pytest.mark.django_db
NOW = timezone.now()
LINK = '<a href="/catalog/h100">See H100</a>'
ADVICE = "Launch on H100 instead, and request quota of it if your team has none."
NO_SUCCESSOR = "Choose another class from the catalog for new workloads."


@pytest.fixture
def heir(a100: GpuClass) -> GpuClass:
    found = make.gpu_class(a100.cluster, slug="h100", name="H100", node_labels={"gpu": "h100"})
    GpuClass.objects.filter(pk=a100.pk).update(life_cycle="retiring", successor=found)
    a100.refresh_from_db()
    return found


@pytest.fixture
def bobs(client: Client, bob: User) -> Client:
    client.force_login(bob)
    return client


@pytest.mark.parametrize(
    ("values", "advice"),
    [
        ({"life_cycle": "active", "successor": "H100"}, ""),
        ({"life_cycle": "retired", "successor": "H100"}, ""),
        ({"successor": "H100"}, ADVICE),
        ({"successor": "H100", "runs_until": NOW}, f"{ADVICE} Save what runs on A100 before it is stopped."),
        ({}, NO_SUCCESSOR),
        ({"runs_until": NOW}, f"{NO_SUCCESSOR} Save what runs on A100 before it is stopped."),
        ({"successor": "H100", "is_storage": True}, ""),
    ],
)
def test_what_to_do(values: dict[str, Any], advice: str) -> None:
    given: dict[str, Any] = {"name": "A100", "life_cycle": "retiring", "successor": "", "runs_until": None}
    assert migration_advice(**given | values) == advice


@pytest.mark.parametrize("page", ["class", "tenant-home", "grants"])
def test_its_users_find_the_successor(bobs: Client, team_a: Tenant, a100: GpuClass, heir: GpuClass, page: str) -> None:
    make.grant(team_a, a100, units=2)
    address = reverse(page, args=[a100.slug if page == "class" else team_a.slug])
    shown = bobs.get(address).content.decode()
    assert (LINK in shown, ADVICE in shown, "is being retired" in shown) == (True, True, True)
    GpuClass.objects.filter(pk=heir.pk).update(visibility="named")
    shown = bobs.get(address).content.decode()
    assert ("H100" in shown, NO_SUCCESSOR in shown) == (False, True)
    GpuClass.objects.filter(pk=a100.pk).update(life_cycle="active")
    assert "is being retired" not in bobs.get(address).content.decode()


def test_the_api_says_what_to_do(bobs: Client, team_a: Tenant, a100: GpuClass, heir: GpuClass) -> None:
    told = bobs.get(f"/api/v1/classes/{a100.slug}").json()
    assert (told["successor"], told["migration"]) == ("h100", ADVICE)
    assert bobs.get("/api/v1/classes/h100").json()["migration"] == ""
    GpuClass.objects.filter(pk=heir.pk).update(visibility="named")
    told = bobs.get(f"/api/v1/classes/{a100.slug}").json()
    assert (told["successor"], told["migration"]) == ("", NO_SUCCESSOR)


def test_the_retirement_is_announced_from_the_page_of_the_class(
    client: Client, team_a: Tenant, a100: GpuClass, heir: GpuClass, olga: User, bob: User
) -> None:
    ends = (timezone.now() + timedelta(days=9)).replace(second=0, microsecond=0)
    GpuClass.objects.filter(pk=a100.pk).update(runs_until=ends)
    make.administrator(client, olga)  # signed in, with a second factor
    address = f"/operators/announcements?retiring={a100.slug}"
    assert f'href="{address}"' in client.get(reverse("class-edit", args=[a100.slug])).content.decode()
    form = client.get(address).context["form"]
    assert (form.initial["until"], form["classes"].value()) == (ends, [a100.slug])
    typed = {name: form[name].value() for name in ("title", "body", "severity", "audience", "classes")}
    times = {name: form.initial[name].strftime("%Y-%m-%dT%H:%M") for name in ("starts", "until")}
    assert client.post("/operators/announcements", typed | times).status_code == 302
    row = Announcement.objects.get()
    assert (row.title, row.audience, row.period.upper) == (f"{a100.name} is being retired", "classes", ends)
    client.force_login(bob)
    assert LINK in client.get("/notices").content.decode()
    make.administrator(client, olga)
    assert client.get("/operators/announcements?retiring=h100").context["form"]["title"].value() is None
