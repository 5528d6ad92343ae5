"""The action that begins a trial."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.utils.text import slugify

from accounts.core.actor import Actor
from accounts.events.actions import record
from accounts.models import User
from cluster.manifests.names import short_hash
from portal.core.errors import NOT_FOUND, Refused, refuse_if
from tenants.core import queries as core_queries
from tenants.grants import queries as grant_queries
from tenants.models import Grant, Namespace, Tenant
from tenants.onboarding.teams.actions import create_tenant_rows
from tenants.onboarding.trials import policy as trial_policy
from tenants.onboarding.trials import queries as trial_queries
from tenants.requests import actions as request_actions
from tenants.requests.decisions import actions as decision_actions
from tenants.requests.rules.policy import STARTER
from tenants.requests.types import RequestedLine

TRIAL_PURPOSE = "To try the portal."


@transaction.atomic
def begin_trial(*, by: Actor) -> Tenant:
    """Creates a team of the person's own with one unit of a starter class for eight hours, once; the rule "starter"
    grants it.

    Raises Refused: not_found (404) if no class is marked starter, tried_before, has_team, no_trial_now (409).
    """
    person = User.objects.select_for_update(of=("self",)).get(pk=by.person.pk)  # one at a time: once is the rule
    now = core_queries.database_now()
    trial = trial_queries.trial_offer(by, at=now)
    if trial is None:
        raise Refused(NOT_FOUND)
    refuse_if(trial.refusal)
    slug = f"try-{slugify(person.name)[:20].strip('-_') or 'me'}-{short_hash(person.email)}".replace("_", "-")
    tenant = create_tenant_rows(
        slug=slug, name=f"Trial of {person.name}"[:80], owner=person, purpose=TRIAL_PURPOSE, by=by
    )
    asked = RequestedLine(trial.gpu_class.slug, 1, now, now + trial_queries.TRIAL_DURATION)
    facts = grant_queries.class_facts(tenant, [asked.gpu_class], at=now)
    request = request_actions.create_request_rows(
        tenant, [asked], facts, justification=TRIAL_PURPOSE, filed_by=person, now=now
    )
    try:
        decision_actions.decide_by_rule(request, rule=STARTER, subject="Your trial has started")
    except Refused as refused:
        # Another request got the last unit while this one waited for the class lock; a trial cannot overcommit.
        if refused.code != "over_promised":
            raise
        raise Refused(trial_policy.last_unit_taken(trial.gpu_class.name)) from refused
    # A trial ends after eight hours, without a grace.
    Grant.objects.filter(line__request=request).update(grace=timedelta(0))
    Namespace.objects.filter(tenant=tenant).update(is_trial=True)
    record(by, "trial.begun", tenant, tenant=slug, after={"class": trial.gpu_class.slug, "hours": trial.hours})
    return tenant
