"""Types for streams: those of ASGI, a topic, its fragments, and the functions that the caller passes in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Generator, Hashable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

Scope = MutableMapping[str, Any]

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# Event name → HTML. None instead of it: there is nothing (more) to show, and the stream ends.
Fragments = Mapping[str, bytes]

# Takes a channel and some of its views. Yields each view with its fragments as soon as they are rendered, possibly in
# parts. Returns the channel's version; no fragment is older than that version.
RenderChannel = Callable[[str, Collection[str]], Generator[tuple[str, Fragments | None], None, Hashable]]

# Takes channels that have one view each. Returns the fragments and the version of each, read together.
RenderTogether = Callable[[Collection[str]], Mapping[str, tuple[Fragments, Hashable]]]

# Returns those of the given credentials that still have access. A credential is any hashable value of the caller.
FilterAllowed = Callable[[Collection[Hashable]], Collection[Hashable]]


@dataclass(frozen=True)
class Topic:
    """What a stream shows. `view` is "" for the channel's own page; the renderer interprets other values."""

    channel: str
    view: str = ""
