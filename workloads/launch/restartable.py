"""Which workloads of a list can be started again from the list."""

from __future__ import annotations

from collections.abc import Collection

from accounts.core.actor import Actor
from catalog.images.image_references import is_below
from catalog.models import GpuClass
from tenants.class_access.image_prefixes.queries import prefixes_of
from tenants.models import Namespace
from workloads.core import policy
from workloads.core.queries import run_facts
from workloads.launch import policy as launch_policy
from workloads.launch.options import Options
from workloads.launch.queries import accepted_terms
from workloads.models import Volume
from workloads.status.workload_row import WorkloadRow
from workloads.storage.policy import VolumeFacts, VolumeHolder, may_mount
from workloads.storage.queries import deletes_at, holders


def restartable_names(
    by: Actor,
    namespace: Namespace,
    team: policy.TeamFacts,
    rows: Collection[WorkloadRow],
    classes: Collection[tuple[GpuClass, policy.ClassFacts]],
) -> set[str]:
    """Returns the names of ended workloads that this user may start on the current definition of their class without
    accepting terms first. `classes`: see `reachable_classes`. If a workload has ended: a query if a class has terms,
    one if any has a volume, and one if any has an image of the team's own.
    """
    over = [row.workload for row in rows if launch_policy.may_start(by, team, run_facts(row.workload, row.run)) is None]
    if not over:
        return set()
    facts = {one.pk: facts for one, facts in classes}
    signed = accepted_terms(by, {workload.gpu_class for workload in over})
    users = holders(namespace.pk) if any(workload.volume for workload in over) else {}
    allowed = prefixes_of(namespace.tenant_id) if any(workload.own_image for workload in over) else []
    return {
        workload.name
        for workload in over
        if (found := facts.get(workload.gpu_class_id)) is not None
        and launch_policy.may_start_on(found, workload.kind, workload.units, Options.from_json(workload.options))
        is None
        and (not found.terms_version or workload.gpu_class_id in signed)
        and _may_take(workload.volume, users)
        and (not workload.own_image or is_below(workload.image, allowed))
    }


def _may_take(volume: Volume | None, users: dict[str, VolumeHolder]) -> bool:
    if volume is None:
        return True
    facts = VolumeFacts(
        volume.name,
        deletes_at(volume),
        is_gone=volume.gone_at is not None,
        holder=users.get(volume.name),
        is_shared=volume.storage.is_shared,
    )
    return may_mount(facts) is None
