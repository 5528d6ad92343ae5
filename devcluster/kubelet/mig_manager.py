"""A MIG manager for simulated nodes: reacts to the label nvidia.com/mig.config as NVIDIA's does.

It sets nvidia.com/mig.config.state to pending, perhaps rebooting, and then success or failed. On success the node
offers the devices of the layout, as the device plugin would, and has the labels of each profile that follow from the
layout (count, product), as GPU Feature Discovery would set them. Like NVIDIA's, it drains nothing, and leaves the state
of the last layout in place until it begins.

Layouts are those below, or those of the `config.yaml` of a ConfigMap, in the format `v1` of mig-parted.

Its pod runs on each node: on a node that does not respond nothing reacts, and when the node is back the pod starts
again, applies what it finds and reports it.

The annotation `devcluster/mig` of a node stages what goes wrong: `fails`, `reboots`, or `silent` (it never responds).
"""

from __future__ import annotations

import argparse
import signal
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import yaml

from devcluster.client.annotations import LOST, SIMULATED
from devcluster.client.kube import Api, ApiError
from devcluster.client.list_watch import ListWatch
from devcluster.client.types import Json
from devcluster.processes.paths import ROOT

CONFIG, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
STAGED = "devcluster/mig"
FAILS, REBOOTS, SILENT = "fails", "reboots", "silent"
# Per GPU of 80 GB, as the configurations of mig-parted with these names have them.
LAYOUTS = {
    "all-disabled": {"gpu": 1},
    "all-1g.10gb": {"mig-1g.10gb": 7},
    "all-2g.20gb": {"mig-2g.20gb": 3},
    "all-3g.40gb": {"mig-3g.40gb": 2},
    "all-7g.80gb": {"mig-7g.80gb": 1},
    "all-balanced": {"mig-1g.10gb": 2, "mig-2g.20gb": 1, "mig-3g.40gb": 1},
}

# Of the demo, as deploy/mig names it. The labels of the simulated nodes name this layout.
LAYOUT_FILE = ("gpu-operator", "mig-layouts")
FIRST_LAYOUTS = """\
version: v1
mig-configs:
  # Half of each GPU, and one engine for media.
  all-balanced-one-me:
    - devices: [0, 1, 2]
      mig-enabled: true
      mig-devices: {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}
    - devices: [3]
      mig-enabled: true
      mig-devices: {"1g.10gb": 1, "1g.10gb+me": 1, "2g.20gb": 1, "3g.40gb": 1}
"""


def install_layout_file(api: Api, *, namespace: str = LAYOUT_FILE[0], name: str = LAYOUT_FILE[1]) -> None:
    """What a site has that lets the portal add layouts: the file, if it is missing, and the rights of deploy/mig."""
    labels = {"gpu-portal/mig-layouts": "true"}
    for obj in (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": namespace, "name": name, "labels": labels},
            "data": {"config.yaml": FIRST_LAYOUTS},
        },
    ):
        try:
            api.create(obj)
        except ApiError as error:
            if error.status != 409:
                raise
    for obj in yaml.safe_load_all((ROOT / "deploy" / "mig" / "rights.yaml").read_text()):
        obj["metadata"]["namespace"] = namespace
        for rule in obj.get("rules", ()):
            rule["resourceNames"] = [name]
        api.apply(obj)


