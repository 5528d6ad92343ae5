"""The request form while it is filled in: one line for each class that was chosen, and what each would do."""

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
from tenants.models import ClassAccess, QuotaLine, QuotaRequest, Tenant
from tests.support.rows import make, mirrored

pytestmark = pytest.mark.django_db
NEW = "/teams/team-a/requests/new"


@pytest.fixture
def owner(team_a: Tenant, alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def limited(a100: GpuClass) -> GpuClass:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8, price_per_unit_hour="2.5")
    a100.refresh_from_db()
    return a100


@pytest.fixture
def mig(limited: GpuClass) -> GpuClass:
    return make.gpu_class(limited.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb", name="A slice")


def lines(response: Any) -> list[str]:
    return [row["slug"] for row in response.context["rows"]]


def fields(page: str) -> list[str]:
    """Of the form for the request, without those of the page around it."""
    form = page.partition('class="cols cols-8-4"')[2].partition("</form>")[0]
    return re.findall(r'<(?:input|select|textarea)\b(?![^>]*type="hidden")[^>]* name="([^"]*)"', form)


def look(client: Client, what: str, **typed: object) -> Any:
    """Nothing is sent by it."""
    response = client.post(NEW, {"look": what, "justification": "Two trainings.", **typed})
    assert response.status_code == 200
    assert not QuotaRequest.objects.exists()
    return response


def preview(response: Any, slug: str) -> Any:
    return next(row["preview"] for row in response.context["rows"] if row["slug"] == slug)


# ---- the lines -------------------------------------------------------------------------------------------------------


def test_without_a_class_one_is_chosen_first(owner: Client, limited: GpuClass, mig: GpuClass) -> None:
    page = owner.get(NEW)
    assert lines(page) == []
    assert [one["slug"] for one in page.context["choices"]] == sorted([limited.slug, mig.slug])
    assert "units-" not in page.text
    assert 'name="justification"' not in page.text


def test_the_class_that_a_person_comes_from_has_the_only_line(owner: Client, limited: GpuClass, mig: GpuClass) -> None:
    for number in range(20):
        make.gpu_class(limited.cluster, slug=f"more-{number}", resource=f"example.com/{number}")
    page = owner.get(f"{NEW}?class={limited.slug}&units=4")
    assert lines(page) == [limited.slug]
    assert f'name="units-{limited.slug}"' in page.text
    assert 'value="4"' in page.text
    assert len(fields(page.text)) <= 12, fields(page.text)


def test_a_class_that_cannot_be_requested_is_told(owner: Client, limited: GpuClass) -> None:
    page = owner.get(f"{NEW}?class=no-such")
    assert lines(page) == []
    assert "Your team cannot request the class that the link names." in page.text


def test_lines_are_added_and_removed_and_input_is_kept(owner: Client, limited: GpuClass, mig: GpuClass) -> None:
    typed = {f"units-{limited.slug}": "3", f"kind-{limited.slug}": "boost", "until_date": "2031-05-06"}
    more = look(owner, "add", **typed, **{"class": mig.slug})
    assert lines(more) == sorted([limited.slug, mig.slug])
    assert "Two trainings." in more.text
    assert 'value="2031-05-06"' in more.text
    assert 'value="boost" selected' in more.text
    fewer = look(owner, f"remove {limited.slug}", **typed, **{f"units-{mig.slug}": "1", "class": limited.slug})
    assert lines(fewer) == [mig.slug]
    # What is only selected in the list is no line yet.
    assert lines(look(owner, "fit", **typed, **{"class": mig.slug})) == [limited.slug]


def test_what_is_selected_and_not_added_is_not_requested(owner: Client, limited: GpuClass, mig: GpuClass) -> None:
    today = timezone.localdate()
    dates = {"from_date": today, "until_date": today + timedelta(days=9)}
    sent = {f"units-{limited.slug}": 2, "class": mig.slug, "justification": "Two.", **dates}
    assert owner.post(NEW, sent).status_code == 302
    assert QuotaLine.objects.get().gpu_class == limited


def test_a_refused_request_has_the_lines_that_were_sent(owner: Client, limited: GpuClass, mig: GpuClass) -> None:
    answer = owner.post(NEW, {f"units-{limited.slug}": 2, "class": mig.slug})
    assert (answer.status_code, lines(answer)) == (422, [limited.slug])


def test_a_link_to_a_class_of_another_team_is_told(
    owner: Client, limited: GpuClass, mig: GpuClass, alice: User
) -> None:
    """Alice sees the class, because one of her teams may use it."""
    other = make.tenant(limited.cluster, slug="team-b", namespace="b")
    make.member(other, alice)
    GpuClass.objects.filter(pk=mig.pk).update(visibility=GpuClass.Visibility.NAMED)
    ClassAccess.objects.create(tenant=other, gpu_class=mig)
    page = owner.get(f"{NEW}?class={mig.slug}")
    assert "Your team cannot request the class that the link names." in page.text
    assert [one["slug"] for one in page.context["choices"]] == [limited.slug]


# ---- what a line would do --------------------------------------------------------------------------------------------


def test_a_hundred_of_eight_says_so_before_it_is_sent(owner: Client, limited: GpuClass, team_a: Tenant) -> None:
    other = make.tenant(limited.cluster, slug="team-b", namespace=f"b-{limited.slug}")
    make.grant(other, limited, units=2)
    make.grant(team_a, limited, units=1)
    found = preview(look(owner, "fit", **{f"units-{limited.slug}": "100"}), limited.slug)
    assert found.change == "1 → 100 GPUs"
    assert "100 GPUs requested: this exceeds the allocation limit of 8 by 94." in found.warning
    assert "Up to 6 GPUs in total can be granted in this period" in found.room
    assert found.price == "Price 250.00 per hour while all 100 GPUs are in use."
    assert (found.curve.limit, max(step.units for step in found.curve.after)) == (8, 102)


def test_what_fits_has_no_warning(owner: Client, limited: GpuClass, team_a: Tenant) -> None:
    other = make.tenant(limited.cluster, slug="team-b", namespace=f"b-{limited.slug}")
    make.grant(other, limited, units=2)
    make.grant(team_a, limited, units=4)
    found = preview(look(owner, "fit", **{f"units-{limited.slug}": "6"}), limited.slug)
    assert (found.change, found.warning) == ("4 → 6 GPUs", "")
    beyond = preview(look(owner, "fit", **{f"units-{limited.slug}": "7"}), limited.slug)
    assert "by 1." in beyond.warning
    # Added to the current quota.
    on_top = preview(
        look(owner, "fit", **{f"units-{limited.slug}": "2", f"kind-{limited.slug}": "boost"}), limited.slug
    )
    assert (on_top.change, on_top.warning) == ("4 → 6 GPUs, until the increase expires", "")
    assert "Up to 2 GPUs more can be granted" in on_top.room


def test_own_temporary_increases_are_not_allocated_to_others(owner: Client, limited: GpuClass, team_a: Tenant) -> None:
    make.grant(team_a, limited, units=2)
    make.grant(team_a, limited, units=3, kind="boost")
    found = preview(look(owner, "fit", **{f"units-{limited.slug}": "5"}), limited.slug)
    assert found.warning == ""
    assert found.change == "2 → 5 GPUs, plus 3 of temporary increases"
    assert found.price == "Price 20.00 per hour while all 8 GPUs are in use."
    assert found.room.startswith("Up to 5 GPUs in total can be granted")
    assert "3 are allocated to other teams and your temporary increases" in found.room


def test_the_period_decides_what_fits(owner: Client, limited: GpuClass) -> None:
    other = make.tenant(limited.cluster, slug="team-b", namespace=f"b-{limited.slug}")
    make.grant(other, limited, units=8, until=timezone.now() + timedelta(days=10))
    today = timezone.localdate()
    later = {"from_date": today + timedelta(days=20), "until_date": today + timedelta(days=30)}
    asked = {f"units-{limited.slug}": "8"}
    assert preview(look(owner, "fit", **asked), limited.slug).warning
    assert not preview(look(owner, "fit", **asked, **later), limited.slug).warning


def test_what_would_be_refused_is_told_before(owner: Client, limited: GpuClass) -> None:
    refused = preview(look(owner, "fit", **{f"units-{limited.slug}": "0"}), limited.slug)
    assert refused.warning == f"Your team has no quota of {limited.name} to release."
    # Dates at the ends of the calendar.
    far = {f"units-{limited.slug}": "1", "until_date": "9999-12-30"}
    assert preview(look(owner, "fit", **far), limited.slug).warning == "The period can be at most three years."
    assert preview(look(owner, "fit", **{f"units-{limited.slug}": "many"}), limited.slug) is None


def test_without_the_cluster_nothing_is_claimed(owner: Client, a100: GpuClass) -> None:
    found = preview(look(owner, "fit", **{f"units-{a100.slug}": "100"}), a100.slug)
    assert (found.warning, found.room) == ("", "How much can be granted is unknown: the cluster was not read.")


def test_it_costs_the_same_with_many_classes_and_teams(owner: Client, limited: GpuClass, mig: GpuClass) -> None:
    mirrored.hardware_seen(limited.cluster)

    def cost(query: str) -> int:
        with CaptureQueriesContext(connection) as found:
            assert owner.get(NEW + query).status_code == 200
        return len(found)

    one = cost(f"?units-{limited.slug}=2")
    for number in range(8):
        make.grant(make.tenant(limited.cluster, slug=f"t-{number}", namespace=f"t-{number}"), limited, units=1)
        make.gpu_class(limited.cluster, slug=f"more-{number}", resource=f"example.com/{number}")
    many = "&".join(f"units-more-{number}=1" for number in range(8))
    assert cost(f"?units-{limited.slug}=2&units-mig=1&{many}") == one
    assert one <= 40
