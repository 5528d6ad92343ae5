"""Slugs and names of proposed classes. Pure."""

from __future__ import annotations

import re

SLUG_LIMIT = 40

NAME_LIMIT = 80


def product_slug(product: str) -> str:
    """The product as used in slugs."""
    plain = product.lower().replace("_", "-").replace(" ", "-")
    plain = re.sub(r"^(nvidia|amd|intel|tesla|instinct)-", "", plain)
    return re.sub(r"^(tesla|instinct|geforce)-", "", plain)


def class_title(product: str, partition: str = "", *, shared: str = "", note: str = "") -> str:
    """`A100 SXM4 80GB · MIG 1g.10gb`. Each part may be "" if it does not apply to the class."""
    plain = re.sub(r"^(NVIDIA|AMD) ", "", product.replace("-", " ").replace("_", " "))
    return " · ".join(part for part in (plain, partition, shared, note) if part)[:NAME_LIMIT]
