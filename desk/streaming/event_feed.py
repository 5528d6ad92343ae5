"""`/api/v1/watch`: events for programs, as they are settled.

One task of the process looks for new events, at every hint about any page and every few seconds, and wakes the streams
of their teams and those of no certain team. A stream of a team in which nothing happens reads nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from contextvars import Context
from dataclasses import dataclass, replace

import structlog

from accounts.core.actor import Actor
from accounts.events import stream
from accounts.models import User
from portal.core.errors import Refused
from portal.live.backpressure import ClientStalled, SendWithTimeout
from portal.live.broadcaster import ANY_CHANNEL, KEEPALIVE_S, RETRY_S, Broadcaster
from portal.live.types import Receive, Send
from portal.live.viewers import Viewer
from tenants.models import Tenant
from workloads.gateway.asgi import Header
from workloads.gateway.followers import Followers

log = structlog.get_logger(__name__)

# Events without a hint, and those whose hint was lost, are found after this time.
LOOK_EVERY_S = 3.0
# Between two looks, because hints about pages are frequent.
LOOK_PAUSE_S = 0.25
# Between two questions whether a transaction that adds events has ended.
SETTLE_PAUSE_S = 0.05


@dataclass(frozen=True)
class Watch:
    """A stream as it was asked for. `team`: "" for all teams of the caller; `after`: None for now."""

    by: Actor
    team: str
    after: int | None


class EventFeed:
    """Used by the event loop alone, so it needs no lock."""

    def __init__(self, live: Broadcaster) -> None:
        self._live = live
        self._followers = Followers("event streams")
        # The team of each stream.
        self._viewers: dict[Viewer, str] = {}
        # All ids up to this one are settled. None until the first look after nobody watched.
        self._settled: int | None = None
        self._looking: asyncio.Task[None] | None = None

    async def follow(
        self, receive: Receive, send: Send, *, watch: Watch, credential: Hashable, headers: list[Header]
    ) -> None:
        """Sends events until the client disconnects, stops reading or loses access. Raises Refused: too_many_open."""
        person = watch.by.person.pk
        outgoing = SendWithTimeout(send)
        viewer = Viewer(credential, outgoing.hurry)
        with self._followers.one(person, watch.team or f"person {person}"):
            self._viewers[viewer] = watch.team
            if self._looking is None:
                # An empty context: it is for all streams and belongs to no request.
                self._looking = asyncio.create_task(self._look_while_watched(), context=Context())
            try:
                async with self._live.watching(viewer, receive):
                    await outgoing({"type": "http.response.start", "status": 200, "headers": headers})
                    await self._write(viewer, outgoing, watch)
            except ClientStalled:
                log.info("watcher_stalled")
            finally:
                del self._viewers[viewer]

    async def _write(self, viewer: Viewer, send: Send, watch: Watch) -> None:
        last, has_news = watch.after, self._settled is not None
        if last is not None:
            await _send(send, stream.position_text(last))
        while not viewer.closed.is_set():
            if has_news and self._settled is not None:
                if last is None:
                    last = self._settled
                    await _send(send, stream.position_text(last))
                page = await self._live.in_thread(_read, watch, last, self._settled)
                if page is None:
                    break
                last, has_news = page.last, page.is_full
                if page.text and not viewer.closed.is_set():
                    await _send(send, page.text)
                continue
            try:
                async with asyncio.timeout(KEEPALIVE_S):
                    await viewer.news.wait()
                viewer.news.clear()
                has_news = True
            except TimeoutError:
                await _send(send, b":\n\n")
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    # ---- looking for new events ------------------------------------------------------------------------------------

    async def _look_while_watched(self) -> None:
        hints = Viewer("event feed")
        try:
            while self._viewers:
                try:
                    await self._look()
                except Exception:
                    log.exception("event_look_failed")
                    await asyncio.sleep(RETRY_S)
                await asyncio.sleep(LOOK_PAUSE_S)
                await self._live.changed(ANY_CHANNEL, hints, within_s=LOOK_EVERY_S)
        finally:
            self._looking, self._settled = None, None

    async def _look(self) -> None:
        newest = await self._live.in_thread(stream.newest_id)
        if newest == self._settled:
            return
        writers = await self._live.in_thread(stream.unfinished_writers)
        while writers and self._viewers:
            await asyncio.sleep(SETTLE_PAUSE_S)
            writers &= await self._live.in_thread(stream.unfinished_writers)
        if writers:
            return
        before, self._settled = self._settled, newest
        teams = None if before is None else await self._live.in_thread(_teams, before, newest)
        for viewer, team in self._viewers.items():
            if not team or teams is None or team in teams:
                viewer.news.set()


async def _send(send: Send, text: bytes) -> None:
    await send({"type": "http.response.body", "body": text, "more_body": True})


def _teams(before: int, newest: int) -> set[str]:
    return stream.teams_with_events(after=before, until=newest)


def _read(watch: Watch, after: int, until: int) -> stream.EventPage | None:
    """What the caller may see now, with the roles and teams of now. None if they may not watch any more."""
    user = User.objects.filter(pk=watch.by.person.pk, is_active=True).first()
    if user is None:
        return None
    by = replace(watch.by, user=user)
    teams = list(Tenant.objects.visible_to(by).values_list("slug", flat=True))
    try:
        return stream.EventReader(by, teams, watch.team).page(after=after, until=until)
    except Refused:
        return None
