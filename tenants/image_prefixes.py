"""The two verbs by which staff say below which prefixes a team may use any image."""

from __future__ import annotations

from django.db import transaction

from accounts.actions import record
from accounts.actor import Actor
from catalog import references
from portal.errors import get_or_refuse, refuse_if
from tenants import image_policy, policy
from tenants.models import ImagePrefix, Tenant


@transaction.atomic
def allow(tenant: str, prefix: str, *, by: Actor) -> tuple[ImagePrefix, bool]:
    """And whether it is new; one that is there already is left as it is.

    Raises Refused: not_found (404), not_allowed (403), too_many_prefixes (409), bad_prefix (422).
    """
    # Of two who add the last one, the second counts the first's.
    team = get_or_refuse(Tenant.objects.visible_to(by).select_for_update(of=("self",), no_key=True), slug=tenant)
    refuse_if(policy.may_operate(by))
    refuse_if(image_policy.bad_prefix(prefix))
    kept = references.parse_prefix(prefix)
    theirs = ImagePrefix.objects.filter(tenant=team)
    known = theirs.filter(prefix=kept).first()
    if known is not None:
        return known, False
    refuse_if(image_policy.may_add(theirs.count()))
    row = ImagePrefix.objects.create(tenant=team, prefix=kept, allowed_by=by.user)
    record(by, "prefix.allowed", row, tenant=team.slug, after={"prefix": kept})
    return row, True


@transaction.atomic
def disallow(tenant: str, pk: int, *, by: Actor) -> ImagePrefix:
    """Nothing more is declared or started with an image below it; what runs or waits goes on.

    Raises Refused: not_found (404), not_allowed (403).
    """
    team = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
    refuse_if(policy.may_operate(by))
    row = get_or_refuse(ImagePrefix.objects.select_for_update(), tenant=team, pk=pk)
    record(by, "prefix.ended", row, tenant=team.slug, before={"prefix": row.prefix})
    row.delete()
    return row
