"""Actions on workloads: launch, declare, start, stop, delete.

Each action is one transaction that checks policy first and writes exactly one Event. A user waits for the launch, so it
makes few queries and then sends a hint; the worker does everything in the cluster.
"""

from __future__ import annotations

import secrets
from dataclasses import replace

from django.db import transaction
from django.db.models.functions import Now

from accounts.core.actor import Actor
from accounts.events.actions import record
from catalog.models import GpuClass
from cluster.manifests import names
from cluster.manifests.run_spec import NOTEBOOK
from portal.core.due import table_label, touch
from portal.core.errors import Refused, refuse, refuse_if
from portal.core.hints import page_hint, worker_hint
from tenants.class_access.actions import accept_terms
from tenants.models import Namespace
from workloads.core import policy as core_policy
from workloads.core import queries
from workloads.core.queries import undeleted_workload
from workloads.credentials.secrets import actions as team_secrets
from workloads.launch import custom_images, policy
from workloads.launch import queries as launch_queries
from workloads.launch import types as launch_types
from workloads.launch.options import Options
from workloads.launch.priorities import queries as priority_queries
from workloads.launch.queries import LaunchTarget
from workloads.launch.spec import frozen_spec, new_identity
from workloads.launch.stopping import announce, request_stop
from workloads.models import Run, Volume, Workload
from workloads.storage import actions as storage_actions
from workloads.storage import policy as storage_policy
from workloads.storage import queries as volume_queries
from workloads.storage.queries import storage_facts


@transaction.atomic
def launch(tenant: str, wanted: launch_types.LaunchSpec, *, by: Actor) -> Workload:
    """Creates a workload and its first run. The run is queued as long as needed; only what can never start is refused.

    Raises Refused: not_found (404), not_allowed, missing_scope (403), name_taken, namespace_suspended (409),
    terms_not_accepted, image_does_not_run, or another reason why it can never start (422).
    """
    namespace, team = queries.team(by, tenant)
    target = _target(namespace, wanted, by)
    refuse_if(policy.may_launch(by, team, target.facts, wanted))
    _check_production_limit(namespace, target.gpu_class, wanted.options, wanted.total_units)
    accept_if_needed(target.gpu_class, target.facts, wanted.accept_terms, by)
    refuse_if(team_secrets.missing_secrets_refusal(namespace, wanted.options.secrets, keep=True))
    workload = _create(namespace, target, wanted, by)
    run = _start(workload, number=1, by=by)
    record(by, "workload.launched", workload, tenant=tenant, after=_summary(run))
    worker_hint(table_label(Workload), queue=Workload.queue)
    page_hint(namespace.name)
    return workload


@transaction.atomic
def declare(tenant: str, wanted: launch_types.LaunchSpec, *, by: Actor) -> tuple[Workload, bool]:
    """Declares a workload without starting it. Returns it and whether it is new. Declaring the same again changes
    nothing.

    A change applies to the next run: a running run is not changed. Raises Refused as `launch` does, and kind_fixed
    (409).
    """
    namespace, team = queries.team(by, tenant)
    target = _target(namespace, wanted, by)
    refuse_if(policy.may_declare(by, team, target.facts, wanted))
    accept_if_needed(target.gpu_class, target.facts, wanted.accept_terms, by)
    refuse_if(team_secrets.missing_secrets_refusal(namespace, wanted.options.secrets))
    known = queries.locked_workload(namespace, wanted.name)
    if known is None:
        refuse_if(core_policy.may_add(team))
        workload = _create(namespace, target, wanted, by)
        record(by, "workload.declared", workload, tenant=tenant, after=_wanted_summary(workload))
        page_hint(namespace.name)
        return workload, True
    known.namespace = namespace
    if known.gpu_class_id == target.gpu_class.pk:
        known.gpu_class = target.gpu_class
    refuse_if(policy.may_change(by, team, queries.run_facts(known, None), kind=known.kind, wanted=wanted))
    before = _wanted_summary(known)
    if wanted.visibility and wanted.visibility != known.visibility:
        refuse_if(core_policy.may_set_visibility(by, team, queries.run_facts(known, None)))
        known.visibility = wanted.visibility
    _fill(known, target, wanted)
    after = _wanted_summary(known)
    if after != before:
        columns = ("gpu_class", "units", "image", "own_image", "command", "volume", "options", "visibility")
        known.save(update_fields=columns)
        record(by, "workload.changed", known, tenant=tenant, before=before, after=after)
        page_hint(namespace.name)
    return known, False


