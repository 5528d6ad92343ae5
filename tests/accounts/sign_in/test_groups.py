"""What the issuer's groups give and take: before the first page, and never what a person gave by hand."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor, system_actor
from accounts.models import Delivery, Event, Role, User
from accounts.people import actions as people_actions
from accounts.sign_in.oidc import actions as oidc_actions
from cluster.models import Cluster
from portal.core.single_sign_on import GroupMapping
from tenants.members import actions as member_actions
from tenants.members.group_sync import actions as group_sync_actions
from tenants.models import Membership, Tenant
from tests.accounts.sign_in.visitor import Visitor
from tests.support.rows import make

pytestmark = pytest.mark.django_db
GROUPS = {
    "/gpu/vision": GroupMapping({"team-a": "member"}, frozenset()),
    "/gpu/vision/leads": GroupMapping({"team-a": "manager"}, frozenset()),
    "/gpu/vision/heads": GroupMapping({"team-a": "owner"}, frozenset()),
    "/gpu/operators": GroupMapping({}, frozenset({"operator", "auditor"})),
    "/gpu/admins": GroupMapping({}, frozenset({"admin"})),
    "/gpu/gone": GroupMapping({"no-such-team": "member"}, frozenset()),
}


@pytest.fixture
def signs_in(visitor: Visitor, settings: Any, team_a: Tenant) -> Any:
    """signs_in("/gpu/vision"): Ada signs in with these groups; returns her role in team A afterwards."""
    settings.OIDC = visitor.issuer.sso(groups=GROUPS)
    visitor.issuer.claims |= {"email": "ada@example.org", "name": "Ada"}

    def sign_in(*groups: str, **claims: Any) -> str | None:
        visitor.issuer.claims |= {"groups": list(groups)} | claims
        once = Visitor(visitor.issuer)
        assert once.sign_in()["Location"] == "/tokens"
        return role()

    return sign_in


def role() -> str | None:
    row = Membership.objects.filter(user__email="ada@example.org").first()
    return row and row.role


def ada() -> User:
    return User.objects.get(email="ada@example.org")


def verbs() -> list[str]:
    return list(Event.objects.order_by("id").values_list("verb", flat=True))


# ---- team membership ---------------------------------------------------------------------------------------------


def test_a_group_gives_a_place_before_the_first_page(signs_in: Any, visitor: Visitor) -> None:
    assert signs_in("/gpu/vision", "/somebody/elses") == "member"
    # The membership exists when the session begins.
    assert verbs() == ["account.added", "member.added", "account.signed_in"]
    added = Event.objects.get(verb="member.added")
    assert (added.via, added.actor_id, added.tenant) == ("rule oidc", None, "team-a")
    assert Delivery.objects.get(event=added).user == ada()


def test_the_first_page_is_the_teams(visitor: Visitor, signs_in: Any) -> None:
    visitor.issuer.claims["groups"] = ["/gpu/vision"]
    code, state = visitor.issuer.authorized(visitor.leave("/teams/team-a"))
    answer = visitor.client.get("/login/oidc/back", {"code": code, "state": state}, follow=True)
    assert (answer.status_code, answer.redirect_chain[-1][0]) == (200, "/teams/team-a")


def test_the_highest_of_several_counts(signs_in: Any) -> None:
    assert signs_in("/gpu/vision/leads", "/gpu/vision") == "manager"
    assert signs_in("/gpu/vision") == "member"
    assert verbs().count("member.changed") == 1


def test_the_same_again_changes_nothing(signs_in: Any) -> None:
    signs_in("/gpu/vision", "/gpu/operators")
    before = verbs()
    signs_in("/gpu/operators", "/gpu/vision")
    assert verbs() == [*before, "account.signed_in"]


@pytest.mark.parametrize("claim", [[], None])
def test_what_a_group_gave_goes_with_it(signs_in: Any, claim: Any) -> None:
    """A missing groups claim has the same effect as an empty list."""
    signs_in("/gpu/vision")
    token, _ = api_token_actions.create_token(
        name="ci", scopes=["read"], expires_in_days=9, tenant="team-a", by=Actor(ada(), "page")
    )
    assert signs_in(groups=claim) is None
    token.refresh_from_db()
    assert token.revoked_at is not None, "with the tokens made of the team"
    assert "member.removed" in verbs()


def test_what_was_given_by_hand_stays(signs_in: Any, alice: User) -> None:
    signs_in()
    member_actions.add_member("team-a", email="ada@example.org", role="viewer", by=Actor(alice, "page"))
    assert signs_in("/gpu/vision/leads") == "viewer"
    assert signs_in() == "viewer"


def test_a_role_that_was_changed_by_hand_is_no_longer_the_groups(signs_in: Any, alice: User) -> None:
    signs_in("/gpu/vision")
    member_actions.set_role("team-a", user_id=ada().pk, role="manager", by=Actor(alice, "page"))
    assert signs_in("/gpu/vision") == "manager"
    assert signs_in() == "manager"


def test_a_team_keeps_its_last_owner(signs_in: Any, alice: User, caplog: pytest.LogCaptureFixture) -> None:
    """The owner can still sign in."""
    signs_in("/gpu/vision/heads")
    member_actions.remove_member("team-a", user_id=alice.pk, by=system_actor("test"))
    assert signs_in() == "owner"
    assert signs_in("/gpu/vision") == "owner"
    said = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    assert [line["code"] for line in said if line["event"] == "oidc_group_refused"] == ["last_owner"] * 2


def test_a_group_of_a_team_that_is_not_there_gives_nothing(signs_in: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert signs_in("/gpu/gone") is None
    assert "oidc_group_of_no_team" in caplog.text


def test_others_are_left_alone(signs_in: Any, bob: User, cluster: Cluster) -> None:
    make.tenant(cluster, slug="team-b", namespace="team-b-of-groups")
    before = set(Membership.objects.values_list("user", "tenant", "role"))
    signs_in("/gpu/vision")
    signs_in()
    assert set(Membership.objects.values_list("user", "tenant", "role")) == before


# ---- staff roles -------------------------------------------------------------------------------------------------


def test_a_group_gives_roles_of_staff_and_takes_them(signs_in: Any) -> None:
    signs_in("/gpu/operators")
    assert ada().roles == ["auditor", "operator"]
    assert ada().is_staff, "the role opens the administration, where a second factor is asked for"
    assert not ada().is_superuser
    given = Event.objects.get(verb="account.roles_set")
    assert (given.via, given.after) == (
        "rule oidc",
        {"roles": ["auditor", "operator"], "by_groups": ["auditor", "operator"]},
    )
    signs_in()
    assert ada().roles == []


def test_roles_that_were_given_by_hand_stay(signs_in: Any) -> None:
    signs_in()
    people_actions.set_roles(ada().pk, ["auditor"], by=system_actor("test"))
    signs_in("/gpu/operators")
    assert ada().roles == ["auditor", "operator"]
    signs_in()
    assert ada().roles == ["auditor"]


def test_a_role_given_again_by_hand_is_no_longer_the_groups(signs_in: Any) -> None:
    signs_in("/gpu/operators")
    people_actions.set_roles(ada().pk, [], by=system_actor("test"))
    people_actions.set_roles(ada().pk, ["operator"], by=system_actor("test"))
    signs_in()
    assert ada().roles == ["operator"]


def test_the_last_administrator_stays_one(signs_in: Any, caplog: pytest.LogCaptureFixture) -> None:
    signs_in("/gpu/admins")
    assert not User.objects.exclude(pk=ada().pk).filter(roles__contains=[Role.ADMIN]).exists()
    signs_in()
    assert ada().roles == ["admin"]
    assert "last_admin" in caplog.text


# ---- the groups claim --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"groups": {"/gpu/admins": True}}, "groups"),
        ({"groups": ["/gpu/vision", 7]}, "groups"),
        ({"groups": [["/gpu/admins"]]}, "groups"),
        ({"groups": ["x"] * 1001}, "groups"),
        ({"groups": None, "_claim_names": {"groups": "src1"}}, "groups_not_in_the_token"),
    ],
)
def test_a_claim_that_cannot_be_read_lets_nobody_in(
    signs_in: Any, visitor: Visitor, caplog: pytest.LogCaptureFixture, claims: dict[str, Any], reason: str
) -> None:
    """The sign-in is refused, because the user's groups are unknown: neither keeping nor removing roles is safe."""
    signs_in("/gpu/vision")
    visitor.issuer.claims |= claims
    assert Visitor(visitor.issuer).sign_in().status_code == 403
    assert f"'reason': '{reason}'" in caplog.text
    assert role() == "member"


