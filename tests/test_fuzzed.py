"""What Schemathesis finds at the bounds of the contract: nothing. Of a part of the operations, one of each kind.

All of them, and with random calls, too: `run.py soak contract`.
"""

from __future__ import annotations

from typing import Any

import pytest

from cluster.models import Cluster
from tests.load import fuzzed


def part(operations: list[Any]) -> list[Any]:
    """By method, and by what it takes: a body, something in the address, something behind the `?`. The last of each,
    since those of teams and their work come after those of staff.
    """
    found: dict[tuple[object, ...], Any] = {}
    for one in operations:
        takes = (one.body, one.path_parameters, one.query)
        found[(one.method, *(bool(list(some)) for some in takes))] = one
    return list(found.values())


@pytest.mark.django_db
def test_nothing_is_found(cluster: Cluster, unique: str, settings: Any) -> None:
    settings.API_REQUESTS_PER_MINUTE, settings.ALLOWED_HOSTS = 1_000_000, ["*"]
    with fuzzed.in_one_transaction():
        schema, two = fuzzed.contract(max_examples=0), fuzzed.two(cluster, unique)
        asked = part(fuzzed.operations(schema))
        found = {one.label: fuzzed.found_in(schema, one, two.ask) for one in asked}
    assert {label: said for label, said in found.items() if said} == {}
    assert {one.method for one in asked} == {"get", "post", "put", "patch", "delete"}
    assert two.made > 10 * len(asked)
    # The rest is of staff, or needs what is made up nowhere, a bundle's name for one.
    assert len(two.done) > len(asked) / 2, sorted({one.label for one in asked} - two.done)
