"""Which release of the portal runs, on the page Health and in `manage.py doctor`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from cluster.models import Cluster
from desk.health.releases import Releases, releases
from tests.desk.health.test_gpu_operator import doctor
from tests.support.rows import mirrored

pytestmark = pytest.mark.django_db
OLD, NEW = "registry.example.org/gpu-portal:0.1.0", "registry.example.org/gpu-portal:0.2.0"


def pod(
    name: str, image: str = OLD, *, process: str = "worker", minutes: int = 60, ready: bool = True, **metadata: Any
) -> dict[str, Any]:
    at = (timezone.now() - timedelta(minutes=minutes)).isoformat()
    labels = {"app.kubernetes.io/name": "gpu-portal", "app.kubernetes.io/component": process}
    conditions = [{"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": at}]
    seen = mirrored.with_metadata(
        {
            "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "gpu-portal", "labels": labels, **metadata
            },
            "spec": {"containers": [{"name": process, "image": image}], "nodeName": "n1"},
            "status": {"phase": "Running", "conditions": conditions},
        }
    )  # fmt: skip
    seen["metadata"]["creationTimestamp"] = at
    return seen


def read(cluster: Cluster, *pods: dict[str, Any]) -> Releases:
    mirrored.seen(cluster, Pod=list(pods))
    found = releases(cluster, timezone.now())
    assert found is not None
    return found


def test_unknown_until_pods_were_listed(cluster: Cluster) -> None:
    assert releases(cluster, timezone.now()) is None


def test_one_release(cluster: Cluster, olga: User, client: Client) -> None:
    found = read(cluster, pod("w-1"), pod("w-2", minutes=30), pod("g", "caddy:2", process="gateway"))
    assert [(one.process, one.image, one.ready, one.pods) for one in found.pods] == [
        ("gateway", "caddy:2", 1, 1),
        ("worker", OLD, 2, 2),
    ]
    assert found.problems == ()
    client.force_login(olga)
    page = client.get("/health").content.decode()
    assert OLD in page
    assert "2 of 2" in page


@pytest.mark.parametrize("minutes", [5, 15])
def test_an_upgrade_has_ten_minutes(cluster: Cluster, minutes: int) -> None:
    found = read(cluster, pod("w-1", process="web"), pod("w-2", NEW, minutes=minutes, ready=False))
    assert len(found.pods) == 2
    if minutes == 5:
        assert found.problems == ()
        return
    assert found.problems == (
        f"Of 1 pod of worker with the image {NEW}, 0 are ready.",
        f"Several releases run. {OLD}: web; {NEW}: worker. An upgrade is not complete.",
    )
    assert "processes of the portal: Several releases run." in doctor()


def test_labels_in_another_namespace_are_anybodys(cluster: Cluster) -> None:
    assert read(cluster, pod("w-1", namespace="mine")).pods == ()
