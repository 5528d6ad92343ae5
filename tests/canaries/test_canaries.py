"""Uses secrets in all of the portal's processes on a real control plane: in the fields that are meant for them, and in
others. Then searches everything that the portal left behind for each of them.
"""

from __future__ import annotations

import base64
import html
import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import redis
from django.conf import settings
from django.db import connection

from accounts.credentials import login_backoff
from accounts.models import User
from catalog.models import GpuClass
from cluster.models import AppliedObject
from devcluster.client.kube import Api
from devcluster.processes import ports
from devcluster.processes.supervisor import Supervisor
from devcluster.services import portal as portal_processes
from devcluster.services.portal import NAMES, Portal
from portal.core import hints
from tenants.models import ImagePrefix, Namespace, Tenant
from tests.canaries.searched import Haystack, Logs, Sniffer, database, kept_in_redis, mails, objects, sniffed
from tests.plugin import process_environment
from tests.support.http.callers import bearer
from tests.support.rows import make
from tests.support.waiting import wait_until
from workloads.credentials.notebook_token import notebook_token
from workloads.models import Workload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300), pytest.mark.usefixtures("images")]
KEYS = ("SECRET_KEY", "NOTEBOOK_TOKEN_KEY", "SECRETS_PRIVATE_KEY", "SECOND_FACTOR_KEY")
MARKED = (
    "table workloads_run", "table accounts_event", "table accounts_delivery", "Redis", "messages to Celery",
    "Job", "Pod", "Event", "log of web", "log of doors", "log of worker", "log of gateway", "log of postgres", "mails",
    "POST /teams/team-a/secrets 422", "GET /api/v1/workloads", "stream /live",
)  # fmt: skip
API = "/api/v1"
TEAM = {"team": "team-a"}


def canary(what: str) -> str:
    """Returns a random secret with characters that are escaped differently in URLs, JSON and HTML."""
    return f"canary-{what}-{secrets.token_urlsafe(15)}<&\"'%+é"


@dataclass
class Grounds:
    """The running portal, and what the test used and received. `planted`: the secrets by kind. `mark`: a text that is
    not secret and is used next to the secrets; that it is found shows that the search works. `said`: the responses,
    which are searched.
    """

    portal: Portal
    sniffer: Sniffer
    browser: httpx.Client
    namespace: str
    mark: str
    said: list[tuple[str, bytes]] = field(default_factory=list)
    planted: dict[str, str] = field(default_factory=dict)

    def plant(self, what: str, secret: str = "") -> str:
        self.planted[what] = secret or canary(what.replace(" ", "-"))
        return self.planted[what]

    def get(self, path: str, expected: int = 200, **more: Any) -> httpx.Response:
        return self.kept(self.browser.get(path, **more), expected)

    def post(self, path: str, expected: int, **form: str) -> httpx.Response:
        """Sends the form of a page as a browser does."""
        headers = {"X-CSRFToken": self.browser.cookies["csrf"], "Origin": self.portal.url}
        return self.kept(self.browser.post(path, data=form, headers=headers), expected)

    def call(self, method: str, path: str, expected: int, **more: Any) -> httpx.Response:
        """Calls the API as a program does, with the personal API token."""
        headers = {"Authorization": f"Bearer {self.planted['personal token']}", **more.pop("headers", {})}
        answer = httpx.request(method, f"{self.portal.url}{path}", headers=headers, timeout=90, **more)
        return self.kept(answer, expected)

    def log(self, process: str) -> Path:
        return self.portal.state / "log" / f"{process}.log"

    def kept(self, answer: httpx.Response, expected: int) -> httpx.Response:
        """Checks the status and keeps the response for the search. `expected`: the status, or its first digit."""
        assert expected in (answer.status_code, answer.status_code // 100), (
            f"{answer.request.url} {answer.status_code} {answer.text[-600:]}"
        )
        self.said.append((f"{answer.request.method} {answer.request.url.path} {expected}", answer.content))
        return answer

    def shown(self, answer: httpx.Response) -> str:
        """Returns the text of a response that contains a secret on purpose, and excludes this response from the
        search.
        """
        self.said.pop()
        return html.unescape(answer.text)


