"""As in production: https, both servers as they are started there, the settings that deploy/ ships."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest
import yaml

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import ApiToken, Event, User
from catalog.models import GpuClass
from devcluster.processes.ports import free_port
from tenants.models import Namespace
from tests.plugin import process_environment
from tests.support.rows import make, running
from tests.support.shipped import DEPLOY, ROOT
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(240)]

HOST = "gpu.example.org"
# Whatever a proxy of some other portal would say about who somebody is.
NAMES = (
    "Remote-User",
    "Remote-Groups",
    "Remote-Email",
    "X-Remote-User",
    "X-Forwarded-User",
    "X-Forwarded-Email",
    "X-Forwarded-Preferred-Username",
    "X-Auth-Request-User",
    "X-Auth-Request-Email",
    "X-Auth-User",
    "X-Auth-Token",
    "X-WebAuth-User",
    "X-User",
    "X-Original-User",
    "X-Client-Verify",
)
ELSEWHERE = {"X-Forwarded-Host": "evil.test", "X-Host": "evil.test", "X-Original-Host": "evil.test"}
OTHER_WAYS = {"X-Original-URL": "/admin/", "X-Rewrite-URL": "/admin/", "X-Forwarded-Prefix": "/evil"}
OVERRIDES = ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Forwarded-Method")


def production(**more: str) -> dict[str, str]:
    shipped = yaml.safe_load((DEPLOY / "portal" / "settings.yaml").read_text())["data"]
    plain = {name: value for name, value in shipped.items() if not name.endswith("_FILE") and name != "INTERNAL_PORT"}
    key = "".join(chr(33 + index) for index in range(64))
    found = {**process_environment(), **plain, "SECRET_KEY": key, "LOG_LEVEL": "INFO", **more}
    # Of tests with a browser in this process.
    found.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)
    return found


@dataclass
class Server:
    """One of the two, as the gateway talks to it."""

    name: str
    port: int
    log: Path

    def ask(
        self, path: str, method: str = "GET", body: bytes = b"", *, host: str = HOST, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        return self.say(path, method, body, {"Host": host, "X-Forwarded-Proto": "https", **headers})

    def say(self, path: str, method: str, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if body:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()


@pytest.fixture(scope="module")
def servers(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    home = tmp_path_factory.mktemp("production")
    gunicorn = ["gunicorn", "portal.wsgi:application", "--workers", "1", "--threads", "2", "--no-control-socket"]
    uvicorn = ["uvicorn", "portal.asgi:application", "--no-access-log", "--log-level", "warning"]
    with _running("wsgi", gunicorn, home) as wsgi, _running("asgi", uvicorn, home) as asgi:
        yield {"wsgi": wsgi, "asgi": asgi}


@contextmanager
def _running(name: str, command: list[str], home: Path) -> Iterator[Server]:
    server = Server(name, free_port(), log=home / name)
    address = ["--bind", f"127.0.0.1:{server.port}"] if name == "wsgi" else ["--port", str(server.port)]
    with server.log.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", *command, *address], cwd=ROOT, env=production(), stdout=written, stderr=written
        )
    try:
        wait_until(lambda: _answers(server), what=f"{name} answers", story=server.log.read_text)
        yield server
    finally:
        process.terminate()
        process.wait(15)


def _answers(server: Server) -> bool:
    try:
        return server.ask("/livez")[0] == 200
    except OSError:
        return False


@pytest.fixture(params=["wsgi", "asgi"])
def server(request: pytest.FixtureRequest, servers: dict[str, Server]) -> Server:
    return servers[request.param]


@pytest.fixture
def bobs(bob: User) -> str:
    return api_token_actions.create_token(name="ci", scopes=["read"], expires_in_days=1, by=Actor(bob, "page"))[1]


# ---- settings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", ["notebooks.gpu.example.org", "example-notebooks.org"])
def test_django_finds_nothing_to_warn_of(domain: str) -> None:
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    environment = production(NOTEBOOKS_DOMAIN=domain)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("domain", "below"),
    [
        ("notebooks.gpu.example.org", True),
        ("gpu.example.org:8443", True),
        ("notebooks.example.org", False),
        ("notgpu.example.org", False),
        ("example-notebooks.org", False),
    ],
)
def test_browsers_are_bound_to_https_below_the_portal_where_notebooks_are(domain: str, below: bool) -> None:
    code = "import json; from portal import settings as s; print(json.dumps(s.SECURE_HSTS_INCLUDE_SUBDOMAINS))"
    environment = production(NOTEBOOKS_DOMAIN=domain)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, check=True)
    assert json.loads(done.stdout) is below


# ---- HTTPS -------------------------------------------------------------------------------------------------------


def test_plain_http_leads_to_https_and_probes_are_answered(servers: dict[str, Server]) -> None:
    web = servers["wsgi"]
    for said in ({}, {"X-Forwarded-Proto": "http"}, {"X_Forwarded_Proto": "https"}):
        status, found, _body = web.say("/tokens?x=1", "GET", b"", {"Host": HOST, **said})
        assert (status, found["location"]) == (301, f"https://{HOST}/tokens?x=1")
    for path in ("/livez", "/readyz"):
        assert web.say(path, "GET", b"", {"Host": HOST})[0] == 200


def test_every_answer_binds_browsers_to_https(server: Server, bobs: str) -> None:
    for path in ("/livez", "/api/v1/me?wait=0", "/nothing"):
        _status, found, _body = server.ask(path, Authorization=f"Bearer {bobs}")
        assert found["strict-transport-security"] == "max-age=31536000; includeSubDomains"


def test_every_cookie_is_the_hosts_own(servers: dict[str, Server], bob: User) -> None:
    """`__Host-`: browsers take it over https alone, for all paths, and from no neighbour."""
    web = servers["wsgi"]
    status, found, _page = web.ask("/login")
    csrf = found["set-cookie"].partition(";")[0]
    token = csrf.partition("=")[2]
    form = {"username": bob.email, "password": make.PASSWORD, "csrfmiddlewaretoken": token, "next": "/tokens"}
    plain = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"https://{HOST}"}
    signed_in = web.ask("/login", "POST", urlencode(form).encode(), Cookie=csrf, **plain)
    theme = web.ask("/theme", "POST", urlencode({**form, "theme": "dark"}).encode(), Cookie=csrf, **plain)
    assert (status, signed_in[0], signed_in[1]["location"], theme[0]) == (200, 302, "/tokens", 302)
    for cookies in (found["set-cookie"], signed_in[1]["set-cookie"], theme[1]["set-cookie"]):
        name, *rest = cookies.split("; ")
        assert name.startswith(("__Host-session=", "__Host-csrf=", "__Host-theme="))
        assert {"Path=/", "Secure", "SameSite=Lax"} <= set(rest)
        assert not [part for part in rest if part.startswith("Domain")]


# ---- untrusted headers -------------------------------------------------------------------------------------------


def claims(value: str) -> dict[str, str]:
    """Each with hyphens and with underscores: servers write both alike for an application to read."""
    return {spelt: value for name in NAMES for spelt in (name, name.replace("-", "_"))}


def test_nobody_is_who_a_header_says(server: Server, olga: User) -> None:
    for who in (olga.email, str(olga.pk), "olga"):
        for name, value in claims(who).items():
            assert server.ask("/api/v1/me?wait=0", **{name: value})[0] == 401, name
    if server.name == "wsgi":
        assert server.ask("/tokens", **claims(olga.email))[0] in (302, 400, 431)


def test_a_token_is_its_owner_whatever_headers_say(server: Server, bob: User, bobs: str, olga: User) -> None:
    claimed = claims(olga.email)
    names = list(claimed)
    for part in (names[:15], names[15:]):
        more = {name: claimed[name] for name in part}
        status, _found, body = server.ask("/api/v1/me?wait=0", Authorization=f"Bearer {bobs}", **more)
        assert (status, json.loads(body)["email"], json.loads(body)["roles"]) == (200, bob.email, [])


def test_no_header_says_where_we_are(server: Server, bobs: str) -> None:
    for name, value in {**ELSEWHERE, **OTHER_WAYS, "X-Forwarded-Port": "666"}.items():
        for spelt in (name, name.replace("-", "_")):
            bearer = {"Authorization": f"Bearer {bobs}", spelt: value}
            status, found, body = server.ask("/api/v1/events?limit=1&wait=0", **bearer)
            following = json.loads(body)["next"]
            assert status == 200
            assert following is None or following.startswith(f"https://{HOST}/api/v1/events?")
            assert "evil" not in json.dumps(found)
    if server.name == "wsgi":
        assert server.ask("/", **ELSEWHERE, **OTHER_WAYS)[1]["location"] == "/login?next=/"


def test_no_header_says_what_is_done(server: Server, bob: User) -> None:
    """With a token that could be revoked by itself."""
    make.second_factor(bob)
    row, text = api_token_actions.create_token(
        name="a", scopes=["read", "admin"], expires_in_days=1, by=Actor(bob, "page")
    )
    events = Event.objects.count()
    for name in OVERRIDES:
        for spelt in (name, name.replace("-", "_")):
            for method in ("GET", "POST"):
                path = f"/api/v1/tokens/{row.prefix}?wait=0"
                bearer = {"Authorization": f"Bearer {text}", spelt: "DELETE"}
                assert server.ask(path, method, **bearer)[0] == 405
    assert ApiToken.objects.get().revoked_at is None
    assert Event.objects.count() == events


def test_doors_believe_no_host_in_another_spelling(servers: dict[str, Server]) -> None:
    """With hyphens the gateway says it, and overwrites what a client says (tests/deploy/test_gateway.py)."""
    doors = servers["asgi"]
    notebook = "n0123456789.notebooks.gpu.example.org"
    assert doors.ask("/gateway/authorize", **{"X-Forwarded-Host": notebook})[0] == 401
    assert doors.ask("/gateway/authorize", X_Forwarded_Host=notebook)[0] == 404


def test_one_id_from_the_first_look_to_the_last_line(
    servers: dict[str, Server], namespace_a: Namespace, a100: GpuClass, bob: User, bobs: str
) -> None:
    """A call that waits asks the URL map twice; the id is the caller's, or one that was chosen once."""
    doors = servers["asgi"]
    running.workload(namespace_a, a100, name="one", by=bob)
    running.known(namespace_a.cluster_id)
    for offered in ({}, {"X-Request-ID": "ci-run-4711"}, {"X-Request-ID": "no!", "X_Request_ID": "ci-run-0815"}):
        path = "/api/v1/workloads/one?wait=1&until=ready"
        status, found, _body = doors.ask(path, Authorization=f"Bearer {bobs}", **offered)
        chosen = found["x-request-id"]
        assert status == 200
        assert (chosen == "ci-run-4711") is (offered.get("X-Request-ID") == "ci-run-4711")
        assert chosen != "ci-run-0815"
        lines = [json.loads(line) for line in doors.log.read_text().splitlines() if chosen in line]
        assert [line["event"] for line in lines] == ["request_finished"] * 2
        assert {line["request_id"] for line in lines} == {chosen}


