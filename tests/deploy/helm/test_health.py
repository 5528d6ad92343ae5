"""What `helm test` runs, on web and doors behind the shipped gateway; and the gateway behind a proxy that ends TLS."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.gateway import Gateway, running
from tests.deploy.helm.chart import VARIANTS, Chart, named
from tests.support.processes.shipped_portal import shipped_portal
from tests.support.processes.streaming import Doors

Json = dict[str, Any]
VISITOR = "203.0.113.7"
HEADERS = [("X-Forwarded-For", VISITOR), ("X-Forwarded-Proto", "https")]


def script(chart: Chart, *, within_s: float = 60.0) -> str:
    """As the pod runs it, but for the time that it may take."""
    python, option, text, *arguments = named(chart.objects(), "Pod", "health")["spec"]["containers"][0]["command"]
    assert (python, option, arguments) == ("python", "-c", ["https://gateway", "gpu.example.org"])
    replaced: str = text.replace("WITHIN_S, PAUSE_S = 60.0, 2.0", f"WITHIN_S, PAUSE_S = {within_s}, 0.1")
    assert replaced != text
    return replaced


def run(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", text, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)


@pytest.mark.django_db(transaction=True)
def test_the_check_finds_a_healthy_portal_healthy(
    chart: Chart, running_doors: Doors, services: Json, tmp_path: Path
) -> None:
    with shipped_portal(services, running_doors.port, tmp_path) as portal:
        done = run(script(chart), f"http://localhost:{portal.gateway}", portal.host)

    assert (done.returncode, done.stdout) == (0, f"{portal.host} is healthy.\n"), done.stderr


def test_the_check_says_what_is_not_healthy(chart: Chart, services: Json, tmp_path: Path) -> None:
    """Something that is not doors answers in its place; then nothing does."""
    text = script(chart, within_s=0.0)
    with running(services, tmp_path) as gateway:
        address = f"http://localhost:{gateway.port}"
        wrong = run(text, address, "portal.test")
    away = run(text, address, "portal.test")

    assert wrong.returncode == away.returncode == 1
    assert wrong.stderr.startswith(f"{address}/api/v1/watch answers 200: ")
    assert f"{address}/readyz does not answer: " in away.stderr


@pytest.fixture
def behind_a_proxy(chart: Chart, services: Json, tmp_path: Path) -> Iterator[Gateway]:
    """With the variable that the chart gives it."""
    pod = named(chart.objects(VARIANTS["ingress"]), "Deployment", "gateway")["spec"]["template"]["spec"]
    written = {one["name"]: one.get("value", "") for one in pod["containers"][0]["env"]}
    with running(services, tmp_path, GATEWAY_PROXIES=written["GATEWAY_PROXIES"]) as gateway:
        yield gateway


def test_the_headers_of_a_proxy_are_believed(behind_a_proxy: Gateway) -> None:
    """Without the scheme web would redirect to https without an end."""
    seen = behind_a_proxy.portal("/", headers=HEADERS).seen["headers"]

    assert seen["x-forwarded-proto"] == "https"
    assert seen["x-forwarded-for"] == f"{VISITOR}, 127.0.0.1"


def test_the_headers_of_a_visitor_are_not(services: Json, tmp_path: Path) -> None:
    with running(services, tmp_path) as gateway:
        seen = gateway.portal("/", headers=HEADERS).seen["headers"]

    assert (seen["x-forwarded-proto"], seen["x-forwarded-for"]) == ("http", "127.0.0.1")
