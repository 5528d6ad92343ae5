"""An API server with an empty store: another cluster, whose administrator has the token of the first one's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from devcluster.client.kube import Api
from tests.support.cluster.second_api_server import SecondApiServer, second_api_server
from tests.support.waiting import wait_until


@contextmanager
def empty_server(services: dict[str, Any], home: Path) -> Iterator[SecondApiServer]:
    flags = {"etcd-prefix": f"/other/{home.name}"}
    with second_api_server(services, home, flags, identity="admin") as found:
        admin = Api(str(found.kubeconfig))
        wait_until(lambda: admin.find("v1/namespaces", "kube-system"), within_s=60, what="namespaces of a new cluster")
        yield found
