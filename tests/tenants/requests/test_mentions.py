"""Who is notified by `@name` in a comment: people who may see the request, and no others."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Notice, NoticeKind, User
from catalog.models import GpuClass
from tenants.models import QuotaRequest, Tenant
from tenants.requests import actions
from tenants.requests.comments import actions as comment_actions
from tenants.requests.comments.mentions import mentioned_names
from tenants.requests.types import RequestedLine
from tests.support.rows import make

pytestmark = pytest.mark.django_db


@pytest.fixture
def filed(team_a: Tenant, a100: GpuClass, alice: User) -> QuotaRequest:
    now = timezone.now()
    line = RequestedLine(a100.slug, 2, now, now + timedelta(days=30))
    request = actions.file_request(
        "team-a", lines=[line], justification="Two trainings.", by=Actor(user=alice, via="page")
    )
    Delivery.objects.all().delete()
    Notice.objects.all().delete()
    return request


def comment(request: QuotaRequest, text: str, by: User) -> dict[str, str]:
    """Name of each person who got a notice → its kind."""
    comment_actions.comment_request(request.pk, text=text, by=Actor(user=by, via="page"))
    return dict(Notice.objects.values_list("user__name", "kind"))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@bob, what do you think?", ["bob"]),
        ("Ask (@Bob.) and @carol@Example.org.", ["bob", "carol@example.org"]),
        ("Twice @bob @bob", ["bob"]),
        ("Write to bob@example.org", []),
        ("@ nobody, @@x", []),
        (" ".join(f"@p{number}" for number in range(30)), [f"p{number}" for number in range(10)]),
    ],
)
def test_mentions_in_a_text(text: str, names: list[str]) -> None:
    assert mentioned_names(text) == names


def test_members_and_staff_are_notified_once(filed: QuotaRequest, alice: User, bob: User, olga: User) -> None:
    found = comment(filed, "@alice @bob @olga@example.org, please look.", alice)

    assert found["Bob"] == found["Olga"] == NoticeKind.MENTION
    assert "Alice" not in found
    assert "mentioned you" in Delivery.objects.get(user=bob).subject


def test_who_is_concerned_and_mentioned_gets_one_message(filed: QuotaRequest, alice: User, bob: User) -> None:
    assert comment(filed, "Thanks, @alice.", bob)["Alice"] == NoticeKind.MENTION
    assert Delivery.objects.filter(user=alice).count() == 1


def test_strangers_hear_nothing(filed: QuotaRequest, alice: User) -> None:
    nora = make.user("Nora")
    other = make.tenant(filed.tenant.namespaces.get().cluster, slug="team-b")
    make.member(other, nora)

    assert "Nora" not in comment(filed, "@nora @nora@example.org", alice)
    assert not Delivery.objects.filter(user=nora).exists()


def test_the_beginning_of_a_name_is_nobody(filed: QuotaRequest, alice: User) -> None:
    assert "Bob" not in comment(filed, "@bo @b% @b_b", alice)
