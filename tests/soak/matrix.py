"""All cases of which tests/matrix runs a part: roles that authentication or scope refuses request everything, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cluster.models import Cluster
from tests.matrix.sweep import sweep
from tests.matrix.tables.api_table import API
from tests.matrix.tables.page_table import PAGES
from tests.matrix.tables.policy import Row
from tests.matrix.world import build


@pytest.mark.django_db
@pytest.mark.parametrize("rows", [API, PAGES], ids=["api", "pages"])
def test_everybody_is_told_what_the_table_says(
    cluster: Cluster, unique: str, settings: Any, rows: Sequence[Row]
) -> None:
    settings.API_REQUESTS_PER_MINUTE = 1_000_000
    assert sweep(rows, build(cluster, unique), whole=True).wrong == {}
