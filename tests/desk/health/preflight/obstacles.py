"""Real objects that prevent an installation, or make it worse, with what is found of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from desk.health.preflight.types import Level
from tests.desk.health.preflight.conftest import (
    KUEUE_SETTINGS,
    dns_service,
    kueue_config_map,
    kueue_deployment,
    workload,
)

Json = dict[str, Any]
OURS = {"app.kubernetes.io/managed-by": "gpu-portal"}
ADMISSION = "admissionregistration.k8s.io/v1"
FAIL, WARN = Level.FAIL, Level.WARN


def settings_with(**changes: Any) -> Json:
    return kueue_config_map(yaml.safe_dump(yaml.safe_load(KUEUE_SETTINGS) | changes))


def resources_with(**changes: Any) -> Json:
    return settings_with(resources=yaml.safe_load(KUEUE_SETTINGS)["resources"] | changes)


def cluster_object(api_version: str, kind: str, name: str, **fields: Any) -> Json:
    metadata = {"name": name} | fields.pop("metadata", {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def storage_class(name: str, *, is_default: bool, **fields: Any) -> Json:
    annotations = {"storageclass.kubernetes.io/is-default-class": str(is_default).lower()}
    more = {"provisioner": "example.org/disks", "metadata": {"annotations": annotations}, **fields}
    return cluster_object("storage.k8s.io/v1", "StorageClass", name, **more)


def refusing_policy() -> list[Json]:
    rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}
    message = "Jobs need a cost centre"
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "'cost-centre' in object.metadata.?labels.orValue({})", "message": message}],
    }
    binding = {"policyName": "cost-centre", "validationActions": ["Deny"]}
    return [
        cluster_object(ADMISSION, "ValidatingAdmissionPolicy", "cost-centre", spec=spec),
        cluster_object(ADMISSION, "ValidatingAdmissionPolicyBinding", "cost-centre", spec=binding),
    ]


def mutating_policy(expression: str, *, kind: str = "ApplyConfiguration") -> list[Json]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    spec = {
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
            "resourceRules": [rule],
        },
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": kind, FIELDS[kind]: {"expression": expression}}],
    }
    return [
        cluster_object(ADMISSION, "MutatingAdmissionPolicy", "adds", spec=spec),
        cluster_object(ADMISSION, "MutatingAdmissionPolicyBinding", "adds", spec={"policyName": "adds"}),
    ]


def webhook() -> Json:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["limitranges"]}
    hook = {
        "name": "gate.example.org",
        "rules": [rule],
        "clientConfig": {"url": "https://127.0.0.1:1/gate"},
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 1,
    }
    return cluster_object(ADMISSION, "ValidatingWebhookConfiguration", "gate", webhooks=[hook])


def node(name: str, labels: dict[str, str]) -> Json:
    return cluster_object("v1", "Node", name, metadata={"labels": labels})


@dataclass(frozen=True)
class Obstacle:
    check: str
    level: Level
    objects: tuple[Json, ...]
    said: str


FIELDS = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
ZONES = (
    node("zone-a", {"topology.kubernetes.io/zone": "a"}),
    node("zone-b", {"topology.kubernetes.io/zone": "b"}),
)
OBSTACLES = {
    "kueue too old": Obstacle(
        "kueue-version", FAIL, (kueue_deployment("registry.k8s.io/kueue/kueue:v0.16.2"),), "Kueue is 0.16"
    ),
    "kueue without jobs": Obstacle(
        "kueue-integrations", FAIL, (settings_with(integrations={"frameworks": ["pod"]}),), "lacks batch/job"
    ),
    "kueue takes jobs without a queue": Obstacle(
        "kueue-jobs-without-queue", FAIL, (settings_with(manageJobsWithoutQueueName=True),), "migrations"
    ),
    "kueue skips the namespaces of teams": Obstacle(
        "kueue-namespaces",
        FAIL,
        (settings_with(managedJobsNamespaceSelector={"matchLabels": {"kueue": "on"}}),),
        "excludes the namespaces of teams",
    ),
    "kueue waits for pods": Obstacle(
        "kueue-wait-for-pods-ready", WARN, (settings_with(waitForPodsReady={"timeout": "5m"}),), "after 5m"
    ),
    "kueue counts cpu": Obstacle(
        "kueue-excluded-resources", FAIL, (resources_with(excludeResourcePrefixes=["memory", "eph"]),), "counts cpu:"
    ),
    "kueue without topology": Obstacle(
        "kueue-topology", FAIL, (settings_with(featureGates={"TopologyAwareScheduling": False}),), "fit on no node"
    ),
    "kueue with another lease": Obstacle(
        "kueue-lease", WARN, (settings_with(leaderElection={"leaderElect": True, "resourceName": "x"}),), "Lease"
    ),
    "an unknown device class": Obstacle(
        "kueue-device-classes",
        WARN,
        (cluster_object("resource.k8s.io/v1", "DeviceClass", "npu.example.com", spec={}),),
        "npu.example.com",
    ),
    "dns on another port": Obstacle("dns", WARN, (dns_service("kube-system", targetPort=5353),), "port 5353"),
    "a dns cache": Obstacle(
        "dns-cache", WARN, (workload("DaemonSet", "node-local-dns", "kube-system", "dns:1"),), "link-local"
    ),
    "early binding in several zones": Obstacle("storage-binding", WARN, ZONES, "2 zones"),
    "two default storage classes": Obstacle("storage", WARN, (storage_class("fast", is_default=True),), "Several"),
    "a policy that refuses jobs": Obstacle("admission", FAIL, tuple(refusing_policy()), "Jobs need a cost centre"),
    "a webhook that is down": Obstacle("admission", FAIL, (webhook(),), "gate.example.org"),
    "annotations of a webhook": Obstacle(
        "pod-annotations",
        WARN,
        tuple(mutating_policy("Object{metadata: Object.metadata{annotations: {'openshift.io/scc': 'restricted-v2'}}}")),
        "openshift.io/scc",
    ),
    "sidecars": Obstacle(
        "pod-containers",
        WARN,
        tuple(
            mutating_policy(
                "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'mesh', image: 'mesh:1'}]}}"
            )
        ),
        "mesh",
    ),
    "tolerations of a policy": Obstacle(
        "pod-tolerations",
        WARN,
        tuple(
            mutating_policy(
                "[JSONPatch{op: 'add', path: '/spec/tolerations/-',"
                " value: Object.spec.tolerations{key: 'spot', operator: 'Exists'}}]",
                kind="JSONPatch",
            )
        ),
        "spot",
    ),
    "another scheduler": Obstacle(
        "pod-fields",
        FAIL,
        tuple(mutating_policy("Object{spec: Object.spec{schedulerName: 'volcano'}}")),
        "schedulerName of pods to volcano",
    ),
    "a node without a device plugin": Obstacle(
        "gpu-devices", WARN, (node("dark", {"feature.node.kubernetes.io/pci-10de.present": "true"}),), "dark"
    ),
    "a foreign priority class": Obstacle(
        "names",
        FAIL,
        (cluster_object("scheduling.k8s.io/v1", "PriorityClass", "gpu-portal", value=1000),),
        "PriorityClass gpu-portal",
    ),
    "a foreign topology": Obstacle(
        "names",
        FAIL,
        (
            cluster_object(
                "kueue.x-k8s.io/v1beta2", "Topology", "gpu-portal", spec={"levels": [{"nodeLabel": "example.org/rack"}]}
            ),
        ),
        "Topology gpu-portal",
    ),
    "a queue of others in our cohort": Obstacle(
        "names",
        FAIL,
        (cluster_object("kueue.x-k8s.io/v1beta2", "ClusterQueue", "theirs", spec={"cohortName": "gpu-portal"}),),
        "clusterqueues theirs",
    ),
    "a namespace with our label": Obstacle(
        "names",
        FAIL,
        (cluster_object("v1", "Namespace", "theirs", metadata={"labels": OURS}),),
        "theirs",
    ),
    "a default priority": Obstacle(
        "priorities",
        WARN,
        (cluster_object("scheduling.k8s.io/v1", "PriorityClass", "loud", value=10, globalDefault=True),),
        "loud (10)",
    ),
}  # fmt: skip
