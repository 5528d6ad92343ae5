"""Runs of a workload by their numbers: those that were, the last one, and the one that is to follow it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.db.models import QuerySet
from django.utils import timezone

from portal.errors import NOT_FOUND, Refused
from workloads import queries
from workloads.coming_back import is_brought_back
from workloads.models import Run, Workload
from workloads.phase import Phase, Status, status
from workloads.queries import WorkloadRow

# More than PostgreSQL could compare is no number of a run.
NUMBER_LIMIT = 2_000_000_000


@dataclass(frozen=True)
class RunRow:
    """`of_last`: of the last run, its workload's row, with all that is seen of it now. `run` is not saved where it is
    to come. `followed_by`: number of the run that the portal made in place of this one, which was interrupted.
    """

    workload: Workload
    run: Run
    status: Status
    of_last: WorkloadRow | None = None
    followed_by: int | None = None


def of_workload(workload: Workload) -> QuerySet[Run]:
    return Run.objects.filter(workload=workload).select_related("watch")


def numbered(workload: Workload, number: int) -> RunRow:
    """Of a workload `with_names`. An earlier run is what its row says; the last one takes as many queries more as
    `queries.rows`. Raises Refused (404).
    """
    if number > NUMBER_LIMIT:
        raise Refused(NOT_FOUND)
    found = {run.number: run for run in of_workload(workload).filter(number__in=(number - 1, number, number + 1))}
    run, before = found.get(number), found.get(number - 1)
    if run is None:
        if before is None or not is_to_be_followed(workload, before):
            raise Refused(NOT_FOUND)
        return _to_come(workload, before)
    if number + 1 in found:
        return RunRow(workload, run, _ended(workload, run), followed_by=number + 1 if is_brought_back(run) else None)
    row = queries.rows([workload])[0]
    if row.run is None or row.run.number != number:  # another one began just now
        return numbered(workload, number)
    return RunRow(workload, row.run, row.status, of_last=row)


def is_to_be_followed(workload: Workload, last: Run) -> bool:
    return last.next_wanted_by_id is not None and workload.delete_requested_at is None


def _ended(workload: Workload, run: Run) -> Status:
    """Its own words; what could be done next is of the last run."""
    wish = queries.wish_of(workload, run, workload.gpu_class, None, signs_in=False)
    assert wish is not None, "of a run"
    return replace(status(replace(wish, is_deleting=False), None, now=timezone.now()), actions=())


def _to_come(workload: Workload, before: Run) -> RunRow:
    run = Run(workload=workload, number=before.number + 1, group=before.group, spec={})
    run.requested_at = None  # type: ignore[assignment]  # a row has it from the database
    told = f"It begins when run {before.number} has ended, as the workload is declared then."
    return RunRow(workload, run, Status(Phase.QUEUED, "follows", told, None))
