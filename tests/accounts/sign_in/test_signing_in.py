"""Accepted sign-ins: account, session, what else the portal asks for, and what it stores."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.account.models import EmailAddress
from django.apps import apps
from django.contrib.sessions.models import Session
from django.test import Client

from accounts.core.actor import Actor, system_actor
from accounts.credentials import actions as credential_actions
from accounts.models import Delivery, Event, Identity, Role, User
from accounts.sign_in.oidc import actions as oidc_actions
from accounts.sign_in.oidc import protocol
from portal.core.errors import Refused
from tenants.approvers.delegation.queries import roles_lent_to
from tenants.models import Invitation, Tenant
from tests.accounts.sign_in.visitor import Visitor
from tests.support.http.visits import rows_of
from tests.support.identity.issuer import Issuer
from tests.support.rows import make
from tests.support.threads import in_threads

pytestmark = pytest.mark.django_db


def verbs() -> list[str]:
    return list(Event.objects.order_by("id").values_list("verb", flat=True))


def test_who_comes_for_the_first_time_has_an_account(visitor: Visitor) -> None:
    visitor.issuer.claims |= {"email": "Ada@Example.org", "name": "  Ada\tL.\x00 "}
    visitor.sign_in()

    user = User.objects.get()
    assert (user.email, user.name, user.roles, user.is_staff, user.is_superuser) == (
        "ada@example.org",
        "Ada L.",
        [],
        False,
        False,
    )
    assert not user.has_usable_password()
    assert EmailAddress.objects.get().verified, "invitations to it may be accepted: the issuer vouches for it"
    identity = Identity.objects.get()
    assert (identity.user, identity.issuer, identity.subject) == (user, visitor.issuer.url, "subject-1")
    [made, entered] = Event.objects.order_by("id")
    assert (made.verb, made.via, made.actor_id) == ("account.added", "rule oidc", None)
    assert (entered.verb, entered.actor_id) == ("account.signed_in", user.pk)
    assert entered.after == {"address": "127.0.0.1", "issuer": visitor.issuer.url}


def test_they_are_known_by_the_subject_whatever_their_address(visitor: Visitor, alice: User) -> None:
    """The subject also wins when another account has the address: the address is not looked up."""
    visitor.issuer.claims["email"] = "ada@example.org"
    visitor.sign_in()
    visitor.issuer.claims["email"] = alice.email
    again = Visitor(visitor.issuer)
    assert again.sign_in().status_code == 302
    assert User.objects.count() == 2
    assert again.client.session["_auth_user_id"] == str(User.objects.get(email="ada@example.org").pk)


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"name": None}, "alice"),
        ({"name": None, "preferred_username": "al"}, "al"),
        ({"name": ["x"]}, "['x']"),
        ({"name": "\u202e\x07"}, "alice"),
        ({"name": "x" * 500}, "x" * 80),
    ],
)
def test_everybody_has_a_name(visitor: Visitor, claims: dict[str, Any], name: str) -> None:
    visitor.issuer.claims |= claims
    visitor.sign_in()
    assert User.objects.get().name == name


def test_what_the_issuer_is_asked(visitor: Visitor) -> None:
    there = urlsplit(visitor.leave())
    assert f"{there.scheme}://{there.netloc}{there.path}" == f"{visitor.issuer.url}/authorize"
    asked = {name: values[0] for name, values in parse_qs(there.query).items()}
    assert asked["redirect_uri"] == "http://localhost:8000/login/oidc/back"
    assert (asked["response_type"], asked["scope"], asked["code_challenge_method"]) == (
        "code",
        "openid profile email",
        "S256",
    )
    kept = visitor.client.session["oidc"]
    assert kept["verifier"] not in there.query
    assert min(len(asked[name]) for name in ("state", "nonce", "code_challenge")) >= 43
    others = {values[0] for values in parse_qs(urlsplit(Visitor(visitor.issuer).leave()).query).values()}
    assert not others & {asked[name] for name in ("state", "nonce", "code_challenge")}, "each begins with its own"


@pytest.mark.parametrize("methods", [None, ["client_secret_post"], ["client_secret_basic", "client_secret_post"]])
def test_the_secret_goes_as_the_issuer_wants_it(visitor: Visitor, methods: list[str] | None) -> None:
    """The test issuer refuses the client secret in any other form."""
    if methods:
        visitor.issuer.discovery = {"token_endpoint_auth_methods_supported": methods}
    assert visitor.sign_in()["Location"] == "/tokens"
    [(headers, body)] = [(headers, body) for path, headers, body in visitor.issuer.asked if path == "/token"]
    assert ("client_secret" in body) is ("authorization" not in headers) is ("client_secret_post" in (methods or []))


def test_for_several_and_made_for_us(visitor: Visitor) -> None:
    visitor.issuer.claims |= {"aud": ["another", "portal"], "azp": "portal"}
    assert visitor.sign_in().status_code == 302


def test_a_wrong_secret_is_refused_by_the_issuer(visitor: Visitor, settings: Any) -> None:
    settings.OIDC = visitor.issuer.sso(client_secret="wrong")
    assert visitor.sign_in().status_code == 403


@pytest.mark.parametrize("wanted", ["https://elsewhere.example.org/", "//elsewhere.example.org", "javascript:alert(1)"])
def test_it_leads_to_our_own_pages_only(visitor: Visitor, wanted: str) -> None:
    code, state = visitor.issuer.authorized(visitor.leave(wanted))
    assert visitor.client.get("/login/oidc/back", {"code": code, "state": state})["Location"] == "/"


def test_the_button_is_where_people_sign_in(client: Client, issuer: Issuer) -> None:
    page = client.get("/login?next=/tokens").text
    assert "Sign in with Example" in page
    assert page.count('name="next" value="/tokens"') == 2


def test_who_is_in_already_stays_who_they_are(visitor: Visitor, alice: User) -> None:
    there = visitor.leave()
    code, state = visitor.issuer.authorized(there)
    session = visitor.client.session["oidc"]
    visitor.client.force_login(alice)
    kept = visitor.client.session
    kept["oidc"] = session
    kept.save()
    assert visitor.client.post("/login/oidc")["Location"] == "/"
    assert visitor.client.get("/login/oidc/back", {"code": code, "state": state})["Location"] == "/"
    assert not Identity.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_first_sign_ins_at_once_make_one_account() -> None:
    """This happens when a browser was closed in between, or when an impatient user tries twice."""
    claims, found = (
        protocol.IdentityClaims("https://sso.example.org", "subject-1", "ada@example.org", "Ada", frozenset()),
        [],
    )
    both = threading.Barrier(2)

    def enter() -> None:
        both.wait()
        try:
            found.append(str(oidc_actions.account_of(claims).pk))
        except protocol.SignInRejected as error:
            found.append(error.reason)

    in_threads(2, enter)
    user = User.objects.get()
    assert str(user.pk) in found
    assert set(found) <= {str(user.pk), "made_meanwhile", "subject_changed"}
    assert Identity.objects.get().user == user
    assert verbs() == ["account.added"]


# ---- the session -------------------------------------------------------------------------------------------------


def test_the_session_ends_with_the_day(visitor: Visitor) -> None:
    """After that the portal asks the issuer again. A session begun with a password lasts as before."""
    before = visitor.client
    visitor.sign_in()
    assert before.session.get_expiry_age() == 12 * 3600
    assert "oidc" not in before.session


def test_the_session_is_another_one_than_before(visitor: Visitor) -> None:
    code, state = visitor.issuer.authorized(visitor.leave())
    earlier = visitor.client.session.session_key
    visitor.client.get("/login/oidc/back", {"code": code, "state": state})
    assert visitor.client.session.session_key != earlier
    assert not Session.objects.filter(session_key=earlier).exists()


def test_signing_out_ends_it(visitor: Visitor) -> None:
    visitor.sign_in()
    visitor.client.post("/logout")
    assert not visitor.is_in
    assert verbs()[-1] == "account.signed_out"


def test_without_redis(visitor: Visitor, settings: Any) -> None:
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}
    }
    assert visitor.sign_in()["Location"] == "/tokens"


def test_no_token_is_kept_and_none_is_logged(visitor: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    code, state = visitor.issuer.authorized(visitor.leave())
    begun = visitor.client.session["oidc"]
    visitor.client.get("/login/oidc/back", {"code": code, "state": state})
    sessions = [str(row.get_decoded()) for row in Session.objects.all()]
    kept = rows_of(*(model for model in apps.get_models() if model._meta.managed)) + "".join(sessions)
    of_the_issuer = (visitor.issuer.last_token, "an-access-token", "a secret of the client")
    for secret in (*of_the_issuer, code, begun["nonce"], begun["verifier"]):
        assert secret not in kept
        assert secret not in caplog.text


# ---- second factor and password ----------------------------------------------------------------------------------


def test_a_second_factor_of_ours_is_asked_for_after_it(visitor: Visitor) -> None:
    """The issuer's own claim about a second factor makes no difference."""
    visitor.sign_in()
    seed = make.second_factor(User.objects.get())
    visitor.issuer.claims |= {"amr": ["mfa", "otp"], "acr": "2"}
    again = Visitor(visitor.issuer)
    assert again.sign_in()["Location"] == "/login/code"
    assert not again.is_in
    assert again.client.post("/login/code", {"code": make.code(seed)})["Location"] == "/tokens"
    assert again.is_in
    assert Event.objects.latest("id").after["second_factor"] == "totp"
    assert again.client.session.get_expiry_age() == 12 * 3600


