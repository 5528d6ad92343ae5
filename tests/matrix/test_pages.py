"""Every page and every form × every role × each owner of the object."""

from __future__ import annotations

import pytest

from cluster.models import Cluster
from tests.matrix.sweep import sweep
from tests.matrix.tables.page_table import PAGES
from tests.matrix.tables.policy import PARTS
from tests.matrix.world import build

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("part", PARTS)
def test_everybody_is_told_what_the_table_says(cluster: Cluster, unique: str, part: str) -> None:
    found = sweep(PAGES, build(cluster, unique), roles=PARTS[part])
    assert found.wrong == {}
    assert found.cases >= len(PAGES)
