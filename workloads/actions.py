"""The verbs about workloads: launch, declare, start, stop, delete, and the way into a notebook.

Each is one transaction that asks policy first and writes exactly one Event. The launch is on a person's clock: few
queries, then a hint; everything in the cluster is done by the worker.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts.actions import record
from accounts.actor import Actor
from catalog import queries as catalog
from catalog import references
from catalog.models import GpuClass
from cluster import names
from cluster.run_spec import HOME, NOTEBOOK, USUAL_PRIORITY, RunSpec
from portal.due import label, owner_label, touch
from portal.errors import Refused, get_or_refuse, refuse, refuse_if
from portal.hints import page_hint, worker_hint
from tenants.models import Namespace
from tenants.terms import accept_terms
from workloads import policy, queries, run_time_policy, volume_policy, volumes
from workloads import secrets as team_secrets
from workloads.models import NotebookSession, Run, Ticket, Volume, Workload
from workloads.notebook_token import digest
from workloads.options import Options, repository_directory
from workloads.queries import launching, own_images, production
from workloads.queries import volumes as volume_queries
from workloads.queries.launching import Target
from workloads.queries.storage import storage_facts

TICKET_LIFE = timedelta(seconds=30)
NOTEBOOK_SESSION_LIFE = timedelta(hours=24)


@transaction.atomic
def launch(tenant: str, wanted: policy.Wanted, *, by: Actor) -> Workload:
    """A new workload and its first run. It queues for as long as it takes; only what can never start is refused.

    Raises Refused: not_found (404), not_allowed, missing_scope (403), name_taken, namespace_suspended (409),
    terms_not_accepted, image_does_not_run, or why else it can never start (422).
    """
    namespace, team = queries.team(by, tenant)
    target = _target(namespace, wanted, by)
    refuse_if(policy.may_launch(by, team, target.facts, wanted))
    _may_go_first(namespace, target.gpu_class, wanted.options, wanted.total_units)
    _accept(target.gpu_class, target.facts, wanted.accept_terms, by)
    refuse_if(team_secrets.unknown(namespace, wanted.options.secrets, keep=True))
    workload = _create(namespace, target, wanted, by)
    run = _start(workload, number=1, by=by)
    record(by, "workload.launched", workload, tenant=tenant, after=_summary(run))
    worker_hint(label(Workload), queue=Workload.queue)
    page_hint(namespace.name)
    return workload


@transaction.atomic
def declare(tenant: str, wanted: policy.Wanted, *, by: Actor) -> tuple[Workload, bool]:
    """A workload as it shall be, without starting it; and whether it is new. The same again changes nothing.

    A change is for the next run: what runs keeps what it was started with. Raises Refused as `launch` does, and
    kind_fixed (409).
    """
    namespace, team = queries.team(by, tenant)
    target = _target(namespace, wanted, by)
    refuse_if(policy.may_declare(by, team, target.facts, wanted))
    _accept(target.gpu_class, target.facts, wanted.accept_terms, by)
    refuse_if(team_secrets.unknown(namespace, wanted.options.secrets))
    known = queries.locked(namespace, wanted.name)
    if known is None:
        refuse_if(policy.may_add(team))
        workload = _create(namespace, target, wanted, by)
        record(by, "workload.declared", workload, tenant=tenant, after=_wanted_summary(workload))
        page_hint(namespace.name)
        return workload, True
    known.namespace = namespace
    if known.gpu_class_id == target.gpu_class.pk:
        known.gpu_class = target.gpu_class
    refuse_if(policy.may_change(by, team, queries.run_facts(known, None), kind=known.kind, wanted=wanted))
    before = _wanted_summary(known)
    _fill(known, target, wanted)
    after = _wanted_summary(known)
    if after != before:
        known.save(update_fields=["gpu_class", "units", "image", "own_image", "command", "volume", "options"])
        record(by, "workload.changed", known, tenant=tenant, before=before, after=after)
        page_hint(namespace.name)
    return known, False


@transaction.atomic
def start(tenant: str, name: str, *, accept_terms: int = 0, group: str = "", by: Actor) -> Run:
    """Another run, with the class as it is now. Raises Refused as `launch` does, and still_running (409).

    `group`: of a push (workloads/pushing.py).
    """
    namespace, team = queries.team(by, tenant)
    workload = _workload(by, namespace, name)
    last = queries.last_run(workload)
    refuse_if(policy.may_start(by, team, queries.run_facts(workload, last)))
    refuse_if(own_images.may_start(workload))
    found = queries.class_facts(namespace, workload.gpu_class, units=workload.units, by=by)
    said = Options.from_json(workload.options)
    never = policy.may_start_on(found, workload.kind, workload.units, said)
    refuse_if(never or policy.must_accept(found, accept_terms))
    _may_go_first(namespace, workload.gpu_class, said, workload.total_units)
    _accept(workload.gpu_class, found, accept_terms, by)
    refuse_if(team_secrets.unknown(namespace, said.secrets, keep=True))
    run = _start(workload, number=last.number + 1 if last else 1, group=group, by=by)
    touch(Workload, workload.pk)
    record(by, "workload.started", workload, tenant=tenant, after=_summary(run))
    page_hint(namespace.name)
    return run


@transaction.atomic
def stop(tenant: str, name: str, *, by: Actor) -> Workload:
    """Give the units back: the worker deletes the Job. Asking twice is asking once, and a run that was to follow does
    not begin. Refused: not_running (409).
    """
    namespace, team = queries.team(by, tenant)
    workload = _workload(by, namespace, name)
    refuse_if(policy.may_stop(by, team, queries.run_facts(workload, queries.last_run(workload))))
    unwished = Run.objects.filter(workload=workload, ended_at=None, next_wanted_by__isnull=False)
    if _ask_to_stop(workload) or unwished.update(next_wanted_by=None):
        touch(Workload, workload.pk)
        record(by, "workload.stopped", workload, tenant=tenant)
        page_hint(namespace.name)
    return workload


@transaction.atomic
def delete(tenant: str, name: str, *, by: Actor) -> Workload:
    """Stop it and take it off the lists. Its runs stay as history, its volume stays as it is."""
    namespace, team = queries.team(by, tenant)
    workload = _workload(by, namespace, name)
    refuse_if(policy.may_delete(by, team, queries.run_facts(workload, queries.last_run(workload))))
    # The run before its workload, as everybody who locks both.
    _ask_to_stop(workload)
    Workload.objects.filter(pk=workload.pk, delete_requested_at=None).update(delete_requested_at=Now())
    touch(Workload, workload.pk)
    record(by, "workload.deleted", workload, tenant=tenant)
    page_hint(namespace.name)
    return workload


# ---- the way into a notebook -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pass:
    """A one-time pass; `secret` is known to the browser alone, we keep its digest. `origin`: the notebook's host."""

    secret: str
    origin: str


