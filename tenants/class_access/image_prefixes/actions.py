"""The two actions by which staff set the prefixes below which a team may use any image."""

from __future__ import annotations

from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import record
from catalog.images import image_references
from portal.core.errors import get_or_refuse, refuse_if
from tenants.class_access.image_prefixes import policy as image_prefixe_policy
from tenants.core import policy
from tenants.models import ImagePrefix, Tenant


@transaction.atomic
def allow_prefix(tenant: str, prefix: str, *, by: Actor) -> tuple[ImagePrefix, bool]:
    """Also returns whether the prefix is new; an existing one is not changed.

    Raises Refused: not_found (404), not_allowed (403), too_many_prefixes (409), bad_prefix (422).
    """
    # If two requests add the last allowed prefix at once, the second one counts the prefix of the first.
    team = get_or_refuse(Tenant.objects.visible_to(by).select_for_update(of=("self",), no_key=True), slug=tenant)
    refuse_if(policy.may_operate(by))
    refuse_if(image_prefixe_policy.prefix_refusal(prefix))
    kept = image_references.parse_prefix(prefix)
    theirs = ImagePrefix.objects.filter(tenant=team)
    known = theirs.filter(prefix=kept).first()
    if known is not None:
        return known, False
    refuse_if(image_prefixe_policy.may_add_prefix(theirs.count()))
    row = ImagePrefix.objects.create(tenant=team, prefix=kept, allowed_by=by.user)
    record(by, "prefix.allowed", row, tenant=team.slug, after={"prefix": kept})
    return row, True


@transaction.atomic
def disallow_prefix(tenant: str, pk: int, *, by: Actor) -> ImagePrefix:
    """No workload can be declared or started with an image below it any more; running and queued workloads continue.

    Raises Refused: not_found (404), not_allowed (403).
    """
    team = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
    refuse_if(policy.may_operate(by))
    row = get_or_refuse(ImagePrefix.objects.select_for_update(), tenant=team, pk=pk)
    record(by, "prefix.ended", row, tenant=team.slug, before={"prefix": row.prefix})
    row.delete()
    return row
