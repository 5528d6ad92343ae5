"""Schemathesis finds no problem at the bounds of the contract, in one operation of each kind.

All operations, and also with random calls: `run.py soak contract`.
"""

from __future__ import annotations

from typing import Any

import pytest

from cluster.models import Cluster
from tests.load import fuzzed


def part(operations: list[Any]) -> list[Any]:
    """Groups operations by method and by their input: a body, path parameters, query parameters. Takes the last of
    each, since operations of teams and workloads come after those of staff.
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
    # The others are for staff, or need a value that the generator cannot find, such as a bundle's name.
    assert len(two.done) > len(asked) / 2, sorted({one.label for one in asked} - two.done)