class MigManager:
    """`pause_s`: between two states. `config_map`: (namespace, name); read when a layout is applied. `applied`: by
    node, the layout that was found at the start or applied since.
    """

    def __init__(
        self,
        api: Api,
        *,
        labels: str = "nvidia.com/mig.config",
        pause_s: float = 0.3,
        config_map: tuple[str, str] | None = None,
    ) -> None:
        self.api = api
        self.pause_s = pause_s
        self.config_map = config_map
        self._nodes = ListWatch(api, "v1/nodes", labels=labels)
        self.applied: dict[str, str] = {}
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> MigManager:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._nodes.stop()
        self._thread.join()

    def _follow(self) -> None:
        for _type, node in self._nodes:
            name, config = node["metadata"]["name"], node["metadata"]["labels"].get(CONFIG, "")
            if node["metadata"].get("annotations", {}).get(SIMULATED) == LOST:
                self.applied[name] = ""
                continue
            # What it finds at its own start was applied before.
            if self.applied.setdefault(name, config) != config:
                self.applied[name] = config
                with suppress(ApiError):
                    self._apply(node, config)

    def _apply(self, node: Json, config: str) -> None:
        staged = node["metadata"].get("annotations", {}).get(STAGED, "")
        if staged == SILENT:
            return
        name = node["metadata"]["name"]
        self._say(name, "pending")
        if staged == REBOOTS:
            self._say(name, "rebooting")
        node = self.api.get("v1/nodes", name)
        devices = self._devices(config, int(node["metadata"]["labels"]["nvidia.com/gpu.count"]))
        if staged == FAILS or not devices:
            self._say(name, "failed")
            return
        self.api.patch("v1/nodes", name, {"metadata": {"labels": _feature_labels(node, devices)}})
        now = {f"nvidia.com/{resource}": str(number) for resource, number in devices.items()}
        for part in ("capacity", "allocatable"):
            had = [one for one in node["status"][part] if one.startswith("nvidia.com/")]
            self.api.patch_status("v1/nodes", name, {part: dict.fromkeys(had, "0") | now})
        self._say(name, "success")

    def _devices(self, config: str, gpus: int) -> Mapping[str, int]:
        """By resource without its domain; empty for a layout that is not known."""
        found: Counter[str] = Counter()
        if config in LAYOUTS:
            return {resource: number * gpus for resource, number in LAYOUTS[config].items()}
        for group in self._groups(config):
            number = gpus if group["devices"] == "all" else len(group["devices"])
            each = group["mig-devices"] if group["mig-enabled"] else {"": 1}
            for profile, instances in each.items():
                found[f"mig-{profile.replace('+', '.')}" if profile else "gpu"] += number * instances
        return found

    def _groups(self, config: str) -> list[Json]:
        if self.config_map is None:
            return []
        namespace, name = self.config_map
        written = self.api.get("v1/configmaps", name, namespace=namespace)["data"]["config.yaml"]
        found: list[Json] = yaml.safe_load(written)["mig-configs"].get(config, [])
        return found

    def _say(self, name: str, state: str) -> None:
        time.sleep(self.pause_s)
        self.api.patch("v1/nodes", name, {"metadata": {"labels": {STATE: state}}})


def _feature_labels(node: Json, devices: Mapping[str, int]) -> dict[str, str | None]:
    """What changes of the labels of profiles: None removes one, for example of a profile that is gone."""
    had, slices = node["metadata"]["labels"], [one for one in devices if one.startswith("mig-")]
    product = had.get("nvidia.com/gpu.product", "")
    older = {key.removeprefix("nvidia.com/").removesuffix(".count") for key in had if key.endswith(".count")}
    found: dict[str, str | None] = {}
    for key in had:
        if not key.startswith("nvidia.com/mig-"):
            continue
        # The name of a profile may begin with that of another one: mig-1g.10gb and mig-1g.10gb.me.
        of = max((one for one in {*older, *slices} if key.startswith(f"nvidia.com/{one}.")), key=len, default="")
        if of not in devices:
            found[key] = None
    for one in slices:
        found[f"nvidia.com/{one}.count"] = str(devices[one])
        found[f"nvidia.com/{one}.product"] = f"{product}-MIG-{one.removeprefix('mig-')}"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Apply MIG layouts on simulated nodes.")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--config-map", required=True, metavar="NAMESPACE/NAME", help="with layouts of its own")
    given = parser.parse_args()
    namespace, _, name = given.config_map.partition("/")
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    with MigManager(Api(given.kubeconfig), pause_s=1.0, config_map=(namespace, name)):
        signal.sigwait(ends)


if __name__ == "__main__":
    main()
