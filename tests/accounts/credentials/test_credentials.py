"""How users sign in: second factor, password, sessions, and the emergency account."""

from __future__ import annotations

import importlib
import json
import re
import time
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.apps import apps
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.core import mail
from django.test import Client
from django.utils import timezone

from accounts import tasks
from accounts.core.actor import Actor, system_actor
from accounts.credentials import actions as credential_actions
from accounts.credentials import login_backoff, policy
from accounts.models import Event, Role, User
from portal.core.errors import Refused
from tenants.approvers.delegation.queries import roles_lent_to
from tests.support.rows import make
from workloads.gateway.stream_access import StreamAccess, StreamViewer

pytestmark = pytest.mark.django_db
NEXT = {"next": "/tokens"}


def by_password(who: User, client: Client | None = None, **extra: Any) -> tuple[Client, Any]:
    client = client or Client()
    return client, client.post("/login", {"username": who.email, "password": make.PASSWORD, **NEXT}, **extra)


def signed_in(who: User) -> Client:
    client, answer = by_password(who)
    assert answer["Location"] == "/tokens"
    return client


def verbs() -> list[str]:
    return list(Event.objects.order_by("id").values_list("verb", flat=True))


# ---- sign-in with a second factor --------------------------------------------------------------------------------


def test_who_has_a_second_factor_is_not_in_before_it_is_shown(alice: User) -> None:
    seed = make.second_factor(alice)
    client, asked = by_password(alice)
    assert (asked.status_code, asked["Location"]) == (302, "/login/code")
    assert client.get("/tokens")["Location"].startswith("/login")
    assert client.get("/api/v1/me").status_code == 401
    assert verbs() == []

    assert client.post("/login/code", {"code": "000000"}).status_code == 422
    done = client.post("/login/code", {"code": f" {make.code(seed)[:3]} {make.code(seed)[3:]}"})

    assert done["Location"] == "/tokens"
    assert client.get("/tokens").status_code == 200
    [event] = Event.objects.all()
    assert (event.verb, event.after) == ("account.signed_in", {"address": "127.0.0.1", "second_factor": "totp"})


def test_the_page_for_codes_is_for_who_gave_a_password(client: Client, alice: User) -> None:
    make.second_factor(alice)
    assert client.get("/login/code")["Location"] == "/login"
    assert client.post("/login/code", {"code": "1"})["Location"] == "/login"


def test_a_code_is_good_once(alice: User) -> None:
    """A person who saw the code cannot use it again, not even within its 30 seconds."""
    seed = make.second_factor(alice)
    code = make.code(seed)
    assert credential_actions.consume_code(alice, code) is not None
    assert credential_actions.consume_code(alice, code) is None
    earlier = credential_actions.format_hotp_value(credential_actions.hotp_value(seed, int(time.time()) // 30 - 1))
    assert credential_actions.consume_code(alice, earlier) is None, "nor is one of before it"


def test_a_recovery_code_is_good_once(alice: User) -> None:
    make.second_factor(alice)
    [first, *rest] = credential_actions.renew_recovery_codes(by=Actor(alice, "page"))
    assert len({first, *rest}) == 10
    client, _ = by_password(alice)
    assert client.post("/login/code", {"code": first})["Location"] == "/tokens"
    client, _ = by_password(alice)
    assert client.post("/login/code", {"code": first}).status_code == 422
    assert client.post("/login/code", {"code": rest[0]}).status_code == 302
    assert Event.objects.latest("id").after["second_factor"] == "recovery_codes"


def test_codes_are_each_persons(alice: User, bob: User) -> None:
    make.second_factor(alice)
    of_bob = make.second_factor(bob)
    assert credential_actions.consume_code(alice, make.code(of_bob)) is None


def test_guessing_codes_gets_slower_for_the_guesser_only(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_backoff, "FIRST_WAIT_S", 30)
    seed = make.second_factor(alice)
    guesser, owner = {"HTTP_X_FORWARDED_FOR": "198.51.100.7"}, {"HTTP_X_FORWARDED_FOR": "198.51.100.8"}
    his, _ = by_password(alice, **guesser)
    statuses = [his.post("/login/code", {"code": f"{n:06}"}, **guesser).status_code for n in range(6)]
    refused = his.post("/login/code", {"code": make.code(seed)}, **guesser)

    assert statuses == [422] * 5 + [429]
    assert refused.status_code == 429, "the right code waits as well"
    hers, _ = by_password(alice, **owner)
    assert hers.post("/login/code", {"code": make.code(seed)}, **owner).status_code == 302


def test_without_redis_people_sign_in_with_a_code(alice: User, settings: LazySettings) -> None:
    seed = make.second_factor(alice)
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}
    }
    client, _ = by_password(alice)
    assert client.post("/login/code", {"code": make.code(seed)})["Location"] == "/tokens"


