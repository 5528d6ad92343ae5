"""What the mirror shows of runs: Jobs, Kueue Workloads, pods, warnings, nodes and images; a few queries for all runs of
a namespace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from cluster.manifests.metadata import names_other_row
from cluster.manifests.node_removal.notices import NOTICES, removal_notice
from cluster.mirror.records.nodes import image_key
from cluster.models import MirrorNode
from cluster.reads import observed
from cluster.reads import queries as mirror
from cluster.reads.observed import Job, Pod, WarningEvent
from cluster.reads.observed import KueueWorkload as Queued
from portal.core.due import table_label
from portal.core.sql import select
from tenants.models import Namespace
from workloads.core.observation import ImagePresence, LeavingNode, NodeTrouble, Observation
from workloads.models import Run, Workload
from workloads.status.observations.equivalent_waits import with_equivalent_messages
from workloads.status.observations.local_queue import local_queue_state
from workloads.status.observations.positions import queue_positions


@dataclass(frozen=True)
class AwaitedImage:
    """For a run whose containers have not started: its image, and the labels of the nodes that it may run on."""

    reference: str
    node_labels: Mapping[str, str]

    @classmethod
    def of(cls, run: Run) -> AwaitedImage:
        return cls(run.spec["image"], run.spec["node_labels"])


def observe(
    namespace: Namespace,
    runs: Mapping[int, str],
    images: Mapping[int, AwaitedImage] | None = None,
    identities: Mapping[int, str] | None = None,
) -> dict[int, Observation]:
    """Returns by workload id what the mirror shows of its run of that name and, if given, identity. The mirror must be
    known.

    At most nine queries, whatever the number of runs: nodes only if a run is on one, their GPU errors only if a pod has
    failed there, positions only if a run waits in the queue, namespace and queue only if a run waits there or has no
    pod, messages of equivalent workloads only if a run has no message of its own, and `images` only if one of their
    runs has a Job.
    """
    cluster_id, name = namespace.cluster_id, namespace.name
    owners = {f"{table_label(Workload)}.{pk}": pk for pk in runs}
    wanted = {owner: (runs[pk], (identities or {}).get(pk, "")) for owner, pk in owners.items()}
    jobs = {owners[job.owner]: job for job in mirror.jobs_owned(cluster_id, name, owners) if _is_of(job, wanted)}
    in_kueue = mirror.workloads_holding(cluster_id, name, [job.uid for job in jobs.values()])
    queued = with_equivalent_messages(cluster_id, {workload.job_uid: workload for workload in in_kueue})
    pods: dict[int, list[Pod]] = {}
    for pod in mirror.pods_owned(cluster_id, name, owners):
        if _is_of(pod, wanted):
            pods.setdefault(owners[pod.owner], []).append(pod)
    warnings = _warnings(cluster_id, jobs, pods)
    is_waiting = any(is_queued(queued[job.uid]) for job in jobs.values() if job.uid in queued)
    line = queue_positions(cluster_id, name) if is_waiting else None
    # Where nothing waits for units or for its pod, neither queue nor namespace explains anything.
    waits = any(not one.is_true("QuotaReserved") for one in in_kueue) or any(not _stays(pods, pk) for pk in jobs)
    named = mirror.namespace_and_queue(cluster_id, name) if waits else {}
    at = local_queue_state(cluster_id, name, in_kueue, named.get("ClusterQueue"))
    nodes = _troubled_nodes(cluster_id, {pod.node for theirs in pods.values() for pod in theirs if not pod.is_over})
    troubles = {node.name: _trouble(node) for node in nodes if not node.ready}
    leaving = {node.name: one for node in nodes if (one := _leaving(node)) is not None}
    failed = {pod.node for theirs in pods.values() for pod in theirs if pod.phase == "Failed"}
    gpu_errors = mirror.gpu_errors_of_nodes(cluster_id, failed - {""})
    holding = tuple(one for one in in_kueue if one.is_true("QuotaReserved") and not one.is_true("Finished"))
    found = _images(cluster_id, {pk: image for pk, image in (images or {}).items() if pk in jobs})
    return {
        pk: Observation(
            job=jobs.get(pk),
            queue=queued.get(jobs[pk].uid) if pk in jobs else None,
            pods=tuple(pods.get(pk, ())),
            warnings=tuple(warnings.get(pk, ())),
            position=line.get(jobs[pk].uid) if line and pk in jobs else None,
            lost=next((troubles[pod.node] for pod in reversed(pods.get(pk, [])) if pod.node in troubles), None),
            leaving=_first_leaving(pods.get(pk, ()), leaving),
            image=found.get(pk),
            at=at,
            holding=holding,
            line=line,
            gpu_errors=tuple(
                error for node in {pod.node for pod in pods.get(pk, ())} for error in gpu_errors.get(node, ())
            ),
            namespace_ends=named["Namespace"].deleting_since if "Namespace" in named else None,
        )
        for pk in runs
    }


def is_queued(queued: Queued) -> bool:
    return not queued.is_true("QuotaReserved") and not queued.is_true("Finished")


def _stays(pods: Mapping[int, list[Pod]], pk: int) -> bool:
    return any(pod.deleting_since is None for pod in pods.get(pk, ()))


def _is_of(thing: Job | Pod, wanted: Mapping[str, tuple[str, str]]) -> bool:
    run, identity = wanted.get(thing.owner, ("", ""))
    return thing.owner in wanted and thing.run == run and not names_other_row(thing.labels, identity)


def _warnings(cluster_id: int, jobs: Mapping[int, Job], pods: Mapping[int, list[Pod]]) -> dict[int, list[WarningEvent]]:
    uids = {job.uid: pk for pk, job in jobs.items()}
    uids |= {pod.uid: pk for pk, theirs in pods.items() for pod in theirs}
    found: dict[int, list[WarningEvent]] = {}
    for warning in mirror.warnings(cluster_id, uids) if uids else ():
        found.setdefault(uids[warning.object_uid], []).append(warning)
    return found


def _troubled_nodes(cluster_id: int, nodes: set[str]) -> list[MirrorNode]:
    """Returns those nodes that are not ready or are being removed."""
    wanted = nodes - {""}
    if not wanted:
        return []
    return list(
        select(
            MirrorNode,
            "cluster_id = %s AND name = ANY(%s) AND (NOT ready OR EXISTS ("
            "SELECT FROM jsonb_array_elements(record -> 'taints') taint WHERE taint ->> 'key' = ANY(%s)))",
            [cluster_id, sorted(wanted), list(NOTICES)],
        )
    )


def _trouble(node: MirrorNode) -> NodeTrouble:
    record = node.record
    since = observed.parse_time(record["ready_since"])
    return NodeTrouble(node.name, since, record["ready_reason"], record["ready_message"])


def leaving_node(cluster_id: int, pods: Sequence[Pod]) -> LeavingNode | None:
    """Returns the node of the newest of a run's pods whose node is being removed. One query, none without a node."""
    nodes = _troubled_nodes(cluster_id, {pod.node for pod in pods if not pod.is_over})
    return _first_leaving(pods, {node.name: one for node in nodes if (one := _leaving(node)) is not None})


