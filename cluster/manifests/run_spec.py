"""RunSpec: everything that the objects of one run are made of, frozen at launch and kept as JSON in `Run.spec`.

A later edit of the class, the image list or the volume changes nothing about a run that was requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

NOTEBOOK = "notebook"
JOB = "job"
# What starts first among a team's work, first to last: names of the WorkloadPriorityClasses in deploy/base/queues.yaml.
PRODUCTION, INTERACTIVE, BATCH = PRIORITIES = ("production", "interactive", "batch")
# Defaults of a run.
DEFAULT_PRIORITY = {NOTEBOOK: INTERACTIVE, JOB: BATCH}
# Where a container's files are; the volume is mounted here, or below.
HOME = "/home/work"
TOKEN_VARIABLE = "JUPYTER_TOKEN"


@dataclass(frozen=True)
class PodSpec:
    """One pod on `units` of a class. `namespace` "": not decided.

    `interface` says how devices are requested: "device-plugin" (`resource`), "dra" (`device_class` and the CEL
    expression `device_selector`) or "none". cpu and memory are of the whole pod.
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


@dataclass(frozen=True)
class RunSpec(PodSpec):
    """A run is `workers` pods that are alike: units, cpu and memory are of each. `owner` is the workload's owner label;
    `number` counts its runs.

    `claim` is the PersistentVolumeClaim's name, "" for space that ends with the pod; it is mounted at `mount_path`.
    `repository` is cloned into the directory `clone_into` of the home directory unless that is there already. Weight
    and price are decimals as text: JSON has no exact ones.
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
    # Fields that an older release did not freeze have their default.
    mount_path: str = HOME
    env: tuple[tuple[str, str], ...] = ()
    repository: str = ""
    reference: str = ""
    clone_into: str = ""
    # Names of the team's secrets, each a variable; their values are in the run's own Secret alone.
    secrets: tuple[str, ...] = ()
    # Of an image that the team named by reference: where its pod signs in, if the team keeps something for that.
    registry: str = ""
    # None: it has no end; an idle notebook is not stopped.
    run_minutes: int | None = None
    idle_stop_minutes: int | None = None
    workers: int = 1
    # How often a worker that ended badly by itself is tried again; what a node or the cluster did to it is not counted.
    retries: int = 0
    # "": frozen by a release that knew none, as its kind has it.
    priority: str = ""
    # Run instead of the command, as a file of its own.
    script: str = ""
    # Its owner declared checkpointing.
    checkpoints: bool = False

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
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RunSpec:
        """Keys of a newer release are ignored; a missing one without a default is a KeyError: nothing replaces it."""
        values = {one.name: stored[one.name] for one in fields(cls) if one.name in stored or one.default is MISSING}
        values["tolerations"] = tuple(values["tolerations"])
        values["command"] = tuple(values["command"])
        values["env"] = tuple((name, value) for name, value in values.get("env", ()))
        values["secrets"] = tuple(values.get("secrets", ()))
        return cls(**values)


@dataclass(frozen=True)
class ClaimSpec:
    """A volume as a PersistentVolumeClaim; it outlives the workloads that attach it."""

    owner: str
    namespace: str
    name: str
    size_gib: int