@transaction.atomic
def start(tenant: str, name: str, *, accept_terms: int = 0, group: str = "", by: Actor) -> Run:
    """Starts another run, with the current definition of the class. Raises Refused as `launch` does, and still_running
    (409).

    `group`: the concurrency group of a run that CI requests (workloads/runs/concurrency/actions.py).
    """
    namespace, team = queries.team(by, tenant)
    workload = undeleted_workload(by, namespace, name)
    last = queries.last_run(workload)
    refuse_if(policy.may_start(by, team, queries.run_facts(workload, last)))
    refuse_if(custom_images.custom_image_refusal(workload))
    said = Options.from_json(workload.options)
    found = launch_queries.class_facts(namespace, workload.gpu_class, units=workload.units, by=by, said=said)
    never = policy.may_start_on(found, workload.kind, workload.units, said)
    refuse_if(never or policy.must_accept_terms(found, accept_terms))
    _check_production_limit(namespace, workload.gpu_class, said, workload.total_units)
    accept_if_needed(workload.gpu_class, found, accept_terms, by)
    refuse_if(team_secrets.missing_secrets_refusal(namespace, said.secrets, keep=True))
    run = _start(workload, number=last.number + 1 if last else 1, group=group, by=by)
    touch(Workload, workload.pk)
    record(by, "workload.started", workload, tenant=tenant, after=_summary(run))
    page_hint(namespace.name)
    return run


@transaction.atomic
def stop(tenant: str, name: str, *, by: Actor) -> Workload:
    """Stops the run to release its units: the worker deletes the Job. A second call has no effect, and a requested next
    run does not start. Raises Refused: not_running (409).
    """
    namespace, team = queries.team(by, tenant)
    workload = undeleted_workload(by, namespace, name)
    refuse_if(core_policy.may_stop(by, team, queries.run_facts(workload, queries.last_run(workload))))
    is_new = request_stop(workload)
    if is_new or _cancel_next_run(workload):
        record(by, "workload.stopped", workload, tenant=tenant)
    return workload


@transaction.atomic
def delete(tenant: str, name: str, *, by: Actor) -> Workload:
    """Stops the workload and removes it from the lists. Its runs are kept as history; its volume is not changed."""
    namespace, team = queries.team(by, tenant)
    workload = undeleted_workload(by, namespace, name)
    refuse_if(core_policy.may_delete(by, team, queries.run_facts(workload, queries.last_run(workload))))
    # The run is locked before its workload, as in all code that locks both.
    is_announced = request_stop(workload)
    Workload.objects.filter(pk=workload.pk, delete_requested_at=None).update(delete_requested_at=Now())
    if not is_announced:
        announce(workload)
    record(by, "workload.deleted", workload, tenant=tenant)
    return workload


# ---- helper functions ------------------------------------------------------------------------------------------------


def _target(namespace: Namespace, wanted: launch_types.LaunchSpec, by: Actor) -> LaunchTarget:
    found = launch_queries.launch_target(namespace, wanted, by=by)
    if found is None:
        raise refuse("unknown_class", f"There is no class '{wanted.gpu_class[:40]}' in the catalog.", field="gpu_class")
    return found


def _check_production_limit(namespace: Namespace, gpu_class: GpuClass, said: Options, units: int) -> None:
    refuse_if(priority_queries.production_refusal(namespace, gpu_class, priority=said.priority, units=units))


def accept_if_needed(gpu_class: GpuClass, facts: core_policy.ClassFacts, ticked: int, by: Actor) -> None:
    """Records the acceptance. Policy has already checked that the accepted version is in force."""
    if facts.terms_version and not facts.terms_accepted:
        accept_terms(gpu_class.pk, ticked, by=by)


