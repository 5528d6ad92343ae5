"""Reads the Leases that Kueue, the scheduler and the controllers renew while they work, in a thread of its own.

A watch of them would bring an event every two seconds; a read every few seconds is enough. A component without leader
election has no Lease: nothing is known of it then. Right to read them: `deploy/base/rights-watcher.yaml`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

import structlog
from django.db import transaction

from cluster.client.errors import ClusterRefused, ClusterUnavailable
from cluster.mirror import tables
from cluster.mirror.records.types import Raw
from cluster.mirror.silence import CONTROLLERS, QUEUE_SYSTEM, SCHEDULER, SILENT_AFTER
from cluster.mirror.watch import WatchSource
from cluster.models import MirrorJob

log = structlog.get_logger(__name__)

EVERY_S = 5.0
LEASES = {
    QUEUE_SYSTEM: ("kueue-system", "c1f6bfd2.kueue.x-k8s.io"),
    SCHEDULER: ("kube-system", "kube-scheduler"),
    CONTROLLERS: ("kube-system", "kube-controller-manager"),
}


class LeaseReader:
    """`take` returns what was read since the last call: by component the time of its last renewal, "" without a Lease.
    A component that could not be read is left out.
    """

    def __init__(self, source: WatchSource) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._found: dict[str, str] = {}

    def take(self) -> dict[str, str]:
        with self._lock:
            found, self._found = self._found, {}
        return found

    def run(self, is_over: threading.Event) -> None:
        while not is_over.is_set():
            for component in LEASES:
                renewed = self._read(component)
                if renewed is not None:
                    with self._lock:
                        self._found[component] = renewed
            is_over.wait(EVERY_S)

    def _read(self, component: str) -> str | None:
        namespace, name = LEASES[component]
        path = f"apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        try:
            page = self._source.list_page(path, limit=1, field_selector=f"metadata.name={name}")
            lease: Raw = next(iter(page.get("items") or []), {})
            return str((lease.get("spec") or {}).get("renewTime") or "")
        except (ClusterUnavailable, ClusterRefused):
            # The watches report a server that does not answer.
            return None
        except Exception:
            # The thread goes on; an unexpected error is logged with its traceback.
            log.exception("lease_unread", component=component)
            return None


class SilenceRecorder:
    """Writes what the reader found, in the thread of the mirror's writer."""

    def __init__(self, cluster_id: int) -> None:
        self._cluster_id = cluster_id
        self._silent: frozenset[str] = frozenset()

    def write(self, renewals: Mapping[str, str]) -> set[str]:
        """Returns the page channels of all namespaces with Jobs if another component became silent or answers again."""
        if not renewals:
            return set()
        with transaction.atomic():
            silent = tables.mark_leases(self._cluster_id, renewals, SILENT_AFTER)
        if silent == self._silent:
            return set()
        log.warning("silent_components", components=sorted(silent))
        self._silent = silent
        return set(MirrorJob.objects.filter(cluster_id=self._cluster_id).values_list("namespace", flat=True).distinct())
