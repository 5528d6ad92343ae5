"""Which versions of a channel were rendered, and which channels changed since without a hint."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass

# Of all of these channels: something that differs whenever their pages may.
ReadVersions = Callable[[Collection[str]], Mapping[str, Hashable]]


@dataclass(frozen=True, slots=True)
class RenderedVersion:
    """What a rendering was made from: nothing that it shows is older. `at`: when this was asked, by the monotonic
    clock.
    """

    version: Hashable
    at: float


@dataclass(frozen=True)
class VersionComparison:
    """`read`: of whole renderings, as they end; `at`: when everything had been found."""

    read: Mapping[str, RenderedVersion]
    found: Mapping[str, Hashable]
    at: float

    def is_missed(self, channel: str) -> bool:
        """Whether its pages may be older than what was found. What was rendered from later has seen all of that."""
        read = self.read.get(channel)
        return read is None or (read.at <= self.at and read.version != self.found[channel])


class StalenessTracker:
    """Of the channels that are watched."""

    def __init__(self) -> None:
        self._read: dict[str, RenderedVersion] = {}

    def rendered(self, channel: str, read: RenderedVersion) -> None:
        """All of it that is watched."""
        self._read[channel] = read

    def compare(self, found: Mapping[str, Hashable], at: float) -> VersionComparison:
        """Channels that are not in it are forgotten."""
        for channel in self._read.keys() - found.keys():
            del self._read[channel]
        return VersionComparison(self._read, found, at)
