"""Worker, beat and watcher as processes on their own PostgreSQL and Redis; faults by proxies and signals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.client.kube import Api
from tests.recovery.portal import Portal
from tests.recovery.started import whole_portal


@pytest.fixture(scope="module")
def portal(services: dict[str, Any], admin: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    with whole_portal(tmp_path_factory.mktemp("recovery"), services=services, admin=admin) as portal:
        yield portal


@pytest.fixture
def team(portal: Portal, unique: str) -> str:
    """A name that contains the portal's own eight characters, so that its objects are removed at the end."""
    return f"team-{unique}-{portal.slug.rpartition('-')[2]}"
