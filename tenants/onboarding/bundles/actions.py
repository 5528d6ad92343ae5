"""The action that creates and changes a bundle."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import record
from catalog.models import GpuClass
from cluster.reads import queries as read_queries
from portal.core.errors import get_or_refuse, refuse_if
from tenants.core import policy as core_policy
from tenants.models import Bundle, BundleLine
from tenants.onboarding.bundles import policy as bundle_policy
from tenants.onboarding.bundles.policy import BundleUnits


@transaction.atomic
def put_bundle(
    *,
    name: str,
    lines: Sequence[tuple[str, int]],
    summary: str = "",
    days: int = 90,
    position: int = 100,
    is_open: bool = True,
    bundle_id: int | None = None,
    by: Actor,
) -> Bundle:
    """Creates a bundle, or changes the one of that id: its lines, units by slug of a class, replace the old ones.

    Pending requests for it get its content at the time of the decision. Raises Refused: not_allowed (403), not_found
    (404), name_taken (409), bad_name, bad_summary, bad_period, bad_lines, bad_units, unknown_class, class_closed (422).
    """
    refuse_if(core_policy.may_operate(by))
    name, summary = " ".join(name.split()), " ".join(summary.split())
    slugs = [slug for slug, _units in lines]
    classes = {one.slug: one for one in GpuClass.objects.filter(cluster=read_queries.current_cluster(), slug__in=slugs)}
    refuse_if(bundle_policy.lines_refusal(slugs, classes))
    typed = [
        BundleUnits(
            (one := classes[slug]).name,
            units,
            is_active=one.life_cycle == GpuClass.LifeCycle.ACTIVE,
            is_for_everyone=one.visibility == GpuClass.Visibility.EVERYONE,
        )
        for slug, units in lines
    ]
    refuse_if(bundle_policy.bundle_refusal(name=name, summary=summary, days=days, lines=typed))
    values = {"name": name, "summary": summary, "days": days, "position": position, "is_open": is_open}
    if bundle_id is None:
        row = Bundle.objects.create(**values)
    else:
        row = get_or_refuse(Bundle.objects.select_for_update(), pk=bundle_id)
        Bundle.objects.filter(pk=row.pk).update(**values)
        row.lines.all().delete()
        row.refresh_from_db()
    BundleLine.objects.bulk_create(
        BundleLine(bundle=row, gpu_class=classes[slug], units=units) for slug, units in lines
    )
    record(by, "bundle.changed", row, after={**values, "lines": dict(lines)})
    return row
