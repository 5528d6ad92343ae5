"""Actions on a team's secrets. A value is encrypted at once and never shown; Events have only the name."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.db.models.functions import Now

from accounts.core.actor import Actor
from accounts.events.actions import record
from portal.core.errors import Refusal, get_or_refuse, refuse_if
from tenants.models import Namespace
from workloads.core import queries
from workloads.credentials import sealing
from workloads.credentials.secrets import policy as secret_policy
from workloads.credentials.secrets import queries as secret_queries
from workloads.credentials.secrets.models import TeamSecret


@transaction.atomic
def put_secret(tenant: str, name: str, value: str, *, by: Actor) -> tuple[TeamSecret, bool]:
    """Creates or replaces the secret. Returns whether it is new. Running runs keep the value with which they were
    started.

    Raises Refused: not_found (404), not_allowed, missing_scope (403), no_secrets, namespace_suspended, too_many_secrets
    (409), bad_variable, forbidden_variable, bad_value (422).
    """
    namespace, team = queries.team(by, tenant)
    refuse_if(secret_policy.may_put(by, team, can_seal=sealing.can_seal()))
    refuse_if(secret_policy.secret_refusal(name, value))
    known = secret_queries.unread_secrets(namespace).select_for_update().filter(name=name).first()
    row = known or TeamSecret(namespace=namespace, name=name)
    if known is None:
        refuse_if(secret_policy.may_add(TeamSecret.objects.filter(namespace=namespace).count()))
    row.sealed, row.created_by, row.updated_at = sealing.seal(value), by.person, Now()
    row.save(update_fields=["sealed", "created_by", "updated_at"] if known else None)
    row.refresh_from_db(fields=["updated_at"])
    record(by, "secret.put" if known is None else "secret.replaced", row, tenant=tenant, after={"name": name})
    return row, known is None


@transaction.atomic
def delete_secret(tenant: str, name: str, *, by: Actor) -> None:
    """Raises Refused: not_found (404), not_allowed, missing_scope (403), namespace_suspended, secret_in_use (409)."""
    namespace, team = queries.team(by, tenant)
    rows = secret_queries.unread_secrets(namespace).select_for_update()
    row = get_or_refuse(rows, name=name)
    refuse_if(secret_policy.may_change(by, team))
    refuse_if(secret_policy.may_delete(name, secret_queries.workloads_using(namespace, name)))
    record(by, "secret.deleted", row, tenant=tenant, before={"name": name})
    row.delete()


def missing_secrets_refusal(namespace: Namespace, names: Sequence[str], *, keep: bool = False) -> Refusal | None:
    """Returns why a run with these secrets cannot be created. `keep`: locks them, so that they are not deleted before
    this transaction ends. One query, none without names.
    """
    if not names:
        return None
    rows = secret_queries.unread_secrets(namespace).filter(name__in=names)
    # The lock prevents the deletion of the row, but not a change of it.
    rows = rows.select_for_update(no_key=True).order_by("name") if keep else rows
    return secret_policy.unknown_secrets_refusal(names, [row.name for row in rows])
