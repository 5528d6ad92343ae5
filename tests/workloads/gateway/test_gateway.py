"""Who gets access to a notebook: one query of the portal's own rows, one-time passes, and no trust in client input."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import MirrorPod
from portal.core.errors import Refused
from tenants.models import Membership, Namespace, Tenant
from tests.support.rows import running
from tests.support.threads import in_threads
from workloads.credentials.notebook_token import notebook_token
from workloads.gateway import actions
from workloads.gateway.authorization import (
    COOKIES_AT_MOST,
    GatewayDenial,
    NotebookUpstream,
    authorise,
    cookies_in,
    origin_of,
)
from workloads.models import NotebookSession, Run, Ticket, Workload

pytestmark = pytest.mark.django_db

UNKNOWN = "x" * 43


def others(number: int = 30) -> list[str]:
    """Cookies in the portal's format that the portal never issued."""
    return [secrets.token_urlsafe(32) for _ in range(number)]


@pytest.fixture
def notebook(namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    found = running.workload(namespace_a, a100, by=alice)
    running.make_ready(found)
    return found


@pytest.fixture
def bobs(bob: User) -> Client:
    """Bob is a member; the notebook belongs to Alice."""
    client = Client()
    client.force_login(bob)
    return client


def pass_of(bobs: Client) -> tuple[str, str]:
    """Presses the Open button and returns (origin, one-time pass)."""
    response = bobs.post("/teams/team-a/workloads/one/open")
    assert response.status_code == 303, response.content[:300]
    address = urlsplit(response["Location"])
    assert address.path == "/gateway/open"
    return origin_of(address.netloc), parse_qs(address.query)["ticket"][0]


@pytest.fixture
def cookie(notebook: Workload, bobs: Client) -> str:
    origin, ticket = pass_of(bobs)
    return actions.redeem_ticket(ticket, origin=origin)


def test_a_member_is_let_through_with_the_runs_own_token(cookie: str, notebook: Workload, settings: Any) -> None:
    found = authorise(notebook.origin, [cookie])
    token = notebook_token(settings.NOTEBOOK_TOKEN_KEY, workload_id=notebook.pk, run_number=1)
    assert found == NotebookUpstream(f"{running.IP}:8888", token, cookie)


def test_new_keys_of_the_portal_close_no_notebook(cookie: str, notebook: Workload, settings: Any) -> None:
    found = authorise(notebook.origin, [cookie])
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another key for tests only", [settings.SECRET_KEY]
    settings.NOTEBOOK_TOKEN_KEY_FALLBACKS = [settings.NOTEBOOK_TOKEN_KEY]
    settings.NOTEBOOK_TOKEN_KEY = "another notebook key for tests only"
    assert authorise(notebook.origin, [cookie]) == found


def test_it_costs_one_query(cookie: str, notebook: Workload, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        authorise(notebook.origin, [cookie])
    with django_assert_num_queries(1):
        authorise(notebook.origin, [UNKNOWN, *others()])


def test_what_cannot_be_ours_costs_none(notebook: Workload, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert authorise(notebook.origin, ["", "evil", UNKNOWN + "x", "é" * 43]) is GatewayDenial.SIGN_IN
        assert authorise("", [UNKNOWN]) is GatewayDenial.SIGN_IN


def test_a_cookie_of_the_same_name_shuts_nobody_out(cookie: str, notebook: Workload) -> None:
    """Without https a page of another notebook can set cookies for the shared domain; a browser may send them first."""
    for sent in ([*others(), "evil", cookie], [cookie, *others()], [UNKNOWN, cookie, UNKNOWN]):
        found = authorise(notebook.origin, sent)
        assert isinstance(found, NotebookUpstream)
        assert found.cookie == cookie


def test_so_many_cookies_count_as_a_browser_keeps() -> None:
    sent = others(COOKIES_AT_MOST + 50)
    assert cookies_in([sent[0], *sent]) == tuple(sent[:COOKIES_AT_MOST])


def test_a_cookie_that_lost_its_worth_spoils_no_other(
    cookie: str, notebook: Workload, bobs: Client, alice: User, bob: User
) -> None:
    """Two users use one browser in turn; the cookie of the first neither grants access nor blocks the second."""
    hers = Client()
    hers.force_login(alice)
    origin, ticket = pass_of(hers)
    second = actions.redeem_ticket(ticket, origin=origin)
    lose_membership(notebook, bob)
    for sent in ([cookie, second], [second, cookie]):
        found = authorise(notebook.origin, sent)
        assert isinstance(found, NotebookUpstream)
        assert found.cookie == second
    stop_it(notebook, bob)
    assert authorise(notebook.origin, [cookie, second]) is GatewayDenial.NOT_READY
    assert authorise(notebook.origin, [second, cookie]) is GatewayDenial.NOT_READY
    assert authorise(notebook.origin, [cookie, UNKNOWN]) is GatewayDenial.GONE


def test_neither_pass_nor_cookie_is_kept_in_the_database(cookie: str, bobs: Client) -> None:
    _origin, ticket = pass_of(bobs)
    kept = [*Ticket.objects.values_list("digest", flat=True), *NotebookSession.objects.values_list("digest", flat=True)]
    assert ticket not in kept
    assert cookie not in kept


def test_a_pass_works_once_and_only_at_its_own_origin(notebook: Workload, bobs: Client) -> None:
    origin, ticket = pass_of(bobs)
    with pytest.raises(Refused, match="already used or is older"):
        actions.redeem_ticket(ticket, origin="another")
    actions.redeem_ticket(ticket, origin=origin)
    with pytest.raises(Refused) as refused:
        actions.redeem_ticket(ticket, origin=origin)
    assert refused.value.code == "ticket_spent"
    assert NotebookSession.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_who_come_with_one_pass_at_once_one_is_let_in(notebook: Workload, bobs: Client) -> None:
    origin, ticket = pass_of(bobs)
    together, cookies, refused = threading.Barrier(8), [], []

    def redeem() -> None:
        together.wait(20)
        try:
            cookies.append(actions.redeem_ticket(ticket, origin=origin))
        except Refused as error:
            refused.append(error.code)

    in_threads(8, redeem)
    assert (len(cookies), refused) == (1, ["ticket_spent"] * 7)
    assert NotebookSession.objects.count() == 1


def test_a_pass_lives_thirty_seconds(notebook: Workload, bobs: Client) -> None:
    origin, ticket = pass_of(bobs)
    life = Ticket.objects.get().expires_at - timezone.now()
    assert timedelta(seconds=25) < life <= timedelta(seconds=30)
    Ticket.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    with pytest.raises(Refused):
        actions.redeem_ticket(ticket, origin=origin)


def lose_membership(notebook: Workload, bob: User) -> None:
    Membership.objects.filter(user=bob).delete()


def become_viewer(notebook: Workload, bob: User) -> None:
    Membership.objects.filter(user=bob).update(role="viewer")


def log_out(notebook: Workload, bob: User) -> None:
    Session.objects.all().delete()


def let_the_session_expire(notebook: Workload, bob: User) -> None:
    Session.objects.update(expire_date=timezone.now() - timedelta(hours=1))


def change_password(notebook: Workload, bob: User) -> None:
    bob.set_password("another correct horse")
    bob.save()


def be_suspended(notebook: Workload, bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(is_active=False)


def let_the_cookie_expire(notebook: Workload, bob: User) -> None:
    NotebookSession.objects.update(expires_at=timezone.now() - timedelta(minutes=1))


def stop_it(notebook: Workload, bob: User) -> None:
    Run.objects.update(stop_requested_at=timezone.now())


def end_it(notebook: Workload, bob: User) -> None:
    Run.objects.update(ended_at=timezone.now(), outcome="stopped")


def lose_the_pod(notebook: Workload, bob: User) -> None:
    MirrorPod.objects.all().delete()


def delete_the_pod(notebook: Workload, bob: User) -> None:
    MirrorPod.objects.update(deleting_since=timezone.now())


def have_an_older_runs_pod(notebook: Workload, bob: User) -> None:
    MirrorPod.objects.update(run="one-0")


def become_private(notebook: Workload, bob: User) -> None:
    Workload.objects.update(visibility="private")


def delete_it(notebook: Workload, bob: User) -> None:
    Workload.objects.update(delete_requested_at=timezone.now())


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        (lose_membership, GatewayDenial.GONE),
        (become_viewer, GatewayDenial.GONE),
        (become_private, GatewayDenial.GONE),
        (log_out, GatewayDenial.SIGN_IN),
        (let_the_session_expire, GatewayDenial.SIGN_IN),
        (change_password, GatewayDenial.SIGN_IN),
        (be_suspended, GatewayDenial.SIGN_IN),
        (let_the_cookie_expire, GatewayDenial.SIGN_IN),
        (delete_it, GatewayDenial.SIGN_IN),
        (stop_it, GatewayDenial.NOT_READY),
        (end_it, GatewayDenial.NOT_READY),
        (lose_the_pod, GatewayDenial.NOT_READY),
        (delete_the_pod, GatewayDenial.NOT_READY),
        (have_an_older_runs_pod, GatewayDenial.NOT_READY),
    ],
)
def test_the_cookie_is_worth_what_stands_behind_it_now(
    cookie: str, notebook: Workload, bob: User, change: Callable[[Workload, User], None], answer: GatewayDenial
) -> None:
    change(notebook, bob)
    assert authorise(notebook.origin, [cookie]) is answer


def test_the_cookie_of_one_notebook_opens_no_other(
    cookie: str, notebook: Workload, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    other = running.workload(namespace_a, a100, name="two", by=alice)
    running.make_ready(other)
    assert authorise(other.origin, [cookie]) is GatewayDenial.SIGN_IN


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("abc.notebooks.example.org", "abc"),
        ("abc.notebooks.example.org:8000", "abc"),
        ("ABC.Notebooks.Example.org", "abc"),
        ("notebooks.example.org", ""),
        ("a.b.notebooks.example.org", ""),
        ("abc.notebooks.example.org.evil.org", ""),
        ("abc.evil.org", ""),
        ("", ""),
    ],
)
def test_only_hosts_of_the_notebooks_domain_name_an_origin(host: str, origin: str, settings: Any) -> None:
    settings.NOTEBOOKS_DOMAIN = "notebooks.example.org"
    assert origin_of(host) == origin


def test_a_stranger_gets_no_pass(notebook: Workload, charlie: User) -> None:
    client = Client()
    client.force_login(charlie)
    assert client.post("/teams/team-a/workloads/one/open").status_code == 404
    assert client.get(f"/open/{notebook.origin}").status_code == 404
    assert not Ticket.objects.exists()


def test_the_address_of_a_notebook_leads_members_to_its_page(notebook: Workload, bobs: Client) -> None:
    response = bobs.get(f"/open/{notebook.origin}")
    assert (response.status_code, response["Location"]) == (302, "/teams/team-a/workloads/one")


def test_nobody_may_take_a_pass_by_a_link(notebook: Workload, bobs: Client, team_a: Tenant) -> None:
    """GET changes no state: a link in an email must not issue passes."""
    assert bobs.get("/teams/team-a/workloads/one/open").status_code == 405
