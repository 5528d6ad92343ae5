"""Names of the MIG profiles of each product, as NVIDIA publishes them. Pure.

The GB of a name are a table and not arithmetic: drivers round in their own ways. A30, A100, H100, GH200 and H200 are
from the configuration that mig-parted v0.10.0 ships, RTX PRO 6000, B200, GB200, B300 and GB300 from that of v0.15.0,
RTX PRO 4500 and 5000 from NVIDIA's MIG user guide. A node with another driver may use other names: its labels decide.
"""

from __future__ import annotations

from collections.abc import Mapping

from catalog.discovery.mig_profiles import MigCard, MigProfile

# By memory slices and GB of the GPU: GB in the name of a profile, by its memory slices.
_GB: Mapping[tuple[int, float], Mapping[int, int]] = {
    (2, 32): {1: 16, 2: 32},
    (2, 48): {1: 24, 2: 48},
    (4, 24): {1: 6, 2: 12, 4: 24},
    (4, 96): {1: 24, 2: 48, 4: 96},
    (8, 40): {1: 5, 2: 10, 4: 20, 8: 40},
    (8, 80): {1: 10, 2: 20, 4: 40, 8: 80},
    (8, 94): {1: 12, 2: 24, 4: 47, 8: 94},
    (8, 96): {1: 12, 2: 24, 4: 48, 8: 96},
    (8, 141): {1: 18, 2: 35, 4: 71, 8: 141},
    (8, 144): {1: 18, 2: 36, 4: 72, 8: 144},
    (8, 180): {1: 23, 2: 45, 4: 90, 8: 180},
    (8, 186): {1: 23, 2: 47, 4: 93, 8: 186},
    (8, 269): {1: 34, 2: 67, 4: 135, 8: 269},
    (8, 278): {1: 35, 2: 70, 4: 139, 8: 278},
}


def profile_names(card: MigCard) -> dict[str, MigProfile] | None:
    """Profiles of a GPU of one memory size, by name with `+` as in mig-parted. None: no names are published for it."""
    (size,) = card.sizes
    sizes_gb = _GB.get((card.memory_slices, size))
    if sizes_gb is None:
        return None
    found = {}
    for (compute, memory, extra), profile in card.profiles.items():
        suffix = extra if extra.startswith("-") else f"+{extra}" if extra else ""
        found[f"{compute}g.{sizes_gb[memory]}gb{suffix}"] = profile
    return found
