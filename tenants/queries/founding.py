"""Teams to be: bundles to choose from, requests for a team, and who decides them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet, prefetch_related_objects

from accounts.actor import Actor
from accounts.models import User
from catalog import queries as catalog
from catalog.models import GpuClass
from cluster.models import Cluster
from cluster.names import dns_label
from portal.errors import Refusal
from tenants import queries
from tenants.deputy_policy import Rights
from tenants.founding_policy import SLUG_TAKEN, TeamFacts, may_decide_team, may_try, trial_refusal
from tenants.models import ApproverFor, Bundle, BundleLine, Namespace, QuotaLine, TeamRequest, Tenant
from tenants.policy import Excess
from tenants.promises import Promise
from tenants.queries import joining, rules
from tenants.queries.curves import PromiseCurve, promise_curve
from tenants.queries.deputies import approving, with_deputies
from tenants.rule_policy import STARTER as STARTER
from tenants.rule_policy import starter_refusal

TRIAL = timedelta(hours=8)
OWN_MAX = 5
NEW_MAX = 25


@dataclass(frozen=True)
class BundleLineRow:
    gpu_class_id: int
    slug: str
    name: str
    unit: str
    units: int


@dataclass(frozen=True)
class BundleRow:
    pk: int
    name: str
    summary: str
    days: int
    lines: tuple[BundleLineRow, ...]


@dataclass(frozen=True)
class TeamRow:
    """A request for a team; `tenant`: the slug of what came of it; `refusal`: why this person may not decide it."""

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


def bundles() -> QuerySet[Bundle]:
    """Those that a new team can have: open, with lines, of open classes that are for everyone."""
    lines = BundleLine.objects.filter(bundle=OuterRef("pk"))
    usable = Q(gpu_class__life_cycle=GpuClass.LifeCycle.ACTIVE, gpu_class__visibility=GpuClass.Visibility.EVERYONE)
    return Bundle.objects.filter(Exists(lines), ~Exists(lines.exclude(usable)), is_open=True)


def bundle_rows(found: Collection[Bundle]) -> list[BundleRow]:
    """In the given order. Two queries."""
    rows = list(found)
    prefetch_related_objects(rows, "lines__gpu_class")
    return [_bundle_row(row) for row in rows]


def _bundle_row(row: Bundle) -> BundleRow:
    lines = tuple(
        BundleLineRow(
            line.gpu_class_id, line.gpu_class.slug, line.gpu_class.name, catalog.unit_of(line.gpu_class), line.units
        )
        for line in row.lines.all()
    )
    return BundleRow(row.pk, row.name, row.summary, row.days, lines)


def team_rows(found: Collection[TeamRequest], *, by: Actor, mine: Rights | None = None) -> list[TeamRow]:
    """In the given order. Seven queries, whatever their number; six where the actor's rights are known."""
    rows = list(found)
    prefetch_related_objects(rows, "user", "decided_by", "tenant", "bundle__lines__gpu_class")
    mine = queries.rights(by) if mine is None else mine
    return [
        TeamRow(
            pk=row.pk,
            name=row.name,
            slug=row.slug,
            purpose=row.purpose,
            bundle=_bundle_row(row.bundle),
            who=row.user.name,
            asked_at=row.asked_at,
            state=row.state,
            reason=row.reason,
            decided_by=row.decided_by.name if row.decided_by else "",
            decided_at=row.decided_at,
            tenant=row.tenant.slug if row.tenant else "",
            refusal=may_decide_team(by, team_facts(row, mine)),
        )
        for row in rows
    ]


def team_facts(row: TeamRequest, mine: Rights) -> TeamFacts:
    classes = {line.gpu_class.slug: line.gpu_class.name for line in row.bundle.lines.all()}
    decides = mine.classes_for(None, row.user_id)
    return TeamFacts(row.user_id, row.user.is_active, row.state, classes, decides, is_deputy=bool(mine.lent))


def own(by: Actor) -> QuerySet[TeamRequest]:
    """What the person asked for, newest first, without what was withdrawn or became a team."""
    states = (TeamRequest.State.PENDING, TeamRequest.State.DENIED)
    return TeamRequest.objects.filter(user=by.user, state__in=states).order_by("-id")


def waiting(mine: Rights) -> QuerySet[TeamRequest]:
    """Oldest first: pending, with a bundle of classes that these rights decide."""
    found = TeamRequest.objects.filter(state=TeamRequest.State.PENDING).order_by("id")
    if not mine:
        return found.none()
    lenders = [right.approver_id for right in mine.lent]
    of_others = _of_classes(mine.classes) & ~Q(user__in=lenders)
    # What an approver asked for is not the deputy's by that approver's right.
    of_lenders = (Q(user=lender) & _of_classes(mine.classes_for(None, lender)) for lender in lenders)
    return found.filter(functools.reduce(operator.or_, of_lenders, of_others))


