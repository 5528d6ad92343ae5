"""What Schemathesis finds with random calls besides those at the bounds: nothing. See tests/test_fuzzed.py."""

from __future__ import annotations

import os
from typing import Any

import pytest

from cluster.models import Cluster
from tests.load import fuzzed

EXAMPLES = int(os.environ.get("SOAK_EXAMPLES", "100"))


@pytest.mark.django_db
def test_nothing_is_found_by_random_calls(cluster: Cluster, unique: str, settings: Any) -> None:
    settings.API_REQUESTS_PER_MINUTE, settings.ALLOWED_HOSTS = 10_000_000, ["*"]
    with fuzzed.in_one_transaction():
        schema, two = fuzzed.contract(max_examples=EXAMPLES), fuzzed.two(cluster, unique)
        found = {one.label: fuzzed.found_in(schema, one, two.ask) for one in fuzzed.operations(schema)}
    assert {label: said for label, said in found.items() if said} == {}
