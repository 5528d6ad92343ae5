"""Responses with a workload: its body, its tag, and the parameters `wait` and `until`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.actor import Actor
from accounts.rest.etag import etag_of
from accounts.rest.fast_serializer import row_writer
from accounts.rest.strict.query import choice_parameter
from accounts.rest.waiting import wait_parameter, wants_to_wait
from catalog.images.image_references import unknown_compatibility
from cluster.manifests.run_spec import JOB, NOTEBOOK
from portal.core.errors import refuse
from workloads.advice.advice import Advice
from workloads.advice.queries import advice_for_rows, verdict_of
from workloads.advice.serializers import advice_body
from workloads.core import queries as core_queries
from workloads.core.notifications import page_url
from workloads.interruption.loss import interruption_loss_of
from workloads.models import Workload
from workloads.rest.serializers import WorkloadSerializer
from workloads.status import queries as status_queries
from workloads.status.explain.types import who_acts
from workloads.status.types import Status
from workloads.status.workload_row import WorkloadRow

UNTIL = ("admitted", "ready", "finished")

_written = row_writer(WorkloadSerializer())

_PLAIN = ("name", "kind", "units", "image", "command", "options", "created_at")

WAIT_PARAMETERS = (
    wait_parameter("the state is reached"),
    choice_parameter("until", UNTIL, "State to wait for. Default `ready`."),
)


def workload_body(row: WorkloadRow, helps: Mapping[str, Advice]) -> Any:
    workload = row.workload
    return _written(
        {
            **{name: getattr(workload, name) for name in _PLAIN},
            "team": workload.tenant.slug,
            "namespace": workload.namespace.name_in_cluster,
            "gpu_class": workload.gpu_class.slug,
            "volume": workload.volume.name if workload.volume else "",
            "visibility": workload.visibility if workload.kind == NOTEBOOK else None,
            "created_by": workload.created_by.email,
            "url": page_url(workload),
            "status": status_body(row.status, helps.get(workload.name), workload.tenant.slug),
            "run": row.run,
            "needs_run": _needs_run(row),
            "steps": row.steps,
            "image_note": unknown_compatibility(workload.gpu_class.name, workload.kind) if workload.own_image else "",
            "estimate": row.estimate,
            "interruption": interruption_body(row),
        }
    )


def status_body(status_: Status, advice: Advice | None, tenant: str) -> dict[str, Any]:
    return {
        "phase": str(status_.phase),
        "reason": status_.reason,
        "message": status_.sentence,
        "since": status_.since,
        "facts": status_.facts,
        "actions": status_.actions,
        "who_acts": str(who_acts(status_.reason)),
        **advice_body(advice, tenant),
        "verdict": verdict_of(status_, advice),
    }


def _needs_run(row: WorkloadRow) -> bool:
    workload, run = row.workload, row.run
    if workload.kind != JOB or workload.delete_requested_at is not None:
        return False
    # A requested next run starts automatically.
    return run is None or (run.ended_at is not None and run.next_wanted_by_id is None)


def waits_for_run(request: Request) -> bool:
    """Returns whether the caller wants to wait. Raises Refused: bad_wait, bad_until (422)."""
    if request.query_params.get("until", "ready") not in UNTIL:
        raise refuse("bad_until", f"until must be one of {', '.join(UNTIL)}.", field="until")
    return wants_to_wait(request)


def workload_response(by: Actor, tenant: str, name: str, status_code: int = status.HTTP_200_OK) -> Response:
    found = core_queries.visible_workload(by, tenant, name)
    rows = status_queries.workload_rows([found])
    return Response(
        workload_body(rows[0], advice_for_rows(by, rows)), status=status_code, headers={"ETag": workload_etag(found)}
    )


def workload_etag(found: Workload) -> str:
    """Covers the values that PUT sets. Deleting the workload and declaring the same again counts as a change."""
    volume = found.volume.name if found.volume else ""
    said = (found.image, found.command, volume, found.options, found.visibility)
    return etag_of(found.pk, found.kind, found.gpu_class.slug, found.units, *said)


def interruption_body(row: WorkloadRow) -> dict[str, Any] | None:
    """Returns None if no run is queued or running."""
    if row.run is None or row.run.ended_at is not None:
        return None
    found = row.exposure
    return {
        "standing": str(found.place.standing) if found else None,
        "holds_units": found.holds if found else None,
        "borrowed_units": found.place.borrowed if found else None,
        "by": found.threats if found else (),
        "checkpoints": row.run.spec.get("checkpoints", False),
        "sentence": found.sentence if found else "",
        "loses": interruption_loss_of(row.run),
        "last": row.interrupted,
    }
