"""What Schemathesis finds at the bounds of the contract: nothing. With random calls: tests/soak/contract.py."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.models import Cluster
from tests.load import fuzzed

PARTS = 4


@pytest.mark.django_db
@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_is_found(cluster: Cluster, unique: str, settings: Any, part: int) -> None:
    settings.API_REQUESTS_PER_MINUTE, settings.ALLOWED_HOSTS = 1_000_000, ["*"]
    with fuzzed.in_one_transaction():
        schema, two = fuzzed.contract(max_examples=0), fuzzed.two(cluster, unique)
        asked = fuzzed.operations(schema)[part::PARTS]
        found = {one.label: fuzzed.found_in(schema, one, two.ask) for one in asked}
    assert {label: said for label, said in found.items() if said} == {}
    assert two.made > 10 * len(asked)
    # The rest is of staff, or needs what is made up nowhere, a bundle's name for one.
    assert len(two.done) > len(asked) / 2, sorted({one.label for one in asked} - two.done)
