"""Which images may be in the catalog. Pure."""

from __future__ import annotations

import re

from catalog.images.compatibility import VENDORS
from catalog.images.image_references import REFERENCE_LIMIT, pinned

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

_VERSION = re.compile(r"\d{1,3}\.\d{1,3}")


def image_problem(reference: str, digest: str, vendor: str, min_cuda: str) -> tuple[str, str] | None:
    """(field, sentence) of the first thing that cannot be, for an image as staff typed it."""
    if digest and not _DIGEST.fullmatch(digest):
        return "digest", "A digest is sha256: and 64 hexadecimal digits in lower case; copy it from the registry."
    if digest and "@" in reference:
        return "digest", "The reference names a digest already. Enter it in one of the two places only."
    if len(pinned(reference, digest)) > REFERENCE_LIMIT:
        return "reference", f"Reference and digest have at most {REFERENCE_LIMIT} characters together."
    if vendor and vendor not in VENDORS:
        return "vendor", f"The vendor is one of {', '.join(VENDORS)}, or empty for an image that runs on any card."
    if min_cuda and not _VERSION.fullmatch(min_cuda):
        return "min_cuda", f"A CUDA version has two numbers, as in 12.4; '{min_cuda[:10]}' is not one."
    if min_cuda and vendor != "nvidia":
        return "min_cuda", "Only an image for NVIDIA cards needs a CUDA version; set the vendor to nvidia."
    return None
