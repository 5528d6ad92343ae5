"""Every method of every API address × every role × each owner of the object."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.models import Cluster
from tests.matrix.sweep import sweep
from tests.matrix.tables.api_table import API
from tests.matrix.tables.policy import PARTS
from tests.matrix.world import build

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_limit(settings: Any) -> None:
    settings.API_REQUESTS_PER_MINUTE = 1_000_000


@pytest.mark.parametrize("part", PARTS)
def test_everybody_is_told_what_the_table_says(cluster: Cluster, unique: str, part: str) -> None:
    found = sweep(API, build(cluster, unique), roles=PARTS[part])
    assert found.wrong == {}
    assert found.cases >= len(API)