def test_suspended_between_password_and_code(alice: User) -> None:
    seed = make.second_factor(alice)
    client, _ = by_password(alice)
    User.objects.update(is_active=False)
    assert client.post("/login/code", {"code": make.code(seed)}).status_code == 422
    assert verbs() == []


# ---- adding and removing a second factor -------------------------------------------------------------------------


def seed_on(page: str) -> str:
    found = re.search(r'id="seed"[^>]*>([A-Z2-7 ]+)<', page)
    assert found is not None
    return found[1].replace(" ", "")


def test_a_second_factor_is_added_and_asked_for_from_then_on(alice: User) -> None:
    client = signed_in(alice)
    page = client.get("/account/second-factor?next=/tokens")
    seed = seed_on(page.text)
    assert seed_on(client.get("/account/second-factor").text) == seed, "a reload does not spoil what the app scanned"
    assert "no-store" in page["Cache-Control"]

    wrong = client.post("/account/second-factor", {"password": "wrong", "code": make.code(seed)})
    assert (wrong.status_code, "The password is wrong." in wrong.text) == (422, True)
    wrong = client.post("/account/second-factor", {"password": make.PASSWORD, "code": "000000"})
    assert (wrong.status_code, "wrong or already used" in wrong.text) == (422, True)
    done = client.post("/account/second-factor", {"password": make.PASSWORD, "code": make.code(seed), **NEXT})

    codes = re.findall(r"\b\d{12}\b", done.text)
    assert len(set(codes)) == 10
    assert 'href="/tokens"' in done.text
    assert verbs()[-1] == "account.second_factor_added"
    assert by_password(alice)[1]["Location"] == "/login/code"
    assert not any(code in client.get("/account").text for code in codes)
    tasks.deliver()
    assert [message.subject for message in mail.outbox] == ["A second factor was added to your account"]


def test_nothing_of_it_stands_in_clear_in_the_database(alice: User) -> None:
    client = signed_in(alice)
    seed = seed_on(client.get("/account/second-factor").text)
    assert seed not in json.dumps(dict(client.session.items()))
    done = client.post("/account/second-factor", {"password": make.PASSWORD, "code": make.code(seed)})
    codes = re.findall(r"\b\d{12}\b", done.text)
    kept = [row.data for row in Authenticator.objects.all()] + [row.get_decoded() for row in Session.objects.all()]
    kept += list(Event.objects.values_list("after", flat=True))
    text = json.dumps(kept, default=str)
    assert seed not in text
    assert not any(code in text for code in codes)
    assert len(codes) == 10


def test_with_another_key_no_code_is_right(alice: User, settings: LazySettings) -> None:
    seed = make.second_factor(alice)
    settings.SECOND_FACTOR_KEY = "A" * 43 + "="
    assert credential_actions.consume_code(alice, make.code(seed)) is None


def test_without_a_key_the_page_says_so(alice: User, settings: LazySettings) -> None:
    client = signed_in(alice)
    settings.SECOND_FACTOR_KEY = ""
    for answer in (client.get("/account/second-factor"), client.post("/account/second-factor", {})):
        assert "SECOND_FACTOR_KEY" in answer.text
    with pytest.raises(Refused) as refused:
        credential_actions.add_second_factor("A" * 32, step=1, by=Actor(alice, "page"))
    assert refused.value.code == "no_second_factor_key"


@pytest.mark.parametrize("path", ["remove", "codes"])
def test_changes_ask_for_a_code(alice: User, path: str) -> None:
    seed = make.second_factor(alice)
    client = Client()
    client.force_login(alice)
    before = list(Authenticator.objects.order_by("pk").values())
    refused = client.post(f"/account/second-factor/{path}", {"code": "000000"})
    assert (refused.status_code, verbs()) == (422, [])
    assert list(Authenticator.objects.order_by("pk").values()) == before

    done = client.post(f"/account/second-factor/{path}", {"code": make.code(seed)})

    if path == "remove":
        assert done["Location"] == "/account"
        assert (Authenticator.objects.count(), verbs()) == (0, ["account.second_factor_removed"])
    else:
        assert len(set(re.findall(r"\b\d{12}\b", done.text))) == 10
        assert verbs() == ["account.recovery_codes_made"]


