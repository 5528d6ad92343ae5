"""Whether a grant may be renewed, and the line that renews it. Pure."""

from __future__ import annotations

from accounts.core.actor import Actor
from portal.core.errors import Refusal
from tenants.grants.timeline.types import GrantRow
from tenants.members import policy as member_policy
from tenants.requests import policy as request_policy
from tenants.requests.types import RequestedLine


def may_renew(by: Actor, standing: member_policy.Standing, row: GrantRow) -> Refusal | None:
    """Pure: used by the button and by the action."""
    if refusal := request_policy.may_file(by, standing):
        return refusal
    if row.state == "grace":
        return Refusal("is_over", "This grant has expired. Submit a new request.", status=409)
    if row.follows is not None:
        return Refusal("has_follower", f"A total of {row.follows} is already granted after this grant.", status=409)
    if row.facts is not None and row.facts.life_cycle == "retiring":
        instead = f" Request its successor, {row.facts.successor}." if row.facts.successor else ""
        return Refusal(
            "class_retiring", f"{row.name} is being retired, so its grants cannot be renewed.{instead}", status=409
        )
    return request_policy.line_refusal(renewal_line(row), row.facts, now=row.ends)


def renewal_line(row: GrantRow) -> RequestedLine:
    return RequestedLine(gpu_class=row.slug, units=row.units, starts=row.ends, ends=row.ends + (row.ends - row.starts))
