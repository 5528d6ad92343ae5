"""The FlowSchema of deploy/base: every answer of the API server names the schema and level that it gave the request."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.client.kube import Kube
from devcluster.client.kube import Api
from tests.support.cluster.identities import until

GROUP = "flowcontrol.apiserver.k8s.io/v1"


@pytest.mark.parametrize("identity", ["worker", "watcher", "doors"])
def test_our_requests_do_not_wait_behind_those_of_others(services: dict[str, Any], admin: Api, identity: str) -> None:
    schema = admin.get(f"{GROUP}/flowschemas", "gpu-portal")["metadata"]["uid"]
    level = admin.get(f"{GROUP}/prioritylevelconfigurations", "workload-high")["metadata"]["uid"]
    kube = Kube(services["kubeconfigs"][identity])

    def given() -> list[str | None]:
        answer = kube._open("GET", "api/v1/namespaces/gpu-portal", None, None, timeout_s=5)
        return [answer.headers.get(f"X-Kubernetes-PF-{name}-UID") for name in ("FlowSchema", "PriorityLevel")]

    # The API server reads schemas from a cache.
    until(lambda: given() == [schema, level], f"requests of {identity} have the schema")