def test_nobody_has_two(alice: User) -> None:
    make.second_factor(alice)
    with pytest.raises(Refused) as refused:
        credential_actions.add_second_factor("A" * 32, step=1, by=Actor(alice, "page"))
    assert refused.value.code == "second_factor_there"
    Authenticator.objects.all().delete()
    for verb in (credential_actions.renew_recovery_codes, credential_actions.remove_second_factor):
        with pytest.raises(Refused) as refused:
            verb(by=Actor(alice, "page"))
        assert refused.value.code == "no_second_factor"


def test_a_lost_one_is_taken_off_by_administrators_only(alice: User, bob: User, olga: User) -> None:
    make.second_factor(alice)
    client = signed_in_with_code(alice)
    for by, code in ((Actor(bob, "page"), "not_allowed"), (Actor(alice, "page"), "not_allowed")):
        with pytest.raises(Refused) as refused:
            credential_actions.drop_second_factor(alice.pk, because="x", lent_to=roles_lent_to, by=by)
        assert refused.value.code == code
    with pytest.raises(Refused) as refused:
        credential_actions.drop_second_factor(olga.pk, because="x", lent_to=roles_lent_to, by=Actor(olga, "page"))
    assert refused.value.code == "own_account"

    credential_actions.drop_second_factor(alice.pk, because="Phone lost", lent_to=roles_lent_to, by=Actor(olga, "page"))

    assert client.get("/tokens").status_code == 302
    assert by_password(alice)[1]["Location"] == "/tokens"
    assert policy.may_drop_second_factor(system_actor("operators"), alice, lent=()) is None
    event = Event.objects.get(verb="account.second_factor_dropped")
    assert (event.actor_id, event.after) == (olga.pk, {"because": "Phone lost"})


def signed_in_with_code(who: User) -> Client:
    client, _ = by_password(who)
    assert client.post("/login/code", {"code": make.code(make.second_factor(who))}).status_code == 302
    return client


# ---- password and sessions ---------------------------------------------------------------------------------------


def new_password(client: Client, *, old: str = make.PASSWORD, new: str = "a new and longer passphrase") -> Any:
    typed = {"old_password": old, "new_password1": new, "new_password2": new}
    return client.post("/account/password", typed)


def test_a_new_password_ends_the_other_sessions(alice: User, bob: User) -> None:
    here, there, his = signed_in(alice), signed_in(alice), signed_in(bob)
    before = here.session.session_key

    assert new_password(here)["Location"] == "/account"

    assert here.get("/tokens").status_code == 200
    assert here.session.session_key != before, "who copied the cookie is out"
    assert Session.objects.filter(session_key=there.session.session_key).count() == 0
    assert there.get("/tokens").status_code == 302
    assert his.get("/tokens").status_code == 200
    assert here.get("/account").text.count("this session") == 1
    event = Event.objects.latest("id")
    assert (event.verb, event.after) == ("account.password_changed", {"sessions_ended": 1})
    assert by_password(alice)[1].status_code == 422


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"old": "wrong"}, "The password is wrong."),
        ({"new": "short"}, "too short"),
        ({"new": "alice@example.org"}, "too similar"),
    ],
)
def test_a_password_that_is_no_good_changes_nothing(alice: User, typed: dict[str, str], sentence: str) -> None:
    here, there = signed_in(alice), signed_in(alice)
    refused = new_password(here, **typed)
    assert (refused.status_code, sentence in refused.text) == (422, True)
    assert there.get("/tokens").status_code == 200
    assert verbs() == ["account.signed_in"] * 2


def test_guessing_the_password_at_an_open_session_gets_slower(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_backoff, "FIRST_WAIT_S", 30)
    here = signed_in(alice)
    statuses = [new_password(here, old=f"guess {n}").status_code for n in range(6)]
    assert statuses == [422] * 5 + [429]
    assert new_password(here).status_code == 429


def test_sessions_are_listed_and_ended_one_by_one(alice: User, bob: User) -> None:
    here = signed_in(alice)
    there, _ = by_password(alice, HTTP_X_FORWARDED_FOR="198.51.100.8", HTTP_USER_AGENT="Firefox <b>")
    of_bob = signed_in(bob)
    page = here.get("/account").text
    assert "198.51.100.8" in page
    assert "Firefox &lt;b&gt;" in page
    assert page.count("/account/sessions/") == 2
    of_hers = UserSession.objects.get(session_key=there.session.session_key)
    of_his = UserSession.objects.get(session_key=of_bob.session.session_key)

    assert here.post(f"/account/sessions/{of_his.pk}/end").status_code == 404
    assert here.get(f"/account/sessions/{of_hers.pk}/end").status_code == 405
    assert here.post(f"/account/sessions/{of_hers.pk}/end")["Location"] == "/account"

    assert there.get("/tokens").status_code == 302
    assert of_bob.get("/tokens").status_code == 200
    assert "198.51.100.8" not in here.get("/account").text
    event = Event.objects.latest("id")
    assert (event.verb, event.before["address"]) == ("account.session_ended", "198.51.100.8")


