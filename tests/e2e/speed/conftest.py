"""The portal as it is shipped, with a gateway that compresses and a stream, in front of a team with much to show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Browser

from cluster.models import Cluster
from tests.support.browser.busy_team import BusyTeam, busy_team
from tests.support.browser.visit import Visitor
from tests.support.processes.shipped_portal import shipped_portal
from tests.support.processes.streaming import Doors


@pytest.fixture
def busy(transactional_db: None, cluster: Cluster) -> BusyTeam:
    return busy_team(cluster)


@pytest.fixture
def small(transactional_db: None, cluster: Cluster) -> BusyTeam:
    """The same with few rows, for pages of Django's own live server."""
    return busy_team(cluster, runs=2, ended=60, queued=2, pending=2)


@pytest.fixture
def visitor(browser: Browser, services: dict[str, Any], running_doors: Doors, tmp_path: Path) -> Iterator[Visitor]:
    with shipped_portal(services, running_doors.port, tmp_path) as portal:
        yield Visitor(browser, f"http://{portal.host}", settings.SESSION_COOKIE_NAME)
