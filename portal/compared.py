"""From which versions channels were rendered, and which of them were changed by something that no hint told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass

# Of all of these channels: a version, which differs whenever what is its own, and so is hinted, has changed; and
# something that differs whenever its pages may for what others did.
Versions = Callable[[Collection[str]], Mapping[str, tuple[Hashable, Hashable]]]


@dataclass(frozen=True, slots=True)
class Read:
    """What a rendering was made from: nothing that it shows is older. `at`: when this was asked, by the monotonic
    clock.
    """

    version: Hashable
    at: float


@dataclass(frozen=True)
class Comparison:
    """`read`: of whole renderings, as they end; `at`: when everything had been found; `moved`: channels around which
    something is not as it was at the last comparison, or that were not there then.
    """

    read: Mapping[str, Read]
    found: Mapping[str, Hashable]
    moved: Collection[str]
    at: float

    def is_missed(self, channel: str) -> bool:
        """Whether its pages may be older than what was found. What was rendered from later has seen all of that."""
        read = self.read.get(channel)
        if read is not None and read.at > self.at:
            return False
        return read is None or channel in self.moved or read.version != self.found[channel]


class Compared:
    """Of the channels that are watched."""

    def __init__(self) -> None:
        self._read: dict[str, Read] = {}
        self._around: dict[str, Hashable] = {}

    def rendered(self, channel: str, read: Read) -> None:
        """All of it that is watched."""
        self._read[channel] = read

    def compare(self, found: Mapping[str, tuple[Hashable, Hashable]], at: float) -> Comparison:
        """Channels that are not in it are forgotten."""
        before, self._around = self._around, {channel: around for channel, (_version, around) in found.items()}
        for channel in self._read.keys() - found.keys():
            del self._read[channel]
        moved = {channel for channel, around in self._around.items() if before.get(channel, ...) != around}
        return Comparison(self._read, {channel: version for channel, (version, _) in found.items()}, moved, at)
