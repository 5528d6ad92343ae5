"""The manifests of deploy/base on a cluster that has them already."""

from __future__ import annotations

from typing import Any, cast

from devcluster.client.kube import Api, ApiError
from devcluster.controlplane import identities

Json = dict[str, Any]


class SetUpBefore:
    """Refuses to create what exists; `applied`: kinds that would be overwritten."""

    def __init__(self) -> None:
        self.applied: list[str] = []

    def apply(self, obj: Json) -> None:
        self.applied.append(obj["kind"])

    def create(self, obj: Json) -> None:
        raise ApiError(409, {"message": f"{obj['kind']} exists"})


def test_the_site_profile_of_a_cluster_is_not_overwritten() -> None:
    cluster = SetUpBefore()

    identities.install(cast(Api, cluster))

    assert set(cluster.applied) == identities.SHIPPED - {"ConfigMap"}
