"""What a filter of the list of workloads may name; running and queued workloads and volumes of a namespace."""

from __future__ import annotations

from django.db.models import Exists, OuterRef

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from portal.core.errors import refuse
from tenants.class_access import queries as class_access_queries
from tenants.lifecycle.contents import ContainedVolume as Kept
from tenants.lifecycle.contents import ContainedWorkload, NamespaceContents
from tenants.models import Membership
from workloads.core import queries as core_queries
from workloads.models import Run, Volume, Workload


def check_filter(by: Actor, slug: str, gpu_class: str, created_by: str) -> None:
    """Raises Refused: not_found (404) for a team that the actor may not see, unknown_class, unknown_person (422). A
    team's workloads may use a class that its members no longer see; of people, only those of the team are known.
    """
    namespace, facts = core_queries.team(by, slug)
    theirs = Workload.objects.filter(namespace=namespace)
    if gpu_class:
        visible = class_access_queries.known_classes(by, namespace.cluster)
        seen = Exists(visible.filter(pk=OuterRef("pk"))) | Exists(theirs.filter(gpu_class=OuterRef("pk")))
        class_access_queries.class_to_filter(GpuClass.objects.filter(seen), gpu_class)
    if created_by:
        of_team = Membership.objects.filter(tenant=namespace.tenant_id, user=OuterRef("pk"))
        people = User.objects.filter(Exists(of_team) | Exists(theirs.filter(created_by=OuterRef("pk"))))
        if not people.filter(email__iexact=created_by).exists():
            text = f"Nobody with the address '{created_by[:80]}' is in {facts.team} or has created a workload in it."
            raise refuse("unknown_person", text, field="created_by")


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
