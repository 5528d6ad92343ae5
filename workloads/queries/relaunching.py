"""Which workloads of a list could be started again with one click."""

from __future__ import annotations

from collections.abc import Collection

from accounts.actor import Actor
from catalog.references import is_below
from tenants.models import Namespace
from tenants.queries.image_prefixes import prefixes
from workloads import policy
from workloads.models import Volume
from workloads.options import Options
from workloads.queries import WorkloadRow, accepted, run_facts
from workloads.queries.launching import reachable
from workloads.queries.volumes import deletes_at, holders
from workloads.volume_policy import Holder, VolumeFacts, may_take


def at_once(by: Actor, namespace: Namespace, team: policy.TeamFacts, rows: Collection[WorkloadRow]) -> set[str]:
    """Names of those that ended, may be started by this person on their class as it is, and ask for no terms first.
    Two queries when there is one that ended, a third when its class has terms, and one each when it has a volume and
    when its image is the team's own.
    """
    over = [row.workload for row in rows if policy.may_start(by, team, run_facts(row.workload, row.run)) is None]
    if not over:
        return set()
    facts = {one.pk: facts for one, facts in reachable(namespace)}
    signed = accepted(by, {workload.gpu_class for workload in over})
    users = holders(namespace.pk) if any(workload.volume for workload in over) else {}
    allowed = prefixes(namespace.tenant_id) if any(workload.own_image for workload in over) else []
    return {
        workload.name
        for workload in over
        if (found := facts.get(workload.gpu_class_id)) is not None
        and policy.may_start_on(found, workload.kind, workload.units, Options.from_json(workload.options)) is None
        and (not found.terms_version or workload.gpu_class_id in signed)
        and _may_take(workload.volume, users)
        and (not workload.own_image or is_below(workload.image, allowed))
    }


def _may_take(volume: Volume | None, users: dict[str, Holder]) -> bool:
    if volume is None:
        return True
    facts = VolumeFacts(volume.name, deletes_at(volume), volume.gone_at is not None, users.get(volume.name))
    return may_take(facts) is None
