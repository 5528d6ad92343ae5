"""The trial that a person could begin now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from accounts.core.actor import Actor
from catalog.classes import queries as class_queries
from catalog.models import GpuClass
from cluster.models import Cluster
from portal.core.errors import Refusal
from tenants.grants.overcommit import queries as overcommit_queries
from tenants.grants.promises import Promise
from tenants.models import QuotaLine, Tenant
from tenants.onboarding.trials.policy import may_begin_trial, starter_rule_refusal, trial_refusal
from tenants.requests.rules import queries as rule_queries
from tenants.requests.rules.policy import STARTER as STARTER

TRIAL_DURATION = timedelta(hours=8)


@dataclass(frozen=True)
class TrialOffer:
    """One unit of a starter class for some hours; `refusal`: why this person cannot have it now."""

    gpu_class: GpuClass
    unit: str
    hours: int
    refusal: Refusal | None


def trial_offer(by: Actor, *, at: datetime) -> TrialOffer | None:
    """None if no class is marked starter. Of several, the first one with a unit left to allocate."""
    cluster = Cluster.objects.filter(name=settings.CLUSTER_NAME).first()
    open_to_all = Q(life_cycle=GpuClass.LifeCycle.ACTIVE, visibility=GpuClass.Visibility.EVERYONE)
    classes = list(GpuClass.objects.filter(open_to_all, cluster=cluster, starter=True).order_by("slug"))
    if not classes:
        return None
    limits = class_queries.promise_limits(classes)
    promise = Promise(1, at, at + TRIAL_DURATION)
    excesses = {
        one.pk: overcommit_queries.overcommit_of(0, one, promise, is_base=True, limit=limits[one.pk], at=at)
        for one in classes
    }
    chosen = next((one for one in classes if excesses[one.pk] is None), classes[0])
    refusal = (
        may_begin_trial_now(by)
        or starter_rule_refusal(is_on=rule_queries.is_rule_on(STARTER))
        or trial_refusal(excesses[chosen.pk])
    )
    return TrialOffer(chosen, class_queries.unit_of(chosen), int(TRIAL_DURATION.total_seconds() // 3600), refusal)


def may_begin_trial_now(by: Actor) -> Refusal | None:
    """Two queries."""
    team = Tenant.objects.filter(memberships__user=by.user).values_list("name", flat=True).first()
    tried = QuotaLine.objects.filter(rule=STARTER, request__filed_by=by.user)
    return may_begin_trial(by, team=team or "", has_tried=tried.exists())
