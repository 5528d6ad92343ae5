"""A namespace for each test, seen with admin's eyes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from devcluster.api import Api

Until = Callable[..., object]


@pytest.fixture
def until() -> Until:
    """until(lambda: …): the first true answer. Fails after `within_s` seconds, with the last answer."""

    def wait(is_true: Callable[[], object], *, within_s: float = 20.0) -> object:
        deadline = time.monotonic() + within_s
        while not (answer := is_true()):
            assert time.monotonic() < deadline, f"not within {within_s:.0f} s; last answer: {answer!r}"
            time.sleep(0.05)
        return answer

    return wait


@pytest.fixture
def namespace(admin: Api, unique: str, until: Until) -> Iterator[str]:
    name = f"dev-{unique}"
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    # Pods are refused until the controller manager has made the account that they run under.
    until(lambda: admin.find("v1/serviceaccounts", "default", namespace=name))
    yield name
    admin.delete("v1/namespaces", name)