def _of_classes(slugs: Collection[str] | None) -> Q:
    if slugs is None:
        return ~Q(pk__in=[])
    others = BundleLine.objects.filter(bundle=OuterRef("bundle")).exclude(gpu_class__slug__in=slugs)
    return ~Q(Exists(others))


def inbox(by: Actor, mine: Rights) -> dict[str, Any]:
    """What an approver's inbox has above the requests: new teams, oldest first, and teams without an active owner."""
    found = waiting(mine)
    rows = list(found[:NEW_MAX])
    total = len(rows) if len(rows) < NEW_MAX else found.count()
    return {
        "new_teams": team_rows(rows, by=by, mine=mine),
        "new_teams_total": total,
        "ownerless": joining.without_owner(),
    }


def deciders(bundle: Bundle) -> list[User]:
    """Approvers of every class in it, and who stands in for them. One query."""
    theirs = ApproverFor.objects.filter(user=OuterRef("pk"))
    of_class = ApproverFor.objects.filter(user=OuterRef(OuterRef("pk")), gpu_class=OuterRef("gpu_class"))
    others = BundleLine.objects.filter(~Exists(of_class), bundle=bundle)
    found = approving().filter(Exists(theirs.filter(gpu_class=None)) | ~Exists(others))
    return list(with_deputies(found).order_by("pk"))


# ---- trying ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """One unit of a starter class for some hours; `refusal`: why this person cannot have it now."""

    gpu_class: GpuClass
    unit: str
    hours: int
    refusal: Refusal | None


def trial(by: Actor, *, at: datetime) -> Trial | None:
    """None where no class is marked starter. Of several the first one that has a unit to promise."""
    cluster = Cluster.objects.filter(name=settings.CLUSTER_NAME).first()
    open_to_all = Q(life_cycle=GpuClass.LifeCycle.ACTIVE, visibility=GpuClass.Visibility.EVERYONE)
    classes = list(GpuClass.objects.filter(open_to_all, cluster=cluster, starter=True).order_by("slug"))
    if not classes:
        return None
    limits = catalog.promise_limits(classes)
    promise = Promise(1, at, at + TRIAL)
    excesses = {
        one.pk: queries.excess_of(0, one, promise, is_base=True, limit=limits[one.pk], at=at) for one in classes
    }
    chosen = next((one for one in classes if excesses[one.pk] is None), classes[0])
    refusal = trial_may(by) or starter_refusal(is_on=rules.is_on(STARTER)) or trial_refusal(excesses[chosen.pk])
    return Trial(chosen, catalog.unit_of(chosen), int(TRIAL.total_seconds() // 3600), refusal)


def trial_may(by: Actor) -> Refusal | None:
    """Two queries."""
    team = Tenant.objects.filter(memberships__user=by.user).values_list("name", flat=True).first()
    tried = QuotaLine.objects.filter(rule=STARTER, request__filed_by=by.user)
    return may_try(by, team=team or "", has_tried=tried.exists())


# ---- names -------------------------------------------------------------------------------------------------------


def taken(slug: str) -> Refusal | None:
    """Two queries."""
    is_taken = Tenant.objects.filter(slug=slug).exists() or Namespace.objects.filter(name=dns_label(slug)).exists()
    return SLUG_TAKEN if is_taken else None


# ---- what a decision rests on ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LineFacts:
    """What a line of the bundle would do. `pool`: what all teams were promised and what is free, as a sentence."""

    line: BundleLineRow
    pool: str
    excess: Excess | None
    curve: PromiseCurve


def line_facts(bundle: BundleRow, *, at: datetime) -> list[LineFacts]:
    """For a team that holds nothing yet, from now on. Two queries a line, and about fifteen."""
    classes = GpuClass.objects.in_bulk([line.gpu_class_id for line in bundle.lines])
    limits = catalog.promise_limits(list(classes.values()))
    pools = queries.pool_figures(classes)
    facts = []
    for line in bundle.lines:
        gpu_class, limit = classes[line.gpu_class_id], limits[line.gpu_class_id]
        promise = Promise(line.units, at, at + timedelta(days=bundle.days))
        facts.append(
            LineFacts(
                line,
                pools[gpu_class.pk],
                queries.excess_of(0, gpu_class, promise, is_base=True, limit=limit, at=at),
                promise_curve(0, gpu_class, promise, is_base=True, limit=limit, at=at),
            )
        )
    return facts
