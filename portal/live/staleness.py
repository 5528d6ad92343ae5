"""Tracks which version of each channel was rendered, to find channels that changed since then without a hint."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass

# Returns a version for each of these channels. It changes whenever the channel's pages may change.
ReadVersions = Callable[[Collection[str]], Mapping[str, Hashable]]


@dataclass(frozen=True, slots=True)
class RenderedVersion:
    """The version that a rendering was made from: it shows nothing older. `at`: monotonic time before the read."""

    version: Hashable
    at: float


@dataclass(frozen=True)
class VersionComparison:
    """`read`: versions of complete renderings, updated as renderings end. `found`: current versions. `at`: monotonic
    time when `found` was complete.
    """

    read: Mapping[str, RenderedVersion]
    found: Mapping[str, Hashable]
    at: float

    def is_missed(self, channel: str) -> bool:
        """Whether the channel's pages may be older than `found`. A rendering that began after `at` is never older."""
        read = self.read.get(channel)
        return read is None or (read.at <= self.at and read.version != self.found[channel])


class StalenessTracker:
    """The rendered versions of the watched channels."""

    def __init__(self) -> None:
        self._read: dict[str, RenderedVersion] = {}

    def rendered(self, channel: str, read: RenderedVersion) -> None:
        """Call it after a rendering of all watched views of the channel."""
        self._read[channel] = read

    def compare(self, found: Mapping[str, Hashable], at: float) -> VersionComparison:
        """Also forgets the channels that are not in `found`."""
        for channel in self._read.keys() - found.keys():
            del self._read[channel]
        return VersionComparison(self._read, found, at)
