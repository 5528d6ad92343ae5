"""Initial values of the launch form: from the user's last launch, or from another workload."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from typing import Any

from accounts.core.actor import Actor
from catalog.models import Image
from cluster.manifests.names import is_dns_label
from cluster.manifests.run_spec import NOTEBOOK
from portal.core.errors import get_or_refuse
from tenants.models import Namespace
from workloads.core.queries import visible_workloads
from workloads.core.workload_sql import with_related
from workloads.launch.options import Options
from workloads.launch.policy import NAME_LIMIT
from workloads.models import Run, Workload


@dataclass(frozen=True)
class PrefilledValues:
    """`values`: by field of the form; `workload`: the one that they come from; `said`: sentences about values that were
    not used.
    """

    workload: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    said: tuple[str, ...] = ()


NO_PREFILL = PrefilledValues()


def prefill_from_last(by: Actor, namespace: Namespace, kind: str = "") -> PrefilledValues:
    """Values of this user's last launch in the team, even if deleted; of this kind, if one is given. At most three
    queries.
    """
    mine = Workload.objects.filter(namespace=namespace, created_by_id=by.user_id or 0)
    if kind:
        mine = mine.filter(kind=kind)
    found = mine.select_related("gpu_class", "volume").order_by("-id").first()
    return _choices(found) if found else NO_PREFILL


def prefill_from_workload(by: Actor, tenant: str, name: str) -> PrefilledValues:
    """Values of another workload of the team, as it is declared. At most three queries. Raises Refused (404).

    Who can open it is the choice of the person who launched it: it is kept for this person alone.
    """
    found = get_or_refuse(with_related(visible_workloads(by, tenant)), name=name)
    prefilled = _choices(found)
    if found.kind != NOTEBOOK or found.created_by_id != by.user_id:
        return prefilled
    return replace(prefilled, values={**prefilled.values, "visibility": found.visibility})


def prefill_unchanged(workload: Workload) -> PrefilledValues:
    """Returns the full declaration of the workload, including its volume even if that is in use. One query."""
    values, said = _values(workload)
    volume = {"volume": workload.volume.name} if workload.volume else {}
    # These must be confirmed again for another workload.
    confirmed = {name: True for name in ("checkpoints", "accepts_interruption") if workload.options.get(name)}
    return PrefilledValues(workload.name, {**values, **volume, **confirmed, "name": workload.name}, tuple(said))


def free_name(namespace: Namespace, wish: str) -> str:
    """Returns the wanted name, or the name with the first free number: train, train-2. One query."""
    base, _, number = wish.rpartition("-")
    base = (base if number.isdigit() and base else wish)[: NAME_LIMIT - 4].rstrip("-")
    if not is_dns_label(base, limit=NAME_LIMIT):
        return ""
    rows = Workload.objects.filter(namespace=namespace, deleted_at=None, name__startswith=base)
    taken = set(rows.values_list("name", flat=True))
    names = (base if count == 1 else f"{base}-{count}" for count in range(1, 1000))
    return next((name for name in names if name not in taken), "")


def _choices(workload: Workload) -> PrefilledValues:
    values, said = _values(workload)
    volume = workload.volume
    if volume is not None and volume.delete_requested_at is None:
        rows = Run.objects.filter(workload__namespace_id=workload.namespace_id, ended_at=None, spec__claim=volume.name)
        users = list(rows.order_by("workload__name").values_list("workload__name", flat=True)[:3])
        if users and not volume.storage.is_shared:
            said.append(f"Its volume {volume.name} is used by {', '.join(users)} and was not filled in.")
            values.pop("mount_path", None)
        else:
            values["volume"] = volume.name
    else:
        values.pop("mount_path", None)
    return PrefilledValues(workload.name, values, tuple(said))


def _values(workload: Workload) -> tuple[dict[str, Any], list[str]]:
    """Returns the values without name and volume. One query, for the name of the image."""
    options = Options.from_json(workload.options)
    said = []
    lines = [f"{name}={value}" for name, value in options.env if "\n" not in value]
    if len(lines) < len(options.env):
        many = ", ".join(name for name, value in options.env if "\n" in value)
        said.append(f"Variables with several lines cannot be shown here and were not filled in: {many}.")
    values = {
        "kind": workload.kind,
        "gpu_class": workload.gpu_class.slug,
        "units": workload.units,
        "image": "" if workload.own_image else _image_name(workload),
        "image_reference": workload.image if workload.own_image else "",
        "command": shlex.join(workload.command),
        "run_hours": options.run_hours,
        "cpu": options.cpu,
        "memory_gib": options.memory_gib,
        "shared_memory_gib": options.shared_memory_gib,
        "mount_path": options.mount_path,
        "env": "\n".join(lines),
        "repository": options.repository,
        "reference": options.reference,
        "secrets": list(options.secrets),
        "workers": options.workers,
        "script": options.script,
        "priority": options.priority,
        "retries": options.retries,
        "gpu_memory_gib": options.gpu_memory_gib,
        "topology_level": options.topology_level,
        "topology_required": options.topology_required or None,
    }
    return {name: value for name, value in values.items() if value not in (None, "", [])}, said


def _image_name(workload: Workload) -> str:
    """Returns the current name of the image in the catalog, whatever its digest; "" if the catalog has no such
    image.
    """
    reference = workload.image.partition("@")[0]
    rows = Image.objects.filter(kind=workload.kind, reference=reference).order_by("position", "name")
    return rows.values_list("name", flat=True).first() or ""