# ---- size limits of requests -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/livez?x=" + "x" * 5_000, {}),
        ("/livez", {"Cookie": "a=" + "x" * 9_000}),
        ("/livez", {f"X-{index}": "x" for index in range(100)}),
    ],
    ids=["line", "header", "headers"],
)
def test_web_reads_no_more_than_it_takes(servers: dict[str, Server], path: str, headers: dict[str, str]) -> None:
    status, _found, body = servers["wsgi"].ask(path, **headers)
    assert status in (400, 414, 431)
    assert b"x" * 50 not in body
    assert servers["wsgi"].ask("/livez?x=" + "x" * 3_900, Cookie="a=" + "x" * 8_000)[0] == 200


def test_doors_read_no_more_than_they_take(servers: dict[str, Server]) -> None:
    doors = servers["asgi"]
    status, found, body = doors.ask("/livez", Cookie="a=" + "x" * 70_000)
    assert (status, found["x-content-type-options"]) == (431, "nosniff")
    assert b"xx" not in body
    assert doors.ask("/livez", Cookie="a=" + "x" * 16_000)[0] == 200


@pytest.mark.parametrize("path", ["/api/v1/tokens", "/theme", "/login"])
def test_a_body_in_chunks_is_refused_and_not_read_as_empty(server: Server, bobs: str, path: str) -> None:
    """Under WSGI Django would read it as empty, and answer 201 to what the client did not ask for."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {"Host": HOST, "X-Forwarded-Proto": "https", "Authorization": f"Bearer {bobs}"}
    body = json.dumps({"name": "in-chunks", "scopes": ["read"]}).encode()
    try:
        connection.request(
            "POST",
            path,
            iter([body[:9], body[9:]]),
            {**headers, "Content-Type": "application/json"},
            encode_chunked=True,
        )
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()

    if server.name == "wsgi":
        assert (answer.status, "length_required" in text) == (411, path.startswith("/api/"))
        assert not ApiToken.objects.filter(name="in-chunks").exists()
    else:
        assert answer.status != 411
