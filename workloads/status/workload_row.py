"""A workload with the status, start estimate and exposure of its current run: what list, page, stream and API show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from catalog.models import GpuClass
from cluster.reads.observed import AsOf, Pod
from workloads.interruption.exposure import Exposure
from workloads.interruption.preemption import Interruption
from workloads.models import Run, Workload
from workloads.status import progress
from workloads.status.entitlement import QuotaLoss
from workloads.status.estimates.estimate import EstimateOutcome
from workloads.status.types import QUEUED_PHASES, Status

# A team's home shows so many running and so many queued workloads of each class.
SHOWN_OF_A_CLASS = 20


@dataclass(frozen=True)
class WorkloadRow:
    """A workload with its current run's status: what list, page, stream and API show.

    `gpu_class`: of the run, since the workload may be declared with another class now; without a run, of the
    declaration. `as_of`: how current the mirror was at this read. `estimate`: for a queued run. `exposure`: how an
    active run may be preempted, None while unknown; `interrupted`: the last interruption. `loss`: quota that ended, so
    that it waits.
    """

    workload: Workload
    run: Run | None
    gpu_class: GpuClass
    status: Status
    steps: tuple[progress.ProgressStep, ...]
    pod: Pod | None
    as_of: AsOf
    pods: tuple[Pod, ...] = ()
    estimate: EstimateOutcome | None = None
    exposure: Exposure | None = None
    interrupted: Interruption | None = None
    loss: QuotaLoss | None = None

    @property
    def is_in_line(self) -> bool:
        """The run waits for units. A run that is blocked on a node has its units. A requeued run has none, though its
        pod may still be terminating.
        """
        pod = self.pod
        stays = pod is not None and pod.is_on_a_node and pod.deleting_since is None
        return self.status.phase in QUEUED_PHASES and not stays

    @property
    def units_on_nodes(self) -> int:
        """Units of its pods that are bound to a node and have not ended, including terminating pods."""
        bound = sum(pod.is_on_a_node for pod in self.pods)
        return bound * self.run.units_each if self.run else 0


def in_queue_order(rows: Iterable[WorkloadRow]) -> list[WorkloadRow]:
    """Those with a position first, then those that were requested first."""
    return sorted(rows, key=_place_in_queue)


def _place_in_queue(row: WorkloadRow) -> tuple[int, datetime]:
    at = row.run.requested_at if row.run else row.workload.created_at
    return row.status.facts.get("position", 10**6), at
