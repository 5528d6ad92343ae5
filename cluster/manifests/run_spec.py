"""RunSpec: the input for all objects of one run, frozen at launch and kept as JSON in `Run.spec`.

A later edit of the class, the image list or the volume changes nothing about a run that was requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

from cluster.manifests.site import DEFAULT_STORAGE, OfferedStorage

NOTEBOOK = "notebook"
JOB = "job"
# Priorities of a team's workloads, first to last: names of the WorkloadPriorityClasses in deploy/base/queues.yaml.
PRODUCTION, INTERACTIVE, BATCH = PRIORITIES = ("production", "interactive", "batch")
# Defaults of a run.
DEFAULT_PRIORITY = {NOTEBOOK: INTERACTIVE, JOB: BATCH}
# The home directory of a container; the volume is mounted here or below.
HOME = "/home/work"
TOKEN_VARIABLE = "JUPYTER_TOKEN"


@dataclass(frozen=True)
class PodSpec:
    """One pod on `units` of a class. `namespace` "": not decided.

    `interface` is how devices are requested: "device-plugin" (`resource`), "dra" (`device_class` and the CEL expression
    `device_selector`) or "none". cpu and memory are totals of the pod; `gpu_memory_gib` is the least of each device, 0
    for any.
    """

    namespace: str
    gpu_class: str
    units: int
    interface: str
    resource: str
    device_class: str
    device_selector: str
    node_labels: Mapping[str, str]
    tolerations: tuple[Mapping[str, str], ...]
    image: str
    cpu: int
    memory_gib: int
    # Nodes are added on demand, so its flavor has no topology.
    is_autoscaled: bool = field(default=False, kw_only=True)
    gpu_memory_gib: int = field(default=0, kw_only=True)


@dataclass(frozen=True)
class RunSpec(PodSpec):
    """A run is `workers` equal pods: units, cpu and memory are per worker. `owner` is the workload's owner label;
    `number` counts its runs.

    `claim` is the PersistentVolumeClaim's name, "" for space that ends with the pod; it is mounted at `mount_path`.
    `repository` is cloned into the directory `clone_into` of the home directory unless that exists. Weight and price
    are decimals as text, because JSON has no exact decimals.
    """

    owner: str
    workload: str
    number: int
    kind: str
    weight: str
    price_per_unit_hour: str
    command: tuple[str, ...]
    shared_memory_gib: int
    claim: str
    # Fields that an older release did not freeze have a default.
    mount_path: str = HOME
    env: tuple[tuple[str, str], ...] = ()
    repository: str = ""
    reference: str = ""
    clone_into: str = ""
    # Names of the team's secrets, each an environment variable; only the run's own Secret has their values.
    secrets: tuple[str, ...] = ()
    # For an image that the team named by reference: its registry, if the team has stored credentials for it.
    registry: str = ""
    # None: no time limit, or an idle notebook is not stopped.
    run_minutes: int | None = None
    idle_stop_minutes: int | None = None
    workers: int = 1
    # How often a crashed worker is retried; failures caused by a node or the cluster are not counted.
    retries: int = 0
    # "": frozen by a release without this field; the workload's kind decides.
    priority: str = ""
    # Run instead of the command, as a file.
    script: str = ""
    # The owner declared that the workload writes checkpoints.
    checkpoints: bool = False
    # A level of the class's topology in one domain of which all workers run, or should run; "": anywhere in the class.
    topology_level: str = ""
    topology_required: bool = False
    # All levels of that topology, widest first; if they were not known, that level alone.
    topology_levels: tuple[str, ...] = ()
    # Random: no other run has it, also none with the same owner and number in a database that was restored.
    identity: str = ""

    @property
    def total_units(self) -> int:
        return self.units * self.workers

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "node_labels": dict(self.node_labels),
            "tolerations": [dict(toleration) for toleration in self.tolerations],
            "command": list(self.command),
            "env": [list(one) for one in self.env],
            "secrets": list(self.secrets),
            "topology_levels": list(self.topology_levels),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RunSpec:
        """Ignores keys of a newer release. A missing key without a default raises KeyError: no value is substituted."""
        values = {one.name: stored[one.name] for one in fields(cls) if one.name in stored or one.default is MISSING}
        values["tolerations"] = tuple(values["tolerations"])
        values["command"] = tuple(values["command"])
        values["env"] = tuple((name, value) for name, value in values.get("env", ()))
        values["secrets"] = tuple(values.get("secrets", ()))
        values["topology_levels"] = tuple(values.get("topology_levels", ()))
        return cls(**values)


@dataclass(frozen=True)
class ClaimSpec:
    """A volume as a PersistentVolumeClaim; it outlives the workloads that attach it. `storage`: of the volume."""

    owner: str
    namespace: str
    name: str
    size_gib: int
    storage: OfferedStorage = DEFAULT_STORAGE
