"""Specs from which manifests are built: plain values, computed from rows elsewhere. No database, no cluster, no
Django.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cluster.manifests.site import DEFAULT, SiteProfile

# A safety limit for objects that cost nothing one by one. A launch that would reach one is refused before it is stored.
OBJECT_COUNTS: Mapping[str, int] = {
    "count/jobs.batch": 500,
    "count/resourceclaims.resource.k8s.io": 500,
    "count/resourceclaimtemplates.resource.k8s.io": 500,
    "configmaps": 20,
    "persistentvolumeclaims": 100,
    "pods": 1000,
    "secrets": 1000,
    "services": 500,
    "services.loadbalancers": 0,
    "services.nodeports": 0,
}


@dataclass(frozen=True, order=True)
class QuotaCell:
    """One flavor's share of one resource in a ClusterQueue or Cohort, in whole units.

    `borrowing_limit` None is for Cohorts only: in a ClusterQueue an absent limit would mean unlimited.
    """

    resource: str
    flavor: str
    nominal: int
    borrowing_limit: int | None = None


@dataclass(frozen=True)
class QuotaSpec:
    """The ResourceQuota behind the queue, a safety limit: hard limits by quota key, in whole units (memory in GiB).

    `storage_gib`: what volume claims may request together, the only limit on storage; None: not limited.
    """

    devices: Mapping[str, int]
    cpu: int
    memory_gib: int
    storage_gib: int | None = None


@dataclass(frozen=True)
class NamespaceSpec:
    """Input for all objects of a team's namespace. `cells` is None in a cluster without a queue system."""

    name: str
    owner: str
    group: str
    cohort: str
    quota: QuotaSpec
    cells: tuple[QuotaCell, ...] | None
    is_held: bool
    # A number without meaning. Changing it makes Kueue check queued workloads again (see `plain_resource_group`).
    wakes: int = 0
    # Units that run beyond the queue's own quota and must not be reclaimed (see `namespace.grace_cohort`).
    grace: tuple[QuotaCell, ...] = ()
    site: SiteProfile = DEFAULT


@dataclass(frozen=True)
class FlavorSpec:
    """How Kueue recognises a class: the taint on the flavor, which only pods of this class tolerate.

    `topology`: admitted only when it fits on real nodes; needs at least one node label. "" for none (DRA and classes
    with an autoscaler).
    `is_held`: scheduling is paused: nothing new is admitted; runs continue.
    """

    name: str
    owner: str
    slug: str
    node_labels: Mapping[str, str]
    tolerations: tuple[Mapping[str, str], ...]
    topology: str
    is_held: bool = False


@dataclass(frozen=True)
class CohortSpec:
    """Capacity that is not allocated to teams; all teams may borrow it."""

    name: str
    owner: str
    cells: tuple[QuotaCell, ...]
