"""The request of a launch. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from workloads.launch.options import NO_OPTIONS, Options


@dataclass(frozen=True)
class LaunchSpec:
    """The values that a user entered. `volume` is "" for files that are deleted when the run stops; a new volume gets
    `volume_gib` and is of the StorageClass `volume_class`, "" for the site's first. `units` are per worker.

    `visibility`: who can open a notebook, one of `Workload.Visibility`; "" for the team's default, or as it was.
    `accept_terms`: the version of the class's terms that was accepted, 0 for none.
    """

    name: str
    kind: str
    gpu_class: str
    units: int
    image: str
    command: tuple[str, ...] = ()
    volume: str = ""
    volume_gib: int = 10
    volume_class: str = ""
    accept_terms: int = 0
    options: Options = NO_OPTIONS
    visibility: str = ""

    @property
    def workers(self) -> int:
        return self.options.workers or 1

    @property
    def total_units(self) -> int:
        return self.units * self.workers
