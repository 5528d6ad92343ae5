"""The objects of one run: a Job and its Secret, a claim template where devices come through DRA, a volume's claim.

A Job is created once and never applied again, and `spec.suspend` is never sent: Kueue's webhook sets it, keeps the Job
suspended until there is quota, and preempts by suspending it. Text that users type is used only for image, command,
script, variables, a repository's address and names, each in a field with no other meaning.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping

from cluster.manifests import names, workers
from cluster.manifests.metadata import CLASS_LABEL, IDENTITY_LABEL, RUN_LABEL, Manifest, object_meta
from cluster.manifests.namespace import NOTEBOOK_PORT, SERVICE_ACCOUNT
from cluster.manifests.node_affinity import NodeTerms, off_gpu_nodes, required_affinity
from cluster.manifests.node_removal.protection import protection
from cluster.manifests.run_spec import (
    DEFAULT_PRIORITY,
    HOME,
    JOB,
    NOTEBOOK,
    TOKEN_VARIABLE,
    ClaimSpec,
    PodSpec,
    RunSpec,
)
from cluster.manifests.site import DEFAULT, SiteProfile

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
ANY_NODE_ANNOTATION = "kueue.x-k8s.io/podset-unconstrained-topology"
REQUIRED_ANNOTATION = "kueue.x-k8s.io/podset-required-topology"
PREFERRED_ANNOTATION = "kueue.x-k8s.io/podset-preferred-topology"
WORKLOAD_LABEL = "gpu-portal/workload"
KIND_LABEL = "gpu-portal/kind"
CONTAINER_NAMES = {NOTEBOOK: "notebook", JOB: "job"}
TOKEN_KEY = "token"
# Prefix for the keys of chosen secrets: none can equal the token's key.
SECRET_KEY_PREFIX = "secret."
# The key under which the kubelet looks for Docker Hub.
DOCKER_HUB_KEY = "https://index.docker.io/v1/"
CLAIM_NAME = "devices"
CLONE_CONTAINER = "clone"
# A container's last log lines are kept as its termination message: they mostly show the cause, for example CUDA out of
# memory.
TERMINATION_MESSAGE = {"terminationMessagePolicy": "FallbackToLogsOnError"}
NO_PRIVILEGES = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
# JupyterLab writes its server's token into its page, unless it runs as part of a JupyterHub; it shows nothing of
# JupyterHub without a hub prefix. The gateway adds the token to each request.
NO_TOKEN_IN_PAGES = "--ServerApp.tornado_settings={'hub_prefix': '', 'hub_host': '', 'user': ''}"
# For containers that requested no GPU: where NVIDIA's runtime is a node's default, a container gets what this variable
# names, and images of CUDA name all GPUs.
NO_DEVICES = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}


def job_name(spec: RunSpec) -> str:
    return names.run_name(spec.workload, spec.number)


def pull_secret_name(spec: RunSpec) -> str:
    return names.image_pull_secret_name(job_name(spec))


def job(
    spec: RunSpec, site: SiteProfile = DEFAULT, *, gpu_nodes: Collection[str] = (), volume_nodes: NodeTerms = ()
) -> Manifest:
    """`gpu_nodes`: host names of nodes that have GPUs and no label that says so; a run without GPUs avoids them too.
    `volume_nodes`: those on which its volume can be mounted. Kueue assigns nodes before the scheduler looks at volumes.
    """
    labels = {**site.pod_labels, **_labels(spec)}
    placement = pod_placement(spec, site, gpu_nodes, volume_nodes)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": object_meta(
            job_name(spec),
            owner=spec.owner,
            namespace=spec.namespace,
            labels={**labels, PRIORITY_LABEL: spec.priority or DEFAULT_PRIORITY[spec.kind]},
        ),
        "spec": {
            **workers.job_counts(spec),
            # A replacement starts only when its predecessor is gone: two pods would hold the same units and volume.
            "podReplacementPolicy": "Failed",
            "template": {"metadata": _pod_metadata(spec, labels), "spec": _pod(spec, site, placement)},
        },
    }


def token_secret(spec: RunSpec, *, token: str, job_uid: str, opened: Mapping[str, str] | None = None) -> Manifest:
    """The notebook's token ("" for a job) and the values of the chosen secrets, by name. Owned by its Job: Kubernetes
    deletes it with the Job.
    """
    values = {TOKEN_KEY: token} if spec.kind == NOTEBOOK else {}
    values |= {SECRET_KEY_PREFIX + name: value for name, value in (opened or {}).items()}
    return _secret(spec, job_name(spec), "Opaque", values, job_uid)


def pull_secret(spec: RunSpec, *, username: str, password: str, job_uid: str) -> Manifest:
    """Credentials of the pod for the registry of its image, and for no other. Also deleted with its Job."""
    both = base64.b64encode(f"{username}:{password}".encode()).decode()
    host = DOCKER_HUB_KEY if spec.registry == "docker.io" else spec.registry
    config = {"auths": {host: {"username": username, "password": password, "auth": both}}}
    kind = "kubernetes.io/dockerconfigjson"
    return _secret(spec, pull_secret_name(spec), kind, {".dockerconfigjson": json.dumps(config)}, job_uid)


def _secret(spec: RunSpec, name: str, kind: str, values: Mapping[str, str], job_uid: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            **object_meta(name, owner=spec.owner, namespace=spec.namespace),
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": job_name(spec), "uid": job_uid}],
        },
        "type": kind,
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }


def claim_template(spec: RunSpec) -> Manifest:
    """Devices through DRA: exactly `units` of the class's devices on one node."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": object_meta(
            job_name(spec), owner=spec.owner, namespace=spec.namespace, labels=_identity_label(spec)
        ),
        "spec": device_claim_spec(spec),
    }


