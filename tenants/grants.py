"""The verb about grants: renewal in one click, which is a request like any other."""

from __future__ import annotations

from accounts.actor import Actor
from portal.errors import NOT_FOUND, Refusal, Refused, get_or_refuse, refuse_if
from tenants import actions, policy, queries
from tenants.measured import Measure
from tenants.models import Grant, QuotaRequest, Tenant
from tenants.policy import Asked
from tenants.queries import last_days
from tenants.queries.last_days import GrantRow


def renew(tenant_slug: str, grant_id: int, *, by: Actor, measure: Measure | None = None) -> QuotaRequest:
    """Ask for the same units from the grant's end on, for as long again. It is decided as any request.

    Raises Refused: not_found (404), not_allowed (403), closed, is_over, has_follower, class_retiring, already_pending
    (409), and whatever `file_request` refuses.
    """
    tenant = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant_slug)
    now = queries.now()
    rows = {row.pk: row for row in last_days.grant_rows(tenant, at=now) if row.kind == Grant.Kind.BASE}
    if grant_id not in rows:
        raise Refused(NOT_FOUND)
    row = rows[grant_id]
    refuse_if(may_renew(by, queries.standing(by, tenant), row))
    before = f" Decided before in request #{row.request}." if row.request else ""
    return actions.file_request(
        tenant_slug,
        lines=[_as_before(row)],
        justification=f"Renewal of the grant that ends on {row.ends:%d %b %Y}.{before}",
        by=by,
        measure=measure,
    )


def may_renew(by: Actor, standing: policy.Standing, row: GrantRow) -> Refusal | None:
    """Pure: asked by button and verb alike."""
    if refusal := policy.may_file(by, standing):
        return refusal
    if row.state == "grace":
        return Refusal("is_over", "This grant is over; file a new request.", status=409)
    if row.follows is not None:
        return Refusal("has_follower", f"A total of {row.follows} is granted after it already.", status=409)
    if row.facts is not None and row.facts.life_cycle == "retiring":
        instead = f" Ask for its successor, {row.facts.successor}." if row.facts.successor else ""
        return Refusal("class_retiring", f"{row.name} is being retired: no grant is renewed.{instead}", status=409)
    return policy.line_refusal(_as_before(row), row.facts, now=row.ends)


def _as_before(row: GrantRow) -> Asked:
    return Asked(gpu_class=row.slug, units=row.units, starts=row.ends, ends=row.ends + (row.ends - row.starts))
