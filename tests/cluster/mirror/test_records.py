"""Records are small, keep what matters, and stay equal when only other fields change."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from cluster.client.managed_fields import field_ownership
from cluster.mirror.records import namespaces, nodes, pods, quantities
from cluster.mirror.records import types as record_types
from cluster.mirror.records.kinds import KINDS
from cluster.reads import observed

Raw = dict[str, Any]


def meta(name: str, namespace: str = "", **more: Any) -> Raw:
    found = {"name": name, "uid": f"uid-{name}", "resourceVersion": "41", "creationTimestamp": "2026-11-21T09:00:00Z"}
    return {**found, **({"namespace": namespace} if namespace else {}), **more}


OURS = {
    "app.kubernetes.io/managed-by": "gpu-portal",
    "gpu-portal/owner": "workloads.workload.7",
    "gpu-portal/class": "a100",
    "gpu-portal/run": "train-1",
}


# ---- images ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("python", "docker.io/library/python:latest"),
        ("python:3.14-slim", "docker.io/library/python:3.14-slim"),
        ("jupyter/minimal", "docker.io/jupyter/minimal:latest"),
        ("quay.io/jupyter/minimal:2026@sha256:12", "quay.io/jupyter/minimal@sha256:12"),
        ("localhost:5000/mine:1", "localhost:5000/mine:1"),
    ],
)
def test_an_image_is_the_same_however_it_is_written(written: str, same: str) -> None:
    assert nodes.image_key(written) == nodes.image_key(same)
    assert len(nodes.image_key(written)) == 12


def test_other_tags_registries_and_digests_are_other_images() -> None:
    written = ["a:1", "a:2", "b:1", "quay.io/a:1", "localhost:5000/a:1", "a@sha256:1", "a@sha256:2"]
    assert len({nodes.image_key(one) for one in written}) == len(written)


# ---- quantities --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "quantity", "units"),
    [
        ("cpu", "2", 2000),
        ("cpu", "250m", 250),
        ("cpu", "1.5", 1500),
        ("cpu", "100u", 1),
        ("memory", "16Gi", 16 * 2**30),
        ("memory", "1e9", 10**9),
        ("memory", "1500M", 1_500_000_000),
        ("memory", "0.5Ki", 512),
        ("nvidia.com/gpu", "4", 4),
        ("nvidia.com/gpu", 4, 4),
    ],
)
def test_a_quantity_in_whole_units(resource: str, quantity: Any, units: int) -> None:
    assert quantities.amount(resource, quantity) == units


def test_what_is_no_quantity_is_refused() -> None:
    with pytest.raises(ValueError, match="no quantity"):
        quantities.amount("cpu", "many")


# ---- nodes -------------------------------------------------------------------------------------------------------

NODE = {
    "metadata": meta(
        "a100-1",
        labels={
            "kubernetes.io/hostname": "a100-1",
            "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
            "nvidia.com/gfd.timestamp": "1763704800",
            "feature.node.kubernetes.io/cpu-cpuid.AVX512F": "true",
            "team": "vision",
        },
    ),
    "spec": {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]},
    "status": {
        "capacity": {"cpu": "128", "memory": "1031Gi", "pods": "110", "nvidia.com/gpu": "4", "hugepages-2Mi": "0"},
        "allocatable": {"cpu": "126", "memory": "1011Gi", "pods": "110", "nvidia.com/gpu": "3"},
        "conditions": [
            {"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": "2026-11-21T09:00:01Z"},
            {"type": "DiskPressure", "status": "True", "lastHeartbeatTime": "2026-11-21T09:00:01Z"},
            {
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "message": "kubelet is posting ready status",
                "lastHeartbeatTime": "2026-11-21T09:00:01Z",
                "lastTransitionTime": "2026-11-21T08:00:00Z",
            },
        ],
        "images": [{"names": ["registry/image@sha256:0123"], "sizeBytes": 1}] * 50,
        "nodeInfo": {"kubeletVersion": "v1.36.3"},
    },
}


def test_a_node_keeps_labels_devices_and_health() -> None:
    seen = KINDS["Node"].seen(NODE)

    assert seen.columns == {"schedulable": True, "ready": True}
    assert seen.record == {
        "labels": {
            "kubernetes.io/hostname": "a100-1",
            "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
            "team": "vision",
        },
        "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
        "capacity": {"cpu": 128_000, "memory": 1031 * 2**30, "pods": 110, "nvidia.com/gpu": 4},
        "allocatable": {"cpu": 126_000, "memory": 1011 * 2**30, "pods": 110, "nvidia.com/gpu": 3},
        "ready_since": "2026-11-21T08:00:00Z",
        "ready_reason": "KubeletReady",
        "ready_message": "kubelet is posting ready status",
        "pressure": ["DiskPressure"],
        "kubelet": "v1.36.3",
        "writers": {},
        "images": {nodes.image_key("registry/image@sha256:0123"): 0},
        "cordon": None,
    }


def test_a_node_tells_who_set_its_layout_and_since_when() -> None:
    def entry(manager: str, time: str, *labels: str) -> dict[str, Any]:
        fields = {"f:metadata": {"f:labels": {f"f:{label}": {} for label in labels}}}
        return {"manager": manager, "time": time, "operation": "Update", "fieldsV1": fields}

    raw = copy.deepcopy(NODE)
    raw["metadata"]["managedFields"] = [
        entry("kubectl-label", "2026-11-21T09:10:00Z", "nvidia.com/mig.config", "team"),
        entry("mig-manager", "2026-11-21T09:12:00Z", "nvidia.com/mig.config.state"),
        entry("installer", "2026-11-01T08:00:00Z", "nvidia.com/mig.config"),
        {"manager": "kubelet", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
    ]
    assert KINDS["Node"].seen(raw).record["writers"] == {
        "nvidia.com/mig.config": {"manager": "kubectl-label", "at": "2026-11-21T09:10:00Z"},
        "nvidia.com/mig.config.state": {"manager": "mig-manager", "at": "2026-11-21T09:12:00Z"},
    }


CORDONER = {
    "manager": "kubectl", "time": "2026-11-21T14:05:00Z", "operation": "Update",
    "fieldsV1": {"f:metadata": {"f:annotations": {"f:a": {}}}, "f:spec": {"f:unschedulable": {}}},
}  # fmt: skip
CORDON_TAINT = {
    "key": "node.kubernetes.io/unschedulable",
    "effect": "NoSchedule",
    "timeAdded": "2026-11-21T14:02:00Z",
}


@pytest.mark.parametrize(
    ("managed", "taints", "expected"),
    [
        # The manager wrote another field later: the taint has the time of the cordon.
        ([CORDONER], [CORDON_TAINT], {"manager": "kubectl", "at": "2026-11-21T14:02:00Z"}),
        ([CORDONER], [], {"manager": "kubectl", "at": "2026-11-21T14:05:00Z"}),
        ([], [CORDON_TAINT], {"manager": "", "at": "2026-11-21T14:02:00Z"}),
        ([], [], {"manager": "", "at": ""}),
    ],
)
def test_a_cordoned_node_tells_who_cordoned_it_and_since_when(
    managed: list[Any], taints: list[Any], expected: dict[str, str]
) -> None:
    raw = copy.deepcopy(NODE)
    raw["spec"] = {"unschedulable": True, "taints": taints}
    raw["metadata"]["managedFields"] = managed
    assert KINDS["Node"].seen(raw).record["cordon"] == expected


def test_who_opened_a_node_does_not_count_as_who_cordoned_it() -> None:
    raw = copy.deepcopy(NODE)
    raw["metadata"]["managedFields"] = [CORDONER]
    assert KINDS["Node"].seen(raw).record["cordon"] is None


def test_a_heartbeat_changes_nothing_that_is_shown() -> None:
    later = copy.deepcopy(NODE)
    later["metadata"]["resourceVersion"] = "42"
    later["metadata"]["labels"]["nvidia.com/gfd.timestamp"] = "1763704999"
    for condition in later["status"]["conditions"]:
        condition["lastHeartbeatTime"] = "2026-11-21T09:05:01Z"

    assert KINDS["Node"].seen(later).digest() == KINDS["Node"].seen(NODE).digest()


@pytest.mark.parametrize(
    ("change", "columns"),
    [
        ({"spec": {"unschedulable": True}}, {"schedulable": False, "ready": True}),
        ({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, {"schedulable": True, "ready": False}),
        ({"status": {}}, {"schedulable": True, "ready": False}),
    ],
)
def test_a_cordoned_or_silent_node(change: Raw, columns: Raw) -> None:
    assert KINDS["Node"].seen({**NODE, **change}).columns == columns


# ---- pods --------------------------------------------------------------------------------------------------------


def container(cpu: str = "", gpus: int = 0, **more: Any) -> Raw:
    limits: Raw = {**({"cpu": cpu} if cpu else {}), **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return {"name": "c", "resources": {"limits": limits, "requests": {}}, **more}


@pytest.mark.parametrize(
    ("spec", "requests"),
    [
        ({"containers": [container("1", 1), container("500m", 2)]}, {"cpu": 1500, "nvidia.com/gpu": 3}),
        (
            {"containers": [container("1", 1)], "initContainers": [container("4", 2)]},
            {"cpu": 4000, "nvidia.com/gpu": 2},
        ),
        (
            # A sidecar runs beside the containers and beside the init containers that follow it.
            {
                "containers": [container("1", 1)],
                "initContainers": [container("500m", restartPolicy="Always"), container("3")],
            },
            {"cpu": 3500, "nvidia.com/gpu": 1},
        ),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, {"cpu": 1250}),
        ({"containers": [container("1")], "resources": {"requests": {"cpu": "2"}}}, {"cpu": 2000}),
        ({"containers": [{"name": "c"}]}, {}),
    ],
)
def test_a_pod_asks_for_what_the_scheduler_counts(spec: Raw, requests: Raw) -> None:
    assert pods.pod_requests(spec) == requests


POD: Raw = {
    "metadata": meta(
        "train-1-x2x",
        "team-a",
        labels={**OURS, "batch.kubernetes.io/job-name": "train-1", "job-name": "train-1"},
        ownerReferences=[{"kind": "Job", "name": "train-1", "uid": "uid-job", "controller": True}],
        managedFields=[{"manager": "kubelet", "fieldsV1": {"f:status": {}}}] * 3,
    ),
    "spec": {
        "nodeName": "a100-1",
        "priority": 0,
        "containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": "1", "cpu": "4"}}}],
    },
    "status": {
        "phase": "Failed",
        "podIP": "10.0.0.7",
        "startTime": "2026-11-21T09:01:00Z",
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "PodFailed", "lastTransitionTime": "2026-11-21T09:09:00Z"},
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-21T09:01:00Z"},
        ],
        "containerStatuses": [
            {
                "name": "main",
                "ready": False,
                "restartCount": 1,
                "state": {
                    "terminated": {
                        "reason": "OOMKilled",
                        "exitCode": 137,
                        "startedAt": "2026-11-21T09:01:05Z",
                        "finishedAt": "2026-11-21T09:09:00Z",
                    }
                },
                "lastState": {"terminated": {"reason": "Error", "exitCode": 1}},
            }
        ],
    },
}


def test_an_ended_pod_of_ours_says_how_it_ended() -> None:
    seen = KINDS["Pod"].seen(POD)

    assert seen.is_kept
    assert seen.owner == "workloads.workload.7"
    assert seen.columns == {"node": "a100-1", "phase": "Failed", "run": "train-1", "gpu_class": "a100"}
    assert seen.record["requests"] == {"nvidia.com/gpu": 1, "cpu": 4000}
    assert seen.record["job_uid"] == "uid-job"
    assert seen.record["labels"] == {
        "gpu-portal/owner": "workloads.workload.7",
        "gpu-portal/class": "a100",
        "gpu-portal/run": "train-1",
        "batch.kubernetes.io/job-name": "train-1",
    }
    [main] = observed.containers(seen.record["containers"])
    assert (main.state, main.reason, main.exit_code, main.restarts) == ("terminated", "OOMKilled", 137, 1)
    assert (main.last_reason, main.last_exit_code) == ("Error", 1)
    assert main.ended_at == observed.parse_time("2026-11-21T09:09:00Z")
    assert [condition.type for condition in observed.conditions(seen.record)] == ["PodScheduled", "Ready"]
    assert len(json.dumps(seen.record)) < 1100


@pytest.mark.parametrize(("phase", "is_kept"), [("Running", True), ("Pending", True), ("Succeeded", False)])
def test_of_strangers_pods_only_what_takes_capacity_is_kept(phase: str, is_kept: bool) -> None:
    stranger = {**POD, "metadata": meta("other", "elsewhere"), "status": {**POD["status"], "phase": phase}}
    seen = KINDS["Pod"].seen(stranger)

    assert (seen.is_kept, seen.owner, seen.is_ours) == (is_kept, "", False)
    assert seen.record == {"requests": {"nvidia.com/gpu": 1, "cpu": 4000}}
    assert seen.columns["node"] == "a100-1"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (
            {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}},
            ("waiting", "ImagePullBackOff", "Back-off pulling image", None),
        ),
        ({"running": {"startedAt": "2026-11-21T09:01:05Z"}}, ("running", "", "", "2026-11-21T09:01:05Z")),
        ({}, ("", "", "", None)),
    ],
)
def test_the_state_of_a_container(state: Raw, expected: tuple[Any, ...]) -> None:
    statuses = [{"name": "main", "state": state}]
    seen = KINDS["Pod"].seen({**POD, "status": {"phase": "Pending", "containerStatuses": statuses}})
    [main] = seen.record["containers"]

    assert (main["state"], main["reason"], main["message"], main["since"]) == expected


def test_the_order_of_conditions_means_nothing() -> None:
    turned = copy.deepcopy(POD)
    turned["status"]["conditions"].reverse()
    assert KINDS["Pod"].seen(turned).digest() == KINDS["Pod"].seen(POD).digest()


# ---- Jobs and Workloads ------------------------------------------------------------------------------------------


def test_a_job_that_waits_in_the_queue() -> None:
    raw = {
        "metadata": meta("train-1", "team-a", labels={**OURS, "kueue.x-k8s.io/queue-name": "gpu-portal"}),
        "spec": {"suspend": True, "parallelism": 2, "completions": 2},
        "status": {"conditions": [{"type": "Suspended", "status": "True", "reason": "JobSuspended"}]},
    }
    seen = KINDS["Job"].seen(raw)

    assert seen.columns == {"run": "train-1"}
    assert seen.record["suspend"] is True
    assert (seen.record["parallelism"], seen.record["active"], seen.record["failed"]) == (2, 0, 0)
    assert seen.record["conditions"][0]["reason"] == "JobSuspended"
    assert seen.ownership is None


WORKLOAD: Raw = {
    "metadata": meta(
        "job-train-1-9f31c",
        "team-a",
        labels={"kueue.x-k8s.io/job-uid": "uid-job"},
        ownerReferences=[{"kind": "Job", "name": "train-1", "uid": "uid-job", "controller": True}],
    ),
    "spec": {
        "queueName": "gpu-portal",
        "priority": 500,
        "priorityClassRef": {"kind": "WorkloadPriorityClass", "name": "interactive"},
    },
    "status": {
        "conditions": [
            {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "in team-a"},
            {"type": "Evicted", "status": "True", "reason": "Preempted", "message": "m" * 9000},
        ],
        "admission": {
            "clusterQueue": "team-a",
            "podSetAssignments": [
                {
                    "name": "main",
                    "count": 2,
                    "flavors": {"nvidia.com/gpu": "a100-1f2e"},
                    "resourceUsage": {"nvidia.com/gpu": "4"},
                }
            ],
        },
        "requeueState": {"count": 2, "requeueAt": "2026-11-21T09:30:00Z"},
        "schedulingStats": {
            "evictions": [{"reason": "Preempted", "underlyingCause": "InCohortReclamation", "count": 3}]
        },
    },
}


def test_a_workload_says_where_it_stands() -> None:
    seen = KINDS["Workload"].seen(WORKLOAD)

    assert seen.columns == {"queue": "gpu-portal", "job_uid": "uid-job"}
    assert seen.record["cluster_queue"] == "team-a"
    assert seen.record["flavors"] == {"nvidia.com/gpu": "a100-1f2e"}
    assert seen.record["usage"] == {"nvidia.com/gpu": 4}
    assert (seen.record["pods"], seen.record["priority"], seen.record["priority_class"]) == (2, 500, "interactive")
    assert (seen.record["requeue_count"], seen.record["preemptions"]) == (2, 3)
    evicted, reserved = observed.conditions(seen.record)
    assert (evicted.reason, len(evicted.message), reserved.is_true) == ("Preempted", 4096, True)


# ---- other kinds -------------------------------------------------------------------------------------------------

FLAVORS = [
    {
        "name": "a100-1f2e",
        "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "4", "borrowingLimit": "2"}],
    }
]
ZONES = [{"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b"]}]}]
OBJECTS: list[tuple[str, Raw, Raw]] = [
    (
        "PersistentVolume",
        {"spec": {"claimRef": {"name": "data"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [*ZONES, {}]}}}},
        {"nodes": ZONES},
    ),
    ("PersistentVolume", {"spec": {"claimRef": {"name": "data"}, "nfs": {}}}, {"nodes": []}),
    ("StorageClass", {"provisioner": "x"}, {}),
    (
        "ResourceQuota",
        {"spec": {"hard": {"pods": "9"}}, "status": {"used": {"pods": "1"}}},
        {"hard": {"pods": "9"}, "used": {"pods": "1"}},
    ),
    (
        "PersistentVolumeClaim",
        {
            "spec": {
                "resources": {"requests": {"storage": "5Gi"}},
                "storageClassName": "fast",
                "accessModes": ["ReadWriteOnce"],
            },
            "status": {"phase": "Pending"},
        },
        {
            "phase": "Pending",
            "storage_class": "fast",
            "asked_bytes": 5 * 2**30,
            "capacity_bytes": 0,
            "access_modes": ["ReadWriteOnce"],
            "volume": "",
            "node": "",
            "conditions": [],
        },
    ),
    (
        "ClusterQueue",
        {
            "spec": {"cohortName": "gpu-portal", "stopPolicy": "Hold", "resourceGroups": [{"flavors": FLAVORS}]},
            "status": {
                "pendingWorkloads": 3,
                "flavorsUsage": [
                    {"name": "a100-1f2e", "resources": [{"name": "nvidia.com/gpu", "total": "5", "borrowed": "1"}]}
                ],
            },
        },
        {
            "cohort": "gpu-portal",
            "stop_policy": "Hold",
            "quota": {"a100-1f2e": {"nvidia.com/gpu": {"nominal": 4, "borrowing": 2, "lending": None}}},
            "usage": {"a100-1f2e": {"nvidia.com/gpu": {"total": 5, "borrowed": 1}}},
            "reserved": {},
            "pending": 3,
            "reserving": 0,
            "admitted": 0,
            "conditions": [],
        },
    ),
    (
        "LocalQueue",
        {"spec": {"clusterQueue": "team-a"}, "status": {"admittedWorkloads": 1}},
        {
            "cluster_queue": "team-a",
            "stop_policy": "None",
            "pending": 0,
            "reserving": 0,
            "admitted": 1,
            "conditions": [],
        },
    ),
    (
        "Cohort",
        {"spec": {"resourceGroups": [{"flavors": FLAVORS}]}},
        {"parent": "", "quota": {"a100-1f2e": {"nvidia.com/gpu": {"nominal": 4, "borrowing": 2, "lending": None}}}},
    ),
    (
        "ResourceFlavor",
        {"spec": {"nodeLabels": {"a": "b"}, "topologyName": "gpu-portal"}},
        {"node_labels": {"a": "b"}, "taints": [], "tolerations": [], "topology": "gpu-portal"},
    ),
    (
        "Topology",
        {"spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}},
        {"levels": ["kubernetes.io/hostname"]},
    ),
    (
        "RoleBinding",
        {
            "roleRef": {"kind": "ClusterRole", "name": "gpu-portal-logs", "apiGroup": "rbac.authorization.k8s.io"},
            "subjects": [{"kind": "ServiceAccount", "name": "doors", "namespace": "gpu-portal"}],
        },
        {
            "role": {"kind": "ClusterRole", "name": "gpu-portal-logs"},
            "subjects": [{"kind": "ServiceAccount", "name": "doors", "namespace": "gpu-portal"}],
        },
    ),
    ("NetworkPolicy", {"spec": {"policyTypes": ["Ingress"], "ingress": [{}, {}]}}, {"types": ["Ingress"], "rules": 2}),
    ("ServiceAccount", {"automountServiceAccountToken": False}, {"automount": False}),
    ("LimitRange", {"spec": {"limits": [{"type": "Container"}]}}, {"limits": [{"type": "Container"}]}),
    ("Namespace", {"status": {"phase": "Active"}}, {"phase": "Active", "labels": {}, "conditions": []}),
    (
        "DeviceClass",
        {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
        {"selectors": ["true"], "extended_resource": ""},
    ),
    (
        "ResourceClaim",
        {
            "spec": {
                "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}]}
            },
            "status": {
                "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
                "allocation": {
                    "devices": {
                        "results": [{"request": "gpu", "driver": "gpu.nvidia.com", "pool": "h100", "device": "gpu-0"}]
                    }
                },
            },
        },
        {
            "requests": [{"name": "gpu", "device_class": "gpu.nvidia.com", "count": 2}],
            "devices": [{"request": "gpu", "driver": "gpu.nvidia.com", "pool": "h100", "device": "gpu-0"}],
            "used_by": ["p"],
            "state": "in use",
            "pod_claim": "",
        },
    ),
    (
        "ResourceSlice",
        {
            "spec": {
                "driver": "gpu.nvidia.com",
                "nodeName": "h100",
                "pool": {"name": "h100", "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {
                        "name": "gpu-0",
                        "attributes": {"type": {"string": "gpu"}, "v": {"version": "9.0.0"}},
                        "capacity": {"memory": {"value": "80Gi"}},
                        "consumesCounters": [{"counterSet": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}],
                    },
                    {"name": "gpu-1"},
                ],
            }
        },
        {
            "driver": "gpu.nvidia.com",
            "pool": "h100",
            "generation": 1,
            "slices": 1,
            "node": "h100",
            "devices": [
                {
                    "name": "gpu-0",
                    "attributes": {"type": "gpu", "v": "9.0.0"},
                    "capacity": {"memory": 80 * 2**30},
                    "taints": [],
                    "is_divided": True,
                },
                {"name": "gpu-1", "attributes": {}, "capacity": {}, "taints": [], "is_divided": False},
            ],
        },
    ),
]


@pytest.mark.parametrize(("kind", "raw", "record"), OBJECTS, ids=[kind for kind, _raw, _record in OBJECTS])
def test_the_record_of_every_other_kind(kind: str, raw: Raw, record: Raw) -> None:
    seen = KINDS[kind].seen({"metadata": meta("x"), **raw})
    assert seen.record == record
    assert seen.columns == {}


def test_every_kind_reads_an_object_without_content() -> None:
    for kind in KINDS.values():
        bare = {"metadata": meta("bare", "team-a")}
        assert kind.seen(bare).name == "bare", kind.name


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            {
                "count": 4,
                "firstTimestamp": "2026-11-21T09:00:00Z",
                "lastTimestamp": "2026-11-21T09:04:00Z",
                "source": {"component": "kubelet"},
            },
            (4, "2026-11-21T09:00:00Z", "2026-11-21T09:04:00Z", "kubelet"),
        ),
        (
            {
                "eventTime": "2026-11-21T09:01:00.000000Z",
                "reportingComponent": "default-scheduler",
                "series": {"count": 9, "lastObservedTime": "2026-11-21T09:03:00.000000Z"},
            },
            (9, "2026-11-21T09:01:00.000000Z", "2026-11-21T09:03:00.000000Z", "default-scheduler"),
        ),
        ({}, (1, "2026-11-21T09:00:00Z", "2026-11-21T09:00:00Z", "")),
    ],
)
def test_a_warning_in_the_old_and_the_new_form(raw: Raw, expected: tuple[Any, ...]) -> None:
    about = {"kind": "Job", "name": "train-1", "uid": "uid-job"}
    content = namespaces.warning_record(
        {"metadata": meta("e", "team-a"), "type": "Warning", "reason": "FailedCreate", "involvedObject": about, **raw}
    )
    columns = content.columns
    assert (columns["count"], columns["first_at"], columns["last_at"], columns["source"]) == expected
    assert (columns["object_uid"], columns["reason"]) == ("uid-job", "FailedCreate")


def test_text_that_postgresql_cannot_hold_is_cleaned() -> None:
    content = namespaces.warning_record({"metadata": meta("e", "team-a"), "message": "a\x00b"})
    assert content.columns["message"] == "ab"


# ---- field owners and foreign changes ----------------------------------------------------------------------------


def written(manager: str, fields: Raw, *, at: str = "2026-11-21T09:00:00Z", **more: Any) -> Raw:
    return {"manager": manager, "operation": "Apply", "time": at, "fieldsV1": fields, **more}


PORTAL = written(
    "gpu-portal",
    {
        "f:metadata": {"f:labels": {"f:gpu-portal/owner": {}}},
        "f:spec": {"f:hard": {"f:pods": {}, "f:requests.cpu": {}}},
    },
)
LATER = "2026-11-21T09:30:00Z"


@pytest.mark.parametrize(
    ("other", "fields"),
    [
        (written("kubectl-edit", {"f:spec": {"f:hard": {"f:requests.memory": {}}}}), ("spec.hard.requests.memory",)),
        # Equal values are shared ownership.
        (written("kubectl-edit", {"f:spec": {"f:hard": {"f:pods": {}}}}), ()),
        (written("kube-controller-manager", {"f:status": {"f:used": {}}}, subresource="status"), ()),
        (written("kueue", {"f:status": {"f:conditions": {}}}), ()),
        (written("kueue", {"f:metadata": {"f:finalizers": {".": {}, 'v:"kueue.x-k8s.io/resource-in-use"': {}}}}), ()),
        (
            written(
                "pv-controller",
                {"f:metadata": {"f:annotations": {"f:pv.kubernetes.io/bound": {}}}, "f:spec": {"f:volumeName": {}}},
            ),
            (),
        ),
        (written("mesh", {"f:metadata": {"f:labels": {"f:mesh.example.org/on": {}}}}), ()),
        (
            written("kubectl-label", {"f:metadata": {"f:labels": {"f:pod-security.kubernetes.io/enforce": {}}}}),
            ("metadata.labels.pod-security.kubernetes.io/enforce",),
        ),
    ],
)
def test_what_counts_as_written_by_somebody_else(other: Raw, fields: tuple[str, ...]) -> None:
    found = field_ownership([PORTAL, {**other, "time": LATER}])
    assert found is not None
    assert found.fields == fields
    assert found.manager == (other["manager"] if fields else "")
    assert found.since == (LATER if fields else "")


def test_a_field_that_somebody_removed_shows_in_ours_being_fewer() -> None:
    before = field_ownership([PORTAL])
    fewer = written(
        "gpu-portal", {"f:metadata": {"f:labels": {"f:gpu-portal/owner": {}}}, "f:spec": {"f:hard": {"f:pods": {}}}}
    )
    after = field_ownership([fewer])
    assert before is not None
    assert after is not None
    assert after.removed_since(before.baseline()) == ("spec.hard",)
    # The portal itself sent fewer fields: its managedFields entry is newer.
    ours = field_ownership([{**fewer, "time": LATER}])
    assert ours is not None
    assert ours.removed_since(before.baseline()) == ()
    assert after.removed_since(None) == ()


def test_a_label_that_is_removed_leaves_the_map_that_was_created_with_it() -> None:
    """As after a repair: the apply owns both labels; the creation, an update, owns their map and one of them."""
    managed, owner = {"f:app.kubernetes.io/managed-by": {}}, {"f:gpu-portal/owner": {}}
    before = field_ownership(
        [
            written("gpu-portal", {"f:metadata": {"f:labels": {**managed, **owner}}}),
            written("gpu-portal", {"f:metadata": {"f:labels": {".": {}, **owner}}}),
        ]
    )
    after = field_ownership(
        [
            written("gpu-portal", {"f:metadata": {"f:labels": managed}}),
            written("gpu-portal", {"f:metadata": {"f:labels": {}}}),
        ]
    )
    assert before is not None
    assert after is not None
    assert after.removed_since(before.baseline()) == ("metadata.labels",)


def test_labels_removed_with_the_only_dated_entry_of_ours_are_fewer() -> None:
    """Others have replaced the spec before; the apply that repaired it changed nothing more, so it has no time."""
    labels = {"f:metadata": {"f:labels": {"f:app.kubernetes.io/managed-by": {}, "f:gpu-portal/owner": {}}}}
    spec = {"f:spec": {"f:limits": {}}}
    undated = {name: value for name, value in written("gpu-portal", {**labels, **spec}).items() if name != "time"}
    before = field_ownership([undated, written("gpu-portal", labels)])
    after = field_ownership([{**undated, "fieldsV1": spec}])
    assert before is not None
    assert after is not None
    assert after.written_at < before.written_at
    assert after.removed_since(before.baseline()) == ("metadata.labels",)


@pytest.mark.parametrize("is_removed", [True, False])
def test_fewer_fields_with_the_same_value_are_no_removal(is_removed: bool) -> None:
    """The creation's entry owns the API server's default too, the apply in the same second only what we send."""
    sent = {"f:preemption": {"f:withinClusterQueue": {}}}
    body: Raw = {"metadata": {}, "spec": {"preemption": {"withinClusterQueue": "Never", "borrowWithinCohort": {}}}}
    before = field_ownership(
        [written("gpu-portal", {"f:spec": {"f:preemption": {**sent["f:preemption"], "f:borrowWithinCohort": {}}}})],
        body,
    )
    if is_removed:
        body = {"metadata": {}, "spec": {"preemption": {"withinClusterQueue": "Never"}}}
    after = field_ownership([written("gpu-portal", {"f:spec": sent})], body)
    assert before is not None
    assert after is not None
    assert after.removed_since(before.baseline()) == (("spec.preemption",) if is_removed else ())


def test_an_object_that_only_carries_our_label_has_no_owner_on_record() -> None:
    assert field_ownership([written("kubectl", {"f:spec": {}})]) is None


def test_the_end_of_a_containers_last_words_is_kept() -> None:
    def message(state: str) -> str:
        told = {"name": "main", "state": {state: {"message": "begin" + "." * 2000 + "end", "exitCode": 1}}}
        pod = {"metadata": meta("p", "team-a", labels=OURS), "spec": {}, "status": {"containerStatuses": [told]}}
        (found,) = KINDS["Pod"].seen(pod).record["containers"]
        return str(found["message"])

    assert (message("terminated")[-3:], message("waiting")[:5]) == ("end", "begin")
    assert len(message("terminated")) == len(message("waiting")) == record_types.TEXT_LIMIT


@pytest.mark.parametrize("state", ["waiting", "terminated"])
def test_a_password_that_a_program_prints_is_not_stored(state: str) -> None:
    told = f"login with password=hunter2 failed\nAuthorization: Bearer hunter2\n{'.' * 990}\ntoken: hunter2 refused"
    status = {"state": {state: {"reason": "RunContainerError", "message": told, "exitCode": 1}}}
    raw = {
        "metadata": meta("one", "team-a", labels={"gpu-portal/owner": "workload:one"}),
        "status": {
            "message": "evicted: --password=hunter2",
            "containerStatuses": [{"name": "main", **status}],
            "initContainerStatuses": [{"name": "first", **status}],
        },
    }
    record = pods.pod_record(raw).record
    assert "hunter2" not in json.dumps(record)
    assert ("refused" in json.dumps(record)) is (state == "terminated"), "of a long text the end, or the beginning"
    assert record["message"] == "evicted: --password=***"


@pytest.mark.parametrize("reason", ["Unhealthy", "FailedPostStartHook", "FailedPreStopHook", "Failed", "BackOff"])
def test_a_password_in_an_event_is_not_stored(reason: str) -> None:
    told = {"metadata": meta("e", "team-a"), "reason": reason, "message": "probe failed: api_key=hunter2 is wrong"}
    assert namespaces.warning_record(told).columns["message"] == "probe failed: api_key=*** is wrong"


def test_what_the_cluster_says_about_volumes_and_images_stays_as_it_is() -> None:
    mount = 'MountVolume.SetUp failed for volume "my-secret" : secret "abc" not found'
    event = {"metadata": meta("e", "team-a"), "reason": "FailedMount", "message": mount}
    assert namespaces.warning_record(event).columns["message"] == mount
    pull = 'Back-off pulling image "r.example.org/secret:7": authorization: server message'
    status = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": pull}}}
    raw = {"metadata": meta("one", "team-a", labels={"gpu-portal/owner": "workload:one"})}
    assert (
        pods.pod_record({**raw, "status": {"containerStatuses": [status]}}).record["containers"][0]["message"] == pull
    )