def device_claim_spec(spec: PodSpec) -> Manifest:
    expressions = [spec.device_selector, *([_memory_selector(spec.gpu_memory_gib)] if spec.gpu_memory_gib else [])]
    request = {
        "deviceClassName": spec.device_class,
        "selectors": [{"cel": {"expression": one}} for one in expressions],
        "allocationMode": "ExactCount",
        "count": spec.units,
    }
    return {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}}


def _memory_selector(gib: int) -> str:
    """A capacity without a domain is of the driver's. A name that a device lacks would stop the scheduler's attempt."""
    capacity = "device.capacity[device.driver]"
    return f"'memory' in {capacity} && {capacity}.memory.compareTo(quantity('{gib}Gi')) >= 0"


def pod_placement(
    spec: PodSpec, site: SiteProfile, gpu_nodes: Collection[str] = (), volume_nodes: NodeTerms = ()
) -> Manifest:
    """Part of the pod's spec: restricts the pod to nodes of its class. `gpu_nodes`, `volume_nodes`: as for `job`."""
    affinity = required_affinity(off_gpu_nodes(site, gpu_nodes) if spec.interface == "none" else (), volume_nodes)
    return {
        **({"nodeSelector": dict(spec.node_labels)} if spec.node_labels else {}),
        **({"affinity": affinity} if affinity else {}),
        "tolerations": [
            {"key": CLASS_LABEL, "operator": "Equal", "value": spec.gpu_class, "effect": "NoSchedule"},
            *(dict(toleration) for toleration in spec.tolerations),
        ],
    }


def pod_identity(site: SiteProfile) -> Manifest:
    """Part of the pod's security context: its user, and the group that its volumes get."""
    user = {} if site.user is None else {"runAsUser": site.user}
    group = {} if site.group is None else {"runAsGroup": site.group, "fsGroup": site.group}
    return {"runAsNonRoot": True, **user, **group}


def container_devices(spec: PodSpec, site: SiteProfile) -> dict[str, str]:
    """Devices that a container requests as limits: the API server fills the requests in. The site changes no units."""
    gpus = {spec.resource: str(spec.units)} if spec.interface == "device-plugin" else {}
    return {**site.class_devices.get(spec.gpu_class, {}), **gpus}


def volume_claim(spec: ClaimSpec) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": object_meta(spec.name, owner=spec.owner, namespace=spec.namespace),
        "spec": {
            "accessModes": [spec.storage.access_mode],
            "resources": {"requests": {"storage": f"{spec.size_gib}Gi"}},
            **({"storageClassName": spec.storage.name} if spec.storage.name else {}),
        },
    }


def _labels(spec: RunSpec) -> dict[str, str]:
    return {
        CLASS_LABEL: spec.gpu_class,
        WORKLOAD_LABEL: spec.workload,
        RUN_LABEL: job_name(spec),
        KIND_LABEL: spec.kind,
        QUEUE_LABEL: names.LOCAL_QUEUE,
        **_identity_label(spec),
    }


def _identity_label(spec: RunSpec) -> dict[str, str]:
    return {IDENTITY_LABEL: spec.identity} if spec.identity else {}


