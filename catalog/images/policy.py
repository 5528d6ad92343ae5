"""Which images the catalog accepts. Pure."""

from __future__ import annotations

import re

from catalog.images.compatibility import VENDORS
from catalog.images.image_references import REFERENCE_LIMIT, pinned

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

_VERSION = re.compile(r"\d{1,3}\.\d{1,3}")


def image_problem(reference: str, digest: str, vendor: str, min_cuda: str) -> tuple[str, str] | None:
    """Returns (field, sentence) of the first invalid value of an image as staff typed it."""
    if digest and not _DIGEST.fullmatch(digest):
        return "digest", "A digest is sha256: and 64 hexadecimal digits in lower case; copy it from the registry."
    if digest and "@" in reference:
        return "digest", "The reference already contains a digest. Enter the digest in one of the two fields only."
    if len(pinned(reference, digest)) > REFERENCE_LIMIT:
        return "reference", f"Enter at most {REFERENCE_LIMIT} characters for reference and digest together."
    if vendor and vendor not in VENDORS:
        return "vendor", f"Enter one of {', '.join(VENDORS)}, or leave it empty for an image that runs on any GPU."
    if min_cuda and not _VERSION.fullmatch(min_cuda):
        return "min_cuda", f"Enter a CUDA version of two numbers, for example 12.4, not '{min_cuda[:10]}'."
    if min_cuda and vendor != "nvidia":
        return "min_cuda", "Only an image for NVIDIA GPUs needs a CUDA version; set the vendor to nvidia."
    return None