def test_the_administration_asks_for_it_too(visitor: Visitor) -> None:
    visitor.sign_in()
    User.objects.update(roles=["operator"])
    assert visitor.client.get("/admin/")["Location"].startswith("/admin/login/")
    assert visitor.client.get("/admin/login/")["Location"].startswith("/account/second-factor")


def add_factor(client: Client, user: User) -> Any:
    seed = credential_actions.pending_totp_seed(user, client.session.session_key or "")
    return client.post("/account/second-factor", {"code": make.code(seed)})


def test_who_has_no_password_adds_a_second_factor_after_having_come_in_just_now(visitor: Visitor) -> None:
    visitor.sign_in()
    page = visitor.client.get("/account/second-factor").text
    assert "Your password" not in page
    assert add_factor(visitor.client, User.objects.get()).status_code == 200
    assert verbs()[-1] == "account.second_factor_added"


def test_and_not_before_a_screen_that_was_left(visitor: Visitor) -> None:
    visitor.sign_in()
    session = visitor.client.session
    for record in session["account_authentication_methods"]:
        record["at"] = time.time() - 16 * 60
    session.save()
    answer = add_factor(visitor.client, User.objects.get())
    assert answer.status_code == 422
    assert "Sign out and sign in again first" in answer.text
    assert "account.second_factor_added" not in verbs()


