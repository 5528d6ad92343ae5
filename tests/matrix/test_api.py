"""Every method of every API address × every role × each owner of the object."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.models import Cluster
from tests.matrix.sweep import sweep
from tests.matrix.tables.api_table import API
from tests.matrix.world import build

# Every call × role in one world: longer than other tests.
pytestmark = [pytest.mark.django_db, pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def no_limit(settings: Any) -> None:
    settings.API_REQUESTS_PER_MINUTE = 1_000_000


def test_everybody_is_told_what_the_table_says(cluster: Cluster, unique: str) -> None:
    found = sweep(API, build(cluster, unique))
    assert found.wrong == {}
