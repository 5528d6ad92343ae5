"""Mails before and after the end of a base grant, sent when a worker checks the team's namespace.

No reminder is scheduled in advance, so none has to be cancelled: a grant that was replaced ends earlier, a grant that
was renewed has a successor, and neither is reminded of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from django.db import transaction

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from accounts.events.queries import row_label
from accounts.models import Event
from catalog.classes import queries as catalog
from portal.ui.text import date_with_year, plural_form, time_with_zone
from tenants.core.notifications import page_url
from tenants.grants.reminders import mails
from tenants.members import queries
from tenants.models import Grant, Namespace, QuotaLine, Tenant

REMINDER_DAYS = (14, 7, 1)


def reminder_days_due(starts: datetime, ends: datetime, at: datetime) -> int | None:
    """Returns the latest reminder that is due; None before the first one and after the end. Pure.

    A reminder before the grant's own start does not exist: a grant of three days needs no reminder 14 days before.
    """
    if at >= ends:
        return None
    return min((days for days in REMINDER_DAYS if starts < ends - timedelta(days=days) <= at), default=None)


def send_due_reminders(namespace: Namespace, bases: Iterable[Grant], at: datetime) -> None:
    """Sends each reminder once, however often and by however many workers it is called. No query if none is near."""
    near = [grant.pk for grant in bases if reminder_days_due(grant.period.lower, grant.period.upper, at)]
    if near:
        _send(namespace, near, at)


@transaction.atomic
def _send(namespace: Namespace, grant_ids: list[int], at: datetime) -> None:
    tenant = _locked(namespace)
    bases = list(Grant.objects.filter(tenant=tenant, kind=Grant.Kind.BASE).select_related("gpu_class"))
    begun = {(one.gpu_class_id, one.period.lower) for one in bases}
    told = set(
        Event.objects.filter(tenant=tenant.slug, verb="grant.reminded").values_list("row", "after__days"),
    )
    for grant in bases:
        days = reminder_days_due(grant.period.lower, grant.period.upper, at)
        is_followed = (grant.gpu_class_id, grant.period.upper) in begun
        if grant.pk in grant_ids and days and not is_followed and (row_label(grant), days) not in told:
            _remind(tenant, grant, days)


def notify_ended_grants(namespace: Namespace, ended: Collection[Grant]) -> None:
    """Reports each end once, with its cause; one query if all were reported. The mail about a decision reports the end
    that it causes.
    """
    told = Event.objects.filter(verb="grant.ended", row__in=[row_label(one) for one in ended]).values_list(
        "row", flat=True
    )
    untold = [one.pk for one in ended if row_label(one) not in set(told)] if ended else []
    if untold:
        _notify_ended(namespace, untold)


@transaction.atomic
def _notify_ended(namespace: Namespace, grant_ids: list[int]) -> None:
    tenant = _locked(namespace)
    grants = Grant.objects.filter(pk__in=grant_ids).select_related("gpu_class").order_by("pk")
    told = set(Event.objects.filter(tenant=tenant.slug, verb="grant.ended").values_list("row", flat=True))
    closes_at = Namespace.objects.values_list("closes_at", flat=True).get(pk=namespace.pk)
    for grant in grants:
        if row_label(grant) in told:
            continue
        end = grant.period.upper
        followers = Grant.objects.filter(tenant=tenant, gpu_class=grant.gpu_class, kind=Grant.Kind.BASE)
        released = QuotaLine.objects.filter(
            tenant=tenant, gpu_class=grant.gpu_class, state=QuotaLine.State.APPROVED, decided_from=end
        )
        is_base = grant.kind == Grant.Kind.BASE
        is_replaced = is_base and followers.filter(period__startswith=end).exists()
        is_released = is_base and not is_replaced and released.exists()
        cause = "closed" if end == closes_at else "replaced" if is_replaced else "reduced" if is_released else "expired"
        after = {"units": grant.units, "ended": end, "cause": cause}
        event = record(system_actor("clock"), "grant.ended", grant, tenant=tenant.slug, after=after)
        if not (is_replaced or is_released):
            _deliver_end(event, tenant, grant)


def _deliver_end(event: Event, tenant: Tenant, grant: Grant) -> None:
    what = "temporary increase" if grant.kind == Grant.Kind.BOOST else "grant"
    end, runs_until = grant.period.upper, grant.period.upper + grant.grace
    deliver(
        event,
        queries.managers_of(tenant),
        subject=f"Expired: {what} of {grant.gpu_class.name} for {tenant.name}",
        body=(
            f"The {what} of {_units(grant)} of {grant.gpu_class.name} expired on {time_with_zone(end)}.\n"
            f"{mails.grant_end_text(runs_until, is_storage=grant.gpu_class.is_storage, is_over=True)}\n\n"
            f"Current grants of the team: {page_url(f'/teams/{tenant.slug}/grants')}"
        ),
    )


def _units(grant: Grant) -> str:
    return f"{grant.units} {plural_form(catalog.counted_in(grant.gpu_class))}"


def _locked(namespace: Namespace) -> Tenant:
    """Locks the namespace, as decisions do: what is read afterwards cannot change until the transaction ends."""
    rows = Namespace.objects.select_for_update(no_key=True).values_list("tenant_id", flat=True)
    return Tenant.objects.get(pk=rows.get(pk=namespace.pk))


def _remind(tenant: Tenant, grant: Grant, days: int) -> None:
    ends, runs_until = grant.period.upper, grant.period.upper + grant.grace
    event = record(
        system_actor("reminder"), "grant.reminded", grant, tenant=tenant.slug, after={"days": days, "ends": ends}
    )
    deliver(
        event,
        queries.managers_of(tenant),
        subject=f"The grant of {grant.gpu_class.name} for {tenant.name} expires on {date_with_year(ends)}",
        body=(
            f"The grant of {_units(grant)} of {grant.gpu_class.name} expires on {time_with_zone(ends)}.\n"
            f"{mails.grant_end_text(runs_until, is_storage=grant.gpu_class.is_storage, is_over=False)}\n\n"
            f"Renew the grant: {page_url(f'/teams/{tenant.slug}/grants')}"
        ),
    )