@pytest.fixture
def grounds(
    provisioned: Tenant,
    namespace_a: Namespace,
    services: dict[str, Any],
    olga: User,
    unique: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Grounds]:
    """Starts all of the portal's processes as the demo does, with the test's database."""
    mark = f"mark-{unique}"
    monkeypatch.setenv("LOG_LEVEL", "DEBUG")
    of_issuer = {"ISSUER": "https://127.0.0.1:1", "CLIENT_ID": "portal", "CLIENT_SECRET": canary("client-secret")}
    for name, value in of_issuer.items():
        monkeypatch.setenv(f"OIDC_{name}", value)
    monkeypatch.setattr(
        portal_processes, "PASSED_ON", (*portal_processes.PASSED_ON, *(f"OIDC_{name}" for name in of_issuer))
    )
    Tenant.objects.filter(pk=provisioned.pk).update(name=f"Team {mark}")
    ImagePrefix.objects.create(tenant=provisioned, prefix="registry.example.org/vision/")
    environment = process_environment()
    own = {**services, "database_url": environment["DATABASE_URL"], "redis_url": environment["REDIS_URL"]}
    portal = Portal(tmp_path, own, ports.assign_ports(tmp_path), Path(services["bin_dir"]) / "caddy", workers=1)
    with Supervisor(tmp_path / "log") as supervisor, sniffed(environment["REDIS_URL"]) as sniffer:
        for command in portal.commands():
            supervisor.start(command)
        supervisor.until_ready(*NAMES)
        with httpx.Client(base_url=portal.url, timeout=60) as browser:
            on = Grounds(portal, sniffer, browser, namespace_a.name, mark)
            for process in ("web", "doors", "worker"):
                for name, value in portal.environment(process, notebooks=process != "web").items():
                    if name in KEYS:
                        on.plant(name, value)
            on.plant("secret at the issuer", of_issuer["CLIENT_SECRET"])
            on.plant("password of the database", urlsplit(own["database_url"]).password or "")
            on.plant("password of Redis", urlsplit(own["redis_url"]).password or "")
            yield on


# ---- using secrets -----------------------------------------------------------------------------------------------


def signs_in(on: Grounds, who: User) -> None:
    """Tries to sign in with the password in the field of the email address, and with a wrong password; then signs in.
    Changes the password and sets up a second factor, also with invalid values.
    """
    # Other tests with the same Redis may have recorded failed sign-ins of this account.
    for at in ("password", "code"):
        login_backoff.reset_backoff(who.email, "127.0.0.1", at=at)
    on.get("/login")
    on.post("/login", 422, username=on.plant("password in the field of the address"), password="x" * 12)
    on.post("/login", 422, username=who.email, password=on.plant("wrong password"))
    on.post("/login", 302, username=who.email, password=make.PASSWORD)
    new, wrong = on.plant("password"), on.plant("new password that is refused")
    on.get("/account")
    on.post("/account/password", 422, old_password=on.plant("old password that is wrong"), new_password1=wrong,
            new_password2=wrong)  # fmt: skip
    on.post("/account/password", 302, old_password=make.PASSWORD, new_password1=new, new_password2=new)
    page = on.shown(on.get("/account/second-factor"))
    found = re.search(r'<pre[^>]* id="seed"[^>]*>([A-Z2-7 ]+)</pre>', page)
    assert found
    seed = on.plant("seed of codes", found[1].replace(" ", ""))
    on.shown(on.post("/account/second-factor", 422, password=on.plant("password beside a code"), code="000000"))
    page = on.shown(on.post("/account/second-factor", 200, password=new, code=make.code(seed)))
    found = re.search(r'<pre[^>]* id="codes"[^>]*>([^<]+)</pre>', page)
    assert found
    codes = found[1].split()
    assert len(codes) > 5
    for number, code in enumerate(codes):
        on.plant(f"recovery code {number}", code)
    on.plant("session", on.browser.cookies["session"])
    on.plant("CSRF token", on.browser.cookies["csrf"])


def makes_tokens(on: Grounds) -> None:
    form = {"name": on.mark, "scopes": "read", "expires_in_days": "30"}
    for what, path in (("personal token", "/tokens"), ("token of the team", "/teams/team-a/tokens")):
        # httpx repeats the field for each value of a list.
        scopes = ["read", "launch", "request", *(["admin"] if what == "personal token" else [])]
        page = on.shown(on.post(path, 200, **{**form, "scopes": scopes}))  # type: ignore[arg-type]
        found = re.search(r"gpt_[a-z0-9]{8}_[\w-]+", page)
        assert found
        on.plant(what, found[0])


