"""Running and queued workloads and volumes of a namespace."""

from __future__ import annotations

from tenants.lifecycle.contents import ContainedVolume as Kept
from tenants.lifecycle.contents import ContainedWorkload, NamespaceContents
from workloads.models import Run, Volume


def namespace_contents(namespace_id: int) -> NamespaceContents:
    """Returns workloads and volumes by name; running means that the units are admitted. Two queries."""
    runs = Run.objects.filter(workload__namespace_id=namespace_id, ended_at=None).order_by("workload__name")
    found: dict[bool, list[ContainedWorkload]] = {True: [], False: []}
    for run in runs.select_related("workload", "requested_by"):
        work = ContainedWorkload(
            name=run.workload.name,
            kind=run.workload.kind,
            gpu_class=str(run.spec.get("gpu_class", "")),
            units=run.total_units,
            who=run.requested_by.name,
            since=run.requested_at,
        )
        found[run.holds_units].append(work)
    volumes = Volume.objects.filter(namespace_id=namespace_id, gone_at=None).order_by("name")
    kept = tuple(Kept(one.name, one.size_gib) for one in volumes)
    return NamespaceContents(running=tuple(found[True]), waiting=tuple(found[False]), volumes=kept)
