"""The verbs about a team's credentials of registries. Sealed at once and never shown; Events have the host alone.

What runs or waits follows: the worker is woken, and the run's own Secret is as what is kept, or gone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from django.db import transaction
from django.db.models.functions import Now

from accounts.actions import record
from accounts.actor import Actor
from portal.due import wake
from portal.errors import get_or_refuse, refuse_if
from tenants.models import Namespace
from tenants.queries.image_prefixes import prefixes
from workloads import queries, registry_policy, sealing
from workloads.models import RegistryCredential, Run, Workload
from workloads.queries.registries import hosts_of


@dataclass(frozen=True)
class SignIn:
    username: str
    password: str


def seal(one: SignIn) -> bytes:
    return sealing.seal(json.dumps([one.username, one.password]))


def unseal(sealed: bytes) -> SignIn | None:
    """None: this process has no key, or one of another pair."""
    opened = sealing.unseal(sealed)
    return None if opened is None else SignIn(*json.loads(opened))


@transaction.atomic
def put(tenant: str, registry: str, sign_in: SignIn, *, by: Actor) -> tuple[RegistryCredential, bool]:
    """Create or replace, and whether it is new.

    Raises Refused: not_found (404), not_allowed, missing_scope (403), no_secrets (409), unknown_registry,
    bad_username, bad_password (422).
    """
    namespace, team = queries.team(by, tenant)
    refuse_if(registry_policy.may_put(by, team, can_seal=sealing.can_seal()))
    refuse_if(registry_policy.unused_registry(registry, hosts_of(prefixes(namespace.tenant_id))))
    refuse_if(registry_policy.bad_sign_in(sign_in.username, sign_in.password))
    rows = RegistryCredential.objects.select_for_update()
    known = rows.filter(namespace=namespace, registry=registry).first()
    row = known or RegistryCredential(namespace=namespace, registry=registry)
    row.sealed, row.created_by, row.updated_at = seal(sign_in), by.person, Now()
    row.save()
    row.refresh_from_db(fields=["updated_at"])
    record(
        by,
        "registry.put" if known is None else "registry.replaced",
        row,
        tenant=tenant,
        after={"registry": registry},
    )
    _follow(namespace, registry)
    return row, known is None


@transaction.atomic
def delete(tenant: str, registry: str, *, by: Actor) -> None:
    """At once, whatever runs: its image is on its node. Raises Refused: not_found (404), not_allowed (403)."""
    namespace, team = queries.team(by, tenant)
    refuse_if(registry_policy.may_change(by, team))
    rows = RegistryCredential.objects.select_for_update().filter(namespace=namespace)
    row = get_or_refuse(rows, registry=registry)
    record(by, "registry.deleted", row, tenant=tenant, before={"registry": registry})
    row.delete()
    _follow(namespace, registry)


def _follow(namespace: Namespace, registry: str) -> None:
    alive = Run.objects.filter(workload__namespace=namespace, ended_at=None, spec__registry=registry)
    wake(Workload, list(alive.values_list("workload_id", flat=True)))
