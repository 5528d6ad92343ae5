"""Requests for a team, what a decision is based on, and who decides them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, prefetch_related_objects

from accounts.core.actor import Actor
from accounts.models import User
from catalog.classes import queries as catalog
from catalog.models import GpuClass
from portal.core.errors import Refusal
from tenants.approvers import queries
from tenants.approvers.policy import ApproverRights
from tenants.approvers.queries import active_approvers, with_delegates
from tenants.grants.overcommit import queries as overcommit_queries
from tenants.grants.overcommit.queries import PromiseCurve, promise_curve
from tenants.grants.promises import Promise
from tenants.grants.types import Overcommit
from tenants.members.invitations import queries as invitation_queries
from tenants.models import ApproverFor, Bundle, BundleLine, TeamRequest
from tenants.onboarding.bundles.queries import BundleLineRow, BundleRow, bundle_row
from tenants.onboarding.team_requests.policy import DecidableTeam, may_decide_team
from tenants.requests.decisions import queries as decision_queries
from tenants.requests.rules.policy import STARTER as STARTER

OWN_MAX = 5
INBOX_MAX = 25


@dataclass(frozen=True)
class TeamRequestRow:
    """A request for a team; `tenant`: the slug of the created team; `refusal`: why this person may not decide it."""

    pk: int
    name: str
    slug: str
    purpose: str
    bundle: BundleRow
    who: str
    asked_at: datetime
    state: str
    reason: str
    decided_by: str
    decided_at: datetime | None
    tenant: str
    refusal: Refusal | None


def team_request_rows(
    found: Collection[TeamRequest], *, by: Actor, mine: ApproverRights | None = None
) -> list[TeamRequestRow]:
    """In the given order. Seven queries, whatever their number; six where the actor's rights are known."""
    rows = list(found)
    prefetch_related_objects(rows, "user", "decided_by", "tenant", "bundle__lines__gpu_class")
    mine = queries.rights_of(by) if mine is None else mine
    return [
        TeamRequestRow(
            pk=row.pk,
            name=row.name,
            slug=row.slug,
            purpose=row.purpose,
            bundle=bundle_row(row.bundle),
            who=row.user.name,
            asked_at=row.asked_at,
            state=row.state,
            reason=row.reason,
            decided_by=row.decided_by.name if row.decided_by else "",
            decided_at=row.decided_at,
            tenant=row.tenant.slug if row.tenant else "",
            refusal=may_decide_team(by, decidable_team(row, mine)),
        )
        for row in rows
    ]


def decidable_team(row: TeamRequest, mine: ApproverRights) -> DecidableTeam:
    classes = {line.gpu_class.slug: line.gpu_class.name for line in row.bundle.lines.all()}
    decides = mine.classes_for(None, row.user_id)
    return DecidableTeam(row.user_id, row.user.is_active, row.state, classes, decides, is_deputy=bool(mine.lent))


def own_team_requests(by: Actor) -> QuerySet[TeamRequest]:
    """Returns the person's requests, newest first, without those that were withdrawn or became a team."""
    states = (TeamRequest.State.PENDING, TeamRequest.State.DENIED)
    return TeamRequest.objects.filter(user=by.user, state__in=states).order_by("-id")


def pending_team_requests() -> QuerySet[TeamRequest]:
    """Oldest first."""
    return TeamRequest.objects.filter(state=TeamRequest.State.PENDING).order_by("id")


def team_requests_to_decide(mine: ApproverRights) -> QuerySet[TeamRequest]:
    """Oldest first: pending requests with a bundle of classes that these rights allow to decide."""
    found = pending_team_requests()
    if not mine:
        return found.none()
    lenders = [right.approver_id for right in mine.lent]
    of_others = _of_classes(mine.classes) & ~Q(user__in=lenders)
    # A delegate does not decide what the approver requested.
    of_lenders = (Q(user=lender) & _of_classes(mine.classes_for(None, lender)) for lender in lenders)
    return found.filter(functools.reduce(operator.or_, of_lenders, of_others))


def _of_classes(slugs: Collection[str] | None) -> Q:
    if slugs is None:
        return ~Q(pk__in=[])
    others = BundleLine.objects.filter(bundle=OuterRef("bundle")).exclude(gpu_class__slug__in=slugs)
    return ~Q(Exists(others))


def inbox_teams(by: Actor, mine: ApproverRights) -> dict[str, Any]:
    """What an approver's inbox shows above the quota requests: new teams, oldest first, and teams without an active
    owner.
    """
    found = team_requests_to_decide(mine)
    rows = list(found[:INBOX_MAX])
    total = len(rows) if len(rows) < INBOX_MAX else found.count()
    return {
        "new_teams": team_request_rows(rows, by=by, mine=mine),
        "new_teams_total": total,
        "ownerless": invitation_queries.teams_without_owner(),
    }


def deciders(bundle: Bundle) -> list[User]:
    """Returns approvers of every class in it, and their delegates. One query."""
    theirs = ApproverFor.objects.filter(user=OuterRef("pk"))
    of_class = ApproverFor.objects.filter(user=OuterRef(OuterRef("pk")), gpu_class=OuterRef("gpu_class"))
    others = BundleLine.objects.filter(~Exists(of_class), bundle=bundle)
    found = active_approvers().filter(Exists(theirs.filter(gpu_class=None)) | ~Exists(others))
    return list(with_delegates(found).order_by("pk"))


# ---- effect of a decision on each class ----------------------------------------------------------------------------


@dataclass(frozen=True)
class BundleLineImpact:
    """The effect of a line of the bundle. `pool`: what is allocated to all teams and what is free, as a sentence."""

    line: BundleLineRow
    pool: str
    excess: Overcommit | None
    curve: PromiseCurve


def bundle_line_impacts(bundle: BundleRow, *, at: datetime) -> list[BundleLineImpact]:
    """For a team without quota, from now on. About fifteen queries, and two per line."""
    classes = GpuClass.objects.in_bulk([line.gpu_class_id for line in bundle.lines])
    limits = catalog.promise_limits(list(classes.values()))
    pools = decision_queries.pool_sentences(classes)
    facts = []
    for line in bundle.lines:
        gpu_class, limit = classes[line.gpu_class_id], limits[line.gpu_class_id]
        promise = Promise(line.units, at, at + timedelta(days=bundle.days))
        facts.append(
            BundleLineImpact(
                line,
                pools[gpu_class.pk],
                overcommit_queries.overcommit_of(0, gpu_class, promise, is_base=True, limit=limit, at=at),
                promise_curve(0, gpu_class, promise, is_base=True, limit=limit, at=at),
            )
        )
    return facts
