"""Actions on a team's registry credentials. They are encrypted at once and never shown; Events have only the host.

A change applies to queued and running runs: the worker is woken and creates the run's own Secret again, or deletes it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from django.db import transaction
from django.db.models.functions import Now

from accounts.core.actor import Actor
from accounts.events.actions import record
from portal.core.due import wake
from portal.core.errors import get_or_refuse, refuse_if
from tenants.class_access.image_prefixes.queries import prefixes_of
from tenants.models import Namespace
from workloads.core import queries
from workloads.credentials import sealing
from workloads.credentials.registries import policy as registry_policy
from workloads.credentials.registries.queries import registry_hosts, unread_logins
from workloads.models import RegistryCredential, Run, Workload


@dataclass(frozen=True)
class RegistryLogin:
    username: str
    password: str


def seal_login(one: RegistryLogin) -> bytes:
    return sealing.seal(json.dumps([one.username, one.password]))


def unseal_login(sealed: bytes) -> RegistryLogin | None:
    """Returns None if this process has no key, or the key of another pair."""
    opened = sealing.unseal(sealed)
    return None if opened is None else RegistryLogin(*json.loads(opened))


@transaction.atomic
def put_login(tenant: str, registry: str, sign_in: RegistryLogin, *, by: Actor) -> tuple[RegistryCredential, bool]:
    """Creates or replaces the credentials. Returns whether they are new.

    Raises Refused: not_found (404), not_allowed, missing_scope (403), no_secrets (409), unknown_registry, bad_username,
    bad_password (422).
    """
    namespace, team = queries.team(by, tenant)
    refuse_if(registry_policy.may_put(by, team, can_seal=sealing.can_seal()))
    refuse_if(registry_policy.unused_registry_refusal(registry, registry_hosts(prefixes_of(namespace.tenant_id))))
    refuse_if(registry_policy.login_refusal(sign_in.username, sign_in.password))
    known = unread_logins(namespace).select_for_update().filter(registry=registry).first()
    row = known or RegistryCredential(namespace=namespace, registry=registry)
    row.sealed, row.created_by, row.updated_at = seal_login(sign_in), by.person, Now()
    row.save(update_fields=["sealed", "created_by", "updated_at"] if known else None)
    row.refresh_from_db(fields=["updated_at"])
    record(
        by,
        "registry.put" if known is None else "registry.replaced",
        row,
        tenant=tenant,
        after={"registry": registry},
    )
    _retry_waiting_runs(namespace, registry)
    return row, known is None


@transaction.atomic
def delete_login(tenant: str, registry: str, *, by: Actor) -> None:
    """Deletes at once, also while runs use it: their image is on the node. Raises Refused: not_found (404), not_allowed
    (403).
    """
    namespace, team = queries.team(by, tenant)
    refuse_if(registry_policy.may_change(by, team))
    rows = unread_logins(namespace).select_for_update()
    row = get_or_refuse(rows, registry=registry)
    record(by, "registry.deleted", row, tenant=tenant, before={"registry": registry})
    row.delete()
    _retry_waiting_runs(namespace, registry)


def _retry_waiting_runs(namespace: Namespace, registry: str) -> None:
    alive = Run.objects.filter(workload__namespace=namespace, ended_at=None, spec__registry=registry)
    wake(Workload, list(alive.values_list("workload_id", flat=True)))