def sets_a_password(on: Grounds, administrator: User) -> None:
    """Creates an account by the API, whose response contains the code for a password. Sets the password: twice with an
    invalid field, then with success, then again with the used code. No page may show the password.
    """
    email = f"{on.mark}@example.org"
    made = httpx.post(
        f"{on.portal.url}{API}/people", headers=bearer(administrator), json={"email": email, "name": on.mark}
    )
    assert made.status_code == 201, made.text
    code, password = on.plant("code for a password", made.json()["password_code"]), on.plant("password by a code")
    typed = {"email": email, "code": code, "password1": password, "password2": password}
    with httpx.Client(base_url=on.portal.url, timeout=60) as browser:
        browser.get("/login/password")
        headers = {"X-CSRFToken": browser.cookies["csrf"], "Origin": on.portal.url}
        for expected, wrong in ((422, {"password2": "another"}), (422, {"email": code}), (302, {}), (422, {})):
            answer = browser.post("/login/password", data=typed | wrong, headers=headers)
            assert answer.status_code == expected, answer.text
            assert password not in html.unescape(answer.text)


def comes_back_from_the_issuer(on: Grounds) -> None:
    """The OIDC issuer is not reachable. The code that an issuer would give to the browser is in the query of the
    request.
    """
    on.get("/login")
    on.post("/login/oidc", 403)
    on.get("/login/oidc/back", 403, params={"code": on.plant("code of the issuer"), "state": on.mark})


def keeps_secrets(on: Grounds) -> None:
    """Saves secrets of a team and passwords of a registry, with success and in requests that are refused."""
    value, path = on.plant("secret of the team"), f"{API}/secrets/KEEP"
    on.post("/teams/team-a/secrets", 302, name="KEEP", value=value)
    on.post("/teams/team-a/secrets", 422, name="LD_PRELOAD", value=value)
    on.post("/teams/team-a/secrets", 422, name=f"{on.mark} is no name", value=value)
    key = {"Idempotency-Key": f"key-{on.mark}"}
    on.call("PUT", path, 200, params=TEAM, json={"value": value}, headers=key)
    refused = on.plant("secret that is refused")
    bodies = [{"value": refused, "more": refused}, {"value": [refused]}, {"value": {"x": refused}}, [refused]]
    for body in (*bodies, {"value": refused * 900}):
        on.call("PUT", path, 4, params=TEAM, json=body, headers=key)
    broken = f'{{"value": "{refused}", "value": "{refused}'.encode()
    on.call("PUT", path, 4, params=TEAM, content=broken, headers={"Content-Type": "application/json"})
    on.call("PUT", path, 4, params=TEAM, data={"value": refused})
    on.call("PUT", f"{API}/secrets/LD_PRELOAD", 422, params=TEAM, json={"value": refused})
    on.call("PUT", path, 404, params={"team": "team-z"}, json={"value": refused})
    on.call("DELETE", f"{API}/secrets/NONE", 404, params=TEAM)
    password = on.plant("password of a registry")
    registry = f"{API}/registries/registry.example.org"
    on.call("PUT", registry, 201, params=TEAM, json={"username": on.mark, "password": password})
    on.call("PUT", registry, 4, params=TEAM, json={"username": "", "password": password})
    on.call("PUT", f"{API}/registries/no-host", 422, params=TEAM, json={"username": "u", "password": password})


def goes_astray(on: Grounds) -> None:
    """Sends secrets where none belong: in queries, headers and cookies of pages, the API and the process `doors`. Also
    sends an invalid API token.
    """
    lost = on.plant("secret that went astray")
    lost_token = on.plant("token that nobody made", f"gpt_abcdefgh_{secrets.token_urlsafe(32)}")
    sent = {"X-Api-Key": lost.encode(), "Authorization": f"Basic {base64.b64encode(lost.encode()).decode()}".encode()}
    cookie = {"Cookie": f"session={lost_token}; auth_token={lost_token}"}
    for path in ("/login", f"/no-such-{on.mark}", f"{API}/me", f"/live/{on.namespace}", f"/live/no-such-{on.mark}",
                 f"{API}/workloads/{on.mark}?team=team-a&wait=1", "/gateway/open"):  # fmt: skip
        for headers in (sent, cookie, {"Authorization": f"Bearer {lost_token}"}):
            query = {"password": lost, "access_token": lost_token, "ticket": lost_token, "next": "/"}
            answer = httpx.get(f"{on.portal.url}{path}", params=query, headers=headers)
            assert answer.status_code < 500, answer.text
            on.said.append((f"{path} {answer.status_code}", answer.content + str(answer.headers).encode()))
    on.get("/api/")
    on.get(f"{API}/openapi.json")
    pages = ("tokens", "secrets", "images", f"workloads/{on.mark}", f"workloads/{on.mark}/change")
    for path in ("/account", "/tokens", "/history", *(f"/teams/team-a/{page}" for page in pages)):
        on.get(path)


