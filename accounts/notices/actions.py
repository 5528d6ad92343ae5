"""The actions of a person on the own notices."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.db import transaction
from django.db.models.functions import Now

from accounts.core.actor import Actor
from accounts.events.actions import record
from accounts.models import NoticeKind, NoticePreference
from accounts.notices import queries
from accounts.people.actions import lock_self
from portal.core.hints import person_hints


def mark_read(user_id: int, notice_ids: Collection[int] | None = None) -> int:
    """All notices, or these; those of other people are left out. How many were unread. What a person has read is no
    decision, so this is not an event.
    """
    unread = queries.notices_of(user_id, only_unread=True)
    chosen = unread if notice_ids is None else unread.filter(pk__in=notice_ids)
    changed = chosen.update(read_at=Now())
    if changed:
        person_hints([user_id])
    return changed


@transaction.atomic
def set_preferences(channels: Mapping[str, str], *, by: Actor) -> list[queries.Preference]:
    """Sets all kinds: those that are not named get their default. What must be an email stays one."""
    user = lock_self(by)
    before = {one.kind: one for one in queries.preferences_of(user.pk)}
    wanted = {kind: channels.get(kind, one.default) for kind, one in before.items() if one.may_change}
    changed = {str(kind): str(channel) for kind, channel in wanted.items() if channel != before[kind].channel}
    if not changed:
        return list(before.values())
    NoticePreference.objects.filter(user=user, kind__in=changed).delete()
    NoticePreference.objects.bulk_create(
        NoticePreference(user=user, kind=kind, channel=channel)
        for kind, channel in changed.items()
        if channel != before[NoticeKind(kind)].default
    )
    old = {str(kind): str(one.channel) for kind, one in before.items() if kind in changed}
    record(by, "account.notices_set", user, before=old, after=changed)
    return queries.preferences_of(user.pk)
