"""Every listener takes IPv4 and IPv6, with the commands that are shipped."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import RequestFactory

from devcluster.processes.ports import free_port
from devcluster.processes.supervisor import Command, Supervisor
from portal.ops.ops_server import OpsServer
from portal.web.client_address import client_address, network_of
from tests.plugin import process_environment
from tests.support.shipped import DEPLOY, ROOT
from tests.support.waiting import wait_until

needs_ipv6 = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
BOTH = [pytest.param("127.0.0.1", id="IPv4"), pytest.param("::1", id="IPv6", marks=needs_ipv6)]


def status(host: str, port: int, path: str) -> int:
    with closing(http.client.HTTPConnection(host, port, timeout=20)) as connection:
        connection.request("GET", path, headers={"Host": "localhost"})
        return connection.getresponse().status


def listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.fixture
def internal() -> Iterator[int]:
    with OpsServer("", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("host", BOTH)
def test_the_internal_port(internal: int, host: str) -> None:
    assert status(host, internal, "/") == 404


def test_the_internal_port_on_one_address() -> None:
    with OpsServer("127.0.0.1", 0) as server:
        assert server.server_address[0] == "127.0.0.1"


def command(name: str) -> list[str]:
    deployment = yaml.safe_load((DEPLOY / "portal" / f"{name}.yaml").read_text().split("\n---")[0])
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    return [str(word) for word in container["command"]]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, services: dict[str, Any]) -> Iterator[dict[str, int]]:
    """Web, doors and gateway as their containers start them, but for the numbers of their ports."""
    home = tmp_path_factory.mktemp("listening")
    ports = {name: free_port() for name in ("web", "doors", "gateway")}
    # gunicorn has its address from gunicorn.conf.py, where only the port is replaced.
    config = home / "gunicorn.conf.py"
    config.write_text((ROOT / "gunicorn.conf.py").read_text().replace(":8000", f":{ports['web']}"))
    web = ["-m", *command("web"), "--config", str(config), "--no-control-socket"]
    doors = ["-m", *[str(ports["doors"]) if word == "8001" else word for word in command("doors")]]
    caddy = [Path(services["bin_dir"]) / "caddy", "run", "--config", "deploy/Caddyfile", "--adapter", "caddyfile"]
    gateway = {
        "PATH": os.environ["PATH"], "HOME": str(home), "GATEWAY_BIND": gateway_bind(),
        "GATEWAY_ADDRESS": f"http://:{ports['gateway']}", "WEB_UPSTREAM": f"[::1]:{ports['web']}",
        "DOORS_UPSTREAM": f"[::1]:{ports['doors']}", "PORTAL_HOST": "localhost",
        "NOTEBOOKS_DOMAIN": "notebooks.localhost",
    }  # fmt: skip
    env = process_environment("web") | {"ALLOWED_HOSTS": "*"}
    with Supervisor(home / "log") as supervisor:
        supervisor.start(Command("web", [sys.executable, *web], env=env, cwd=ROOT))
        supervisor.start(Command("doors", [sys.executable, *doors], env=env, cwd=ROOT))
        supervisor.start(Command("gateway", caddy, env=gateway, cwd=ROOT))
        for name, port in ports.items():
            running = supervisor.running[name]
            wait_until(lambda: listens("127.0.0.1", port), story=running.last_lines)  # noqa: B023
        yield ports


def gateway_bind() -> str:
    text = (DEPLOY / "portal" / "gateway.yaml").read_text()
    [line] = [one for one in text.splitlines() if "GATEWAY_BIND" in one]
    return str(yaml.safe_load(line.strip().removeprefix("- "))["value"])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("host", BOTH)
def test_web_doors_and_gateway(servers: dict[str, int], host: str) -> None:
    assert status(host, servers["web"], "/login") == 200
    assert status(host, servers["doors"], "/no-such-page") == 404


@needs_ipv6
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_gateway_reaches_what_has_an_ipv6_address(servers: dict[str, int], host: str) -> None:
    assert status(host, servers["gateway"], "/login") == 200


@pytest.mark.parametrize(
    ("peer", "trusted"),
    [
        ("::ffff:10.1.2.3", True),
        ("10.1.2.3", True),
        ("fd00::7", True),
        ("::ffff:203.0.113.9", False),
        ("2001:db8::1", False),
    ],
)
def test_a_gateway_is_known_by_either_protocol(peer: str, trusted: bool, rf: RequestFactory) -> None:
    request = rf.get("/", REMOTE_ADDR=peer, HTTP_X_FORWARDED_FOR="198.51.100.4")
    assert client_address(request) == ("198.51.100.4" if trusted else peer)


def test_an_ipv4_address_is_one_network_however_it_is_written() -> None:
    assert network_of("::ffff:203.0.113.9") == network_of("203.0.113.9") == "203.0.113.9"
    assert network_of("2001:db8:1:2::9") == network_of("2001:db8:1:2:ffff::1")


def test_addresses_of_ipv6_are_read_in_urls() -> None:
    """In a process of its own: settings are read once."""
    told = process_environment() | {
        "DATABASE_URL": "postgres://portal:secret@[fd00::5]:5433/portal",
        "REDIS_URL": "redis://:secret@[fd00::6]:6380/0",
    }
    shown = (
        "from django.conf import settings; from redis import Redis; "
        "database, hints = settings.DATABASES['default'], Redis.from_url(settings.REDIS_URL); "
        "print(database['HOST'], database['PORT'], hints.connection_pool.connection_kwargs['host'])"
    )
    ran = subprocess.run([sys.executable, "-c", shown], env=told, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ran.stdout.split() == ["fd00::5", "5433", "fd00::6"], ran.stderr
