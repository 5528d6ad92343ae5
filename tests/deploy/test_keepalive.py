"""Keep-alive times: the gateway closes an idle connection first; otherwise a POST could meet a server that is closing
it.
"""

from __future__ import annotations

import re
import runpy
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from devcluster.services.portal import Portal
from tests.support.shipped import DEPLOY, ROOT, compose

CADDYFILE = (DEPLOY / "Caddyfile").read_text()


def gateway_s() -> int:
    found = re.search(r"\(to_ourselves\) \{\s+transport http \{\s+keepalive (\d+)s\s", CADDYFILE)
    assert found, "the gateway keeps idle connections for two minutes by default"
    return int(found[1])


def of_compose(name: str) -> list[str]:
    return compose()["services"][name]["command"]


def of_the_cluster(name: str) -> list[str]:
    deployment = next(
        one
        for one in yaml.safe_load_all((DEPLOY / "portal" / f"{name}.yaml").read_text())
        if one["kind"] == "Deployment"
    )
    return deployment["spec"]["template"]["spec"]["containers"][0]["command"]


def of_the_demo(name: str) -> list[str]:
    nowhere: dict[str, Any] = {"database_url": "", "redis_url": "", "kubeconfigs": defaultdict(str)}
    with TemporaryDirectory() as state:
        commands = Portal(Path(state), nowhere, defaultdict(int), Path("caddy")).commands()
    return [str(word) for one in commands if one.name == name for word in one.argv]


@pytest.mark.parametrize("shipped", [of_compose, of_the_cluster, of_the_demo])
def test_the_gateway_lets_go_of_an_idle_connection_to_doors_first(shipped: Callable[[str], list[str]]) -> None:
    words = shipped("doors")
    server_s = int(words[words.index("--timeout-keep-alive") + 1])

    assert gateway_s() * 2 <= server_s


@pytest.mark.parametrize("shipped", [of_compose, of_the_cluster, of_the_demo])
def test_other_gateways_let_go_of_an_idle_connection_to_web_first(shipped: Callable[[str], list[str]]) -> None:
    assert runpy.run_path(str(ROOT / "gunicorn.conf.py"))["keepalive"] > 60
    assert not {"--keep-alive", "--config", "-c"} & set(shipped("web")), "what the file says is what holds"


def ways_to(upstream: str) -> list[str]:
    found = re.finditer(
        rf"\n(\t+)(?:reverse_proxy|forward_auth)[^\n]*\{{\${upstream}\}} \{{\n(.*?)\n\1\}}", CADDYFILE, re.DOTALL
    )
    return [one[2] for one in found]


def test_every_way_from_the_gateway_to_doors_lets_go_in_time() -> None:
    assert len(ways_to("DOORS_UPSTREAM")) == CADDYFILE.count("{$DOORS_UPSTREAM}") == 4
    assert all("import to_ourselves" in way for way in ways_to("DOORS_UPSTREAM"))


def test_each_request_to_web_reaches_the_process_that_is_free() -> None:
    [way] = ways_to("WEB_UPSTREAM")
    assert "keepalive off" in way
