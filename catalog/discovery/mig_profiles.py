"""MIG profiles of each GPU: what a name means on it, and how much of the GPU an instance takes.

Pure. Names are read from nodes and only interpreted here, never computed: what a name means follows from the GPU's
memory. From NVIDIA's MIG user guide, "Supported GPUs" and "Supported MIG Profiles"; the placements are those that
`nvidia-smi mig -lgipp` prints. A product that the guide does not list is unknown; so is a name that fits no profile.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

# `+me` and `+gfx` in NVIDIA's tools are `.me` and `.gfx` in names of resources and labels; `-me` is the same in both.
_PROFILE = re.compile(r"(?P<compute>\d+)g\.(?P<gb>\d+)gb(?:(?P<minus>-me)|[+.](?P<plus>me\.all|me|gfx))?")
_GB_IN_NAME = re.compile(r"\b(\d+)GB\b")
# The GB in a name are rounded, by drivers in different ways.
_ROUNDING = 0.08


@dataclass(frozen=True)
class MigProfile:
    """`starts`: memory slices at which an instance may begin; `most`: instances on one GPU; `decoders`: NVDEC engines,
    which have as many NVENC beside them on a GPU with encoders. `has_ofa`: it takes the only optical flow engine.
    """

    compute: int
    memory: int
    starts: tuple[int, ...]
    most: int
    decoders: int = 0
    has_ofa: bool = False


# By compute slices, memory slices, and the extra after the name: "", "me", "me.all", "gfx" or "-me".
_Profiles = Mapping[tuple[int, int, str], MigProfile]


@dataclass(frozen=True)
class MigCard:
    """A GPU with MIG. `sizes`: its memory in GB; several if the name of the product does not show which one.

    `full_sums`: what the shares (`share_of`) of all instances on a full GPU can add up to. `is_assumed`: placed like
    its predecessors, because its placements are not published.
    """

    memory_slices: int
    compute_slices: int
    sizes: tuple[float, ...]
    profiles: _Profiles
    decoders: int
    has_encoders: bool = False
    is_assumed: bool = False
    full_sums: tuple[Fraction, ...] = (Fraction(1),)


def _of_eight(decoders: tuple[int, ...]) -> _Profiles:
    """Eight memory slices and seven compute slices; `decoders` in the order of the profiles below."""
    shapes: tuple[tuple[int, int, str, tuple[int, ...], int, bool], ...] = (
        (1, 1, "", tuple(range(7)), 7, False),
        (1, 1, "me", tuple(range(7)), 1, True),
        (1, 2, "", (0, 2, 4, 6), 4, False),
        (2, 2, "", (0, 2, 4), 3, False),
        (3, 4, "", (0, 4), 2, False),
        (4, 4, "", (0,), 1, False),
        (7, 8, "", (0,), 1, True),
    )
    return {
        (compute, memory, extra): MigProfile(compute, memory, starts, most, engines, has_ofa)
        for (compute, memory, extra, starts, most, has_ofa), engines in zip(shapes, decoders, strict=True)
    }


def _of_rtx_pro(slices: int, all_decoders: int) -> _Profiles:
    """As many memory as compute slices; the media engines can be left out, or all given to one instance."""
    found: dict[tuple[int, int, str], MigProfile] = {}
    for size in (one for one in (1, 2, 4) if one < slices):
        starts, most = tuple(range(0, slices, size)), slices // size
        plain = MigProfile(size, size, starts, most, size)
        found |= {(size, size, extra): plain for extra in ("", "gfx")}
        found[size, size, "-me"] = replace(plain, decoders=0)
        found[size, size, "me.all"] = replace(plain, most=1, decoders=all_decoders, has_ofa=True)
    found[1, 1, "me"] = replace(found[1, 1, ""], most=1, has_ofa=True)
    whole = MigProfile(slices, slices, (0,), 1, all_decoders, has_ofa=True)
    return found | {(slices, slices, extra): whole for extra in ("", "gfx")}


_OF_A30: _Profiles = {
    (1, 1, ""): MigProfile(1, 1, (0, 1, 2, 3), 4),
    (1, 1, "me"): MigProfile(1, 1, (0, 1, 2, 3), 1, 1, has_ofa=True),
    (2, 2, ""): MigProfile(2, 2, (0, 2), 2, 2),
    (2, 2, "me"): MigProfile(2, 2, (0, 2), 1, 2, has_ofa=True),
    (4, 4, ""): MigProfile(4, 4, (0,), 1, 4, has_ofa=True),
}
# Seven compute slices and eight memory slices do not divide alike: 4g and 3g fill a GPU, and 4/7 + 1/2 is 15/14.
FULL_SUMS_OF_EIGHT = (Fraction(1), Fraction(15, 14), Fraction(29, 28), Fraction(31, 28))
_AMPERE = MigCard(8, 7, (), _of_eight((0, 1, 1, 1, 2, 2, 5)), 5, full_sums=FULL_SUMS_OF_EIGHT)
_HOPPER = MigCard(8, 7, (), _of_eight((1, 1, 1, 2, 3, 4, 7)), 7, full_sums=FULL_SUMS_OF_EIGHT)
_BLACKWELL = replace(_HOPPER, is_assumed=True)
# Two slices: placements are not published.
_RTX_PRO_OF_TWO = MigCard(2, 2, (), _of_rtx_pro(2, 3), 3, has_encoders=True, is_assumed=True)

# Words of the product's name → the GPU and the sizes in which it is sold.
_CARDS: tuple[tuple[re.Pattern[str], MigCard, tuple[float, ...]], ...] = (
    (re.compile(r"\bA30\b"), MigCard(4, 4, (), _OF_A30, 4), (24,)),
    (re.compile(r"\bRTX PRO 6000\b"), MigCard(4, 4, (), _of_rtx_pro(4, 4), 4, has_encoders=True), (96,)),
    (re.compile(r"\bRTX PRO 5000\b"), _RTX_PRO_OF_TWO, (48,)),
    (re.compile(r"\bRTX PRO 4500\b"), _RTX_PRO_OF_TWO, (32,)),
    (re.compile(r"\bA[18]00\b"), _AMPERE, (40, 80)),
    (re.compile(r"\bGH200\b"), _HOPPER, (96, 144)),
    # Only the boards in pairs are named without their memory and have one size.
    (re.compile(r"\bH[18]00 NVL\b"), _HOPPER, (94,)),
    (re.compile(r"\bH[18]00\b"), _HOPPER, (80, 94, 96)),
    (re.compile(r"\bH200\b"), _HOPPER, (141,)),
    (re.compile(r"\bH20\b"), _HOPPER, (96, 141)),
    (re.compile(r"\bB200\b"), _BLACKWELL, (180,)),
    (re.compile(r"\bGB200\b"), _BLACKWELL, (186,)),
    (re.compile(r"\bB300\b"), _BLACKWELL, (269,)),
    (re.compile(r"\bGB300\b"), _BLACKWELL, (278,)),
)
_WITHOUT_MIG = re.compile(
    r"\b(K80|M60|P4|P40|P100|V100S?|T4G?|T1000|A2|A10[GM]?|A16|A40|L2|L4|L20|L40[SG]?"
    r"|RTX A?\d000|RTX \d0\d0|QUADRO|GEFORCE|TITAN)\b"
)


def card_of(product: str, memory_mib: int | None = None) -> MigCard | None:
    """Returns None for a GPU without MIG, or one that is not known. `memory_mib`: of the whole GPU, None: unknown."""
    words = product.replace("-", " ").replace("_", " ")
    for pattern, card, sold in _CARDS:
        if not pattern.search(words):
            continue
        if memory_mib:
            return replace(card, sizes=(memory_mib / 1024,))
        named = _GB_IN_NAME.search(words)
        # A GH200 is named after the memory of its CPU.
        return replace(card, sizes=(float(named[1]),) if named and float(named[1]) in sold else sold)
    return None


def has_mig(product: str) -> bool | None:
    """None: the product is not known."""
    if card_of(product) is not None:
        return True
    words = product.upper().replace("-", " ").replace("_", " ")
    return False if _WITHOUT_MIG.search(words) and "RTX PRO" not in words else None


def is_profile(text: str) -> bool:
    return _PROFILE.fullmatch(text) is not None


def as_resource(profile: str) -> str:
    """The profile as it is written in the names of resources: `1g.10gb+me` is `1g.10gb.me` there."""
    return profile.replace("+", ".")


def from_resource(profile: str) -> str:
    """The reverse of `as_resource`: `1g.10gb.me` becomes `1g.10gb+me`. A name that has a `+` stays as it is."""
    size, dot, extra = profile.partition("gb.")
    return f"{size}gb+{extra}" if dot else profile


def profile_of(name: str, card: MigCard) -> MigProfile | None:
    """Returns the meaning of a name on this GPU: 1g.10gb is one memory slice of 80 GB, and two of 40."""
    meanings = _meanings(name, card)
    return meanings.pop() if len(meanings) == 1 else None


def has_profile(name: str, card: MigCard) -> bool:
    """Also true if the name means different things in the sizes in which the GPU is sold."""
    return bool(_meanings(name, card))


def _meanings(name: str, card: MigCard) -> set[MigProfile]:
    found = _PROFILE.fullmatch(name)
    if found is None:
        return set()
    extra = found["minus"] or found["plus"] or ""
    meanings = set()
    for size in card.sizes:
        slices = int(found["gb"]) * card.memory_slices / size
        memory = max(1, round(slices))
        profile = card.profiles.get((int(found["compute"]), memory, extra))
        if profile is not None and abs(slices / memory - 1) <= _ROUNDING:
            meanings.add(profile)
    return meanings


def share_of(name: str, card: MigCard) -> Fraction | None:
    """The part of the GPU that an instance takes at most: of its compute or of its memory, whichever is larger. Four
    instances of 1g.20gb have 4 of 7 compute slices, and fill a GPU of 80 GB. See also `fractions_by_layout`.
    """
    found = profile_of(name, card)
    if found is None:
        return None
    return max(Fraction(found.compute, card.compute_slices), Fraction(found.memory, card.memory_slices))
