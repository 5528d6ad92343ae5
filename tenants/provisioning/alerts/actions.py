"""Mails about objects of a team's namespace that the cluster refuses: one mail per object until it is accepted."""

from __future__ import annotations

from django.db import transaction

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from accounts.events.queries import row_label
from accounts.models import Event, Role, User
from cluster.models import AppliedObject
from portal.core.due import owner_label
from tenants.core.notifications import page_url
from tenants.members import queries
from tenants.models import Namespace

Result = AppliedObject.Result


def alert_new_refusals(row: Namespace) -> None:
    """Mails operators, who can fix the cause, and the team, which waits for it, after a check in which objects were
    refused, could not be repaired or could not be sent.

    `row` is as it was claimed: an error on it means that the previous check failed too, so objects in its mail are not
    new.
    """
    told = _objects_alerted_last(row) if row.error_code else set()
    rows = AppliedObject.objects.filter(
        cluster_id=row.cluster_id, owner=owner_label(row), result__in=[Result.REFUSED, Result.FOREIGN]
    ).order_by("kind", "name")
    by_name = {f"{one.kind} {one.name}": one.text for one in rows}
    if by_name.keys() <= told:
        return
    with transaction.atomic():
        after = {"objects": sorted(by_name), "because": "; ".join(by_name.values())[:300]}
        event = record(system_actor("cluster"), "namespace.refused", row, tenant=row.tenant.slug, after=after)
        deliver(
            event,
            [*_operators(), *queries.managers_of(row.tenant)],
            subject=f"Objects of {row.tenant.name} could not be applied",
            body=(
                "\n".join(f"{name}: {text}" for name, text in by_name.items())
                + "\n\nThe portal retries every few minutes. Objects that were accepted before remain in force.\n"
                + f"State of each object: {page_url(f'/teams/{row.tenant.slug}')}"
            ),
        )


def _objects_alerted_last(row: Namespace) -> set[str]:
    last = Event.objects.filter(row=row_label(row), verb="namespace.refused").order_by("-id").first()
    return set(last.after["objects"]) if last else set()


def _operators() -> list[User]:
    return list(User.objects.filter(is_active=True, roles__overlap=[Role.OPERATOR, Role.ADMIN]).order_by("pk"))
