"""The price history of a class, on its page and in the API: for operators, administrators and auditors only."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from accounts.core.actor import Actor, system_actor
from accounts.models import Role, User
from catalog.classes import actions
from catalog.models import ClassPrice, GpuClass
from cluster.models import Cluster
from desk.classes import prices
from tenants.models import Tenant
from tests.support.rows import make

pytestmark = pytest.mark.django_db


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def change(one: GpuClass, by: User, *amounts: str) -> None:
    for amount in amounts:
        actions.edit_class(one.pk, price_per_unit_hour=Decimal(amount), by=Actor(by, "page"))


def of_page(text: str) -> list[str]:
    found = text.split('aria-label="Table of prices"')[1].split("<tbody>")[1].split("</tbody>")[0]
    return [row.split('<td class="r">')[1].split("</td>")[0] for row in found.split("<tr>")[1:]]


def test_staff_see_the_latest_first_and_who_set_it(team_a: Tenant, a100: GpuClass, alice: User, olga: User) -> None:
    change(a100, olga, "1.5", "2.5")
    actions.edit_class(a100.pk, price_per_unit_hour=Decimal(3), by=system_actor("test"))
    auditor = make.user("Audra", roles=[Role.AUDITOR])
    for person in (olga, auditor):
        page = signed_in(person).get(f"/catalog/{a100.slug}").text
        assert of_page(page) == ["3.0000", "2.5000", "1.5000"]
        body = signed_in(person).get(f"/api/v1/classes/{a100.slug}/prices").json()
        assert [(one["price_per_unit_hour"], one["by"]) for one in body["items"]] == [
            ("3.0000", ""), ("2.5000", "Olga"), ("1.5000", "Olga"),
        ]  # fmt: skip
    assert "Price history" not in signed_in(alice).get(f"/catalog/{a100.slug}").text
    assert signed_in(alice).get(f"/api/v1/classes/{a100.slug}/prices").status_code == 404


def test_storage_has_one_too(cluster: Cluster, olga: User) -> None:
    storage = make.storage(cluster)
    change(storage, olga, "0.0002")
    assert of_page(signed_in(olga).get(f"/catalog/{storage.slug}").text) == ["0.0002"]


def test_the_api_has_all_and_also_those_of_a_class_that_is_not_open(
    a100: GpuClass, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prices, "SHOWN", 2)
    change(a100, olga, "1", "2", "3")
    assert len(of_page(signed_in(olga).get(f"/catalog/{a100.slug}").text)) == 2
    GpuClass.objects.filter(pk=a100.pk).update(life_cycle=GpuClass.LifeCycle.RETIRED)
    client, call = signed_in(olga), f"/api/v1/classes/{a100.slug}/prices"
    assert len(client.get(call).json()["items"]) == 3
    first: dict[str, Any] = client.get(f"{call}?limit=2").json()
    rest = client.get(first["next"]).json()
    assert [one["price_per_unit_hour"] for one in (*first["items"], *rest["items"])] == ["3.0000", "2.0000", "1.0000"]
    assert client.get("/api/v1/classes/none/prices").status_code == 404


def test_a_class_that_had_no_other_price_has_no_table(a100: GpuClass, olga: User) -> None:
    assert not ClassPrice.objects.exists()
    assert "Price history" not in signed_in(olga).get(f"/catalog/{a100.slug}").text
