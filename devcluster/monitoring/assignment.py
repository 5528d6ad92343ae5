"""Which device each pod of a node has.

With DRA the scheduler's allocation says it. A device plugin's units are assigned by the kubelet, which is simulated
here: a pod gets the lowest free units and keeps them while it lives.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from devcluster.client.types import Json
from devcluster.monitoring.devices import GpuNode, Place
from devcluster.monitoring.profiles import profile_of

TERMINAL = ("Succeeded", "Failed")
NOTEBOOK = ("gpu-portal/kind", "notebook")


@dataclass(frozen=True)
class Occupant:
    """A pod on a device. `profile`: what runs in it (profiles.py), "" for a notebook, whose process is measured.
    `claim`: of DRA.
    """

    namespace: str
    pod: str
    container: str
    uid: str
    profile: str
    started_at: float
    is_running: bool
    claim: str = ""


# By device, those that share it in the order of its units.
Occupants = Mapping[Place, tuple[Occupant, ...]]


# By pod uid: container, resource and number of each unit.
Held = Mapping[str, list[tuple[str, str, int]]]


class Assignments:
    """Of one node. `held`: from before a restart; what a kubelet has in its checkpoint."""

    def __init__(self, held: Held | None = None) -> None:
        self._held = {uid: [(str(c), str(r), int(n)) for c, r, n in units] for uid, units in (held or {}).items()}

    @property
    def held(self) -> Held:
        return self._held

    def update(self, node: GpuNode, pods: Iterable[Json], claims: Iterable[Json] = ()) -> Occupants:
        """`pods`: those bound to the node."""
        living = {pod["metadata"]["uid"]: pod for pod in pods if pod["status"].get("phase") not in TERMINAL}
        self._held = {
            uid: held
            for uid, held in self._held.items()
            if uid in living and all(number < len(node.units.get(resource, ())) for _, resource, number in held)
        }
        for uid, pod in sorted(living.items(), key=lambda one: (one[1]["metadata"]["creationTimestamp"], one[0])):
            if uid not in self._held:
                self._held[uid] = self._free_units(node, pod)
        found: dict[Place, list[tuple[int, Occupant]]] = {}
        for uid, held in self._held.items():
            for container, resource, number in held:
                place = node.units[resource][number]
                found.setdefault(place, []).append((number, _occupant(living[uid], container)))
        for place, occupant in _allocated(node, living, claims):
            found.setdefault(place, []).append((0, occupant))
        return {
            place: tuple(one for _, one in sorted(those, key=lambda one: (one[0], one[1].uid)))
            for place, those in found.items()
        }

    def _free_units(self, node: GpuNode, pod: Json) -> list[tuple[str, str, int]]:
        taken = {(resource, number) for held in self._held.values() for _, resource, number in held}
        got: list[tuple[str, str, int]] = []
        for container in pod["spec"]["containers"]:
            for resource, amount in container.get("resources", {}).get("limits", {}).items():
                numbers = range(len(node.units.get(resource, ())))
                free = [number for number in numbers if (resource, number) not in taken][: _count(amount)]
                taken |= {(resource, number) for number in free}
                got += [(container["name"], resource, number) for number in free]
        return got


def _count(amount: object) -> int:
    """Devices are whole numbers; quantities of other resources are not looked at."""
    return int(str(amount)) if re.fullmatch(r"\d+", str(amount)) else 0


def _occupant(pod: Json, container: str, claim: str = "") -> Occupant:
    meta, status = pod["metadata"], pod["status"]
    is_notebook = meta.get("labels", {}).get(NOTEBOOK[0]) == NOTEBOOK[1]
    return Occupant(
        meta["namespace"],
        meta["name"],
        container,
        meta["uid"],
        profile_of(pod, default="" if is_notebook else "steady"),
        datetime.fromisoformat(status.get("startTime") or meta["creationTimestamp"]).timestamp(),
        status.get("phase") == "Running",
        claim,
    )


def _allocated(node: GpuNode, living: Mapping[str, Json], claims: Iterable[Json]) -> Iterable[tuple[Place, Occupant]]:
    places = {
        device.dra_name: (card.index, position)
        for card in node.cards
        for position, device in enumerate(card.devices)
        if device.dra_name
    }
    for claim in claims:
        status = claim.get("status", {})
        results = status.get("allocation", {}).get("devices", {}).get("results", ())
        for user in status.get("reservedFor", ()):
            pod = living.get(user["uid"])
            if pod is None:
                continue
            container = _user_of_claims(pod)
            for result in results:
                if (result["driver"], result["pool"]) == (node.dra_driver, node.name) and result["device"] in places:
                    yield places[result["device"]], _occupant(pod, container, claim["metadata"]["name"])


def _user_of_claims(pod: Json) -> str:
    containers = pod["spec"]["containers"]
    users = [one["name"] for one in containers if one.get("resources", {}).get("claims")]
    return str((users or [containers[0]["name"]])[0])
