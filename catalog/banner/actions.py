"""Publish and remove the banner."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.events.actions import record
from catalog.banner import policy as banner_policy
from catalog.classes import policy
from catalog.models import Banner
from cluster.models import Cluster
from portal.core.errors import get_or_refuse, refuse_if


@transaction.atomic
def put_banner(cluster: Cluster, *, text: str, until: datetime | None, by: Actor) -> Banner:
    """Replaces the previous banner; the same again changes nothing. Raises Refused: not_allowed (403), bad_banner,
    bad_period (422).
    """
    refuse_if(policy.may_edit(by))
    text = " ".join(text.split())
    refuse_if(banner_policy.banner_refusal(text=text, until=until, now=timezone.now()))
    known = Banner.objects.select_for_update().filter(cluster=cluster).first()
    if known is not None and (known.text, known.until) == (text, until):
        return known
    before = {"text": known.text, "until": known.until} if known else {}
    values = {"text": text, "until": until, "put_at": timezone.now()}
    banner, _made = Banner.objects.update_or_create(cluster=cluster, defaults=values)
    record(by, "banner.put", banner, before=before, after={"text": text, "until": until})
    return banner


@transaction.atomic
def remove_banner(cluster: Cluster, *, by: Actor) -> None:
    """Removes the banner. Raises Refused: not_allowed (403), not_found (404)."""
    refuse_if(policy.may_edit(by))
    banner = get_or_refuse(Banner.objects.select_for_update(), cluster=cluster)
    record(by, "banner.removed", banner, before={"text": banner.text, "until": banner.until})
    banner.delete()
