"""Components of the cluster that stop renewing their Lease are known as silent, with the watcher's own rights."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from cluster.client.errors import ClusterRefused
from cluster.client.kube import Kube
from cluster.mirror import leases, tables
from cluster.mirror.leases import LEASES, LeaseReader
from cluster.mirror.silence import SILENT_AFTER
from cluster.models import Cluster, MirrorEpoch, MirrorKind, MirrorLease
from cluster.reads import queries

pytestmark = pytest.mark.django_db
AGO = timezone.now() - timedelta(minutes=9)


def renewal(at: datetime) -> str:
    return f"{at.astimezone(UTC):%FT%T.%f}Z"


def mark(cluster: Cluster, **renewals: str) -> frozenset[str]:
    return tables.mark_leases(cluster.pk, renewals, SILENT_AFTER)


@pytest.fixture
def listed(cluster: Cluster) -> None:
    now = timezone.now()
    MirrorEpoch.objects.create(cluster_id=cluster.pk, epoch=1, heard_at=now, beat_at=now)
    MirrorKind.objects.create(cluster_id=cluster.pk, kind="Job", epoch=1, listed_at=now, heard_at=now)


def later(cluster: Cluster, seconds: float) -> None:
    """Moves what is stored into the past, as if the time had passed."""
    for row in MirrorLease.objects.filter(cluster_id=cluster.pk):
        row.renewed_at -= timedelta(seconds=seconds)
        row.save()


def test_a_lease_that_is_renewed_is_not_silent(cluster: Cluster, listed: None) -> None:
    assert mark(cluster, kueue=renewal(timezone.now())) == frozenset()
    later(cluster, 60)
    assert mark(cluster, kueue=renewal(timezone.now())) == frozenset()
    assert queries.as_of(cluster.pk, "Job").silent == {}


def test_the_same_renewal_for_too_long_is_silence_since_then(cluster: Cluster, listed: None) -> None:
    same = renewal(timezone.now())
    mark(cluster, kueue=same, scheduler=same)
    later(cluster, SILENT_AFTER.total_seconds() + 1)
    assert mark(cluster, kueue=same, scheduler=renewal(timezone.now())) == {"kueue"}
    found = queries.as_of(cluster.pk, "Job")
    assert found.is_current
    assert set(found.silent) == {"kueue"}
    assert found.silent["kueue"] == MirrorLease.objects.get(component="kueue").renewed_at


def test_a_component_that_was_already_down_is_silent_at_the_first_look(cluster: Cluster, listed: None) -> None:
    assert mark(cluster, kueue=renewal(AGO)) == {"kueue"}
    assert queries.as_of(cluster.pk, "Job").silent["kueue"] == AGO


def test_a_clock_ahead_of_ours_is_not_believed(cluster: Cluster) -> None:
    mark(cluster, kueue=renewal(timezone.now() + timedelta(hours=1)))
    assert MirrorLease.objects.get().renewed_at <= timezone.now()


def test_without_a_lease_nothing_is_known(cluster: Cluster, listed: None) -> None:
    mark(cluster, kueue=renewal(AGO))
    assert mark(cluster, kueue="") == frozenset()
    assert queries.as_of(cluster.pk, "Job").silent == {}


def test_a_watcher_that_stopped_accuses_nobody(cluster: Cluster, listed: None) -> None:
    """What was read last stays as it was: time that passes without reads is not silence."""
    mark(cluster, kueue=renewal(timezone.now()))
    MirrorLease.objects.update(renewed_at=AGO, read_at=AGO + timedelta(seconds=5))
    assert queries.as_of(cluster.pk, "Job").silent == {}


class Answers:
    """An API server that refuses one Lease and knows no other."""

    def list_page(self, path: str, **_: Any) -> dict[str, Any]:
        if "kueue-system" in path:
            raise ClusterRefused(403, "Forbidden", "no right to list leases")
        return {"items": []}

    def watch_lines(self, path: str, **_: Any) -> Iterator[bytes]:
        raise NotImplementedError


def test_a_lease_that_cannot_be_read_is_left_out() -> None:
    reader = LeaseReader(Answers())
    found = {component: reader._read(component) for component in LEASES}
    assert found == {"kueue": None, "scheduler": "", "controllers": ""}


def test_the_watcher_may_read_the_leases_of_a_real_cluster_and_no_others(kube_watcher: Kube) -> None:
    reader = LeaseReader(kube_watcher)
    for component in leases.LEASES:
        found = reader._read(component)
        assert found, component
        assert timezone.now() - datetime.fromisoformat(found) < SILENT_AFTER
    with pytest.raises(ClusterRefused):
        kube_watcher.list_page("apis/coordination.k8s.io/v1/namespaces/kube-system/leases")