def _pod_metadata(spec: RunSpec, labels: dict[str, str]) -> Manifest:
    has_topology = spec.interface == "device-plugin" and not spec.is_autoscaled
    annotations = {**(_topology(spec) if has_topology else {}), **protection(spec)}
    labels = object_meta("", owner=spec.owner, labels=labels)["labels"]
    return {"labels": labels, **({"annotations": annotations} if annotations else {})}


def _topology(spec: RunSpec) -> dict[str, str]:
    """Flavors with and without a topology are in the same queue: one annotation says that these pods need one."""
    if not spec.topology_level:
        return {ANY_NODE_ANNOTATION: "true"}
    return {REQUIRED_ANNOTATION if spec.topology_required else PREFERRED_ANNOTATION: spec.topology_level}


def _pod(spec: RunSpec, site: SiteProfile, placement: Manifest) -> Manifest:
    pull_secrets = [*([pull_secret_name(spec)] if spec.registry else []), *site.named_pull_secrets]
    return {
        "serviceAccountName": SERVICE_ACCOUNT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        **workers.pod_subdomain(spec, job_name(spec)),
        "terminationGracePeriodSeconds": 30,
        "priorityClassName": site.priority_class,
        **placement,
        "securityContext": {
            **pod_identity(site),
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **({"imagePullSecrets": [{"name": name} for name in pull_secrets]} if pull_secrets else {}),
        **({"initContainers": [_clone(spec, site)]} if spec.repository else {}),
        "containers": [_container(spec, site)],
        "volumes": [*_files(spec, site), {"name": "shared-memory", "emptyDir": _shared_memory(spec)}],
        **({"resourceClaims": [_claim(spec)]} if spec.interface == "dra" else {}),
    }


def _container(spec: RunSpec, site: SiteProfile) -> Manifest:
    return {
        "name": CONTAINER_NAMES[spec.kind],
        "image": spec.image,
        "imagePullPolicy": _pull_policy(spec),
        **(_notebook(spec) if spec.kind == NOTEBOOK else _command(spec)),
        **_environment(spec),
        "workingDir": HOME,
        **TERMINATION_MESSAGE,
        "resources": _resources(spec, site),
        "volumeMounts": [*_mounts(spec), {"name": "shared-memory", "mountPath": "/dev/shm"}],
        "securityContext": NO_PRIVILEGES,
    }


def _typed_environment(spec: RunSpec) -> list[Manifest]:
    """Without HOME the runtime takes that of the image's user, or "/" where the image has no user 1000: programs could
    write neither settings nor caches, and JupyterLab does not start.
    """
    own = [{"name": name, "value": _literally(value)} for name, value in spec.env]
    return own if any(name == "HOME" for name, _value in spec.env) else [{"name": "HOME", "value": HOME}, *own]


def _environment(spec: RunSpec) -> Manifest:
    own = _typed_environment(spec)
    ours = [_sealed(spec, TOKEN_VARIABLE, TOKEN_KEY)] if spec.kind == NOTEBOOK else []
    # Not for the container that clones the repository: only the workload itself gets them.
    chosen = [_sealed(spec, name, SECRET_KEY_PREFIX + name) for name in spec.secrets]
    none = [NO_DEVICES] if spec.interface == "none" else []
    return {"env": [*workers.rendezvous_environment(spec, job_name(spec)), *ours, *own, *chosen, *none]}


def _sealed(spec: RunSpec, name: str, key: str) -> Manifest:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": job_name(spec), "key": key}}}


def _literally(value: str) -> str:
    """Escapes `$`: Kubernetes replaces $(NAME), and $$ by one dollar; user input must stay as typed."""
    return value.replace("$", "$$")


# The arguments are the repository, the directory and the branch or tag, each a separate word: the shell never parses
# them as text. A directory that an earlier run cloned belongs to the user and stays; an incomplete clone does not
# count.
_CLONE_SCRIPT = (
    'if [ -e "$2" ]; then echo "$2 already exists; it is not changed."; exit 0; fi; '
    'rm -rf "./.$2.part" && git clone --recurse-submodules ${3:+--branch "$3"} -- "$1" "./.$2.part" '
    '&& mv "./.$2.part" "$2"'
)


def _clone(spec: RunSpec, site: SiteProfile) -> Manifest:
    """Clones before the first start, with the image's own git: the portal itself fetches no user-given address."""
    return {
        "name": CLONE_CONTAINER,
        "image": spec.image,
        "imagePullPolicy": _pull_policy(spec),
        "command": ["sh", "-c", _CLONE_SCRIPT, "clone", spec.repository, spec.clone_into, spec.reference],
        # Without a terminal git would wait for a password forever.
        "env": [*_typed_environment(spec), {"name": "GIT_TERMINAL_PROMPT", "value": "0"}, NO_DEVICES],
        "workingDir": HOME,
        **TERMINATION_MESSAGE,
        "resources": {key: container_sizes(spec, site) for key in ("requests", "limits")},
        "volumeMounts": _mounts(spec),
        "securityContext": NO_PRIVILEGES,
    }


def _pull_policy(spec: RunSpec) -> str:
    """Always checks the registry for a team's own image: the copy on a node may belong to another team only."""
    return "Always" if spec.registry else "IfNotPresent"


def _command(spec: RunSpec) -> Manifest:
    """Without a command or script the image's own command runs."""
    if spec.script:
        words = ("sh", "-c", _RUN_SCRIPT, "script", _with_interpreter(spec.script))
        return {"command": [_literally(word) for word in words]}
    return {"command": list(spec.command)} if spec.command else {}


# The argument is the script, which the shell never parses as text: the script's first line names its interpreter.
_RUN_SCRIPT = 'file=$(mktemp) && printf "%s\\n" "$1" > "$file" && chmod 700 "$file" && exec "$file"'


def _with_interpreter(script: str) -> str:
    return script if script.startswith("#!") else f"#!/bin/sh\n{script}"


def _notebook(spec: RunSpec) -> Manifest:
    """`args`, not `command`: the image's entry point prepares the environment and then runs them."""
    return {
        "args": [
            "jupyter",
            "lab",
            "--no-browser",
            "--ServerApp.ip=*",
            f"--ServerApp.port={NOTEBOOK_PORT}",
            f"--ServerApp.root_dir={HOME}",
            NO_TOKEN_IN_PAGES,
        ],
        "ports": [{"name": "http", "containerPort": NOTEBOOK_PORT, "protocol": "TCP"}],
        "readinessProbe": {
            "httpGet": {"path": "/api", "port": "http", "scheme": "HTTP"},
            "initialDelaySeconds": 1,
            "periodSeconds": 3,
            "timeoutSeconds": 2,
            "successThreshold": 1,
            # A busy server may answer late; it is shown as not ready only after half a minute.
            "failureThreshold": 10,
        },
    }


def _resources(spec: RunSpec, site: SiteProfile) -> Manifest:
    """cpu and memory: exactly what the class guarantees; the namespace has a default limit otherwise."""
    promised = container_sizes(spec, site)
    return {
        "requests": promised,
        "limits": {**promised, **container_devices(spec, site)},
        **({"claims": [{"name": CLAIM_NAME}]} if spec.interface == "dra" else {}),
    }


def container_sizes(spec: PodSpec, site: SiteProfile) -> Manifest:
    """`ephemeral-storage` counts files outside of volumes, logs, and the home directory if it is no volume: a pod that
    fills the disk of its node is stopped before others are.
    """
    disk = site.disk_gib(spec.gpu_class)
    sizes = {"cpu": str(spec.cpu), "memory": f"{spec.memory_gib}Gi"}
    return sizes if disk is None else {**sizes, "ephemeral-storage": f"{disk}Gi"}


def _files(spec: RunSpec, site: SiteProfile) -> list[Manifest]:
    """Volumes of the home directory, and of the team's volume if its path differs."""
    disk = site.disk_gib(spec.gpu_class)
    empty: Manifest = {"name": "home", "emptyDir": {} if disk is None else {"sizeLimit": f"{disk}Gi"}}
    if not spec.claim:
        return [empty]
    claim = {"persistentVolumeClaim": {"claimName": spec.claim}}
    return [{"name": "home", **claim}] if spec.mount_path == HOME else [empty, {"name": "volume", **claim}]


def _mounts(spec: RunSpec) -> list[Manifest]:
    home = {"name": "home", "mountPath": HOME}
    has_own_path = spec.claim and spec.mount_path != HOME
    return [home, {"name": "volume", "mountPath": spec.mount_path}] if has_own_path else [home]


def _shared_memory(spec: RunSpec) -> Manifest:
    return {"medium": "Memory", "sizeLimit": f"{spec.shared_memory_gib}Gi"}


def _claim(spec: RunSpec) -> Manifest:
    return {"name": CLAIM_NAME, "resourceClaimTemplateName": job_name(spec)}
