"""Which kinds of suggested action can help with which reason, best first. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from workloads.status.types import Phase, Status


class Remedy(Enum):
    OTHER_CLASS = auto()
    FEWER_NOW = auto()
    FEWER_LATER = auto()
    STOP_IDLE = auto()
    WAIT = auto()
    REQUEST = auto()
    STOP_BUSY = auto()
    IMAGE = auto()
    VOLUME = auto()
    COMMAND = auto()
    REPOSITORY = auto()
    REFERENCE = auto()
    GPU_CLASS = auto()
    GPU_MEMORY = auto()
    ANYWHERE = auto()
    LEVEL = auto()
    FILES = auto()
    AGAIN = auto()
    SIZES = auto()
    LESS = auto()
    SECRETS = auto()
    CREDENTIALS = auto()
    LOG = auto()
    OPERATORS = auto()


Remedies = tuple[Remedy, ...]
# Computed from the class, the team's quota and the nodes; all others are computed from the status alone.
_BY_CLASS = frozenset(
    {
        Remedy.OTHER_CLASS,
        Remedy.FEWER_NOW,
        Remedy.FEWER_LATER,
        Remedy.STOP_IDLE,
        Remedy.REQUEST,
        Remedy.STOP_BUSY,
        Remedy.SIZES,
        Remedy.FILES,
        Remedy.AGAIN,
        Remedy.ANYWHERE,
    }
)

# Actions without a cost come first, actions that stop another workload last.
_QUOTA = (
    Remedy.OTHER_CLASS,
    Remedy.FEWER_NOW,
    Remedy.STOP_IDLE,
    Remedy.WAIT,
    Remedy.REQUEST,
    Remedy.FEWER_LATER,
    Remedy.STOP_BUSY,
)
_NODES = (Remedy.OTHER_CLASS, Remedy.FEWER_NOW, Remedy.FEWER_LATER, Remedy.STOP_IDLE, Remedy.WAIT, Remedy.STOP_BUSY)
_MAXIMUM = (Remedy.OTHER_CLASS, Remedy.FEWER_NOW, Remedy.REQUEST, Remedy.FEWER_LATER)
_TELL = (Remedy.OPERATORS,)
_WAIT = (Remedy.WAIT,)
_WAIT_OR_TELL = (Remedy.WAIT, Remedy.OPERATORS)
_ELSEWHERE = (Remedy.OTHER_CLASS, Remedy.WAIT, Remedy.OPERATORS)
_OTHER_OR_TELL = (Remedy.OTHER_CLASS, Remedy.OPERATORS)
_IMAGE = (Remedy.IMAGE,)
_IMAGE_OR_TELL = (Remedy.IMAGE, Remedy.OPERATORS)
_REPOSITORY = (Remedy.REPOSITORY, Remedy.LOG)

_PLANS: Mapping[str, Remedies] = {
    # the queue
    "waiting_for_quota": _QUOTA,
    "preempted": _QUOTA,
    "preempted_in_team": _QUOTA,
    "exceeds_maximum": _MAXIMUM,
    "flavor_mismatch": (Remedy.AGAIN, Remedy.OTHER_CLASS, Remedy.OPERATORS),
    "no_node_fits": _NODES,
    "gang_fits_in_part": _NODES,
    "level_fits_in_part": (Remedy.ANYWHERE, Remedy.FEWER_NOW, Remedy.WAIT, Remedy.LEVEL),
    "level_missing": (Remedy.LEVEL, Remedy.OPERATORS),
    "previous_ending": _WAIT_OR_TELL,
    "no_units_offered": _OTHER_OR_TELL,
    "device_class_missing": _OTHER_OR_TELL,
    "device_class_not_counted": _OTHER_OR_TELL,
    "nodes_down": _ELSEWHERE,
    "reclaiming": _WAIT,
    "class_held": (Remedy.OTHER_CLASS, Remedy.WAIT),
    "put_back": _WAIT,
    "draining": _WAIT,
    "checked": _WAIT_OR_TELL,
    "queue_held": _TELL,
    "queue_inactive": _TELL,
    "queue_missing": _WAIT_OR_TELL,
    "not_in_queue": _TELL,
    "deactivated": _TELL,
    "cluster_unavailable": _WAIT_OR_TELL,
    "observe_only": _TELL,
    "cluster_not_read": _TELL,
    "mirror_stale": _TELL,
    "namespace_missing": _WAIT_OR_TELL,
    "namespace_going": _WAIT_OR_TELL,
    "no_pod": _TELL,
    "job_edited": (Remedy.AGAIN, Remedy.OPERATORS),
    "scheduling_gated": _TELL,
    # a component does not respond
    "kueue_silent": _TELL,
    "scheduler_silent": _TELL,
    "controllers_silent": _TELL,
    "kubelet_silent": _TELL,
    # the pod is refused
    "quota_full": _WAIT,
    "quota_too_small": (Remedy.FEWER_NOW, Remedy.OTHER_CLASS, Remedy.FEWER_LATER, Remedy.SIZES, Remedy.OPERATORS),
    "quota_forbids": _TELL,
    "quota_needs_sizes": _TELL,
    "quota_starting": _WAIT,
    "quota_missing": _TELL,
    "limit_range": (Remedy.SIZES, Remedy.OPERATORS),
    "below_limit_range": (Remedy.SIZES, Remedy.OPERATORS),
    "pod_security": _TELL,
    "admission_denied": _TELL,
    "admission_unavailable": _WAIT_OR_TELL,
    "service_account": _WAIT_OR_TELL,
    "namespace_ending": _TELL,
    "pod_refused": _TELL,
    "refused_by_cluster": _TELL,
    # no node
    "no_cpu_or_memory": (Remedy.LESS, Remedy.FEWER_NOW, *_ELSEWHERE),
    "port_taken": _WAIT_OR_TELL,
    "volume_elsewhere": (Remedy.VOLUME, Remedy.OPERATORS),
    "nodes_closed": _ELSEWHERE,
    "no_node_matches": _OTHER_OR_TELL,
    "node_coming": _WAIT_OR_TELL,
    "node_starting": _WAIT_OR_TELL,
    "autoscaler_limit": _ELSEWHERE,
    "autoscaler_not_ready": _OTHER_OR_TELL,
    "autoscaler_refused": _OTHER_OR_TELL,
    "no_nodes": _TELL,
    "not_placed": _TELL,
    "devices_unavailable": _NODES,
    "gpu_memory_unavailable": (Remedy.GPU_MEMORY, Remedy.OTHER_CLASS, Remedy.FEWER_NOW, Remedy.WAIT),
    "volume_unbound": _TELL,
    "volume_missing": (Remedy.VOLUME, Remedy.OPERATORS),
    "volume_refused": (Remedy.VOLUME, Remedy.OPERATORS),
    # on its node
    "image_not_found": _IMAGE,
    "image_not_allowed": _IMAGE_OR_TELL,
    "image_not_accepted": _IMAGE_OR_TELL,
    "image_not_pulled": _IMAGE_OR_TELL,
    "image_wrong_platform": _IMAGE,
    "image_runs_as_root": _IMAGE,
    "bad_image_name": _IMAGE,
    "registry_unknown": _IMAGE,
    "credentials_refused": (Remedy.CREDENTIALS, Remedy.IMAGE),
    "no_credentials": (Remedy.IMAGE, Remedy.CREDENTIALS),
    "registry_unavailable": _WAIT_OR_TELL,
    "registry_limit": _WAIT_OR_TELL,
    "image_slow": _WAIT_OR_TELL,
    "node_disk_full": _TELL,
    "volume_in_use": _WAIT_OR_TELL,
    "volume_not_attached": _TELL,
    "volume_not_mounted": _TELL,
    "pod_not_set_up": _TELL,
    "secret_missing": _WAIT_OR_TELL,
    "secret_incomplete": _WAIT_OR_TELL,
    "no_worker_key": _TELL,
    "sealed_for_another_key": (Remedy.SECRETS, Remedy.OPERATORS),
    "container_config": _TELL,
    "node_runtime_down": _WAIT_OR_TELL,
    "no_pod_address": _WAIT_OR_TELL,
    "node_volume_limit": _WAIT_OR_TELL,
    "node_pressure": _WAIT_OR_TELL,
    "storage_driver_missing": _TELL,
    "volume_damaged": _TELL,
    "volume_denied": _TELL,
    "registry_untrusted": (Remedy.OPERATORS, Remedy.IMAGE),
    "image_wrong_format": _IMAGE,
    "image_needs_newer_driver": _IMAGE,
    "image_wrong_gpu": _IMAGE,
    "working_directory": _IMAGE,
    # its devices
    "gpu_driver_down": _TELL,
    "gpu_lost": _TELL,
    "gpu_not_injected": _TELL,
    "gpu_runtime_missing": _TELL,
    "device_plugin_down": _TELL,
    "device_driver_missing": _TELL,
    "devices_not_prepared": _TELL,
    "gpu_fault": _TELL,
    "node_gpu_error": (Remedy.OPERATORS, Remedy.LOG),
    "gpu_not_visible": _TELL,
    "gpu_not_requested": (Remedy.GPU_CLASS,),
    "share_limit": (Remedy.FEWER_NOW, Remedy.OPERATORS),
    # removed from its node, or rejected there: it restarts automatically, unless it has failed
    "device_unavailable": _WAIT_OR_TELL,
    "topology_refused": (Remedy.FEWER_NOW, Remedy.WAIT),
    "node_full": _WAIT_OR_TELL,
    "node_changed": _WAIT_OR_TELL,
    "node_refused": _WAIT_OR_TELL,
    "node_shutdown": _WAIT,
    "node_lost": _WAIT_OR_TELL,
    "node_not_ready": _WAIT_OR_TELL,
    "node_given_up": _TELL,
    "preempted_on_node": _WAIT,
    "drained": _WAIT,
    "disrupted": _WAIT,
    "evicted": _WAIT,
    "too_many_files": (Remedy.FILES,),
    # its own end
    "crashed": (Remedy.LOG,),
    "failed": (Remedy.LOG,),
    "killed": (Remedy.LOG,),
    "terminated": (Remedy.LOG,),
    "out_of_memory": (Remedy.SIZES, Remedy.LOG),
    "clone_out_of_memory": (Remedy.SIZES, Remedy.LOG),
    "out_of_gpu_memory": (Remedy.COMMAND, Remedy.LOG),
    "gpu_program_error": (Remedy.LOG, Remedy.OPERATORS),
    "nccl_timeout": (Remedy.LOG, Remedy.OPERATORS),
    "peer_lost": (Remedy.LOG, Remedy.OPERATORS),
    "workers_not_joined": (Remedy.LOG,),
    "bus_error": (Remedy.SIZES, Remedy.LOG),
    "command_not_found": (Remedy.COMMAND, Remedy.IMAGE),
    "command_not_executable": (Remedy.COMMAND, Remedy.IMAGE),
    "repository_not_found": _REPOSITORY,
    "repository_private": _REPOSITORY,
    "repository_unreachable": (*_REPOSITORY, Remedy.OPERATORS),
    "reference_not_found": (Remedy.REFERENCE, Remedy.LOG),
    "clone_failed": (Remedy.LOG, Remedy.REPOSITORY),
    "no_git": (Remedy.IMAGE,),
}


def remedies_for(told: Status) -> Remedies:
    """Returns () if no action is needed. A failed run does not restart automatically."""
    found = _PLANS.get(told.reason, ())
    if told.phase is Phase.FAILED:
        return tuple(part for part in found if part is not Remedy.WAIT)
    if told.reason == "queued" and told.explained is not None and told.explained.raw:
        # Kueue's message is unknown to the portal.
        return _TELL
    if told.phase in (Phase.STOPPING, Phase.STOPPED, Phase.SUCCEEDED):
        return ()
    return _with_wait(found) if told.explained is not None and told.explained.restarts else found


def _with_wait(found: Remedies) -> Remedies:
    """For what restarts automatically. Operators are asked if that does not help."""
    if Remedy.WAIT in found or not found:
        return found
    at = found.index(Remedy.OPERATORS) if Remedy.OPERATORS in found else len(found)
    return (*found[:at], Remedy.WAIT, *found[at:])


def needs_class_facts(told: Status) -> bool:
    return not _BY_CLASS.isdisjoint(remedies_for(told))
