"""A team's registries as users may see them: never a user name, never a password."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from catalog.images import image_references
from tenants.class_access.image_prefixes import queries as image_prefixe_queries
from tenants.models import ImagePrefix, Namespace
from workloads.models import RegistryCredential, Workload


@dataclass(frozen=True)
class RegistryRow:
    """`by`: who set the credentials; `used_by`: workloads declared with an image of this registry; `is_allowed`: the
    team may use a prefix of this registry.
    """

    registry: str
    by: str
    updated_at: datetime
    used_by: tuple[str, ...]
    is_allowed: bool


@dataclass(frozen=True)
class PrefixRow:
    """`used_by`: workloads declared with an image under this prefix. `has_sign_in`: the team has credentials for its
    host.
    """

    pk: int
    prefix: str
    by: str
    allowed_at: datetime
    used_by: tuple[str, ...]
    has_sign_in: bool


def registry_hosts(prefixes: Iterable[str]) -> list[str]:
    """Returns hosts in order, without duplicates."""
    return list(dict.fromkeys(prefix.partition("/")[0] for prefix in prefixes))


def stored_logins(namespace: Namespace) -> QuerySet[RegistryCredential]:
    """Returns the credentials by host, without the encrypted values."""
    return unread_logins(namespace).select_related("created_by").order_by("registry")


def unread_logins(namespace: Namespace) -> QuerySet[RegistryCredential]:
    """Without the encrypted values, which the database refuses to web."""
    return RegistryCredential.objects.filter(namespace=namespace).defer("sealed")


def custom_image_workloads(namespace: Namespace) -> list[tuple[str, str]]:
    """Returns name and image of each workload whose image is not in the catalog, by name. One query."""
    declared = Workload.objects.filter(namespace=namespace, deleted_at=None, own_image=True)
    return list(declared.order_by("name").values_list("name", "image"))


def registry_rows(
    kept: Iterable[RegistryCredential], prefixes: Sequence[str], used: Sequence[tuple[str, str]]
) -> list[RegistryRow]:
    """No query except the one of `kept`. `used`: as `own_images` returns it."""
    hosts = registry_hosts(prefixes)
    return [
        RegistryRow(
            one.registry,
            one.created_by.name,
            one.updated_at,
            tuple(name for name, image in used if image.partition("/")[0] == one.registry),
            one.registry in hosts,
        )
        for one in kept
    ]


def registry_row(namespace: Namespace, registry: str) -> RegistryRow:
    """Returns the row of an existing registry. Three queries."""
    kept = stored_logins(namespace).filter(registry=registry)
    [found] = registry_rows(
        kept, image_prefixe_queries.prefixes_of(namespace.tenant_id), custom_image_workloads(namespace)
    )
    return found


def prefix_rows(
    allowed: Iterable[ImagePrefix], kept: Sequence[RegistryCredential], used: Sequence[tuple[str, str]]
) -> list[PrefixRow]:
    hosts = {one.registry for one in kept}
    return [
        PrefixRow(
            one.pk,
            one.prefix,
            one.allowed_by.name if one.allowed_by else "",
            one.allowed_at,
            tuple(name for name, image in used if image_references.is_below(image, [one.prefix])),
            one.prefix.partition("/")[0] in hosts,
        )
        for one in allowed
    ]