def test_all_others_end_with_their_streams(alice: User, team_a: Any, namespace_a: Any) -> None:
    here, there = signed_in(alice), signed_in(alice)
    watchers = [
        StreamViewer(alice.pk, namespace_a.name, session_key=str(one.session.session_key)) for one in (here, there)
    ]
    access = StreamAccess()
    assert access.still_allowed(set(watchers)) == set(watchers)

    assert here.post("/account/sessions/end")["Location"] == "/account"

    assert access.still_allowed(set(watchers)) == {watchers[0]}
    assert there.get("/tokens").status_code == 302
    assert Event.objects.latest("id").after == {"sessions_ended": 1}


def test_the_list_asks_as_much_for_many_sessions_as_for_one(alice: User, django_assert_max_num_queries: Any) -> None:
    here = signed_in(alice)
    with django_assert_max_num_queries(20) as few:
        here.get("/account")
    for number in range(12):
        Session.objects.create(session_key=f"s{number}", session_data="", expire_date=timezone.now().replace(year=2100))
        UserSession.objects.create(user=alice, session_key=f"s{number}", ip="127.0.0.1", user_agent="x")
    with django_assert_max_num_queries(20) as many:
        page = here.get("/account")
    assert page.text.count("<b>127.0.0.1</b>") == 13
    assert len(many) == len(few)


def test_a_session_that_has_lapsed_is_not_listed(alice: User) -> None:
    here, there = signed_in(alice), signed_in(alice)
    Session.objects.filter(session_key=there.session.session_key).update(expire_date=timezone.now())
    assert here.get("/account").text.count("<b>127.0.0.1</b>") == 1


def test_what_is_known_of_lapsed_sessions_goes_with_the_next_sign_in(alice: User, bob: User) -> None:
    """allauth does it: nothing else deletes these rows (desk/retention/kinds.py)."""
    (valid, _), (lapsed, _), (gone, _) = by_password(alice), by_password(alice), by_password(alice)
    of_bob = signed_in(bob)
    keys = [one.session.session_key for one in (valid, lapsed, gone, of_bob)]
    Session.objects.filter(session_key__in=[keys[1], keys[3]]).update(expire_date=timezone.now())
    Session.objects.filter(session_key=keys[2]).delete()

    here, _ = by_password(alice)

    known = set(UserSession.objects.values_list("session_key", flat=True))
    assert known == {keys[0], keys[3], here.session.session_key}
    assert valid.get("/tokens").status_code == 200


# ---- break-glass account -----------------------------------------------------------------------------------------


def test_each_use_of_the_break_glass_account_is_told_to_all_administrators(olga: User, dana: User) -> None:
    glass = User.objects.create_superuser(email="glass@example.org", name="Break glass", password=make.PASSWORD)
    make.user("Gone", roles=[Role.ADMIN], is_active=False)
    by_password(glass, HTTP_X_FORWARDED_FOR="198.51.100.8")
    [event] = Event.objects.all()
    assert (event.verb, event.after) == ("account.glass_broken", {"address": "198.51.100.8"})
    tasks.deliver()
    assert {message.to[0] for message in mail.outbox} == {olga.email, glass.email}
    assert all("198.51.100.8" in message.body for message in mail.outbox)


# ---- verified email addresses ------------------------------------------------------------------------------------


def test_who_makes_an_account_vouches_for_its_address(db: None) -> None:
    made = User.objects.create_user(email="New@Example.org", name="New", password=make.PASSWORD)
    [address] = EmailAddress.objects.filter(user=made)
    assert (address.email, address.verified, address.primary) == ("new@example.org", True, True)


def test_the_upgrade_vouches_for_accounts_that_are_there(alice: User, bob: User) -> None:
    EmailAddress.objects.filter(user=alice).delete()
    migration = importlib.import_module("accounts.migrations.0008_addresses_verified")

    migration.vouch(apps, None)

    assert list(EmailAddress.objects.order_by("email").values_list("email", "verified", "primary")) == [
        ("alice@example.org", True, True),
        ("bob@example.org", True, True),
    ]
    assert by_password(alice)[1].status_code == 302