@transaction.atomic
def issue_ticket(tenant: str, name: str, *, session_key: str, by: Actor) -> Pass:
    """A pass from the portal to the notebook's own origin, for this person and this portal session, good for 30 s."""
    namespace, team = queries.team(by, tenant)
    workload = _workload(by, namespace, name)
    facts = queries.run_facts(workload, queries.last_run(workload))
    refuse_if(policy.may_open(by, team, facts, workload.kind))
    person = by.person
    Ticket.objects.filter(user=person, expires_at__lte=Now()).delete()
    secret = secrets.token_urlsafe(32)
    Ticket.objects.create(
        digest=digest(secret),
        user=person,
        workload=workload,
        session_key=session_key,
        expires_at=timezone.now() + TICKET_LIFE,
    )
    record(by, "notebook.opened", workload, tenant=tenant)
    return Pass(secret, workload.origin)


@transaction.atomic
def redeem_ticket(secret: str, *, origin: str) -> str:
    """The pass, used exactly once and only at its own origin, becomes the secret of that origin's cookie.

    No Event of its own: who opened what was recorded with the ticket. Raises Refused: ticket_spent (403).
    """
    mine = Workload.objects.filter(origin=origin, deleted_at=None)
    unspent = Ticket.objects.filter(digest=digest(secret), used_at=None, expires_at__gt=Now(), workload__in=mine)
    if not unspent.update(used_at=Now()):
        raise refuse(
            "ticket_spent",
            "This way in was used already or is older than 30 seconds. Open the notebook from its page in the portal.",
            status=403,
        )
    ticket = Ticket.objects.get(digest=digest(secret))
    NotebookSession.objects.filter(user=ticket.user_id, expires_at__lte=Now()).delete()
    cookie = secrets.token_urlsafe(32)
    NotebookSession.objects.create(
        digest=digest(cookie),
        user_id=ticket.user_id,
        workload_id=ticket.workload_id,
        session_key=ticket.session_key,
        expires_at=timezone.now() + NOTEBOOK_SESSION_LIFE,
    )
    return cookie


# ---- parts -----------------------------------------------------------------------------------------------------------


def _target(namespace: Namespace, wanted: policy.Wanted, by: Actor) -> Target:
    found = launching.target(namespace, wanted, by=by)
    if found is None:
        raise refuse("unknown_class", f"There is no class '{wanted.gpu_class[:40]}' in the catalog.", field="gpu_class")
    return found


def _may_go_first(namespace: Namespace, gpu_class: GpuClass, said: Options, units: int) -> None:
    refuse_if(production.refusal(namespace, gpu_class, priority=said.priority, units=units))


def _accept(gpu_class: GpuClass, facts: policy.ClassFacts, ticked: int, by: Actor) -> None:
    """After policy found the tick to be for the version in force."""
    if facts.terms_version and not facts.terms_accepted:
        accept_terms(gpu_class.pk, ticked, by=by)


