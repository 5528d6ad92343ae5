"""Which release of the portal runs, as far as its pods are in the cluster that it serves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.dateparse import parse_datetime

from cluster.models import Cluster, MirrorPod
from cluster.reads import queries as mirror
from portal.ui.text import plural

# `deploy/` and the fences name it; labels alone may be anybody's.
PORTAL_NAMESPACE = "gpu-portal"
# An upgrade replaces pods one after another.
PATIENCE = timedelta(minutes=10)
# The gateway is a program of others, with a release of its own.
OTHER_PROGRAM = "gateway"


@dataclass(frozen=True)
class ProcessPods:
    """The pods of one process with the same image. `since`: when the newest of them was created."""

    process: str
    image: str
    ready: int
    pods: int
    since: datetime


@dataclass(frozen=True)
class Releases:
    """`pods`: () if the portal does not run in this cluster. `problems`: sentences for operators."""

    pods: tuple[ProcessPods, ...]
    problems: tuple[str, ...]


def releases(cluster: Cluster, now: datetime) -> Releases | None:
    """None while the mirror does not know. Two queries."""
    if not mirror.is_known(cluster.pk, "Pod"):
        return None
    rows = MirrorPod.objects.filter(cluster_id=cluster.pk, namespace=PORTAL_NAMESPACE, record__has_key="portal")
    found = _grouped(rows.values_list("record__portal", flat=True))
    return Releases(found, tuple(_problems(found, now)))


def _grouped(records: Iterable[Mapping[str, Any]]) -> tuple[ProcessPods, ...]:
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for record in records:
        groups[record["process"], record["image"]].append(record)
    return tuple(
        ProcessPods(
            process,
            image,
            ready=sum(one["ready"] for one in group),
            pods=len(group),
            since=max(filter(None, (parse_datetime(one["created"]) for one in group))),
        )
        for (process, image), group in sorted(groups.items())
    )


def _problems(found: Iterable[ProcessPods], now: datetime) -> Iterable[str]:
    old = [one for one in found if now - one.since > PATIENCE]
    for one in old:
        if one.ready < one.pods:
            yield f"Of {plural(one.pods, 'pod')} of {one.process} with the image {one.image}, {one.ready} are ready."
    processes: dict[str, list[str]] = defaultdict(list)
    for one in old:
        if one.process != OTHER_PROGRAM:
            processes[one.image].append(one.process)
    if len(processes) > 1:
        told = "; ".join(f"{image}: {', '.join(names)}" for image, names in sorted(processes.items()))
        yield f"Several releases run. {told}. An upgrade is not complete."
