"""A stack with monitoring: Prometheus scrapes its nodes, and the portal's processes and demo.json know where it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from devcluster.demo.environment import write_description
from devcluster.services.portal import Portal
from devcluster.services.stack import Options, Stack
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A cluster of its own, without the portal."""
    state, nowhere = tmp_path_factory.mktemp("monitored"), "none://"
    options = Options(
        state=state, hardware="waste", notebooks=False, monitoring=True, database_url=nowhere, redis_url=nowhere
    )
    with Stack(options) as stack:
        stack.start()
        yield stack


def scraped(url: str) -> dict[str, str]:
    with urlopen(f"{url}/api/v1/query?query=up", timeout=10) as answer:
        found = json.load(answer)["data"]["result"]
    return {one["metric"]["node"]: one["value"][1] for one in found}


def test_prometheus_scrapes_the_nodes_of_the_stack(stack: Stack) -> None:
    url = stack.services["prometheus_url"]
    wait_until(lambda: scraped(url) == {"a100-1": "1", "a100-2": "1"}, what="both nodes are scraped")
    assert {"prometheus", "gpu-exporters"} <= stack.supervisor.pids().keys()


def test_the_portal_and_the_description_name_it(stack: Stack) -> None:
    portal = Portal(stack.state, stack.services, stack.ports, Path("caddy"))
    url = stack.services["prometheus_url"]
    assert {portal.environment(name)["PROMETHEUS_URL"] for name in ("web", "worker", "beat")} == {url}
    write_description(stack, portal, [])
    assert json.loads((stack.state / "demo.json").read_text())["prometheus_url"] == url
    services = {name: value for name, value in stack.services.items() if name != "prometheus_url"}
    without = Portal(stack.state, services, stack.ports, Path("caddy"))
    assert without.environment("web")["PROMETHEUS_URL"] == ""
