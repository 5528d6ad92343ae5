"""A ClusterQueue as the API server has it now: the units that Kueue has admitted limit how far quota may be reduced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cluster.manifests import names
from cluster.mirror.records.quantities import amount

FlavorKey = tuple[str, str]  # resource, flavor


@dataclass(frozen=True)
class LiveQuotaCell:
    """`used`: units that Kueue holds for admitted Workloads, whatever the nominal quota is."""

    nominal: int
    borrowing_limit: int | None
    used: int


@dataclass(frozen=True)
class LiveClusterQueue:
    """`is_open`: not on hold. `admitted` and `pending` count Workloads that are not finished.

    `wakes`: as in NamespaceSpec.
    """

    is_open: bool = False
    is_terminating: bool = False
    admitted: int = 0
    pending: int = 0
    wakes: int = 0
    cells: Mapping[FlavorKey, LiveQuotaCell] = field(default_factory=dict)


ABSENT_QUEUE = LiveClusterQueue()


def parse_cluster_queue(body: Mapping[str, Any]) -> LiveClusterQueue:
    spec, status = body.get("spec") or {}, body.get("status") or {}
    used: dict[FlavorKey, int] = {}
    for flavor in status.get("flavorsReservation") or []:
        for resource in flavor.get("resources") or []:
            used[(resource["name"], flavor["name"])] = amount(resource["name"], resource.get("total") or 0)
    cells = {
        (quota["name"], flavor["name"]): LiveQuotaCell(
            nominal=amount(quota["name"], quota.get("nominalQuota") or 0),
            borrowing_limit=amount(quota["name"], quota["borrowingLimit"]) if "borrowingLimit" in quota else None,
            used=used.get((quota["name"], flavor["name"]), 0),
        )
        for group in spec.get("resourceGroups") or []
        for flavor in group["flavors"]
        for quota in flavor["resources"]
    }
    plain = cells.pop((names.PLAIN_RESOURCE, names.PLAIN_FLAVOR), None)
    return LiveClusterQueue(
        is_open=spec.get("stopPolicy", "None") == "None",
        is_terminating="deletionTimestamp" in body.get("metadata", {}),
        admitted=int(status.get("reservingWorkloads") or 0),
        pending=int(status.get("pendingWorkloads") or 0),
        wakes=plain.nominal if plain else 0,
        cells=cells,
    )
