"""Every page and every form × every role × each owner of the object."""

from __future__ import annotations

import pytest

from cluster.models import Cluster
from tests.matrix.sweep import sweep
from tests.matrix.tables.page_table import PAGES
from tests.matrix.world import build

# Every page × role in one world: longer than other tests.
pytestmark = [pytest.mark.django_db, pytest.mark.timeout(600)]


def test_everybody_is_told_what_the_table_says(cluster: Cluster, unique: str) -> None:
    found = sweep(PAGES, build(cluster, unique))
    assert found.wrong == {}
