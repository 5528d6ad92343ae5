"""The portal's capacity equals the API server's at every moment, while the cluster changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.models import Cluster
from devcluster.client.kube import Api
from tests.load.capacity.node_churn import churning
from tests.support.processes.watchers import Watchers, eventually, is_current

MOMENTS = 30
SHOWN = {
    "both": ("used", "free", "unhealthy", "cordoned"),
    "any-device": ("used", "free", "unhealthy", "cordoned"),
    "cores": ("used", "free", "cordoned"),
}


@pytest.fixture
def watchers(cluster: Cluster, services: dict[str, Any], tmp_path: Path) -> Iterator[Watchers]:
    found = Watchers(services["kubeconfigs"]["watcher"], tmp_path)
    yield found
    found.end()


@pytest.mark.timeout(600)
@pytest.mark.django_db(transaction=True)
def test_capacity_is_what_the_lists_of_nodes_and_pods_say_at_the_same_version(
    watchers: Watchers, cluster: Cluster, admin: Api, unique: str
) -> None:
    with churning(admin, cluster, unique, seed=20) as churn:
        watchers.start()
        eventually(lambda: is_current(cluster), watchers, within_s=240)
        seen = []
        for moment in range(MOMENTS):
            churn.happen()
            ours, theirs = churn.compare()
            assert ours == theirs, f"moment {moment}"
            seen.append(theirs)
    # A cluster without used or broken GPUs, devices and cores would prove nothing.
    for word, names in SHOWN.items():
        figures = [one[f"{word}-{unique}"] for one in seen]
        for name in names:
            assert sum(getattr(one, name) > 0 for one in figures) >= MOMENTS / 10, f"{word}: {name}"
    assert len({str(one) for one in seen}) >= MOMENTS / 2
