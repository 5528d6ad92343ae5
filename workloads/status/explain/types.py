"""Explanation, the names of its facts, who can act, and the remedies that several explanations share. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from workloads.core.observation import UNUSABLE_PHASES

CONTACT_OPERATORS = "Contact an operator if this continues for more than 10 minutes."
NOT_YOUR_SETTINGS = "Contact an operator. Your settings are not the cause."
# Next best actions, best first; each is a verb of the API or a page to open.
STOP = ("stop",)
STOP_OR_CHANGE = ("stop", "change")


# Names and types of the numbers in a sentence, for pages, API and email.
FACTS: Mapping[str, type | tuple[type, ...]] = {
    "again_at": str,
    "asked": (int, float),
    "attempts": int,
    "available": (int, float),
    "container": str,
    "ending_units": int,
    "exit_code": int,
    "fit": int,
    "fitting_units": int,
    "free_units": int,
    "grant_ended_at": str,
    "granted_before": int,
    "gpu_memory_gib": int,
    "granted_units": int,
    "heard_at": str,
    "image_mib": int,
    "limit": (int, float),
    "memory_gib": (int, float),
    "missing_units": int,
    "most_on_one_node": int,
    "most_units": int,
    "node": str,
    "node_pool": str,
    "nodes": int,
    "nodes_with_image": int,
    "position": int,
    "quota": str,
    "resource": str,
    "secrets": int,
    "silent_since": str,
    "times": int,
    "units": int,
    "used": (int, float),
    "workers": int,
}


@dataclass(frozen=True)
class Explanation:
    """`reason` is a code for programs; `is_final`: waiting alone will never help. `facts`: the numbers of the sentence,
    by the names in FACTS; if several resources are named, those of the first. `wait_sentence`: for a preempted run, the
    part of `sentence` about what it waits for now. `is_known`: False if a text of the cluster is shown unchanged.
    `restarts`: another pod is started automatically. `raw_about`: the other workload of the team that `raw` is about,
    if the cluster wrote the message only for that one.
    """

    reason: str
    sentence: str
    remedy: str = ""
    raw: str = ""
    raw_from: str = ""
    is_final: bool = False
    actions: tuple[str, ...] = STOP
    facts: Mapping[str, Any] = field(default_factory=dict)
    wait_sentence: str = ""
    is_known: bool = True
    restarts: bool = False
    raw_about: str = ""

    @property
    def raw_source(self) -> str:
        """Names the author of `raw`, and the workload that it is about if that is another one. For people."""
        about = f" (about {self.raw_about}, an equivalent workload)" if self.raw_about else ""
        return f"{self.raw_from}{about}"


def volume_unusable(name: str, phase: str) -> Explanation:
    """The portal creates a claim only once: a new claim with the name of a deleted one would be empty."""
    text = f"The volume {name} {UNUSABLE_PHASES[phase]}."
    remedy = "Choose another volume, or none. Contact an operator if it should exist: it may have been deleted."
    return Explanation("volume_missing", text, remedy, actions=STOP_OR_CHANGE)


# ---- who can end a wait or a failure ---------------------------------------------------------------------------------


class Who(StrEnum):
    """`YOU`: who launched it, or the team. `NOBODY`: it continues automatically. `UNKNOWN`: the reason does not say."""

    YOU = "you"
    OPERATORS = "operators"
    NOBODY = "nobody"
    UNKNOWN = ""


_BY_WHO: dict[Who, str] = {
    Who.YOU: """
        bad_image_name below_limit_range bus_error clone_failed clone_out_of_memory command_not_executable
        command_not_found crashed credentials_refused exceeds_maximum failed flavor_mismatch gpu_not_requested
        gpu_program_error image_needs_newer_driver image_not_accepted image_not_allowed image_not_found image_not_pulled
        image_runs_as_root image_wrong_format image_wrong_gpu image_wrong_platform job_edited killed level_missing
        limit_range nccl_timeout no_credentials no_git out_of_gpu_memory out_of_memory peer_lost quota_too_small
        reference_not_found registry_unknown repository_not_found repository_private repository_unreachable
        sealed_for_another_key share_limit terminated too_many_files topology_refused volume_elsewhere volume_missing
        volume_refused waiting_for_quota workers_not_joined working_directory
    """,
    Who.OPERATORS: """
        admission_denied autoscaler_limit autoscaler_not_ready autoscaler_refused cluster_not_read container_config
        controllers_silent deactivated device_class_missing device_class_not_counted device_driver_missing
        device_plugin_down devices_not_prepared gpu_driver_down gpu_fault gpu_lost gpu_not_injected gpu_not_visible
        gpu_runtime_missing kubelet_silent kueue_silent mirror_stale namespace_ending no_node_matches no_nodes no_pod
        no_units_offered no_worker_key node_disk_full node_given_up node_gpu_error nodes_closed not_in_queue not_placed
        observe_only pod_not_set_up pod_refused pod_security queue_held queue_inactive quota_forbids quota_missing
        quota_needs_sizes refused_by_cluster registry_untrusted scheduler_silent scheduling_gated storage_driver_missing
        volume_damaged volume_denied volume_not_attached volume_not_mounted volume_unbound
    """,
    Who.NOBODY: """
        admission_unavailable checked class_held cluster_unavailable device_unavailable devices_unavailable disrupted
        drained draining evicted gang_fits_in_part gpu_memory_unavailable image_slow level_fits_in_part namespace_going
        namespace_missing no_cpu_or_memory no_node_fits no_pod_address node_changed node_coming node_full node_lost
        node_not_ready node_pressure node_refused node_runtime_down node_shutdown node_starting node_volume_limit
        nodes_down port_taken preempted preempted_in_team preempted_on_node previous_ending put_back queue_missing
        quota_full quota_starting reclaiming registry_limit registry_unavailable reserved secret_incomplete
        secret_missing service_account volume_in_use
    """,
}
_WHO = {reason: who for who, reasons in _BY_WHO.items() for reason in reasons.split()}


def who_acts(reason: str) -> Who:
    return _WHO.get(reason, Who.UNKNOWN)
