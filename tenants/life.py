"""The verbs by which a team's namespace is suspended, resumed and closed."""

from __future__ import annotations

from django.db import transaction

from accounts.actions import deliver, record
from accounts.actor import Actor
from portal.due import touch
from portal.errors import get_or_refuse, refuse, refuse_if
from portal.hints import page_hint
from tenants import letters, policy, queries
from tenants.models import Namespace
from tenants.telling import address


@transaction.atomic
def set_wanted(namespace_id: int, *, to: str, because: str = "", by: Actor) -> Namespace:
    """Suspend (nothing new starts), resume or close (everything goes). Closing is not taken back. Owners and managers
    are told why. Raises Refused: not_found (404), not_allowed (403), closed (409).
    """
    namespace = get_or_refuse(Namespace.objects.visible_to(by).select_related("tenant"), pk=namespace_id)
    refuse_if(policy.may_operate(by))
    before, because = namespace.wanted, " ".join(because.split())[: policy.REASON_MAX]
    if before == to != Namespace.Wanted.CLOSED:
        return namespace
    rows = Namespace.objects.filter(pk=namespace.pk).exclude(wanted=Namespace.Wanted.CLOSED)
    if not rows.update(wanted=Namespace.Wanted(to)):
        raise refuse("closed", "This namespace is being closed already.", status=409)
    touch(Namespace, namespace.pk)
    tenant = namespace.tenant
    after = {"wanted": to, **({"because": because} if because else {})}
    event = record(by, "namespace.changed", namespace, tenant=tenant.slug, before={"wanted": before}, after=after)
    deliver(
        event,
        queries.managers_of(tenant),
        subject=letters.wanted(tenant.name, to),
        body=f"{because}\n\n{address(f'/teams/{tenant.slug}')}".lstrip(),
    )
    page_hint(namespace.name)
    namespace.refresh_from_db()
    return namespace
