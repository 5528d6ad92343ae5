"""The state of a namespace in its lifecycle, the reason for it, and its objects by kind."""

from __future__ import annotations

from collections import Counter

from accounts.events.queries import events_of_row
from cluster.models import AppliedObject
from tenants.lifecycle.policy import NamespaceLifecycle
from tenants.models import Namespace


def lifecycle_of(row: Namespace) -> NamespaceLifecycle:
    return NamespaceLifecycle(row.wanted, row.closes_at, row.volumes_until, row.gone_at)


def object_counts(namespace: Namespace) -> Counter[str]:
    """Returns the number of the portal's objects in the namespace by kind, including those of workloads. One query."""
    rows = AppliedObject.objects.filter(cluster_id=namespace.cluster_id, namespace=namespace.name)
    return Counter(rows.values_list("kind", flat=True))


def state_reason(namespace: Namespace) -> str:
    """The stated reason why it is suspended or being closed; "" while it is active. At most one query."""
    if namespace.wanted == Namespace.Wanted.ACTIVE:
        return ""
    last = events_of_row(namespace).filter(verb="namespace.changed").first()
    return str(last.after.get("because", "")) if last else ""
