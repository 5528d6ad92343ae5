"""A team's secrets as users may see them: never a value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from tenants.models import Namespace
from workloads.credentials.secrets.models import TeamSecret
from workloads.models import Run, Workload


@dataclass(frozen=True)
class SecretRow:
    """`by`: who set the value; `used_by`: workloads that are declared with the secret."""

    name: str
    by: str
    updated_at: datetime
    used_by: tuple[str, ...]


def stored_secrets(namespace: Namespace) -> QuerySet[TeamSecret]:
    """Returns the secrets by name, without the encrypted value."""
    return unread_secrets(namespace).select_related("created_by").order_by("name")


def unread_secrets(namespace: Namespace) -> QuerySet[TeamSecret]:
    """Without the encrypted values, which the database refuses to web."""
    return TeamSecret.objects.filter(namespace=namespace).defer("sealed")


def secret_rows(namespace: Namespace, secrets: Iterable[TeamSecret] | None = None) -> list[SecretRow]:
    """Returns these secrets, or all by name. Two queries, one if the secrets are given."""
    declared = Workload.objects.filter(namespace=namespace, deleted_at=None, options__has_key="secrets")
    users: dict[str, list[str]] = {}
    for workload, options in declared.order_by("name").values_list("name", "options"):
        for secret in options["secrets"]:
            users.setdefault(secret, []).append(workload)
    found = stored_secrets(namespace) if secrets is None else secrets
    return [SecretRow(one.name, one.created_by.name, one.updated_at, tuple(users.get(one.name, ()))) for one in found]


def secret_names(namespace: Namespace) -> list[str]:
    """One query."""
    return list(TeamSecret.objects.filter(namespace=namespace).order_by("name").values_list("name", flat=True))


def workloads_using(namespace: Namespace, name: str) -> list[str]:
    """Returns names of queued and running workloads that use it, three at most. One query."""
    alive = Run.objects.filter(workload__namespace=namespace, ended_at=None, spec__secrets__contains=[name])
    return list(alive.order_by("workload__name").values_list("workload__name", flat=True)[:3])