def _volume(namespace: Namespace, wanted: policy.Wanted) -> Volume | None:
    """An existing volume of that name is attached, whatever size was typed; otherwise it is made."""
    if not wanted.volume:
        return None
    known = Volume.objects.filter(namespace=namespace, name=wanted.volume, gone_at=None).first()
    if known is not None:
        refuse_if(volume_policy.may_attach(known.name, volume_queries.deletes_at(known)))
        return known
    refuse_if(volume_policy.may_make(storage_facts(namespace), wanted.volume_gib))
    # The worker makes the claim with the run; by itself the row has nothing to do.
    return Volume.objects.create(
        namespace=namespace, name=wanted.volume, size_gib=wanted.volume_gib, due_at=None, observed_generation=1
    )


def _fill(workload: Workload, target: Target, wanted: policy.Wanted) -> None:
    if target.image is None:
        raise Refused(own_images.refusal(workload.namespace, wanted))
    if target.image_problem:
        raise refuse("image_does_not_run", target.image_problem, field="image")
    workload.gpu_class = target.gpu_class
    workload.units = wanted.units
    workload.image, workload.own_image = target.image.reference, target.image.is_own
    workload.command = list(wanted.command)
    workload.options = wanted.options.to_json()
    workload.volume = _volume(workload.namespace, wanted)


def _create(namespace: Namespace, target: Target, wanted: policy.Wanted, by: Actor) -> Workload:
    workload = Workload(
        tenant=namespace.tenant,
        namespace=namespace,
        name=wanted.name,
        kind=wanted.kind,
        # The host name of its own origin: not a secret, but not to be guessed from a name either.
        origin=f"n{secrets.token_hex(6)}",
        created_by=by.person,
    )
    _fill(workload, target, wanted)
    workload.save(force_insert=True)
    return workload


def _start(workload: Workload, *, number: int, group: str = "", by: Actor) -> Run:
    if workload.volume is not None:
        volumes.take(workload.volume)
    spec = frozen_spec(workload, number)
    frozen = spec.to_json()
    return Run.objects.create(workload=workload, number=number, spec=frozen, requested_by=by.person, group=group)


def frozen_spec(workload: Workload, number: int) -> RunSpec:
    """Everything that the run's objects are made of, as it is at this moment."""
    gpu_class, said = workload.gpu_class, Options.from_json(workload.options)
    pod = catalog.pod_spec(gpu_class, units=workload.units, image=workload.image, namespace=workload.namespace.name)
    # A class may have shrunk since this was declared: never more than it promises now.
    cpu, memory_gib = min(said.cpu or pod.cpu, pod.cpu), min(said.memory_gib or pod.memory_gib, pod.memory_gib)
    pod = replace(pod, cpu=cpu, memory_gib=memory_gib)
    return RunSpec(
        **vars(pod),
        owner=owner_label(workload),
        workload=workload.name,
        number=number,
        kind=workload.kind,
        weight=str(gpu_class.weight),
        price_per_unit_hour=str(gpu_class.price_per_unit_hour),
        command=tuple(workload.command),
        # Counts against the memory limit; data loaders of PyTorch need more than the runtime's 64 MiB.
        shared_memory_gib=min(said.shared_memory_gib or max(1, pod.memory_gib // 4), pod.memory_gib),
        claim=workload.volume.name if workload.volume else "",
        mount_path=said.mount_path or HOME,
        env=said.env,
        secrets=said.secrets,
        registry=references.parse(workload.image).registry if workload.own_image else "",
        repository=said.repository,
        reference=said.reference,
        clone_into=repository_directory(said.repository),
        run_minutes=run_time_policy.minutes(said.run_hours, gpu_class.run_hours_limit),
        idle_stop_minutes=gpu_class.idle_stop_minutes if workload.kind == NOTEBOOK else None,
        workers=workload.workers,
        retries=said.retries or 0,
        priority=said.priority or USUAL_PRIORITY[workload.kind],
        script=said.script.replace("\r\n", "\n"),
        checkpoints=said.checkpoints,
    )


def _workload(by: Actor, namespace: Namespace, name: str) -> Workload:
    rows = Workload.objects.visible_to(by).select_related("gpu_class", "namespace", "tenant", "volume")
    return get_or_refuse(rows.filter(delete_requested_at=None), namespace=namespace, name=name)


def _ask_to_stop(workload: Workload) -> bool:
    alive = Run.objects.filter(workload=workload, ended_at=None, stop_requested_at=None)
    return bool(alive.update(stop_requested_at=Now()))


def _summary(run: Run) -> dict[str, object]:
    said = {key: run.spec[key] for key in ("kind", "gpu_class", "units", "image", "command")}
    more = {"workers": run.workers if run.workers > 1 else None, "group": run.group}
    return {"run": run.number, **said, **{key: value for key, value in more.items() if value}}


def _script_summary(workload: Workload) -> dict[str, str]:
    """Enough to tell one from another."""
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
        # Names only: values of variables are the team's own business.
        "options": {**workload.options, "env": sorted(workload.options.get("env", ())), **_script_summary(workload)},
    }
