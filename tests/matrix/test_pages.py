"""Every page and every form × every role × whose thing it is."""

from __future__ import annotations

import pytest

from cluster.models import Cluster
from tests.matrix.page_table import PAGES
from tests.matrix.sweep import sweep
from tests.matrix.world import build

pytestmark = pytest.mark.django_db
PARTS = 6


@pytest.mark.parametrize("part", range(PARTS))
def test_everybody_is_told_what_the_table_says(cluster: Cluster, unique: str, part: int) -> None:
    found = sweep(PAGES[part::PARTS], build(cluster, unique))
    assert found.wrong == {}
