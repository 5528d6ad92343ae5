"""A namespace for each test, seen with admin's eyes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devcluster.client.kube import Api
from tests.support.cluster.removal import remove_namespace
from tests.support.waiting import wait_until


@pytest.fixture
def namespace(admin: Api, unique: str) -> Iterator[str]:
    name = f"dev-{unique}"
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    # Pods are refused until the controller manager has made the account that they run under.
    wait_until(lambda: admin.find("v1/serviceaccounts", "default", namespace=name))
    yield name
    remove_namespace(admin, admin.get("v1/namespaces", name))
