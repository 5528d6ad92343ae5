"""Every key and password of a running portal is replaced, as docs/operators.md says: nobody is signed out, notebooks
stay open, secrets are decrypted; and when the former ones are removed, they open nothing any more.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
import redis as redis_client
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.conf import LazySettings
from django.core.management import call_command

from accounts.models import User
from catalog.models import GpuClass
from devcluster.client.kube import Api
from devcluster.processes import ports
from devcluster.processes.supervisor import Command, Supervisor
from devcluster.services import redis
from devcluster.services.portal import LOGINS, NAMES, Portal
from tenants.models import Namespace, Tenant
from tests.plugin import process_environment
from tests.support.http.callers import bearer
from tests.support.rows import make
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600), pytest.mark.usefixtures("images")]
FALLBACKS = ("SECRET_KEY", "NOTEBOOK_TOKEN_KEY", "SECRETS_PRIVATE_KEY", "SECOND_FACTOR_KEY")
TEAM = {"team": "team-a"}


@dataclass(frozen=True)
class Keyed(Portal):
    """`former`: keys of before, by variable. `round`: part of the names of the database users."""

    former: dict[str, str] = field(default_factory=dict)
    round: int = 1

    def environment(self, name: str, **of_process: Any) -> dict[str, str]:
        told = super().environment(name, **of_process)
        return told | {f"{key}_FALLBACKS": value for key, value in self.former.items() if key in told}

    def database_url(self, name: str) -> str:
        return super().database_url(name).replace("_login:", f"_login_{self.round}:")

    def keys(self) -> dict[str, str]:
        known = self.environment("web") | self.environment("worker", notebooks=True)
        return {key: known[key] for key in FALLBACKS}

    def grant_logins(self) -> None:
        call_command("database_roles", *self.write_logins())


@dataclass
class Installation:
    portal: Keyed
    supervisor: Supervisor
    redis: redis_client.Redis
    rounds_retired: int = 0

    def replaced(self) -> None:
        """New values for everything, the former ones beside them; then each process starts again."""
        former = self.portal.keys()
        (self.portal.state / "secrets.json").unlink()
        password = "the second password of Redis"
        self.redis.execute_command("ACL", "SETUSER", "default", f">{password}")
        url = urlsplit(self.portal.services["redis_url"])
        host = url.netloc.rpartition("@")[2]
        redis_url = url._replace(netloc=f":{password.replace(' ', '%20')}@{host}").geturl()
        self._goes_on({**self.portal.services, "redis_url": redis_url}, former=former, round=2)

    def forgotten(self) -> None:
        """`manage.py keys`, then the former keys, users and passwords are removed."""
        for name, notebooks in (("worker", True), ("web", False)):
            env = self.portal.environment(name, notebooks=notebooks)
            argv = [self.portal.commands()[0].argv[0], "manage.py", "keys"]
            ran = self.supervisor.run(Command("keys", argv, env=env), within_s=60)
            assert ran.process.returncode == 0, ran.log.read_text()
            assert " 0 encrypted" not in ran.log.read_text()
        self._goes_on(self.portal.services, former={}, round=2)
        retire(self.portal, round=1)
        self.rounds_retired = 1
        first = self.redis.connection_pool.connection_kwargs["password"]
        self.redis.execute_command("ACL", "SETUSER", "default", f"<{first}")

    def _goes_on(self, services: dict[str, Any], *, former: dict[str, str], round: int) -> None:
        had = self.portal
        self.portal = Keyed(had.state, services, had.ports, had.caddy, had.workers, former=former, round=round)
        self.portal.grant_logins()
        for command in self.portal.commands():
            if command.name != "gateway":
                self.supervisor.stop(command.name)
                self.supervisor.start(command)
        self.supervisor.until_ready(*NAMES)


def retire(portal: Keyed, *, round: int) -> None:
    database = urlsplit(str(portal.services["database_url"])).path.strip("/")
    names = [f"--retire={database}_{name}_login_{round}" for name in LOGINS]
    call_command("database_roles", *names)


@pytest.fixture
def installation(provisioned: Tenant, services: dict[str, Any], tmp_path: Path) -> Iterator[Installation]:
    url = process_environment()["DATABASE_URL"]
    command, redis_url = redis.command(tmp_path, ports.free_port())
    own = {**services, "database_url": url, "redis_url": redis_url, "has_logins": True}
    portal = Keyed(tmp_path, own, ports.assign_ports(tmp_path), Path(services["bin_dir"]) / "caddy", workers=1)
    portal.grant_logins()
    with Supervisor(tmp_path / "log") as supervisor:
        supervisor.start(command)
        supervisor.until_ready("redis")
        for each in portal.commands():
            supervisor.start(each)
        supervisor.until_ready(*NAMES)
        found = Installation(portal, supervisor, redis_client.Redis.from_url(redis_url))
        yield found
    for number in range(found.rounds_retired + 1, found.portal.round + 1):
        retire(found.portal, round=number)


@dataclass
class Person:
    """Alice's browser and her program, from before the first new key."""

    portal: Keyed
    browser: httpx.Client
    headers: dict[str, str]
    notebook: dict[str, str] = field(default_factory=dict)

    def post(self, path: str, expected: int, **form: str) -> httpx.Response:
        headers = {"X-CSRFToken": self.browser.cookies["csrf"], "Origin": self.portal.url}
        answer = self.browser.post(path, data=form, headers=headers)
        assert answer.status_code == expected, answer.text[-600:]
        return answer

    def sign_in(self, who: User) -> None:
        self.browser.get("/login")
        self.post("/login", 302, username=who.email, password=make.PASSWORD)

    def call(self, method: str, path: str, expected: int, *, key: str = "", **more: Any) -> httpx.Response:
        headers = self.headers | ({"Idempotency-Key": key} if key else {})
        url = f"{self.portal.url}/api/v1/{path}"
        answer = httpx.request(method, url, headers=headers, params=TEAM | more.pop("params", {}), timeout=90, **more)
        assert answer.status_code == expected, answer.text[-600:]
        return answer

    def launch(self, gpu_class: GpuClass, name: str, kind: str) -> httpx.Response:
        body: dict[str, Any] = {"name": name, "kind": kind, "gpu_class": gpu_class.slug, "units": 1}
        body |= {"image": "minimal"} if kind == "notebook" else {"image": "python", "command": ["true"]}
        return self.call("POST", "workloads", 201, key=f"once-{name}", json=body | {"options": {"secrets": ["KEEP"]}})

    def open(self, name: str) -> None:
        """Opens the notebook from its page, and keeps the cookie of its origin."""
        self.call("GET", f"workloads/{name}", 200, params={"wait": "60", "until": "ready"})
        address = urlsplit(self.post(f"/teams/team-a/workloads/{name}/open", 303).headers["Location"])
        ticket = f"{self._gateway}{address.path}?{address.query}"
        answer = httpx.get(ticket, headers={"Host": address.netloc})
        assert answer.status_code in (302, 303), answer.text
        self.notebook = {"Host": address.netloc, "Cookie": f"notebook={answer.cookies['notebook']}"}

    def asks_notebook(self) -> int:
        """The status of a request that the notebook's server answers only with the run's token."""
        return httpx.get(f"{self._gateway}/api/status", headers=self.notebook, timeout=60).status_code

    def with_code(self, who: User, seed: str, step: int) -> None:
        """A new sign-in with the code of the step before or after this one: each works once."""
        with httpx.Client(base_url=self.portal.url, timeout=60) as browser:
            other = Person(self.portal, browser, {})
            other.sign_in(who)
            code = format_hotp_value(hotp_value(seed, int(time.time()) // 30 + step))
            other.post("/login/code", 302, code=str(code))
            assert browser.get("/account").status_code == 200

    @property
    def _gateway(self) -> str:
        return f"http://127.0.0.1:{self.portal.ports['gateway']}"


def secret_of(admin: Api, namespace: str, run: str) -> str:
    found = wait_until(lambda: admin.find("v1/secrets", run, namespace=namespace), what=f"the Secret of {run}")
    return base64.b64decode(found["data"]["secret.KEEP"]).decode()


def test_every_key_and_password_is_replaced_while_people_work(
    installation: Installation, namespace_a: Namespace, a100: GpuClass, alice: User, bob: User, admin: Api,
    settings: LazySettings,
) -> None:  # fmt: skip
    first, space = installation.portal, namespace_a.name
    logins = [first.database_url(name) for name in LOGINS]
    for url in logins:
        psycopg.connect(url).close()
    settings.SECOND_FACTOR_KEY = first.keys()["SECOND_FACTOR_KEY"]
    seed = make.second_factor(bob)
    with httpx.Client(base_url=first.url, timeout=60) as browser:
        alices = Person(first, browser, bearer(alice, "read", "launch"))
        alices.sign_in(alice)
        alices.call("PUT", "secrets/KEEP", 201, json={"value": "a value"})
        launched = alices.launch(a100, "one", "notebook")
        alices.open("one")
        assert alices.asks_notebook() == 200
        before = browser.cookies["session"]

        installation.replaced()
        assert alices.asks_notebook() == 200, "the notebook that runs stays open"
        assert browser.get("/account").status_code == 200, "nobody is signed out"
        assert alices.launch(a100, "one", "notebook").content == launched.content, "the call was done before"
        alices.with_code(bob, seed, -1)
        assert secret_of(admin, space, "one-1") == "a value"
        alices.launch(a100, "two", "job")
        assert secret_of(admin, space, "two-1") == "a value", "encrypted with the former key"

        installation.forgotten()
        assert browser.get("/account").status_code == 200
        assert browser.cookies["session"] != before
        browser.cookies["session"] = before
        assert browser.get("/account").status_code == 302, "a cookie of the former key signs nobody in"
        assert alices.asks_notebook() == 403, "the token of the former key opens nothing"
        alices.with_code(bob, seed, 1)
        alices.call("DELETE", "workloads/one", 202)
        alices.launch(a100, "three", "job")
        assert secret_of(admin, space, "three-1") == "a value", "manage.py keys encrypted it again"
        for url in logins:  # the user does not exist any more
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                psycopg.connect(url)
        with pytest.raises(redis_client.AuthenticationError):
            redis_client.Redis.from_url(first.services["redis_url"]).ping()
