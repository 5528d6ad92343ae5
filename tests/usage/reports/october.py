"""October 2026 of two teams, with everything that a report has to get right; and the report, computed here from the
rows with fractions, by none of the product's code.

In Europe/Berlin the month has an hour more than 31 days. NOW lies in it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from accounts.models import User
from catalog.models import ClassPrice, GpuClass
from cluster.models import Cluster
from tenants.models import Membership, Namespace, Tenant
from tests.support.rows import make, running
from tests.support.rows.usage import held
from usage.models import CapacityInterval
from workloads.launch.options import Options
from workloads.models import AllocationInterval, Run, Workload

HOUR = timedelta(hours=1)
NOW = datetime(2026, 10, 27, 10, 0, 7, tzinfo=UTC)
# In Europe/Berlin, as a calendar says it.
SEPTEMBER = datetime(2026, 8, 31, 22, tzinfo=UTC)
OCTOBER = datetime(2026, 9, 30, 22, tzinfo=UTC)
NOVEMBER = datetime(2026, 10, 31, 23, tzinfo=UTC)
ADMITTED = datetime(2026, 10, 6, 8, 0, 1, tzinfo=UTC)

# team, email, class, priority
Key = tuple[str, str, str, str]
# unit-hours, GPU-hours, cost
Figures = tuple[Decimal, Decimal, Decimal]


def ran(
    namespace: Namespace,
    gpu_class: GpuClass,
    by: User,
    since: datetime,
    until: datetime | None,
    *,
    priority: str = "",
    **fields: Any,
) -> AllocationInterval:
    """A run that held its units from `since` to `until`; None: it holds them now."""
    gpu_class.refresh_from_db()
    found = running.workload(namespace, gpu_class, name=f"w{Workload.objects.count()}", by=by, **fields)
    over = {"ended_at": until, "outcome": "succeeded"} if until else {}
    Run.objects.filter(workload=found).update(requested_at=since, started_at=since, priority=priority, **over)
    return held(found.runs.get()).allocations.get()


def october(cluster: Cluster, team_a: Tenant, a100: GpuClass, alice: User, bob: User) -> Tenant:
    """Returns the second team, which is closed since."""
    namespace = team_a.namespaces.get()
    sliced = {"partition": "1g.10gb", "resource": "nvidia.com/mig-1g.10gb", "node_labels": {}}
    slice_ = make.gpu_class(cluster, slug="slice", weight="0.1429", price_per_unit_hour="0.3333", **sliced)
    old = make.gpu_class(cluster, slug="old", weight="0.5", price_per_unit_hour="0.0100", node_labels={})
    GpuClass.objects.filter(pk=a100.pk).update(price_per_unit_hour="2.4000")

    capacity(a100, slice_)

    # A price that changes between two runs of one line, of which one is not exact; and a gang of four workers.
    first = ran(namespace, a100, alice, ADMITTED, ADMITTED + timedelta(hours=7, seconds=13))
    AllocationInterval.objects.filter(pk=first.pk).update(is_exact=False)
    GpuClass.objects.filter(pk=a100.pk).update(price_per_unit_hour="3.1111")
    gang = Options(workers=4).to_json()
    ran(namespace, a100, alice, ADMITTED, ADMITTED + 3 * HOUR / 7, kind="job", units=2, options=gang, priority="batch")
    ran(namespace, a100, alice, ADMITTED + 9 * HOUR, ADMITTED + 10 * HOUR)
    # Over the borders of the month, and over the hour that comes twice.
    ran(namespace, slice_, bob, OCTOBER - 5 * HOUR, OCTOBER + timedelta(minutes=50, microseconds=7), units=3)
    ran(namespace, a100, bob, OCTOBER - HOUR, OCTOBER)
    ran(namespace, a100, bob, datetime(2026, 10, 24, 20, tzinfo=UTC), datetime(2026, 10, 25, 4, tzinfo=UTC))
    # It holds its units now; and half a cent.
    ran(namespace, slice_, alice, NOW - timedelta(hours=5, minutes=1), None, priority="production")
    ran(namespace, old, bob, ADMITTED, ADMITTED + HOUR / 2)
    GpuClass.objects.filter(pk=old.pk).update(life_cycle=GpuClass.LifeCycle.RETIRED)

    AllocationInterval.objects.create(
        namespace=namespace, gpu_class=a100, pod_uid="by-hand", units=2, weight="1", price_per_unit_hour="2.4000",
        source="pods", starts_at=ADMITTED, ends_at=ADMITTED + timedelta(minutes=77), is_exact=False,
    )  # fmt: skip

    team_b = make.tenant(cluster, slug="team-b", namespace=f"{namespace.name}-b")
    make.member(team_b, bob, Membership.Role.OWNER)
    ran(team_b.namespaces.get(), a100, bob, ADMITTED, ADMITTED + 2 * HOUR / 3)
    # May, which only this team used.
    ran(team_b.namespaces.get(), a100, bob, datetime(2026, 5, 3, tzinfo=UTC), datetime(2026, 5, 4, tzinfo=UTC))
    make.close(team_b.namespaces.get().name)
    return team_b


def capacity(a100: GpuClass, slice_: GpuClass) -> None:
    """A price that changes while a run holds units; a node that is not ready for an hour, in which units are held on
    it; a day and a half that are not recorded. The class `old` is never recorded.
    """
    for one, price, since in (
        (a100, "2.4000", SEPTEMBER),
        (a100, "3.1111", ADMITTED + 2 * HOUR),
        (slice_, "0.3333", SEPTEMBER),
    ):
        ClassPrice.objects.create(gpu_class=one, price_per_unit_hour=price, since=since)
    for one, units, since, until in (
        (a100, 16, OCTOBER - 2 * HOUR, ADMITTED + 2 * HOUR),
        (a100, 0, ADMITTED + 2 * HOUR, ADMITTED + 3 * HOUR),
        (a100, 12, ADMITTED + 3 * HOUR, datetime(2026, 10, 25, 1, tzinfo=UTC)),
        (a100, 12, datetime(2026, 10, 26, 13, tzinfo=UTC), NOW - timedelta(seconds=7)),
        (slice_, 7, OCTOBER + timedelta(minutes=20, seconds=1), NOW - timedelta(seconds=7)),
    ):
        CapacityInterval.objects.create(gpu_class=one, units=units, starts_at=since, ends_at=until)


def expected_capacity(since: datetime, until: datetime, *, now: datetime = NOW) -> dict[str, dict[str, Fraction]]:
    """By class, exact: between two moments at which anything changes, everything is what it is in the middle."""
    end = min(until, now)
    seen = [
        (one, now if now - one.ends_at < timedelta(minutes=1) else one.ends_at)
        for one in CapacityInterval.objects.select_related("gpu_class")
    ]
    prices = list(ClassPrice.objects.order_by("since"))
    held = list(AllocationInterval.objects.all())
    moments = {
        since,
        end,
        *(one.since for one in prices),
        *(at for one, ends_at in seen for at in (one.starts_at, ends_at)),
    }
    moments |= {at for one in held for at in (one.starts_at, one.ends_at or now)}
    found: dict[str, dict[str, Fraction]] = {}
    for gpu_class in GpuClass.objects.all():
        sums_: dict[str, Fraction] = defaultdict(Fraction)
        steps = sorted(at for at in moments if since <= at <= end)
        for begin, finish in pairwise(steps):
            middle = begin + (finish - begin) / 2
            hours = Fraction((finish - begin) // timedelta(microseconds=1), 3_600_000_000)
            mine = [one for one in held if _is_of(one, gpu_class) and one.starts_at <= middle < (one.ends_at or now)]
            units = sum(one.units for one in mine)
            cost = sum((one.units * Fraction(one.price_per_unit_hour) for one in mine), Fraction(0))
            known = [one.units for one, ends_at in seen if _is_of(one, gpu_class) and one.starts_at <= middle < ends_at]
            if not known:
                sums_["not_recorded_unit_hours"] += units * hours
                sums_["not_recorded_cost"] += cost * hours
                continue
            price = Fraction(
                [o for o in prices if o.gpu_class_id == gpu_class.pk and o.since <= middle][-1].price_per_unit_hour
            )
            sums_["recorded_hours"] += hours
            sums_["capacity_unit_hours"] += known[0] * hours
            sums_["capacity_cost"] += known[0] * price * hours
            sums_["beyond_capacity_unit_hours"] += max(0, units - known[0]) * hours
            sums_["beyond_capacity_cost"] += max(0, units - known[0]) * price * hours
            sums_["price_difference_cost"] += (cost - units * price) * hours
            sums_["unallocated_unit_hours"] += max(0, known[0] - units) * hours
            sums_["unallocated_cost"] += max(0, known[0] - units) * price * hours
        found[gpu_class.slug] = sums_
    return found


def _is_of(one: CapacityInterval | ClassPrice | AllocationInterval, gpu_class: GpuClass) -> bool:
    return one.gpu_class_id == gpu_class.pk


def expected(since: datetime, until: datetime, *, team: str = "", now: datetime = NOW) -> dict[Key, Figures]:
    """The lines of a month, rounded."""
    exact: dict[Key, list[Fraction]] = defaultdict(lambda: [Fraction(0)] * 3)
    for row in AllocationInterval.objects.select_related("run__requested_by", "namespace__tenant", "gpu_class"):
        part = min(row.ends_at or now, until, now) - max(row.starts_at, since)
        if part <= timedelta(0) or team not in ("", row.namespace.tenant.slug):
            continue
        unit_hours = row.units * Fraction(part // timedelta(microseconds=1), 3_600_000_000)
        email = row.run.requested_by.email if row.run else ""
        key = (row.namespace.tenant.slug, email, row.gpu_class.slug, row.priority)
        factors = (Fraction(1), Fraction(row.weight), Fraction(row.price_per_unit_hour))
        exact[key] = [known + unit_hours * factor for known, factor in zip(exact[key], factors, strict=True)]
    return {key: (rounded(some[0]), rounded(some[1]), rounded(some[2])) for key, some in exact.items()}


def rounded(value: Fraction) -> Decimal:
    """To a hundredth, halves up."""
    return Decimal(math.floor(value * 100 + Fraction(1, 2))).scaleb(-2)


def sums(lines: dict[Key, Figures], key: Callable[[Key], str]) -> dict[str, tuple[Decimal, Decimal]]:
    """GPU-hours and cost of the lines that have something in common."""
    found: dict[str, tuple[Decimal, Decimal]] = defaultdict(lambda: (Decimal(0), Decimal(0)))
    for one, (_units, hours, cost) in lines.items():
        known = found[key(one)]
        found[key(one)] = (known[0] + hours, known[1] + cost)
    return dict(found)
