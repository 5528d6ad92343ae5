"""The action that renews a grant in one step, which files a request like any other."""

from __future__ import annotations

from accounts.core.actor import Actor
from portal.core.errors import NOT_FOUND, Refused, get_or_refuse, refuse_if
from portal.ui.text import date_with_year
from tenants.core import queries
from tenants.grants.timeline import queries as timeline_queries
from tenants.members import queries as member_queries
from tenants.models import Grant, QuotaRequest, Tenant
from tenants.requests import actions
from tenants.requests.renewals.policy import may_renew, renewal_line
from tenants.requests.usage_evidence import MeasureUsage


def renew_grant(tenant_slug: str, grant_id: int, *, by: Actor, measure: MeasureUsage | None = None) -> QuotaRequest:
    """Requests the same units from the grant's end on, for the same duration. It is decided like any request.

    Raises Refused: not_found (404), not_allowed (403), closed, is_over, has_follower, class_retiring, already_pending
    (409), and whatever `file_request` raises.
    """
    tenant = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant_slug)
    now = queries.database_now()
    rows = {row.pk: row for row in timeline_queries.grant_rows(tenant, at=now) if row.kind == Grant.Kind.BASE}
    if grant_id not in rows:
        raise Refused(NOT_FOUND)
    row = rows[grant_id]
    refuse_if(may_renew(by, member_queries.standing_of(by, tenant), row))
    before = f" Approved before in request #{row.request}." if row.request else ""
    return actions.file_request(
        tenant_slug,
        lines=[renewal_line(row)],
        justification=f"Renewal of the grant that expires on {date_with_year(row.ends)}.{before}",
        by=by,
        measure=measure,
    )