def _first_leaving(pods: Sequence[Pod], leaving: Mapping[str, LeavingNode]) -> LeavingNode | None:
    return next((leaving[pod.node] for pod in reversed(pods) if pod.node in leaving and not pod.is_over), None)


def _leaving(node: MirrorNode) -> LeavingNode | None:
    notice = removal_notice(taint["key"] for taint in node.record["taints"])
    return LeavingNode(node.name, node.uid, notice) if notice is not None else None


def _images(cluster_id: int, wanted: Mapping[int, AwaitedImage]) -> dict[int, ImagePresence]:
    """Returns by workload id the ready nodes of its class that list its image. One query, none if no run waits
    for one.
    """
    if not wanted:
        return {}
    keys = [image_key(image.reference) for image in wanted.values()]
    labels = [json.dumps(dict(image.node_labels)) for image in wanted.values()]
    with connection.cursor() as cursor:
        cursor.execute(_IMAGES, [list(wanted), keys, labels, cluster_id])
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return {pk: ImagePresence(None, frozenset()) for pk in wanted} | {
        pk: ImagePresence(int(size), frozenset(nodes)) for pk, size, nodes in rows
    }


_IMAGES = f"""
SELECT wanted.pk, max((node.record -> 'images' ->> wanted.image)::bigint), array_agg(node.name)
  FROM unnest(%s::bigint[], %s::text[], %s::jsonb[]) AS wanted(pk, image, labels)
  JOIN {MirrorNode._meta.db_table} node
    ON node.record -> 'labels' @> wanted.labels AND node.record -> 'images' ? wanted.image
 WHERE node.cluster_id = %s AND node.ready AND node.schedulable
 GROUP BY wanted.pk"""
