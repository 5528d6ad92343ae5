"""Which label names a node's product, and what a product's name alone shows about it. Pure; None means unknown."""

from __future__ import annotations

import re
from collections.abc import Mapping

from catalog.discovery import mig_profiles

# By vendor.
PRODUCT_LABELS: Mapping[str, str] = {
    "nvidia": "nvidia.com/gpu.product",
    "amd": "amd.com/gpu.product-name",
    "intel": "gpu.intel.com/product",
}

# Tensor cores (NVIDIA) and matrix cores (AMD) that compute in FP8: Ada, Hopper, Blackwell; CDNA 3 and 4; Gaudi 2 and 3.
_WITH_FP8 = re.compile(
    r"\b(?:G?H[12]00|H20|H800|GH200|G?B[123]00|L4|L20|L40S?|RTX-40\d\d|RTX-50\d\d|RTX-PRO|ADA"
    r"|MI3\d\d[AX]?|HL-?[23]\d\d\w*|GAUDI[ -]?[23])\b"
)
_WITHOUT_FP8 = re.compile(
    r"\b(?:A100X?|A800|A30X?|A40|A10G?|A16|A2|V100S?|P100|P40|P4|T4|RTX-[23]0\d\d|MI[12]\d\d[AX]?)\b"
)

# Compute capability below 7.5.
_FEW_MPS_CLIENTS = re.compile(r"\b(?:K\d0|M4|M\d0|P4|P6|P40|P100|V100S?|GTX-10\d\d|TITAN-[XV]P?)\b")

# NVENC and NVDEC, from NVIDIA's matrix of GPUs with video engines. GPUs with MIG are in mig_profiles.
_WITH_VIDEO = re.compile(
    r"\b(?:P4|P40|P100|V100S?|T4G?|A2|A10[GM]?|A16|A40|L2|L4|L20|L40[SG]?|RTX-A?\d000|RTX-\d0\d0|QUADRO-RTX)\b"
)


def video_engines(product: str, partition: str) -> tuple[bool | None, bool | None]:
    """Returns whether a unit decodes and encodes video in hardware. A slice has the engines of its profile."""
    card = mig_profiles.card_of(product)
    if card is None:
        has = True if partition == "none" and _WITH_VIDEO.search(_name(product)) else None
        return has, has
    if partition == "none":
        return True, card.has_encoders
    profile = mig_profiles.profile_of(partition, card)
    if profile is None:
        return None, None
    return profile.decoders > 0, profile.decoders > 0 and card.has_encoders


def mps_clients(product: str) -> int:
    """The most MPS clients of one GPU that NVIDIA's device plugin accepts: 16 before Turing (it checks for compute
    capability 7.5), else 48. An unknown product may have 48.
    """
    return 16 if _FEW_MPS_CLIENTS.search(_name(product)) else 48


def has_fp8(product: str) -> bool | None:
    name = _name(product)
    if _WITH_FP8.search(name):
        return True
    return False if _WITHOUT_FP8.search(name) else None


def _name(product: str) -> str:
    return product.upper().replace("_", "-").replace(" ", "-")
