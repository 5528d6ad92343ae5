"""What is put into a Run at its bad end, while its pod is still there to be read."""

from __future__ import annotations

from typing import Any

from cluster.run_spec import RunSpec
from workloads import kept, progress, run_secret
from workloads.ending import Ending
from workloads.models import Run
from workloads.seen import Seen
from workloads.wish import Wish


def kept_of(run: Run, seen: Seen | None, end: Ending) -> dict[str, Any]:
    """{} where nothing was explained. No query, but one of a run with secrets: their values are hidden by what they
    are, however they look.
    """
    if seen is None or end.told is None:
        return {}
    spec = RunSpec.from_json(run.spec)
    wish = Wish(
        kind=spec.kind,
        class_name="",
        class_slug=spec.gpu_class,
        units=spec.units,
        image=spec.image,
        number=run.number,
        requested_at=run.requested_at,
        has_volume=bool(spec.claim),
        has_repository=bool(spec.repository),
        admitted_at=run.admitted_at,
        started_at=run.started_at,
        ready_at=run.ready_at,
    )
    found = kept.Kept(end.told, progress.reached(wish, seen))
    return kept.to_json(found, secrets=run_secret.values(run.workload, spec))
