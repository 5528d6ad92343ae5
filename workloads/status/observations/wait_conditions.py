"""Whether a run has reached the state that an API call waits for. The doors process checks this at each namespace
change.
"""

from __future__ import annotations

from typing import Any

from django.db.models.fields.json import KT

from workloads.models import Run


def has_reached(namespace: str, name: str, until: str, number: int | None = None) -> bool:
    """Returns whether the run of this number, or otherwise the last run, has reached "admitted", "ready" or "finished".

    A run that has ended cannot reach a further state. A requested next run has not started. A call does not wait for a
    number that does not exist and is not requested. One query.
    """
    # Of a team that gave the namespace back, another team may have it.
    own = {"workload__namespace__name": namespace, "workload__namespace__gone_at": None}
    rows = Run.objects.filter(**own, workload__name=name, workload__deleted_at=None)
    if number is not None:
        # Includes the previous run, which records whether this run is requested.
        rows = rows.filter(number__in=(number, number - 1))
    found = rows.order_by("-number").values(*_COLUMNS, kind=KT("spec__kind"), workers=KT("spec__workers")).first()
    if found is None:
        return True
    if number is not None and found["number"] < number:
        return found["next_wanted_by"] is None or found["workload__delete_requested_at"] is not None
    return _got_to(found, until)


_COLUMNS = (
    "number",
    "next_wanted_by",
    "workload__delete_requested_at",
    "admitted_at",
    "started_at",
    "ready_at",
    "ended_at",
)


def _got_to(run: dict[str, Any], until: str) -> bool:
    is_waited_for = run["kind"] == "notebook" or int(run["workers"] or 1) > 1
    ready = run["ready_at"] if is_waited_for else run["started_at"]
    reached = {"admitted": run["admitted_at"], "ready": ready, "finished": None}[until]
    return reached is not None or run["ended_at"] is not None
