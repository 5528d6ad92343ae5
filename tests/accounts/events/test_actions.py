from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import InternalError, connection, transaction
from django.db.utils import IntegrityError

from accounts.api_tokens import actions as api_token_actions
from accounts.api_tokens import queries as api_token_queries
from accounts.core.actor import Actor, system_actor
from accounts.events import actions, queries
from accounts.models import ApiToken, Delivery, Event, Role, User
from accounts.people import actions as people_actions
from portal.core.errors import Refused
from tests.support.rows import make


def page(user: User) -> Actor:
    return Actor(user=user, via="page", request_id="request-0001")


def with_token(user: User, *scopes: str, days_left: float = 30) -> Actor:
    """Creates an actor with a token, as the API does."""
    end = datetime.now(UTC) + timedelta(days=days_left)
    return Actor(user=user, via="token abcd1234", scopes=frozenset(scopes), token_expires_at=end)


# ---- events --------------------------------------------------------------------------------------------------------


def test_an_event_says_who_did_what_on_which_row_from_where(alice: User, bob: User) -> None:
    event = actions.record(
        page(alice),
        "account.renamed",
        bob,
        tenant="team-a",
        before={"limit": Decimal("1.50")},
        after={"role": Role.AUDITOR, "at": datetime(2026, 5, 1, tzinfo=UTC)},
    )

    event.refresh_from_db()
    assert (event.actor, event.actor_id, event.via) == ("Alice", alice.pk, "page")
    assert (event.verb, event.tenant, event.request_id) == ("account.renamed", "team-a", "request-0001")
    assert (event.row, event.name) == (f"accounts.user.{bob.pk}", "Bob")
    assert (event.before, event.after) == ({"limit": "1.50"}, {"role": "auditor", "at": "2026-05-01T00:00:00Z"})


def test_the_portal_itself_is_named_by_its_reason(alice: User) -> None:
    event = actions.record(system_actor("demo"), "account.made", alice)

    assert (event.actor, event.actor_id, event.via) == ("system demo", None, "system demo")


@pytest.mark.django_db(transaction=True)
def test_an_event_outside_of_its_transaction_is_a_mistake() -> None:
    alice = make.user("Alice")

    with pytest.raises(transaction.TransactionManagementError, match=r"account\.made"):
        actions.record(page(alice), "account.made", alice)

    assert Event.objects.count() == 0


