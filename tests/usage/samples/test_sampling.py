"""Stored usage: one row for each namespace, class and hour, and nothing for a minute without observation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from catalog.models import GpuClass
from cluster.models import Cluster, MirrorEpoch, MirrorKind, MirrorUse
from portal.celery import app
from tenants.models import Namespace
from tests.support.rows import make, mirrored
from tests.support.threads import in_threads
from usage.samples import sampling
from usage.samples.models import UsageHour, UsageSample

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
WHOLE = {"nvidia.com/gpu": 2}


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number, seconds=7)


def use(namespace: str, gpu_class: GpuClass, units: int) -> None:
    """Simulates a mirror with one pod of that many GPUs."""
    MirrorUse.objects.filter(namespace=namespace, gpu_class=gpu_class.slug).delete()
    MirrorUse.objects.create(
        cluster_id=gpu_class.cluster_id,
        node="a100-1",
        namespace=namespace,
        gpu_class=gpu_class.slug,
        resource="nvidia.com/gpu",
        amount=units,
        pods=1,
    )


def kept() -> list[tuple[Any, ...]]:
    return list(
        UsageSample.objects.order_by("hour", "namespace").values_list(
            "namespace__name", "hour", "units_max", "units_sum", "samples"
        )
    )


def minutes_seen() -> dict[datetime, int]:
    return dict(UsageHour.objects.values_list("hour", "minutes"))


def test_minutes_of_one_hour_are_one_row(a100: GpuClass, namespace_a: Namespace) -> None:
    mirrored.seen(a100.cluster)
    for number, units in enumerate((2, 5, 3)):
        use(namespace_a.name, a100, units)
        assert sampling.sample_cluster(a100.cluster, at=minute(number))
    assert kept() == [(namespace_a.name, NOON, 5, 10, 3)]
    assert minutes_seen() == {NOON: 3}


def test_the_next_hour_is_the_next_row(a100: GpuClass, namespace_a: Namespace) -> None:
    mirrored.seen(a100.cluster)
    use(namespace_a.name, a100, 2)
    for number in (59, 60):
        sampling.sample_cluster(a100.cluster, at=minute(number))
    later = NOON + timedelta(hours=1)
    assert kept() == [(namespace_a.name, NOON, 2, 2, 1), (namespace_a.name, later, 2, 2, 1)]
    assert minutes_seen() == {NOON: 1, later: 1}


def test_a_minute_without_use_is_seen_and_writes_no_sample(a100: GpuClass, namespace_a: Namespace) -> None:
    mirrored.seen(a100.cluster)
    use(namespace_a.name, a100, 4)
    sampling.sample_cluster(a100.cluster, at=minute(0))
    MirrorUse.objects.all().delete()
    sampling.sample_cluster(a100.cluster, at=minute(1))
    assert kept() == [(namespace_a.name, NOON, 4, 4, 1)]
    assert minutes_seen() == {NOON: 2}


def test_pods_that_the_mirror_shows_are_what_is_counted(a100: GpuClass, namespace_a: Namespace) -> None:
    ours = mirrored.pod("one", node="a100-1", namespace=namespace_a.name, gpu_class=a100.slug, **WHOLE)
    over = mirrored.pod(
        "two", node="a100-1", namespace=namespace_a.name, gpu_class=a100.slug, phase="Succeeded", **WHOLE
    )
    strangers = mirrored.pod("agent", node="a100-2", namespace="kube-system", **WHOLE)
    mirrored.hardware_seen(a100.cluster, Pod=[ours, over, strangers])
    sampling.sample_cluster(a100.cluster, at=minute(0))
    assert kept() == [(namespace_a.name, NOON, 2, 2, 1)]


def test_a_namespace_that_is_no_teams_is_left_out(a100: GpuClass, namespace_a: Namespace) -> None:
    mirrored.seen(a100.cluster)
    use("of-nobody", a100, 2)
    sampling.sample_cluster(a100.cluster, at=minute(0))
    assert kept() == []


def test_the_same_minute_counts_once(a100: GpuClass, namespace_a: Namespace) -> None:
    mirrored.seen(a100.cluster)
    use(namespace_a.name, a100, 2)
    assert sampling.sample_cluster(a100.cluster, at=minute(0))
    assert not sampling.sample_cluster(a100.cluster, at=minute(0) + timedelta(seconds=40))
    assert kept() == [(namespace_a.name, NOON, 2, 2, 1)]
    assert minutes_seen() == {NOON: 1}


@pytest.mark.django_db(transaction=True)
def test_of_eight_beats_in_one_minute_one_counts(a100: GpuClass, namespace_a: Namespace) -> None:
    mirrored.seen(a100.cluster)
    use(namespace_a.name, a100, 2)
    answers: list[bool] = []
    in_threads(8, lambda: answers.append(sampling.sample_cluster(a100.cluster, at=minute(0))))
    assert sorted(answers) == [False] * 7 + [True]
    assert kept() == [(namespace_a.name, NOON, 2, 2, 1)]


def test_an_unlisted_mirror_is_not_zero(a100: GpuClass, namespace_a: Namespace) -> None:
    assert not sampling.sample_cluster(a100.cluster, at=minute(0))
    mirrored.seen(a100.cluster)
    MirrorKind.objects.filter(kind="ResourceClaim").update(listed_at=None)
    use(namespace_a.name, a100, 2)
    assert not sampling.sample_cluster(a100.cluster, at=minute(0))
    assert (kept(), minutes_seen()) == ([], {})


def test_what_a_dead_watcher_left_is_no_use_of_now(a100: GpuClass, namespace_a: Namespace) -> None:
    mirrored.seen(a100.cluster)
    use(namespace_a.name, a100, 2)
    MirrorEpoch.objects.update(beat_at=timezone.now() - timedelta(minutes=2))
    assert not sampling.sample_cluster(a100.cluster, at=minute(0))
    assert (kept(), minutes_seen()) == ([], {})


def test_queries_do_not_grow_with_namespaces(cluster: Cluster, a100: GpuClass, django_assert_num_queries: Any) -> None:
    mirrored.seen(cluster)
    # Two of them belong to the savepoint.
    with django_assert_num_queries(12):
        sampling.sample_cluster(cluster, at=minute(0))
    for number in range(20):
        make.tenant(cluster, slug=f"team-{number}")
        use(f"team-{number}", a100, 1)
    with django_assert_num_queries(12):
        sampling.sample_cluster(cluster, at=minute(1))
    assert UsageSample.objects.count() == 20


def test_old_hours_go_in_batches(a100: GpuClass, namespace_a: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        hour = NOON + timedelta(hours=number)
        UsageSample.objects.create(
            namespace=namespace_a, gpu_class=a100, hour=hour, units_max=1, units_sum=1, samples=1
        )
        UsageHour.objects.create(cluster=a100.cluster, hour=hour, minutes=1, last_minute=hour)
    monkeypatch.setattr(sampling, "PURGE_BATCH", 3)
    border = NOON + timedelta(hours=4)
    assert [sampling.purge_samples(before=border) for _ in range(3)] == [6, 2, 0]
    assert [row[1] for row in kept()] == [border]
    assert list(minutes_seen()) == [border]


def test_beat_asks_for_it_every_minute_and_the_task_counts(a100: GpuClass, namespace_a: Namespace) -> None:
    [entry] = [one for one in settings.CELERY_BEAT_SCHEDULE.values() if one["task"] == "usage.samples.sample"]
    assert (entry["schedule"], entry["options"]["queue"]) == (60.0, "background")
    mirrored.seen(a100.cluster)
    use(namespace_a.name, a100, 2)
    old = timezone.now() - sampling.SAMPLE_RETENTION - timedelta(hours=1)
    UsageHour.objects.create(cluster=a100.cluster, hour=old, minutes=1, last_minute=old)
    app.autodiscover_tasks(force=True)
    app.tasks[entry["task"]].run()
    assert [row[2] for row in kept()] == [2]
    assert list(minutes_seen().values()) == [1]