def test_who_has_no_password_has_none_to_guess_or_change(visitor: Visitor) -> None:
    visitor.sign_in()
    page = visitor.client.get("/account").text
    assert "New password" not in page
    assert Client().post("/login", {"username": "alice@example.org", "password": ""}).status_code == 422
    answer = visitor.client.post("/account/password", {"new_password1": "a" * 20, "new_password2": "a" * 20})
    assert answer.status_code in (200, 422)
    assert not User.objects.get().has_usable_password()


# ---- invitations for the email address ---------------------------------------------------------------------------


def test_a_verified_address_brings_its_invitation(visitor: Visitor, team_a: Tenant, alice: User) -> None:
    visitor.issuer.claims["email"] = "ada@example.org"
    Invitation.objects.create(
        tenant=team_a, email="ada@example.org", role="member", invited_by=alice, expires_at="2099-01-01T00:00Z"
    )
    visitor.sign_in()
    row = Invitation.objects.get()
    assert visitor.client.post(f"/start/invitations/{row.pk}", {"answer": "accept"}).status_code == 302


def test_leeway_is_for_clocks_and_not_for_people(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    visitor.issuer.claims |= {"exp": time.time() - protocol.CLOCKS_DIFFER_S / 2}
    assert visitor.sign_in().status_code == 302


# ---- connecting existing accounts --------------------------------------------------------------------------------


def test_an_account_of_before_is_connected_by_who_administers(visitor: Visitor, alice: User) -> None:
    oidc_actions.connect_identity(
        alice.pk, issuer=visitor.issuer.url, subject="subject-1", lent_to=roles_lent_to, by=system_actor("test")
    )
    assert visitor.sign_in().status_code == 302
    assert visitor.client.session["_auth_user_id"] == str(alice.pk)
    [event, _] = Event.objects.order_by("id")
    assert (event.verb, event.after) == ("account.connected", {"issuer": visitor.issuer.url})
    assert Delivery.objects.get(event=event).user == alice
    assert alice.has_usable_password(), "and the password works on"


ISSUER = "https://sso.example.org"


@pytest.mark.parametrize(
    ("who", "subject", "code"),
    [
        ("bob", "subject-1", "already_so"),
        ("alice", "subject-2", "already_so"),
        ("root", "subject-2", "break_glass"),
        ("olga", "subject-2", "lacks_role"),
        ("ada", "subject-2", "own_account"),
        ("nobody", "subject-2", "not_found"),
    ],
)
def test_each_is_connected_once_and_nobody_comes_to_what_they_lack(
    alice: User, bob: User, olga: User, who: str, subject: str, code: str
) -> None:
    ada = make.user("Ada", roles=[Role.ADMIN])
    root = User.objects.create_superuser(email="root@example.org", name="Root")
    keys = {"alice": alice.pk, "bob": bob.pk, "olga": olga.pk, "ada": ada.pk, "root": root.pk, "nobody": 0}
    by = Actor(ada, "page")
    oidc_actions.connect_identity(alice.pk, issuer=ISSUER, subject="subject-1", lent_to=roles_lent_to, by=by)
    with pytest.raises(Refused) as refused:
        oidc_actions.connect_identity(keys[who], issuer=ISSUER, subject=subject, lent_to=roles_lent_to, by=by)
    assert refused.value.code == code
    assert Identity.objects.count() == 1


def test_only_administrators_connect(alice: User, bob: User) -> None:
    with pytest.raises(Refused, match="administrators"):
        oidc_actions.connect_identity(
            bob.pk, issuer=ISSUER, subject="x", lent_to=roles_lent_to, by=Actor(alice, "page")
        )


def test_who_is_disconnected_is_out_and_may_be_connected_anew(visitor: Visitor, alice: User, olga: User) -> None:
    by = Actor(make.user("Ada", roles=[Role.ADMIN]), "page")
    oidc_actions.connect_identity(
        alice.pk, issuer=visitor.issuer.url, subject="subject-1", lent_to=roles_lent_to, by=by
    )
    visitor.sign_in()
    with pytest.raises(Refused, match="has the role 'operator' and you do not"):
        oidc_actions.disconnect_identity(olga.pk, issuer=visitor.issuer.url, lent_to=roles_lent_to, by=by)

    oidc_actions.disconnect_identity(alice.pk, issuer=visitor.issuer.url, lent_to=roles_lent_to, by=by)

    assert not visitor.is_in
    assert Event.objects.latest("id").after == {"issuer": visitor.issuer.url, "sessions_ended": 1}
    assert visitor.sign_in().status_code == 403
    with pytest.raises(Refused, match="Nothing was changed"):
        oidc_actions.disconnect_identity(alice.pk, issuer=visitor.issuer.url, lent_to=roles_lent_to, by=by)
    oidc_actions.connect_identity(
        alice.pk, issuer=visitor.issuer.url, subject="subject-1", lent_to=roles_lent_to, by=by
    )
    assert visitor.sign_in().status_code == 302
