"""The gateway's Caddyfile in the real Caddy.

Doors is played under uvicorn, as in production: it would take a forwarded WebSocket upgrade for something else than a
request. It lets notebook `mine` in, on which two upstreams listen: the pod, and one that only an attacker names.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.deploy.gateway import TOKEN, Gateway, running
from tests.support.cluster.identities import DEADLINE_S, until

Json = dict[str, Any]


@pytest.fixture(scope="module")
def gateway(services: Json, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running(services, tmp_path_factory.mktemp("caddy")) as gateway:
        yield gateway


@pytest.fixture
def impatient(services: Json, tmp_path: Path) -> Iterator[Gateway]:
    """Closes open streams after two seconds instead of a quarter of an hour."""
    with running(services, tmp_path, NOTEBOOK_STREAM_TIMEOUT="2s") as gateway:
        yield gateway


@pytest.mark.parametrize(
    ("method", "path", "server"),
    [
        ("GET", "/", "web"),
        ("GET", "/requests/7", "web"),
        ("POST", "/requests/7/approve", "web"),
        ("GET", "/live/namespaces/5", "doors"),
        ("GET", "/gateway/ticket", "doors"),
        ("GET", "/api/v1/watch?team=team-a", "doors"),
        ("GET", "/api/v1/watched", "web"),
        ("GET", "/api/v1/workloads/7", "web"),
        ("GET", "/api/v1/workloads/7?wait=60&until=ready", "doors"),
        ("GET", "/api/v1/workloads/7?until=ready&wait=60", "doors"),
        ("PUT", "/api/v1/workloads/7?wait=60", "web"),
        ("GET", "/requests/7?wait=60", "web"),
        ("GET", "/livez-and-more", "web"),
    ],
)
def test_who_answers_on_the_portals_host(gateway: Gateway, method: str, path: str, server: str) -> None:
    seen = gateway.portal(path, method=method).seen

    assert (seen["server"], seen["method"]) == (server, method)
    assert seen["path"] + (f"?{seen['query']}" if seen["query"] else "") == path


def test_api_tokens_and_cookies_reach_the_portal(gateway: Gateway) -> None:
    seen = gateway.portal("/api/v1/", headers=[("Authorization", "Bearer gp_x"), ("Cookie", "session=s")]).seen

    assert seen["headers"]["authorization"] == "Bearer gp_x"
    assert seen["headers"]["cookie"] == "session=s"
    assert seen["headers"]["x-forwarded-host"] == f"portal.test:{gateway.port}"


def test_nobody_outside_asks_for_authorisation(gateway: Gateway) -> None:
    before = len(gateway.doors.asked)

    answer = gateway.portal("/gateway/authorize", headers=[("X-Forwarded-Host", "mine.notebooks.test")])

    assert answer.status == 404
    assert "authorization" not in answer.headers
    assert len(gateway.doors.asked) == before


def test_the_portal_takes_no_more_than_web_does(gateway: Gateway) -> None:
    """Notebook hosts do: see below on cookies that others pile up."""
    before = len(gateway.web.asked) + len(gateway.doors.asked)
    long_line, heavy = f"/catalog?x={'x' * 4000}", [("Cookie", f"a={'x' * 4000}"), ("Cookie", f"b={'x' * 4000}")]

    assert gateway.portal(long_line).status == 414
    for path in ("/catalog", "/live/team-a", "/api/v1/workloads/one?wait=1"):
        answer = gateway.portal(path, headers=heavy)
        assert (answer.status, "Delete the cookies" in answer.text) == (431, True)
    assert len(gateway.web.asked) + len(gateway.doors.asked) == before
    assert gateway.portal("/catalog?x=" + "x" * 3900, headers=[("Cookie", "a=" + "x" * 7900)]).status == 200


@pytest.mark.parametrize("path", ["/catalog", "/live/team-a", "/api/v1/workloads/one?wait=1"])
def test_the_portal_hears_of_the_host_and_the_scheme_from_the_gateway_alone(gateway: Gateway, path: str) -> None:
    claimed = [("X-Forwarded-Host", "evil.test"), ("X-Forwarded-Proto", "https"), ("X-Forwarded-For", "203.0.113.9")]

    seen = gateway.portal(path, headers=claimed).seen["headers"]

    assert (seen["x-forwarded-host"], seen["x-forwarded-proto"]) == (f"portal.test:{gateway.port}", "http")
    assert "203.0.113.9" not in seen["x-forwarded-for"]


@pytest.mark.parametrize("host", ["elsewhere.test", "notebooks.test", "portal.test.evil.test", "minenotebooks.test"])
def test_other_hosts_get_nothing(gateway: Gateway, host: str) -> None:
    assert gateway.ask(host).status == 404


def test_a_notebook_is_reached_with_its_token_and_without_the_visitors_session(gateway: Gateway) -> None:
    cookies = "_xsrf=1; __Host-notebook=secret; notebook=secret;username-8888=u; mynotebook=2"

    seen = gateway.notebook("/lab/tree/a%20b?x=1", headers=[("Cookie", cookies)]).seen

    assert (seen["server"], seen["path"], seen["query"]) == ("pod", "/lab/tree/a b", "x=1")
    assert seen["headers"]["authorization"] == TOKEN
    assert [c.strip() for c in seen["headers"]["cookie"].split(";")] == ["_xsrf=1", "username-8888=u", "mynotebook=2"]
    assert seen["headers"]["host"] == f"mine.notebooks.test:{gateway.port}"


@pytest.mark.parametrize("cookies", ["notebook=secret", "notebook=secret; a=1", "a=1; __Host-notebook=secret"])
def test_the_session_is_stripped_wherever_it_stands(gateway: Gateway, cookies: str) -> None:
    seen = gateway.notebook(headers=[("Cookie", cookies)]).seen

    assert seen["headers"].get("cookie", "") in {"", "a=1"}


def test_doors_is_asked_with_the_cookie_the_uri_and_the_method(gateway: Gateway) -> None:
    headers = [
        ("Cookie", "__Host-notebook=s"),
        ("X-Forwarded-Host", "other.notebooks.test"),
        ("X-Forwarded-Uri", "/x"),
        ("Connection", "X-Forwarded-Host, X-Forwarded-Uri, X-Forwarded-Method"),
    ]

    gateway.notebook("/api/contents?x=1", method="DELETE", headers=headers)

    asked = gateway.doors.asked[-1]
    assert (asked["type"], asked["method"], asked["path"]) == ("http", "GET", "/gateway/authorize")
    assert asked["headers"]["x-forwarded-host"] == f"mine.notebooks.test:{gateway.port}"
    assert asked["headers"]["x-forwarded-uri"] == "/api/contents?x=1"
    assert asked["headers"]["x-forwarded-method"] == "DELETE"
    assert asked["headers"]["cookie"] == "__Host-notebook=s"


@pytest.mark.parametrize("hop_by_hop", [[], [("Connection", "X-Notebook-Upstream")]])
@pytest.mark.parametrize("name", ["mine", "nameless", "stranger"])
def test_the_client_cannot_name_the_upstream(gateway: Gateway, name: str, hop_by_hop: list[tuple[str, str]]) -> None:
    headers = [
        ("X-Notebook-Upstream", gateway.evil_address),
        ("x-notebook-upstream", gateway.evil_address),
        ("Authorization", "token guessed"),
    ]

    answer = gateway.notebook(name=name, headers=headers + hop_by_hop)

    assert gateway.evil.asked == []
    assert "authorization" not in gateway.doors.asked[-1]["headers"]
    assert "x-notebook-upstream" not in gateway.doors.asked[-1]["headers"]
    if name == "mine":
        assert answer.seen["headers"]["authorization"] == TOKEN
    else:
        assert answer.status in {404, 500, 502, 503}


def test_identities_that_the_client_claims_reach_nobody(gateway: Gateway) -> None:
    claimed = ["Remote-User", "X-Remote-User", "X-Remote-Group", "X-Forwarded-User", "X-Auth-Request-Email"]

    seen = gateway.notebook(headers=[(name, "olga") for name in claimed]).seen

    for headers in (seen["headers"], gateway.doors.asked[-1]["headers"]):
        assert "olga" not in headers.values()


def test_a_refusal_passes_through_unchanged(gateway: Gateway) -> None:
    stranger, visitor = gateway.notebook(name="stranger"), gateway.notebook(name="login")

    assert (stranger.status, stranger.text) == (404, "no such notebook")
    assert (visitor.status, visitor.headers["location"]) == (302, "http://portal.test/login")
    assert visitor.headers["set-cookie"] == "seen=1"


def test_the_ticket_is_redeemed_by_doors_on_the_notebooks_own_host(gateway: Gateway) -> None:
    headers = [("Origin", "http://portal.test"), ("Authorization", "token guessed"), ("X-Forwarded-Host", "evil.test")]

    seen = gateway.notebook("/gateway/open?ticket=once-only", headers=headers).seen

    assert (seen["server"], seen["path"]) == ("doors", "/gateway/open")
    assert seen["headers"]["host"] == f"mine.notebooks.test:{gateway.port}"
    assert seen["headers"]["x-forwarded-host"] == f"mine.notebooks.test:{gateway.port}"
    assert "authorization" not in seen["headers"]


def test_another_origin_may_not_use_the_visitors_session(gateway: Gateway) -> None:
    own = f"http://mine.notebooks.test:{gateway.port}"
    for origin in (f"http://other.notebooks.test:{gateway.port}", "http://evil.test", "null", own + ".evil.test"):
        assert gateway.notebook(headers=[("Origin", origin)]).status == 403

    assert gateway.notebook(headers=[("Origin", own)]).status == 200


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
@pytest.mark.parametrize(
    ("mode", "dest"), [("no-cors", "script"), ("no-cors", "image"), ("navigate", "iframe"), ("cors", "empty")]
)
def test_another_page_loads_nothing_of_a_notebook(gateway: Gateway, site: str, mode: str, dest: str) -> None:
    """A GET without an Origin carries the cookie: a script in another user's files would run in the page that requests
    it.
    """
    before = len(gateway.pod.asked)
    headers = [("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", mode), ("Sec-Fetch-Dest", dest)]

    assert gateway.notebook("/files/results.js", headers=headers).status == 403
    assert len(gateway.pod.asked) == before


def test_no_page_puts_a_session_into_a_browser_in_passing(gateway: Gateway) -> None:
    """For example an image whose URL is the sign-in of a notebook, with another user's ticket."""
    before = len(gateway.doors.asked)
    picture = [("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "image")]
    link = [("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")]

    assert gateway.notebook("/gateway/open?ticket=theirs", headers=picture).status == 403
    assert len(gateway.doors.asked) == before
    assert gateway.notebook("/gateway/open?ticket=mine", headers=link).seen["server"] == "doors"


OWN = {"notebook": "n" * 43, "__Host-notebook": "h" * 43}


@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("name", list(OWN))
def test_cookies_that_others_pile_up_shut_nobody_out(gateway: Gateway, name: str, first: bool) -> None:
    """Pages of other notebooks may set cookies for the whole domain: more than any server accepts."""
    pile = "; ".join(f"c{index}=notebook={'x' * 4000}" for index in range(180))
    pile += "; " + "; ".join(f"{name}={'x' * 4000}" for _ in range(30))
    own = f"{name}={OWN[name]}; {name}=evil"
    sent = f"{own}; {pile}" if first else f"{pile}; {own}"

    seen = gateway.notebook(headers=[("Cookie", sent)]).seen

    kept = [part.strip() for part in gateway.doors.asked[-1]["headers"]["cookie"].split(";")]
    assert kept == own.split("; ")
    assert seen["headers"].get("cookie", "") == ""


@pytest.mark.parametrize("site", ["same-site", "cross-site", "none"])
def test_a_link_leads_to_a_notebook(gateway: Gateway, site: str) -> None:
    headers = [("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")]

    assert gateway.notebook(headers=headers).status == 200
    assert gateway.notebook(headers=[("Sec-Fetch-Site", "same-origin")]).status == 200
    assert gateway.notebook(headers=headers, method="POST").status == (200 if site == "none" else 403)


def test_answers_stay_with_their_origin(gateway: Gateway) -> None:
    notebook, page, stream = gateway.notebook(), gateway.portal("/"), gateway.portal("/live/team-a")

    for answer in (notebook, page, stream):
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert notebook.headers["cross-origin-opener-policy"] == "same-origin-allow-popups"


def test_a_websocket_works_and_is_authorised_as_a_plain_get(gateway: Gateway) -> None:
    with kernel(gateway) as channel:
        seen = json.loads(channel.recv(DEADLINE_S))
        channel.send("6*7")
        assert channel.recv(DEADLINE_S) == "pod heard 6*7"

    assert (seen["server"], seen["type"], seen["headers"]["authorization"]) == ("pod", "websocket", TOKEN)
    assert seen["headers"]["cookie"] == "a=1"
    asked = gateway.doors.asked[-1]
    assert (asked["type"], asked["method"], asked["headers"]["x-forwarded-uri"]) == (
        "http",
        "GET",
        "/api/kernels/1/channels",
    )


def test_the_socket_of_a_session_that_ended_ends_too(impatient: Gateway) -> None:
    """An open socket is not authorized again: it is closed after a while, and the browser has to reconnect."""
    with kernel(impatient) as channel:
        channel.recv(DEADLINE_S)
        impatient.doors.is_signed_out = True
        channel.send("6*7")
        assert channel.recv(DEADLINE_S) == "pod heard 6*7"
        began = time.monotonic()
        with pytest.raises(ConnectionClosed):
            channel.recv(DEADLINE_S)
        assert time.monotonic() - began < DEADLINE_S / 2

    with pytest.raises(InvalidStatus) as refused, kernel(impatient):
        pass
    assert refused.value.response.status_code == 401


def test_a_session_that_goes_on_is_let_in_again(impatient: Gateway) -> None:
    with kernel(impatient) as channel:
        channel.recv(DEADLINE_S)
        with pytest.raises(ConnectionClosed):
            channel.recv(DEADLINE_S)

    with kernel(impatient) as channel:
        assert json.loads(channel.recv(DEADLINE_S))["server"] == "pod"


def kernel(gateway: Gateway) -> ClientConnection:
    """As JupyterLab in a browser opens it."""
    host = f"mine.notebooks.test:{gateway.port}"
    return connect(
        f"ws://{host}/api/kernels/1/channels",
        sock=socket.create_connection(("127.0.0.1", gateway.port)),
        origin=f"http://{host}",  # type: ignore[arg-type]  # a NewType of str
        additional_headers={"Cookie": "notebook=secret; a=1", "Authorization": "token guessed"},
        compression=None,
        proxy=None,
    )


@pytest.mark.parametrize(("name", "origin", "status"), [("stranger", "", 404), ("mine", "http://evil.test", 403)])
def test_a_refused_websocket_is_not_opened(gateway: Gateway, name: str, origin: str, status: int) -> None:
    host = f"{name}.notebooks.test:{gateway.port}"
    with (
        pytest.raises(InvalidStatus) as refused,
        connect(
            f"ws://{host}/api/kernels/1/channels",
            sock=socket.create_connection(("127.0.0.1", gateway.port)),
            origin=origin or f"http://{host}",  # type: ignore[arg-type]  # a NewType of str
            proxy=None,
        ),
    ):
        pass

    assert refused.value.response.status_code == status


def test_jupyters_own_page_for_an_error_is_not_shown(gateway: Gateway) -> None:
    """That page holds the server's token. Answers for programs do not, nor do pages of other programs in a notebook."""
    answer = gateway.notebook("/none")

    assert (answer.status, answer.text) == (404, "The server of this notebook answered 404 Not Found.")
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    for path in ("/api/none", "/proxy/none"):
        assert gateway.notebook(path).text == f"not found, {TOKEN}"


def test_nobody_signs_out_of_the_notebook_alone(gateway: Gateway) -> None:
    before = len(gateway.pod.asked)

    assert gateway.notebook("/logout").status == 404
    assert len(gateway.pod.asked) == before


@pytest.mark.parametrize(
    ("path", "to"),
    [
        ("/user-redirect/lab/tree/a.ipynb", "/lab/tree/a.ipynb"),
        ("/lab/tree/user-redirect/lab/tree/b/a.ipynb", "/lab/tree/b/a.ipynb"),
    ],
)
def test_a_link_that_somebody_shared_leads_to_its_file(gateway: Gateway, path: str, to: str) -> None:
    answer = gateway.notebook(path)

    assert (answer.status, answer.headers["location"]) == (302, to)


@pytest.mark.parametrize("path", ["/user-redirect//evil.test/", "/user-redirect/%5Cevil.test", "/user-redirect/"])
def test_a_shared_link_leads_to_no_other_host(gateway: Gateway, path: str) -> None:
    location = gateway.notebook(path).headers.get("location", "/")

    assert location.startswith("/")
    assert not location.startswith(("//", "/\\"))


def test_a_notebook_that_does_not_answer_is_said_so(gateway: Gateway) -> None:
    answer = gateway.notebook(name="gone")

    assert (answer.status, answer.headers["retry-after"]) == (502, "5")
    assert "Reload" in answer.text


def test_the_access_log_holds_no_secret(gateway: Gateway) -> None:
    marker, secrets = "log-probe", ("ticket-of-gold", "cookie-of-gold", "bearer-of-gold", TOKEN)
    headers = [
        ("Cookie", f"notebook={secrets[1]}"),
        ("Authorization", secrets[2]),
        ("Referer", f"/?ticket={secrets[0]}"),
        ("X-Api-Key", secrets[1]),
    ]

    gateway.notebook(f"/gateway/open?ticket={secrets[0]}&{marker}1=x", headers=headers)
    gateway.notebook(f"/lab?token={secrets[0]}&{marker}2=x", headers=headers)
    gateway.notebook(f"/lab?password={secrets[1]}&{marker}3={secrets[2]}", headers=headers)

    until(lambda: gateway.log.read_text().count(marker) >= 3, "three requests in the access log")
    log = gateway.log.read_text()
    assert not [secret for secret in secrets if secret in log]
    [line] = [json.loads(line) for line in log.splitlines() if f"{marker}1" in line]
    assert parse_qs(urlsplit(line["request"]["uri"]).query)["ticket"] == ["***"]