def launches(on: Grounds, gpu_class: GpuClass, admin: Api) -> None:
    """Launches a notebook and opens it, and launches a job with an image of a private registry."""
    body = {"name": on.mark, "kind": "notebook", "gpu_class": gpu_class.slug, "units": 1, "image": "minimal",
            "options": {"secrets": ["KEEP"], "env": {"MARK": on.mark}}}  # fmt: skip
    on.call("POST", f"{API}/workloads", 201, params=TEAM, json=body)
    until_ready(on)
    on.call("POST", f"{API}/workloads", 201, params=TEAM, json=job(gpu_class, "train"))
    workload = Workload.objects.get(name=on.mark)
    key = json.loads((on.portal.state / "secrets.json").read_text())["notebook_token_key"]
    token = on.plant("token of the notebook", notebook_token(key, workload_id=workload.pk, run_number=1))
    wait_until(lambda: admin.find("v1/secrets", "train-1-pull", namespace=on.namespace), what="the registry's Secret")

    answer = on.post(f"/teams/team-a/workloads/{on.mark}/open", 303)
    address = urlsplit(answer.headers["Location"])
    on.plant("one-time ticket", parse_qs(address.query)["ticket"][0])
    gateway, host = f"http://127.0.0.1:{on.portal.ports['gateway']}", {"Host": address.netloc}
    answer = httpx.get(f"{gateway}{address.path}?{address.query}", headers=host)
    assert answer.status_code in (302, 303), answer.text
    cookie = on.plant("session of the notebook", answer.cookies["notebook"])
    again = httpx.get(f"{gateway}{address.path}?{address.query}", headers=host)
    on.said.append(("a ticket that is spent", again.content))
    asked = host | {"Cookie": f"notebook={cookie}"}
    assert httpx.get(f"{gateway}/api/status", headers=asked).status_code == 200
    for path in ("/lab", "/no-such-page", "/api/contents/none"):
        on.said.append((f"notebook {path}", httpx.get(f"{gateway}{path}", headers=asked, timeout=60).content))
    given = httpx.get(f"http://127.0.0.1:{on.portal.ports['doors']}/gateway/authorize", headers=asked)
    assert token in given.headers["Authorization"], "the gateway's answer is the one that may tell it"


def until_ready(on: Grounds) -> None:
    answer = on.call("GET", f"{API}/workloads/{on.mark}", 200, params={**TEAM, "wait": "60", "until": "ready"})
    assert answer.json()["status"]["phase"] == "ready", answer.text


def watches(on: Grounds) -> None:
    """Reads the event stream of a page and a log, each until an expected text has arrived."""
    cookie = {"Cookie": f"session={on.planted['session']}"}
    for path, word in (
        (f"/live/{on.namespace}", on.mark.encode()),
        (f"/live/logs/team-a/{on.mark}", b"Jupyter"),
    ):
        with httpx.stream("GET", f"{on.portal.url}{path}", headers=cookie, timeout=30) as answer:
            received = b""
            for part in answer.iter_bytes():
                received += part
                if word in received:
                    break
        assert word in received, received
        on.said.append((f"stream {path}", received))


def fails(on: Grounds, gpu_class: GpuClass) -> None:
    """A trigger makes the database refuse rows, with their content in the error message. web answers 500 and a task of
    the worker fails, both with a traceback.
    """
    raises = "BEGIN RAISE EXCEPTION 'no % here', NEW; END"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE FUNCTION loud() RETURNS trigger AS $${raises}$$ LANGUAGE plpgsql")
        for table in ("workloads_teamsecret", "accounts_apitoken", "cluster_appliedobject"):
            when = f"BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW"
            cursor.execute(f"CREATE TRIGGER loud {when} EXECUTE FUNCTION loud()")
    value = on.plant("secret of a call that failed")
    answer = on.call("PUT", f"{API}/secrets/KEEP", 500, params=TEAM, json={"value": value})
    assert answer.json()["code"] == "internal_error", answer.text
    on.post("/teams/team-a/secrets", 500, name="OTHER", value=value)
    on.post("/tokens", 500, name=on.mark, scopes="read", expires_in_days="30")
    on.call("POST", f"{API}/workloads", 201, params=TEAM, json=job(gpu_class, f"f-{on.mark}"))
    wait_until(lambda: is_in(on.log("worker"), "RaiseException", f"f-{on.mark}-1"), story=on.log("worker").read_text)
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION loud CASCADE")


