"""The verbs by which a team's namespace is suspended, resumed and closed."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from accounts.actions import deliver, record
from accounts.actor import Actor
from portal.due import touch
from portal.errors import get_or_refuse, refuse_if
from portal.hints import page_hint
from tenants import closing, closing_letters, letters, life_policy, policy, queries
from tenants.life_policy import GRACE_HOURS, KEEP_DAYS, Life, Terms
from tenants.models import Namespace
from tenants.telling import address

Wanted = Namespace.Wanted


@transaction.atomic
def set_wanted(
    namespace_id: int,
    *,
    to: str,
    because: str = "",
    grace_hours: int = GRACE_HOURS,
    keep_days: int = KEEP_DAYS,
    by: Actor,
) -> Namespace:
    """Suspend (nothing new starts), resume or close; owners and managers are told why. What it is already is no change.

    Closed: nothing new starts, what runs goes on for `grace_hours`, in which it may be resumed; volumes are kept for
    `keep_days` after that. Raises Refused: not_found (404), not_allowed (403), closed (409), unknown_state, bad_grace,
    bad_keep (422).
    """
    get_or_refuse(Namespace.objects.visible_to(by), pk=namespace_id)
    refuse_if(policy.may_operate(by))
    rows = Namespace.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
    namespace = get_or_refuse(rows, pk=namespace_id)
    now, terms = queries.now(), Terms(grace_hours, keep_days)
    refuse_if(life_policy.may_set(by, life_of(namespace), to=to, terms=terms, at=now))
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
        if closes_at <= now and (ended := closing.end_grants(namespace, now)):
            after["grants"] = ended
        claims = queries.objects_inside(namespace)["PersistentVolumeClaim"]
        told = f"{because}\n\n{closing_letters.announced(**times, at=now, claims=claims)}".strip()
    else:
        Namespace.objects.filter(pk=namespace.pk).update(wanted=to, closes_at=None, volumes_until=None)
    touch(Namespace, namespace.pk)
    event = record(by, "namespace.changed", namespace, tenant=tenant.slug, before={"wanted": before}, after=after)
    deliver(
        event,
        queries.managers_of(tenant),
        subject=letters.wanted(tenant.name, to),
        body=f"{told}\n\n{address(f'/teams/{tenant.slug}/members')}".lstrip(),
    )
    page_hint(namespace.name)
    namespace.refresh_from_db()
    return namespace


def life_of(row: Namespace) -> Life:
    return Life(row.wanted, row.closes_at, row.volumes_until, row.gone_at)
