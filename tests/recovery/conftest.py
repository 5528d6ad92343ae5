"""Worker, beat and watcher as processes on their own PostgreSQL and Redis; faults by proxies and signals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.client.kube import Api
from devcluster.processes.ports import free_port
from devcluster.services import redis
from tests.recovery.portal import Portal
from tests.recovery.started import processes, servers


@pytest.fixture(scope="module")
def portal(services: dict[str, Any], admin: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    with servers(tmp_path_factory.mktemp("recovery")) as found:
        command, redis_url = redis.command(found.state, free_port({found.port}))
        found.supervisor.start(command)
        found.supervisor.until_ready("redis")
        with processes(found, redis_url, services=services, admin=admin) as portal:
            yield portal


@pytest.fixture
def team(portal: Portal, unique: str) -> str:
    """A name that contains the portal's own eight characters, so that its objects are removed at the end."""
    return f"team-{unique}-{portal.slug.rpartition('-')[2]}"
