"""Whether an image fits the hardware of a class. Pure.

NVIDIA's libraries need a driver of at least the CUDA version for which they were built; within a major release, of its
first version (docs.nvidia.com, CUDA Compatibility). Staff enter which version an image needs; node labels report which
one a driver offers. What is missing in both is shown as unknown and not refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from typing import Protocol, TypeVar

# By the catalog's value: the vendor of the GPUs, and the name of an image for them.
VENDORS = {
    "nvidia": ("NVIDIA", "CUDA"),
    "amd": ("AMD", "ROCm"),
    "intel": ("Intel", "oneAPI"),
    "habana": ("Gaudi", "Gaudi"),
}


class ImageRequirements(Protocol):
    """The fields of an image's row that these functions need."""

    @property
    def name(self) -> str: ...
    @property
    def vendor(self) -> str: ...
    @property
    def min_cuda(self) -> str: ...


class ListedImage(ImageRequirements, Protocol):
    @property
    def deprecated_since(self) -> date | None: ...


ImageT = TypeVar("ImageT", bound=ListedImage)


@dataclass(frozen=True)
class HardwareFacts:
    """Hardware of a class. `vendor` "": unknown, or there is no GPU (`has_gpu` False). `cuda`: the lowest version that
    the drivers of its nodes offer, None if no node reports one.
    """

    name: str
    vendor: str
    cuda: str | None
    has_gpu: bool = True


def compatibility(image: ImageRequirements, facts: HardwareFacts) -> str:
    """Returns "" if the image fits or nothing is known against it; else a sentence with the reason."""
    if image.vendor and facts.vendor and image.vendor != facts.vendor:
        _, theirs = _words(image.vendor)
        cards, ours = _words(facts.vendor)
        return f"{theirs} images do not run on {cards} GPUs; {facts.name} needs a {ours} image."
    if image.min_cuda and facts.cuda is not None and _numbers(facts.cuda) < _numbers(image.min_cuda):
        return (
            f"{image.name} needs CUDA {image.min_cuda}, but the drivers of {facts.name} support {facts.cuda}. "
            "Choose an image for an older CUDA, or another class."
        )
    return ""


def caution(image: ImageRequirements, facts: HardwareFacts) -> str:
    """Returns a warning about an image that fits as far as is known; "" if there is none."""
    if image.vendor and not facts.vendor:
        cards, theirs = _words(image.vendor)
        if not facts.has_gpu:
            return f"Made for {cards} GPUs; {facts.name} has none, so its {theirs} part is not used."
        return f"Made for {cards} GPUs; {facts.name} is not known to have one, so its {theirs} part may not be used."
    if image.min_cuda and facts.cuda is None:
        return f"Needs CUDA {image.min_cuda}; the version supported by the drivers of {facts.name} is unknown."
    return ""


def deprecation(since: date | None, successor: str, today: date) -> str:
    """Returns "" for an image that is not deprecated, or not yet."""
    if since is None or since > today:
        return ""
    way = f"use {successor} instead" if successor else "there is no replacement yet"
    return f"Deprecated since {since:%-d %b %Y}; {way}."


def sort_images(
    images: Iterable[ImageT], today: date, problem: Callable[[ImageT], str], *, has_gpu: bool = True
) -> list[ImageT]:
    """Sorts in staff's order: first images that fit, then those for GPUs that the class lacks (`has_gpu`), then
    deprecated ones, last those that do not run (`problem` has the reason).
    """

    def is_old(image: ImageT) -> bool:
        return image.deprecated_since is not None and image.deprecated_since <= today

    return sorted(images, key=lambda image: (bool(problem(image)), is_old(image), bool(image.vendor) and not has_gpu))


def _words(vendor: str) -> tuple[str, str]:
    return VENDORS.get(vendor, (vendor, vendor))


def _numbers(version: str) -> tuple[int, int]:
    """Converts to numbers: 12.10 is later than 12.9, and 13 is 13.0."""
    major, minor = [*version.split("."), "0"][:2]
    return int(major), int(minor)
