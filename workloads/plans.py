"""Which kinds of step could help with which reason, best first. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from workloads.phase import Phase, Status


class Part(Enum):
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
    AGAIN = auto()
    SIZES = auto()
    LESS = auto()
    SECRETS = auto()
    LOG = auto()
    OPERATORS = auto()


Plan = tuple[Part, ...]
# What is worked out from the class, the team's quota and the nodes; all else from the status alone.
_BY_CLASS = frozenset(
    {
        Part.OTHER_CLASS,
        Part.FEWER_NOW,
        Part.FEWER_LATER,
        Part.STOP_IDLE,
        Part.REQUEST,
        Part.STOP_BUSY,
        Part.SIZES,
        Part.AGAIN,
    }
)

# What costs nobody anything goes first, what ends somebody's work last.
_QUOTA = (
    Part.OTHER_CLASS,
    Part.FEWER_NOW,
    Part.STOP_IDLE,
    Part.WAIT,
    Part.REQUEST,
    Part.FEWER_LATER,
    Part.STOP_BUSY,
)
_NODES = (Part.OTHER_CLASS, Part.FEWER_NOW, Part.FEWER_LATER, Part.STOP_IDLE, Part.WAIT, Part.STOP_BUSY)
_MAXIMUM = (Part.OTHER_CLASS, Part.FEWER_NOW, Part.REQUEST, Part.FEWER_LATER)
_TELL = (Part.OPERATORS,)
_WAIT = (Part.WAIT,)
_WAIT_OR_TELL = (Part.WAIT, Part.OPERATORS)
_ELSEWHERE = (Part.OTHER_CLASS, Part.WAIT, Part.OPERATORS)
_OTHER_OR_TELL = (Part.OTHER_CLASS, Part.OPERATORS)
_IMAGE = (Part.IMAGE,)
_IMAGE_OR_TELL = (Part.IMAGE, Part.OPERATORS)
_REPOSITORY = (Part.REPOSITORY, Part.LOG)

_PLANS: Mapping[str, Plan] = {
    # the queue
    "waiting_for_quota": _QUOTA,
    "preempted": _QUOTA,
    "preempted_in_team": _QUOTA,
    "exceeds_maximum": _MAXIMUM,
    "flavor_mismatch": (Part.AGAIN, Part.OTHER_CLASS, Part.OPERATORS),
    "no_node_fits": _NODES,
    "gang_fits_in_part": _NODES,
    "previous_ending": _WAIT_OR_TELL,
    "no_units_offered": _OTHER_OR_TELL,
    "device_class_missing": _OTHER_OR_TELL,
    "device_class_not_counted": _OTHER_OR_TELL,
    "nodes_down": _ELSEWHERE,
    "reclaiming": _WAIT,
    "class_held": (Part.OTHER_CLASS, Part.WAIT),
    "put_back": _WAIT,
    "checked": _WAIT_OR_TELL,
    "queue_held": _TELL,
    "queue_inactive": _TELL,
    "queue_missing": _WAIT_OR_TELL,
    "not_in_queue": _TELL,
    "deactivated": _TELL,
    "cluster_unavailable": _WAIT_OR_TELL,
    "cluster_not_read": _TELL,
    "mirror_stale": _TELL,
    "namespace_missing": _WAIT_OR_TELL,
    "namespace_going": _WAIT_OR_TELL,
    "no_pod": _TELL,
    # its pod is refused
    "quota_full": _WAIT,
    "quota_too_small": (Part.FEWER_NOW, Part.OTHER_CLASS, Part.FEWER_LATER, Part.SIZES, Part.OPERATORS),
    "quota_needs_sizes": _TELL,
    "quota_starting": _WAIT,
    "quota_missing": _TELL,
    "limit_range": (Part.SIZES, Part.OPERATORS),
    "below_limit_range": (Part.SIZES, Part.OPERATORS),
    "pod_security": _TELL,
    "admission_denied": _TELL,
    "admission_unavailable": _WAIT_OR_TELL,
    "service_account": _WAIT_OR_TELL,
    "namespace_ending": _TELL,
    "pod_refused": _TELL,
    "refused_by_cluster": _TELL,
    # no node
    "no_cpu_or_memory": (Part.LESS, Part.FEWER_NOW, *_ELSEWHERE),
    "port_taken": _WAIT_OR_TELL,
    "volume_elsewhere": (Part.VOLUME, Part.OPERATORS),
    "nodes_closed": _ELSEWHERE,
    "no_node_matches": _OTHER_OR_TELL,
    "no_nodes": _TELL,
    "not_placed": _TELL,
    "devices_unavailable": _NODES,
    "volume_unbound": _TELL,
    "volume_missing": (Part.VOLUME, Part.OPERATORS),
    # on its node
    "image_not_found": _IMAGE,
    "image_not_allowed": _IMAGE_OR_TELL,
    "image_not_accepted": _IMAGE_OR_TELL,
    "image_not_pulled": _IMAGE_OR_TELL,
    "image_wrong_platform": _IMAGE,
    "image_runs_as_root": _IMAGE,
    "bad_image_name": _IMAGE,
    "registry_unknown": _IMAGE,
    "credentials_refused": _IMAGE,
    "no_credentials": _IMAGE,
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
    "sealed_for_another_key": (Part.SECRETS, Part.OPERATORS),
    "container_config": _TELL,
    # taken off its node, or refused there: it comes back by itself, unless that was the end
    "device_unavailable": _WAIT_OR_TELL,
    "topology_refused": (Part.FEWER_NOW, Part.WAIT),
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
    "too_many_files": (Part.VOLUME,),
    # its own end
    "crashed": (Part.LOG,),
    "failed": (Part.LOG,),
    "killed": (Part.LOG,),
    "terminated": (Part.LOG,),
    "out_of_memory": (Part.SIZES, Part.LOG),
    "clone_out_of_memory": (Part.SIZES, Part.LOG),
    "out_of_gpu_memory": (Part.LOG,),
    "bus_error": (Part.SIZES, Part.LOG),
    "command_not_found": (Part.COMMAND, Part.IMAGE),
    "command_not_executable": (Part.COMMAND, Part.IMAGE),
    "repository_not_found": _REPOSITORY,
    "repository_private": _REPOSITORY,
    "repository_unreachable": _REPOSITORY,
    "reference_not_found": _REPOSITORY,
    "clone_failed": _REPOSITORY,
    "no_git": (Part.IMAGE,),
}


def plan_of(told: Status) -> Plan:
    """() where nothing needs help. What failed does not come back by itself."""
    found = _PLANS.get(told.reason, ())
    if told.phase is Phase.FAILED:
        return tuple(part for part in found if part is not Part.WAIT)
    if told.reason == "queued" and told.explained is not None and told.explained.raw:
        # Kueue says something that nobody here knows.
        return _TELL
    return found if told.phase not in (Phase.STOPPING, Phase.STOPPED, Phase.SUCCEEDED) else ()


def needs_class(told: Status) -> bool:
    return not _BY_CLASS.isdisjoint(plan_of(told))
