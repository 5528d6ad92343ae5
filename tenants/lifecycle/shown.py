"""The lifecycle of a namespace as the page of a team shows it."""

from __future__ import annotations

from typing import Any

from accounts.core.actor import Actor
from tenants.core import policy as core_policy
from tenants.core import queries as core_queries
from tenants.lifecycle import policy as lifecycle_policy
from tenants.lifecycle import queries as lifecycle_queries
from tenants.lifecycle.closing import queries as closing_queries
from tenants.lifecycle.contents import ReadContents
from tenants.lifecycle.terminating import queries as terminating_queries
from tenants.models import Namespace


def lifecycle_context(row: Namespace | None, by: Actor, look_inside: ReadContents | None) -> dict[str, Any]:
    """For templates/tenants/lifecycle/_lifecycle.html. Reads what closing deletes only if the user may close the team
    and closing is still possible.
    """
    if row is None:
        return {"life": None, "goes": None, "stuck": None}
    now = core_queries.database_now()
    own = lifecycle_queries.lifecycle_of(row)
    close = lifecycle_policy.may_close_namespace(by, own, at=now)
    return {
        "life": {
            "state": lifecycle_policy.lifecycle_state(own, at=now),
            "closes_at": row.closes_at,
            "volumes_until": row.volumes_until,
            "gone_at": row.gone_at,
            "told": lifecycle_queries.state_reason(row),
            "may_operate": core_policy.may_operate(by) is None,
            "resume": lifecycle_policy.may_resume_namespace(by, own, at=now),
            "close": close,
        },
        "goes": closing_queries.closing_preview(row, look_inside(row.pk), at=now)
        if look_inside and close is None
        else None,
        "stuck": terminating_queries.terminating_of(row),
        "terms": {
            "grace_hours": lifecycle_policy.GRACE_HOURS,
            "grace_hours_max": lifecycle_policy.GRACE_HOURS_MAX,
            "keep_days": lifecycle_policy.KEEP_DAYS,
            "keep_days_max": lifecycle_policy.KEEP_DAYS_MAX,
        },
    }
