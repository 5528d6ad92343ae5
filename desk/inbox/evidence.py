"""Evidence for a decision about quota: the team's usage, the wait times of its workloads, and the members who
used it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from django.utils import timezone

from catalog.models import GpuClass
from desk.capacity.totals import gpus_per_unit, units_per_gpu
from portal.ui.text import plural
from tenants.models import Tenant
from tenants.requests.usage_evidence import UsageEvidence
from usage.gpu_hours.queries import MemberHours, hours_by_member
from usage.idle.queries import idle_holders
from usage.idle.shown import holder_line
from usage.right_size.quota.queries import activity_of_teams, smaller_totals_by_class
from usage.right_size.quota.types import HeldActivity, SmallerTotal
from usage.samples.queries import PERIOD, Usage, usage_of
from usage.waits.queries import WaitStatistics, waits_of

NOTHING = "–"
UNKNOWN = "unknown"
IDLE_SHOWN = 5
# Usage that was measured nearly all the time needs no note.
ENOUGH_SEEN = 0.98


@dataclass(frozen=True)
class TeamUsage:
    """Of the 30 days until `at`. By class id: `usage`, `waits`; `activity` of the classes of which the team held units;
    `smaller`, the totals that would have been enough.
    """

    since: datetime
    at: datetime
    usage: Mapping[int, Usage]
    waits: Mapping[int, WaitStatistics]
    activity: Mapping[int, HeldActivity]
    smaller: Mapping[int, SmallerTotal]
    members: tuple[MemberHours, ...]


def team_usage(tenant: Tenant, classes: Collection[GpuClass], *, is_decided: bool = False) -> TeamUsage:
    """`is_decided`: for approvers of a pending request. Ten queries, whatever the number of classes, members and runs;
    seven for approvers.
    """
    at = timezone.now()
    since = at - PERIOD
    usage = usage_of(tenant, classes, since=since, at=at)
    activity = activity_of_teams([tenant.pk], [one.pk for one in classes], since=since, at=at)
    return TeamUsage(
        since=since,
        at=at,
        usage=usage,
        waits=waits_of(tenant, classes, since=since, at=at),
        activity={pk: found for (_, pk), found in activity.items()},
        smaller=smaller_totals_by_class(tenant, classes, usage, activity, at=at, is_decided=is_decided),
        members=tuple(hours_by_member(tenant, since=since, at=at)),
    )


def usage_evidence(tenant: Tenant, classes: Collection[GpuClass]) -> UsageEvidence:
    """For the page of a request and for the evidence that a decision stores."""
    found = team_usage(tenant, classes, is_decided=True)
    usage, waits = found.usage, found.waits
    # Storage is not measured by the minute.
    stored = {one.pk: NOTHING for one in classes if one.is_storage}
    return UsageEvidence(
        rows=(
            ("Peak, 30 days", {pk: _number(one.peak) for pk, one in usage.items()} | stored),
            ("Mean, 30 days", {pk: _number(one.mean) for pk, one in usage.items()} | stored),
            ("Activity of held units", {pk: _activity(found.activity.get(pk)) for pk in usage} | stored),
            ("Queued over 1 min", {pk: _waited(one) for pk, one in waits.items()}),
            ("Median wait", {pk: _duration(one.median_s) for pk, one in waits.items()}),
            *([("Would be enough", {pk: _smaller(found.smaller.get(pk)) for pk in usage})] if found.smaller else []),
        ),
        note=_note([one for pk, one in usage.items() if pk not in stored]),
        members=tuple((one.name, f"{_number(one.gpu_hours)} GPU-hours") for one in found.members),
        idle=_idle(tenant),
        cards={one.pk: cards_per_unit(one) for one in classes},
        units_per_card={one.pk: most for one in classes if (most := units_per_gpu(one)) is not None},
        plain={one.pk: _plain(usage[one.pk], waits[one.pk], found.activity.get(one.pk)) for one in classes},
    )


def _idle(tenant: Tenant) -> tuple[tuple[str, str], ...]:
    found = idle_holders(tenant, at_most=IDLE_SHOWN)
    lines = [(f"{one.workload.name} ({one.person.name})", holder_line(one)) for one in found.holders]
    return (*lines, *([("And", f"{found.more} more")] if found.more else []))


def cards_per_unit(one: GpuClass) -> Fraction | None:
    """Physical GPUs per unit: a slice takes a part of one, a share is 1 / replicas. None: no GPU."""
    if one.interface in (GpuClass.Interface.NONE, GpuClass.Interface.STORAGE):
        return None
    return gpus_per_unit(one)


def _number(value: float | None) -> str:
    """Two digits are enough: `0.25`, `1.5`, `8`."""
    return UNKNOWN if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def _activity(one: HeldActivity | None) -> str:
    """Of the measured part, which is named if it is not nearly all."""
    if one is None:
        return NOTHING
    if one.share is None:
        return UNKNOWN
    seen = "" if one.seen_share >= ENOUGH_SEEN else f", measured for {int(100 * one.seen_share)} %"
    return f"{int(100 * one.share)} %{seen}"


def _smaller(one: SmallerTotal | None) -> str:
    return NOTHING if one is None else f"{one.units} of {one.total}"


def _waited(one: WaitStatistics) -> str:
    return f"{one.waited} of {plural(one.runs, 'run')}" if one.runs else NOTHING


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return NOTHING
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{_number(round(seconds / size, 1))} {unit}"
    return f"{_number(round(seconds / 86_400, 1))} days"


def _note(usage: Collection[Usage]) -> str:
    seen = min(usage, key=lambda one: one.seen_share, default=None)
    if seen is None or seen.seen_share >= ENOUGH_SEEN:
        return ""
    if seen.seen_since is None:
        return "Usage was not measured in the last 30 days: peak and mean are unknown, not 0."
    share = max(1, round(100 * seen.seen_share))
    return (
        f"Peak and mean cover {share} % of the last 30 days. "
        f"Usage was first measured on {timezone.localtime(seen.seen_since):%-d %b %Y}."
    )


def plain_activity(one: HeldActivity | None) -> dict[str, float | None]:
    share = one.share if one else None
    return {
        "activity": None if share is None else round(share, 4),
        "activity_seen_share": None if one is None else round(one.seen_share, 4),
    }


def _plain(usage: Usage, wait: WaitStatistics, activity: HeldActivity | None) -> dict[str, Any]:
    return {
        "peak": usage.peak,
        "mean": None if usage.mean is None else round(usage.mean, 4),
        "seen_share": round(usage.seen_share, 4),
        "runs": wait.runs,
        "runs_waited": wait.waited,
        "median_wait_s": wait.median_s,
        **plain_activity(activity),
    }
