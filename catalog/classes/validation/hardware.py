"""Whether partition, resource name and product of a class can belong together, and how many share a GPU. Pure.

Only what is certainly wrong is refused: a product that is not known may have any profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from catalog.discovery import dra_devices, mig_profiles
from catalog.discovery.products import mps_clients
from portal.core.errors import Refusal

_MIG = "nvidia.com/mig-"


def hardware_problems(values: Mapping[str, Any]) -> Iterator[Refusal]:
    """Values by the names of the model's fields."""
    if values["interface"] in ("none", "storage"):
        return
    if values["sharing"] == "mps" and values["replicas"] > (most := mps_clients(values["product"])):
        of = f" {values['product']}" if values["product"] else ""
        text = (
            f"MPS serves at most {most} clients on one GPU{of}: enter 2 to {most} replicas, not {values['replicas']}."
        )
        yield Refusal("replicas", text, "replicas")
    wrong = _of_resource(values) or _of_selector(values) or _of_product(values)
    if wrong is not None:
        yield wrong


def _of_resource(values: Mapping[str, Any]) -> Refusal | None:
    """Names of slices contain what they count: `nvidia.com/mig-1g.10gb`, `amd.com/cpx_nps4`."""
    resource, partition = values["resource"], values["partition"]
    counted = _counted_partition(resource)
    if values["interface"] != "device-plugin" or counted is None or mig_profiles.as_resource(partition) == counted:
        return None
    if resource.startswith(_MIG) and partition != "none":
        instead = f", or the resource {_MIG}{mig_profiles.as_resource(partition)}"
    else:
        instead = "" if partition == "none" else ", or the resource that counts it"
    what = "whole GPUs" if counted == "none" else f"units of the partition {counted}"
    text = f"{resource} counts {what}, not {_named(partition)}: enter {counted} as the partition{instead}."
    return Refusal("partition_not_counted", text, "partition")


def _counted_partition(resource: str) -> str | None:
    """None: the name does not show it, like `nvidia.com/gpu` with MIG strategy single."""
    if resource.startswith(_MIG):
        return resource.removeprefix(_MIG).removesuffix(".shared")
    domain, _, mode = resource.partition("/")
    if domain == "amd.com" and "_nps" in mode:
        return "none" if mode.startswith("spx") else mode
    return None


def _of_selector(values: Mapping[str, Any]) -> Refusal | None:
    """Claims take what the selector says, as far as it is read."""
    if values["interface"] != "dra":
        return None
    taken = [value for _, name, value in dra_devices.equalities(values["device_selector"]) if name == "profile"]
    partition = values["partition"]
    if not taken or mig_profiles.as_resource(taken[0]) == mig_profiles.as_resource(partition):
        return None
    text = (
        f"The CEL selector takes devices of the profile {taken[0]}, not {_named(partition)}: enter {taken[0]} as the "
        "partition, or change the selector."
    )
    return Refusal("partition_not_counted", text, "partition")


def _of_product(values: Mapping[str, Any]) -> Refusal | None:
    partition, product = values["partition"], values["product"]
    if partition == "none" or not (values["vendor"] == "nvidia" or values["resource"].startswith("nvidia.com/")):
        return None
    if not mig_profiles.is_profile(partition):
        text = f"'{partition}' is not a MIG profile: enter it as the nodes report it, for example 1g.10gb, or none."
        return Refusal("unknown_profile", text, "partition")
    if mig_profiles.has_mig(product) is False:
        text = f"{product} has no MIG, so it has no {partition}: enter none, or the product that the nodes report."
        return Refusal("no_mig", text, "partition")
    card = mig_profiles.card_of(product)
    if card is None or mig_profiles.has_profile(partition, card):
        return None
    sizes = " or ".join(f"{size:g}" for size in card.sizes)
    text = (
        f"{product} ({card.compute_slices} compute slices, {sizes} GB) has no MIG profile {partition}: enter the "
        "profile that its nodes report in the labels nvidia.com/mig-….count or nvidia.com/gpu.product."
    )
    return Refusal("unknown_profile", text, "partition")


def _named(partition: str) -> str:
    return "whole GPUs" if partition == "none" else partition
