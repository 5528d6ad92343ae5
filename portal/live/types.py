"""The types of streams: ASGI's own, a topic, its fragments, and the functions that are handed in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Generator, Hashable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

Scope = MutableMapping[str, Any]

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# Event name → HTML. None: there is nothing (any more) to show; the stream ends.
Fragments = Mapping[str, bytes]

# Of a channel and some of its views: each view with its fragments, as soon as they are made, in parts if that helps.
# Returns the channel's version; nothing that was shown is older than that.
RenderChannel = Callable[[str, Collection[str]], Generator[tuple[str, Fragments | None], None, Hashable]]

# Of these credentials, those that may still watch. A credential is anything hashable that the caller understands.
FilterAllowed = Callable[[Collection[Hashable]], Collection[Hashable]]


@dataclass(frozen=True)
class Topic:
    """What a stream shows: `view` is "" for the channel's own page, else what the renderer makes of it."""

    channel: str
    view: str = ""
