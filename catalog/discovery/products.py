"""Which label names a node's product, and what a product's name alone shows about it. Pure; None means unknown."""

from __future__ import annotations

import re
from collections.abc import Mapping

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


def has_fp8(product: str) -> bool | None:
    name = product.upper().replace("_", "-").replace(" ", "-")
    if _WITH_FP8.search(name):
        return True
    return False if _WITHOUT_FP8.search(name) else None