def test_one_group_may_come_as_a_text(signs_in: Any) -> None:
    assert signs_in(groups="/gpu/vision") == "member"


def test_without_a_mapping_groups_are_nothing(visitor: Visitor, team_a: Tenant) -> None:
    """Without a mapping the portal also does not remove what an earlier mapping gave."""
    visitor.issuer.claims["email"] = "ada@example.org"
    visitor.sign_in()
    user = ada()
    member_actions.place_by_group("team-a", user, role="member", by=oidc_actions.OIDC_RULE)
    visitor.issuer.claims["groups"] = {"no": "list"}
    assert Visitor(visitor.issuer).sign_in().status_code == 302
    assert Membership.objects.filter(user=user).exists()


def test_the_claim_may_have_another_name(visitor: Visitor, team_a: Tenant, settings: Any) -> None:
    settings.OIDC = visitor.issuer.sso(groups=GROUPS, groups_claim="https://example.org/groups")
    visitor.issuer.claims |= {"email": "ada@example.org", "https://example.org/groups": ["/gpu/vision"]}
    visitor.sign_in()
    assert role() == "member"


def test_given() -> None:
    known = GROUPS | {"both": GroupMapping({"team-a": "viewer", "team-b": "owner"}, frozenset({"operator"}))}
    assert group_sync_actions.places_of_groups([], known) == ({}, set())
    assert group_sync_actions.places_of_groups(["both", "/gpu/vision", "?"], known) == (
        {"team-a": "member", "team-b": "owner"},
        {"operator"},
    )