@pytest.mark.parametrize("statement", ["UPDATE accounts_event SET actor = 'Bob'", "DELETE FROM accounts_event"])
def test_nobody_changes_what_was_recorded(alice: User, statement: str) -> None:
    actions.record(page(alice), "account.made", alice)

    with (
        pytest.raises((IntegrityError, InternalError), match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)

    assert Event.objects.get().actor == "Alice"


def test_nobody_empties_what_was_recorded(alice: User) -> None:
    with (
        pytest.raises((IntegrityError, InternalError), match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("TRUNCATE accounts_event CASCADE")


def test_an_event_outlives_its_row(alice: User) -> None:
    token, _ = api_token_actions.create_token(name="ci", scopes=["read"], expires_in_days=1, by=page(alice))
    label = queries.row_label(token)

    alice.delete()

    assert [event.verb for event in Event.objects.filter(row=label)] == ["token.created"]


# ---- deliveries ----------------------------------------------------------------------------------------------------


def test_people_are_told_once_each_and_suspended_ones_not(alice: User, bob: User, charlie: User) -> None:
    charlie.is_active = False
    event = actions.record(page(alice), "account.made", alice)

    actions.deliver(event, [alice, bob, alice, charlie], subject="A\r\nBcc: everybody", body="Hello")

    assert {delivery.user for delivery in Delivery.objects.all()} == {alice, bob}
    assert {delivery.subject for delivery in Delivery.objects.all()} == {"A Bcc: everybody"}
    assert all(delivery.due_at is not None and delivery.sent_at is None for delivery in Delivery.objects.all())


def test_a_reminder_is_due_on_its_date(alice: User) -> None:
    event = actions.record(page(alice), "account.made", alice)
    may = datetime(2031, 5, 1, 8, tzinfo=UTC)

    actions.deliver(event, [alice], subject="Your grant ends", body="…", at=may)

    assert Delivery.objects.get().due_at == may


@pytest.mark.django_db(transaction=True)
def test_a_delivery_goes_away_with_the_change_it_tells_of() -> None:
    alice = make.user("Alice")

    with transaction.atomic():
        actions.deliver(actions.record(page(alice), "a.b", alice), [alice], subject="No", body="No")
        transaction.set_rollback(True)

    assert (Event.objects.count(), Delivery.objects.count()) == (0, 0)


# ---- tokens --------------------------------------------------------------------------------------------------------


def test_a_token_is_shown_once_and_only_its_digest_is_kept(alice: User) -> None:
    token, text = api_token_actions.create_token(
        name=" nightly  CI ", scopes=["launch", "read"], expires_in_days=7, by=page(alice)
    )

    token.refresh_from_db()
    prefix, secret = text.removeprefix("gpt_").split("_", 1)
    assert (len(prefix), len(secret)) == (8, 43)
    assert (token.prefix, token.name, token.scopes) == (prefix, "nightly CI", ["read", "launch"])
    assert timedelta(days=6.9) < token.expires_at - token.created_at <= timedelta(days=7)
    row = repr(list(ApiToken.objects.values())) + repr(list(Event.objects.values()))
    assert secret not in row
    assert [event.verb for event in Event.objects.all()] == ["token.created"]


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"name": "  "}, "bad_name", "name"),
        ({"name": "x" * 61}, "bad_name", "name"),
        ({"name": "a\0b"}, "bad_name", "name"),
        ({"scopes": []}, "no_scope", "scopes"),
        ({"scopes": ["read", "root"]}, "unknown_scope", "scopes"),
        ({"expires_in_days": 0}, "bad_expiry", "expires_in_days"),
        ({"expires_in_days": 366}, "bad_expiry", "expires_in_days"),
        ({"expires_in_days": 10**12}, "bad_expiry", "expires_in_days"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(alice: User, changes: dict[str, object], code: str, field: str) -> None:
    asked: dict[str, object] = {"name": "ci", "scopes": ["read"], "expires_in_days": 7}

    with pytest.raises(Refused) as refused:
        api_token_actions.create_token(**{**asked, **changes}, by=page(alice))  # type: ignore[arg-type]

    assert (refused.value.code, refused.value.refusal.field) == (code, field)
    assert (ApiToken.objects.count(), Event.objects.count()) == (0, 0)


def test_a_name_is_free_again_after_revoking(alice: User) -> None:
    token, _ = api_token_actions.create_token(name="ci", scopes=["read"], expires_in_days=7, by=page(alice))
    with pytest.raises(IntegrityError), transaction.atomic():
        api_token_actions.create_token(name="ci", scopes=["read"], expires_in_days=7, by=page(alice))

    api_token_actions.revoke_token(token.prefix, by=page(alice))
    api_token_actions.create_token(name="ci", scopes=["read"], expires_in_days=7, by=page(alice))

    assert [event.verb for event in Event.objects.order_by("id")] == ["token.created", "token.revoked", "token.created"]


def test_a_token_cannot_give_what_it_lacks_or_outlive_itself(alice: User) -> None:
    by = with_token(alice, "read", "admin", days_left=3)

    with pytest.raises(Refused, match="lacks the scope 'decide'"):
        api_token_actions.create_token(name="more", scopes=["read", "decide"], expires_in_days=1, by=by)
    with pytest.raises(Refused) as refused:
        api_token_actions.create_token(name="longer", scopes=["read"], expires_in_days=4, by=by)
    api_token_actions.create_token(name="less", scopes=["read"], expires_in_days=2, by=by)

    assert refused.value.code == "outlives_token"
    assert [token.name for token in ApiToken.objects.all()] == ["less"]


def test_the_number_of_tokens_is_limited(alice: User) -> None:
    ends = datetime.now(UTC) + timedelta(days=1)
    ApiToken.objects.bulk_create(
        ApiToken(user=alice, name=f"t{n}", prefix=f"p{n:07}", digest="0" * 64, scopes=["read"], expires_at=ends)
        for n in range(50)
    )

    with pytest.raises(Refused, match="You have 50 tokens; the limit is 50"):
        api_token_actions.create_token(name="one more", scopes=["read"], expires_in_days=1, by=page(alice))


def test_others_tokens_are_not_there_except_for_administrators(alice: User, bob: User, olga: User) -> None:
    token, _ = api_token_actions.create_token(name="ci", scopes=["read"], expires_in_days=7, by=page(alice))

    with pytest.raises(Refused) as refused:
        api_token_actions.revoke_token(token.prefix, by=page(bob))
    assert refused.value.code == "not_found"

    api_token_actions.revoke_token(token.prefix, by=page(olga))
    with pytest.raises(Refused) as refused:
        api_token_actions.revoke_token(token.prefix, by=page(olga))
    assert refused.value.code == "not_found"
    assert list(api_token_queries.tokens_of(alice)) == []


# ---- accounts and roles --------------------------------------------------------------------------------------------


def test_an_administrator_gives_and_takes_roles(olga: User, bob: User) -> None:
    people_actions.set_roles(bob.pk, [Role.OPERATOR], by=page(olga))
    people_actions.set_roles(bob.pk, [], by=page(olga))

    events = list(Event.objects.order_by("id"))
    assert [(event.before, event.after) for event in events] == [
        ({"roles": []}, {"roles": ["operator"]}),
        ({"roles": ["operator"]}, {"roles": []}),
    ]


def test_nobody_grants_what_they_lack(olga: User, bob: User) -> None:
    with pytest.raises(Refused, match="do not have the role 'approver'"):
        people_actions.set_roles(bob.pk, [Role.APPROVER], by=page(olga))

    bob.refresh_from_db()
    assert bob.roles == []
    assert Event.objects.count() == 0


def test_a_role_that_somebody_has_already_is_not_taken_for_granted(olga: User, dana: User) -> None:
    """Olga lacks "approver" but may add a role that she has to Dana, who keeps "approver"."""
    people_actions.set_roles(dana.pk, [Role.APPROVER, Role.OPERATOR], by=page(olga))

    dana.refresh_from_db()
    assert dana.roles == ["approver", "operator"]


@pytest.mark.parametrize("roles", [[], [Role.ADMIN, Role.OPERATOR]])
def test_nobody_changes_their_own_roles(olga: User, roles: list[str]) -> None:
    with pytest.raises(Refused) as refused:
        people_actions.set_roles(olga.pk, roles, by=page(olga))
    assert refused.value.code == "own_roles"


def test_who_is_no_administrator_changes_nobody(dana: User, bob: User) -> None:
    for refuses in (
        lambda: people_actions.set_roles(bob.pk, [Role.APPROVER], by=page(dana)),
        lambda: people_actions.suspend_user(bob.pk, because="…", by=page(dana)),
    ):
        with pytest.raises(Refused) as refused:
            refuses()
        assert refused.value.refusal.status == 403


def test_a_role_that_was_taken_a_moment_ago_counts_no_more(olga: User, bob: User) -> None:
    """Olga's request was authenticated before another administrator took her role."""
    stale = page(User.objects.get(pk=olga.pk))
    User.objects.filter(pk=olga.pk).update(roles=["operator"])

    with pytest.raises(Refused):
        people_actions.suspend_user(bob.pk, because="…", by=stale)


def test_the_first_administrator_is_made_by_the_portal_itself(bob: User) -> None:
    people_actions.set_roles(bob.pk, list(Role.values), by=system_actor("setup"))

    bob.refresh_from_db()
    assert bob.roles == sorted(Role.values)


def test_a_suspension_is_recorded_with_its_reason_and_ends(olga: User, bob: User) -> None:
    people_actions.suspend_user(bob.pk, because="left the group", by=page(olga))
    with pytest.raises(Refused, match="Bob is already suspended"):
        people_actions.suspend_user(bob.pk, because="left the group", by=page(olga))
    people_actions.restore_user(bob.pk, because="is back", by=page(olga))

    bob.refresh_from_db()
    assert bob.is_active
    events = list(Event.objects.order_by("id"))
    assert [(event.verb, event.after["because"]) for event in events] == [
        ("account.suspended", "left the group"),
        ("account.restored", "is back"),
    ]


def test_nobody_suspends_themselves(olga: User) -> None:
    with pytest.raises(Refused) as refused:
        people_actions.suspend_user(olga.pk, because="…", by=page(olga))
    assert refused.value.code == "own_account"


def test_who_is_not_there_cannot_be_changed(olga: User) -> None:
    with pytest.raises(Refused) as refused:
        people_actions.set_roles(4711, [], by=page(olga))
    assert refused.value.code == "not_found"