def is_refused(on: Grounds, gpu_class: GpuClass, admin: Api) -> None:
    """An admission policy refuses the Secret of a run, with the Secret's content in the message. Then the same policy
    only warns, with the same message.
    """
    name = f"{on.namespace}-tells"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}
    tells = "'What it holds: ' + string(object.data['secret.KEEP'])"
    policy = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]},
              "validations": [{"expression": "false", "message": "no", "messageExpression": tells}]}  # fmt: skip
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": on.namespace}}}
    group = "admissionregistration.k8s.io/v1"
    one = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tried"}, "stringData": {"secret.KEEP": on.mark}}
    admin.create({"apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": policy})

    def tried() -> bytes:
        path = f"/api/v1/namespaces/{on.namespace}/secrets"
        return admin.raw("POST", path, one, params={"dryRun": "All"})[1]

    try:
        for action in ("Deny", "Warn"):
            binding = {"policyName": name, "validationActions": [action], "matchResources": here}
            admin.apply({"apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
                         "spec": binding})  # fmt: skip
            wait_until(lambda: (b"What it holds" in tried()) is (action == "Deny"), what=action)  # noqa: B023
            on.call("POST", f"{API}/workloads", 201, params=TEAM, json=job(gpu_class, action.lower()))
            said = AppliedObject.objects.filter(
                kind="Secret", name=f"{action.lower()}-1", text__contains="What it holds"
            )
            wait_until(said.exists, what=action, story=on.log("worker").read_text)
    finally:
        for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
            admin.delete(f"{group}/{kind}", name)


def job(gpu_class: GpuClass, name: str) -> dict[str, Any]:
    image, options = "registry.example.org/vision/train:7", {"secrets": ["KEEP"]}
    return {
        "name": name,
        "kind": "job",
        "gpu_class": gpu_class.slug,
        "image": image,
        "command": ["true"],
        "options": options,
    }


def is_in(path: Path, *words: str) -> bool:
    text = path.read_text()
    return all(word in text for word in words)


# ---- search ------------------------------------------------------------------------------------------------------


def everything(on: Grounds, admin: Api, logs: Logs) -> Haystack:
    found = Haystack()
    for place, text in database():
        found.add(place, text)
    found.add("Redis", kept_in_redis(settings.REDIS_URL), *on.sniffer.lines)
    found.add("messages to Celery", *on.sniffer.messages())
    for place, text in objects(admin):
        found.add(place, text)
    for path in (on.portal.state / "log").glob("*.log"):
        found.add(f"log of {path.stem}", path.read_bytes())
    for place, text in logs.since():
        found.add(place, text)
    found.add("mails", *mails(on.portal.state / "mail"))
    for place, text in on.said:
        found.add(place, text)
    return found


def tells_the_mark(on: Grounds) -> None:
    """Uses the mark in the places to which no other step writes it."""
    on.get("/teams/team-a/members")
    on.post("/teams/team-a/members/add", 302, email="guest@example.org", role="viewer")
    hints.celery_sender().send_task(on.mark, args=[on.mark], queue=on.mark)
    for path in ("/livez", f"/live/logs/team-a/{on.mark}"):
        httpx.get(f"{on.portal.url}{path}", headers={"X-Request-ID": f"{on.mark}-asks"})
    folder = on.portal.state / "mail"
    wait_until(lambda: on.mark.encode() in b"".join(mails(folder)), what="a mail")


def test_no_secret_is_anywhere_but_where_it_is_meant_to_be(
    grounds: Grounds, a100: GpuClass, alice: User, olga: User, admin: Api, services: dict[str, Any]
) -> None:
    logs, on = Logs(Path(services["log_dir"])), grounds
    comes_back_from_the_issuer(on)
    signs_in(on, alice)
    makes_tokens(on)
    sets_a_password(on, olga)
    keeps_secrets(on)
    launches(on, a100, admin)
    goes_astray(on)
    watches(on)
    fails(on, a100)
    is_refused(on, a100, admin)
    tells_the_mark(on)
    found = everything(on, admin, logs)
    redis.Redis.from_url(settings.REDIS_URL).delete(on.mark)

    # The first Secrets must exist. Whether those of later runs exist depends on how far the cluster is.
    meant = {
        "secret of the team": (f"{on.mark}-1", r"(train|warn|f-[\w-]+)-1"),
        "token of the notebook": (f"{on.mark}-1", "-"),
        "password of a registry": ("train-1-pull", r"[\w-]+-1-pull"),
    }
    astray = {}
    for what, one in on.planted.items():
        places = found.where(one)
        if what in meant:
            kept, others = meant[what]
            assert f"Secret {on.namespace}/{kept}" in places
            places = [at for at in places if not re.fullmatch(f"Secret {on.namespace}/({kept}|{others})", at)]
        if places:
            astray[what] = places
    assert astray == {}
    # The mark must be in all of these places, which shows that the search works.
    marked = found.where(on.mark)
    assert [place for place in MARKED if not any(one.startswith(place) for one in marked)] == []
