"""The identities of `deploy/` on the real control plane, a namespace of the portal, and a foreign one."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from devcluster.client.kube import Api
from tests.support.cluster.identities import Json, namespace, wait_for_default_account
from tests.support.cluster.removal import remove_namespace


@pytest.fixture(scope="session")
def worker(services: Json) -> Api:
    return Api(services["kubeconfigs"]["worker"])


@pytest.fixture(scope="session")
def watcher(services: Json) -> Api:
    return Api(services["kubeconfigs"]["watcher"])


@pytest.fixture(scope="session")
def doors(services: Json) -> Api:
    return Api(services["kubeconfigs"]["doors"])


@pytest.fixture(scope="module")
def ours(admin: Api, worker: Api) -> Iterator[str]:
    """A namespace that the worker itself created."""
    name = f"fence-ours-{uuid.uuid4().hex[:8]}"
    worker.create(namespace(name))
    wait_for_default_account(admin, name)
    yield name
    remove_namespace(admin, admin.get("v1/namespaces", name))


@pytest.fixture(scope="module")
def foreign(admin: Api) -> Iterator[str]:
    """A foreign namespace with a Secret and a ServiceAccount."""
    name = f"fence-foreign-{uuid.uuid4().hex[:8]}"
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    wait_for_default_account(admin, name)
    admin.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "salary", "namespace": name},
            "stringData": {"amount": "forty-two"},
        }
    )
    yield name
    remove_namespace(admin, admin.get("v1/namespaces", name))
