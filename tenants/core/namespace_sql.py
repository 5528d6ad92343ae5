"""A namespace with its team and its cluster, read by SQL text because launches and live pages wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cluster.models import Cluster
from portal.core.sql import columns, instance
from tenants.models import Namespace, Tenant

# To be selected FROM these, and taken with `placed`.
NAMESPACE_COLUMNS = ", ".join([columns(Namespace, "namespace"), columns(Tenant, "tenant"), columns(Cluster, "cluster")])
NAMESPACE_FROM = f"""{Namespace._meta.db_table} namespace
  JOIN {Tenant._meta.db_table} tenant ON tenant.id = namespace.tenant_id
  JOIN {Cluster._meta.db_table} cluster ON cluster.id = namespace.cluster_id"""


def namespace_from_row(values: Iterator[Any]) -> Namespace:
    found = instance(Namespace, values)
    found.tenant, found.cluster = instance(Tenant, values), instance(Cluster, values)
    return found
