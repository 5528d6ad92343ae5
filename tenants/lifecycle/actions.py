"""The actions that suspend, resume and close a team's namespace."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import deliver, record
from cluster.apply.queries import left_claims
from portal.core.due import touch
from portal.core.errors import get_or_refuse, refuse_if
from portal.core.hints import page_hint
from portal.core.plain_text import hidden_refusal
from tenants.core import policy, queries
from tenants.core.notifications import page_url
from tenants.lifecycle import mails
from tenants.lifecycle import policy as lifecycle_policy
from tenants.lifecycle import queries as lifecycle_queries
from tenants.lifecycle.closing import actions as closing_actions
from tenants.lifecycle.policy import GRACE_HOURS, KEEP_DAYS, ClosingTerms
from tenants.lifecycle.queries import lifecycle_of
from tenants.members import queries as member_queries
from tenants.models import Namespace

Wanted = Namespace.Wanted


@transaction.atomic
def set_namespace_state(
    namespace_id: int,
    *,
    to: str,
    because: str = "",
    grace_hours: int = GRACE_HOURS,
    keep_days: int = KEEP_DAYS,
    by: Actor,
) -> Namespace:
    """Suspends (nothing new starts), resumes or closes; owners and managers are notified. The same state changes
    nothing.

    Closed: nothing new starts, running workloads continue for `grace_hours`, during which the team can be resumed;
    volumes are kept for `keep_days` after that. Raises Refused: not_found (404), not_allowed (403), closed (409),
    unknown_state, bad_grace, bad_keep (422).
    """
    get_or_refuse(Namespace.objects.visible_to(by), pk=namespace_id)
    refuse_if(policy.may_operate(by))
    namespace = queries.lock_namespace(namespace_id)
    now, terms = queries.database_now(), ClosingTerms(grace_hours, keep_days)
    refuse_if(lifecycle_policy.may_set_state(by, lifecycle_of(namespace), to=to, terms=terms, at=now))
    refuse_if(hidden_refusal("because", because))
    before, because = namespace.wanted, " ".join(because.split())[: policy.REASON_MAX]
    if before == to:
        return namespace
    tenant = namespace.tenant
    after: dict[str, Any] = {"wanted": to, **({"because": because} if because else {})}
    told = because
    if to == Wanted.CLOSED:
        closes_at, volumes_until = terms.instants(now)
        times = {"closes_at": closes_at, "volumes_until": volumes_until}
        Namespace.objects.filter(pk=namespace.pk).update(wanted=to, **times)
        after |= times
        if closes_at <= now and (ended := closing_actions.end_grants(namespace, now)):
            after["grants"] = ended
        claims = lifecycle_queries.object_counts(namespace)["PersistentVolumeClaim"]
        left = left_claims(namespace.cluster_id, namespace.name)
        here = claims if left is None else left.here(claims)
        told = f"{because}\n\n{mails.closing_announcement(**times, at=now, claims=here, left=left)}".strip()
    else:
        Namespace.objects.filter(pk=namespace.pk).update(wanted=to, closes_at=None, volumes_until=None)
    touch(Namespace, namespace.pk)
    event = record(by, "namespace.changed", namespace, tenant=tenant.slug, before={"wanted": before}, after=after)
    deliver(
        event,
        member_queries.managers_of(tenant),
        subject=mails.state_subject(tenant.name, to),
        body=f"{told}\n\n{page_url(f'/teams/{tenant.slug}/members')}".lstrip(),
    )
    page_hint(namespace.name)
    namespace.refresh_from_db()
    return namespace