def _volume(namespace: Namespace, wanted: launch_types.LaunchSpec) -> Volume | None:
    """Attaches the existing volume of that name, whatever size and class were entered; otherwise creates it."""
    if not wanted.volume:
        return None
    known = Volume.objects.filter(namespace=namespace, name=wanted.volume, gone_at=None).first()
    refuse_if(
        volume_queries.storage_refusal(
            known, namespace, wanted.volume, storage_class=wanted.volume_class, workers=wanted.workers
        )
    )
    if known is not None:
        refuse_if(storage_policy.may_attach(known.name, volume_queries.deletes_at(known)))
        return known
    refuse_if(storage_policy.may_create(storage_facts(namespace), wanted.volume_gib))
    volume = volume_queries.new_volume(
        namespace, wanted.volume, size_gib=wanted.volume_gib, storage_class=wanted.volume_class
    )
    volume.save(force_insert=True)
    return volume


def _fill(workload: Workload, target: LaunchTarget, wanted: launch_types.LaunchSpec) -> None:
    if target.image is None:
        raise Refused(custom_images.unknown_image_refusal(workload.namespace, wanted))
    if target.image_problem:
        raise refuse("image_does_not_run", target.image_problem, field="image")
    workload.gpu_class = target.gpu_class
    workload.units = wanted.units
    workload.image, workload.own_image = target.image.reference, target.image.is_own
    workload.command = list(wanted.command)
    workload.options = wanted.options.to_json()
    workload.volume = _volume(workload.namespace, wanted)


def _create(namespace: Namespace, target: LaunchTarget, wanted: launch_types.LaunchSpec, by: Actor) -> Workload:
    workload = Workload(
        tenant=namespace.tenant,
        namespace=namespace,
        name=wanted.name,
        kind=wanted.kind,
        # The host name of the notebook's own origin: it is not a secret, but must not be guessable from a name.
        origin=f"n{secrets.token_hex(6)}",
        created_by=by.person,
        visibility=wanted.visibility or default_visibility(namespace),
    )
    _fill(workload, target, wanted)
    workload.save(force_insert=True)
    return workload


def default_visibility(namespace: Namespace) -> str:
    """Of a notebook that is launched without a choice."""
    return Workload.Visibility.TEAM if namespace.tenant.shares_notebooks else Workload.Visibility.PRIVATE


def _start(workload: Workload, *, number: int, group: str = "", by: Actor) -> Run:
    if workload.volume is not None:
        storage_actions.attach(workload.volume, workload.namespace, workload.gpu_class)
    frozen = replace(frozen_spec(workload, number), identity=new_identity()).to_json()
    return Run.objects.create(workload=workload, number=number, spec=frozen, requested_by=by.person, group=group)


def _cancel_next_run(workload: Workload) -> bool:
    """Cancels the requested next run of a run whose stop was requested before."""
    wished = Run.objects.filter(workload=workload, ended_at=None, next_wanted_by__isnull=False)
    if not wished.update(next_wanted_by=None):
        return False
    announce(workload)
    return True


def _summary(run: Run) -> dict[str, object]:
    said = {key: run.spec[key] for key in ("kind", "gpu_class", "units", "image", "command")}
    more = {"workers": run.workers if run.workers > 1 else None, "group": run.group}
    return {"run": run.number, **said, **{key: value for key, value in more.items() if value}}


def _script_summary(workload: Workload) -> dict[str, str]:
    """Describes a script well enough to tell two scripts apart."""
    script = workload.options.get("script", "")
    return {"script": f"{len(script)} characters, {names.short_hash(script)}"} if script else {}


def _wanted_summary(workload: Workload) -> dict[str, object]:
    return {
        "kind": workload.kind,
        "gpu_class": workload.gpu_class.slug,
        "units": workload.units,
        "image": workload.image,
        "command": list(workload.command),
        "volume": workload.volume.name if workload.volume else "",
        **({"visibility": str(workload.visibility)} if workload.kind == NOTEBOOK else {}),
        # Names only: values of variables are private to the team.
        "options": {**workload.options, "env": sorted(workload.options.get("env", ())), **_script_summary(workload)},
    }
