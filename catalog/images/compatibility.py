"""Whether an image fits the hardware of a class. Pure.

NVIDIA's libraries need a driver of at least the CUDA version that they were built for, within a major release its
first (docs.nvidia.com, CUDA Compatibility). Which one an image needs is entered by staff; which one a driver offers is
told by labels of the nodes. What neither of them tells is unknown: it is shown as unknown and not refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from typing import Protocol, TypeVar

# By the word of the catalog: the vendor of the GPUs, and the name of an image for them.
VENDORS = {
    "nvidia": ("NVIDIA", "CUDA"),
    "amd": ("AMD", "ROCm"),
    "intel": ("Intel", "oneAPI"),
    "habana": ("Gaudi", "Gaudi"),
}


class ImageRequirements(Protocol):
    """An image's row, or as much of it as these questions need."""

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
    """Of a class. `vendor` "": unknown, or there is no GPU (`has_gpu` False). `cuda`: the least version that
    the drivers of its nodes offer, None when no node tells.
    """

    name: str
    vendor: str
    cuda: str | None
    has_gpu: bool = True


def compatibility(image: ImageRequirements, facts: HardwareFacts) -> str:
    """ "" when it fits, or nothing speaks against it; else the sentence why not."""
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
    """What has to be said of an image that fits as far as anybody knows; "" for nothing."""
    if image.vendor and not facts.vendor:
        cards, theirs = _words(image.vendor)
        if not facts.has_gpu:
            return f"Made for {cards} GPUs; {facts.name} has none, so its {theirs} part is not used."
        return f"Made for {cards} GPUs; {facts.name} is not known to have one, so its {theirs} part may not be used."
    if image.min_cuda and facts.cuda is None:
        return f"Needs CUDA {image.min_cuda}; the version supported by the drivers of {facts.name} is unknown."
    return ""


def deprecation(since: date | None, successor: str, today: date) -> str:
    """ "" for an image that is not deprecated, or not yet."""
    if since is None or since > today:
        return ""
    way = f"use {successor} instead" if successor else "there is no replacement yet"
    return f"Deprecated since {since:%-d %b %Y}; {way}."


def sort_images(
    images: Iterable[ImageT], today: date, problem: Callable[[ImageT], str], *, has_gpu: bool = True
) -> list[ImageT]:
    """As staff put them: first what fits, then what is made for GPUs that are not there (`has_gpu`), then what is
    deprecated, last what does not run (`problem` says so).
    """

    def is_old(image: ImageT) -> bool:
        return image.deprecated_since is not None and image.deprecated_since <= today

    return sorted(images, key=lambda image: (bool(problem(image)), is_old(image), bool(image.vendor) and not has_gpu))


def _words(vendor: str) -> tuple[str, str]:
    return VENDORS.get(vendor, (vendor, vendor))


def _numbers(version: str) -> tuple[int, int]:
    """As numbers: 12.10 is later than 12.9, and 13 is 13.0."""
    major, minor = [*version.split("."), "0"][:2]
    return int(major), int(minor)
