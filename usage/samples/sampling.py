"""Once a minute, samples how much each namespace uses of each class, stored as one row per hour, and records capacity.

Samples are read from the mirror, and only while it is current: an outdated mirror does not show the present use. The
hour's count of minutes is the denominator of every mean, so that minutes without a sample do not count as 0.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection, transaction
from django.utils import timezone

from catalog.classes.capacity.queries import used_by_namespace
from catalog.models import GpuClass
from cluster.models import Cluster
from cluster.reads import queries as mirror
from tenants.models import Namespace
from usage.samples.capacity import record_capacity
from usage.samples.models import UsageHour, UsageSample

SAMPLE_RETENTION = timedelta(days=400)
# With 1,000 namespaces of three classes each, one of an hour's 60 batches deletes the samples of an hour.
PURGE_BATCH = 5000
# What units are counted from, as in catalog.classes.queries.
SAMPLED_KINDS = ("Pod", "ResourceClaim")


def sample_all() -> None:
    """Samples the current minute of every cluster, then deletes a batch of old samples."""
    now = timezone.now()
    for cluster in Cluster.objects.order_by("pk"):
        sample_cluster(cluster, at=now)
    purge_samples(before=now - SAMPLE_RETENTION)


@transaction.atomic
def sample_cluster(cluster: Cluster, *, at: datetime) -> bool:
    """Counts this minute, unless it was counted or the mirror is not current. Ten queries, whatever the number of
    rows.

    The hour's row is written first: a second process that counts the same minute waits for it, and then finds it
    counted.
    """
    if not mirror.as_of(cluster.pk, *SAMPLED_KINDS).is_current:
        return False
    minute = at.replace(second=0, microsecond=0)
    hour = minute.replace(minute=0)
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_MINUTE, [cluster.pk, hour, minute])
        if cursor.fetchone() is None:
            return False
        used = used_by_namespace(cluster, GpuClass.objects.filter(cluster=cluster))
        found = [(name, pk, units) for pk, theirs in used.items() for name, units in theirs.items() if units]
        names, class_ids, units = map(list, zip(*found, strict=True)) if found else ([], [], [])
        cursor.execute(_ADD, [hour, names, class_ids, units, cluster.pk])
    record_capacity(cluster, at=at)
    return True


def purge_samples(*, before: datetime) -> int:
    """Deletes at most a batch of samples older than that, and as many hours. Returns how many. Two queries."""
    gone = 0
    with connection.cursor() as cursor:
        for model in (UsageSample, UsageHour):
            table = model._meta.db_table
            statement = f"DELETE FROM {table} WHERE ctid IN (SELECT ctid FROM {table} WHERE hour < %s LIMIT %s)"
            cursor.execute(statement, [before, PURGE_BATCH])
            gone += cursor.rowcount
    return gone


# If a clock was set back or a task was late, a minute is not counted twice.
_COUNT_MINUTE = f"""
INSERT INTO {UsageHour._meta.db_table} AS seen (cluster_id, hour, minutes, last_minute) VALUES (%s, %s, 1, %s)
    ON CONFLICT (cluster_id, hour) DO UPDATE SET minutes = seen.minutes + 1, last_minute = excluded.last_minute
 WHERE seen.last_minute < excluded.last_minute
RETURNING minutes"""

# Namespaces without a team are not in the join.
_ADD = f"""
INSERT INTO {UsageSample._meta.db_table} AS kept (namespace_id, gpu_class_id, hour, units_max, units_sum, samples)
SELECT namespace.id, used.gpu_class_id, %s, used.units, used.units, 1
  FROM {Namespace._meta.db_table} namespace
  JOIN unnest(%s::text[], %s::bigint[], %s::bigint[]) used (name, gpu_class_id, units) ON used.name = namespace.name
 WHERE namespace.cluster_id = %s
    ON CONFLICT (namespace_id, gpu_class_id, hour) DO UPDATE
   SET units_max = greatest(kept.units_max, excluded.units_max), units_sum = kept.units_sum + excluded.units_sum,
       samples = kept.samples + 1"""
