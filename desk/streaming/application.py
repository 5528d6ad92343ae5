"""Requests that stay open (event streams, waiting API calls, logs) and the gateway's checks; others are 404."""

from __future__ import annotations

import asyncio
import io
import json
import re
import signal
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.core.handlers.base import BaseHandler
from django.core.signals import request_started
from django.http import HttpResponse
from django.utils.datastructures import CaseInsensitiveMapping

from accounts.core.actor import Actor
from accounts.rest.throttles import ALREADY_COUNTED
from accounts.rest.waiting import RETRY_AFTER_S, WAITED
from desk.home import fragments
from desk.streaming.event_feed import EventFeed, Watch
from desk.streaming.open_connections import OPENING_MAX, PENDING_MAX, OpenConnections, busy
from desk.streaming.python_runtime import tune_python
from portal.core.errors import NOT_FOUND, NOT_SIGNED_IN, Refusal, Refused, to_refusal
from portal.core.hints import person_channel
from portal.live.broadcaster import Broadcaster
from portal.live.gathered import Gathered
from portal.live.types import Receive, Scope, Send, Topic
from portal.live.viewers import Viewer
from portal.ops import ops_server
from portal.web import request_id
from portal.web.error_pages import INTERNAL_ERROR
from portal.web.fetch_metadata import OTHER_ORIGIN, is_cross_origin
from portal.web.refusals import api_headers
from portal.web.security_headers import SendWithHeaders, security_headers
from portal.web.session_cookie import session_key_in
from tenants.requests.queries import is_decided, namespace_of_request
from workloads.advice.advice import NEVER
from workloads.advice.queries import never_starts
from workloads.gateway import asgi, logs, stream_access
from workloads.gateway import queries as gateway_queries
from workloads.gateway.asgi import NO_STORE, EdgeRequest, Header, answer, answer_json
from workloads.logs import queries as log_queries
from workloads.status.observations import wait_conditions

log = structlog.get_logger(__name__)

STREAM = re.compile(r"/live/(?P<namespace>[a-z0-9-]{1,63})")

WATCH = "/api/v1/watch"

LOG = re.compile(r"/live/logs/(?P<tenant>[a-z0-9-]{1,40})/(?P<name>[a-z0-9-]{1,40})")

WORKLOAD = re.compile(r"/api/v1/workloads/(?P<name>[a-z0-9-]{1,40})(?:/runs/(?P<number>[0-9]{1,10}))?")

REQUEST = re.compile(r"/api/v1/requests/(?P<pk>[0-9]{1,18})")

# Between hints a waiting call polls, in case a hint was lost.
LOOK_EVERY_S = 5.0

# Kueue reports moments after a start. The check for "never" reads much more, so it runs rarely.
NEVER_AFTER_S = 2.0

NO_WEBSOCKET = Refusal(
    "bad_request", "This address has no WebSocket. Send a GET request without the header Upgrade.", status=400
)
ONLY_GET = Refusal("method_not_allowed", "This address can only be read, with GET.", status=405)
HEADERS_TOO_LARGE = Refusal("headers_too_large", "The request has more than 64 KiB of headers.", status=431)

# The gateway allows more for notebook hosts, but not for cookies; no request here needs as much.
HEADERS_LIMIT = 64 * 1024


@dataclass(frozen=True)
class AwaitedRun:
    """The awaited run: the one with this number, or else the last one."""

    by: Actor
    tenant: str
    namespace: str
    name: str
    number: int | None


class StreamingApplication:
    def __init__(self) -> None:
        access = stream_access.StreamAccess()
        self.live = Broadcaster(
            redis_url=settings.REDIS_URL,
            render=fragments.fragments,
            allowed=access.still_allowed,
            versions=fragments.versions,
            render_together=fragments.people_fragments,
            is_together=fragments.is_of_person,
        )
        self.openings = Gathered(access.openings, self.live.in_thread)
        self.gateway = asgi.NotebookGateway(self.live)
        self.events = EventFeed(self.live)
        self.pages = BaseHandler()
        self.pages.load_middleware()
        self.carried = tuple((name.lower().encode(), value.encode()) for name, value in security_headers().items())
        self.open = OpenConnections()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.lifespan(receive, send)
        if scope["type"] == "websocket":
            await receive()
            send = before_upgrade(send)
        answering = SendWithHeaders(send, (*self.carried, (b"x-request-id", self.named(scope))))
        try:
            # Awaited here: while a stream is open, no other reference keeps its request alive.
            answered = await self.route(scope, receive, answering.send)
            await answered
        except Exception as error:
            refusal = to_refusal(error)
            if refusal is None:
                log.exception("doors_failed", path=scope["path"])
            if answering.has_begun:
                raise
            refusal = refusal or INTERNAL_ERROR
            headers = [(name.lower().encode(), value.encode()) for name, value in api_headers(refusal).items()]
            await answer_json(answering.send, refusal.status, refusal.body(), headers)

    def named(self, scope: Scope) -> bytes:
        """Returns the request's id. It is chosen once, for the response, log lines, and every call of the URL map."""
        offered = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
        chosen = request_id.choose_request_id(offered)
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=chosen)
        others = [header for header in scope["headers"] if header[0] != b"x-request-id"]
        scope["headers"] = [*others, (b"x-request-id", chosen.encode())]
        return chosen.encode()

    async def route(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Returns the coroutine that answers."""
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADERS_LIMIT:
            raise Refused(HEADERS_TOO_LARGE)
        path, asked = scope["path"], EdgeRequest.of(scope)
        if path == "/livez":
            return answer(send, 200, b"ok")
        if scope["type"] == "websocket":
            raise Refused(NO_WEBSOCKET)
        # HEAD would open a stream that is never read.
        if scope["method"] != "GET":
            return answer_json(send, 405, ONLY_GET.body(), [(b"allow", b"GET")])
        if path.startswith("/live/") and is_cross_origin("GET", CaseInsensitiveMapping(asked.headers), own_origin=""):
            raise Refused(OTHER_ORIGIN)
        if path == "/gateway/authorize":
            return self.gateway.authorize(asked, send)
        if path == "/gateway/open":
            return self.gateway.open(asked, send)
        # Notebooks, above, are let in as long as anything works.
        if self.live.pending > PENDING_MAX or self.openings.waiting > OPENING_MAX:
            raise Refused(busy())
        if found := LOG.fullmatch(path):
            return self.log(asked, receive, send, **found.groupdict())
        if found := STREAM.fullmatch(path):
            return await self.stream(asked, receive, send, **found.groupdict())
        if path == WATCH:
            return await self.watch(scope, asked, receive, send)
        if path.startswith("/api/") and "wait" in asked.query:
            return self.waiting(scope, asked, receive, send)
        raise Refused(NOT_FOUND)

    # ---- streams and logs ----------------------------------------------------------------------------------------

    async def who(self, asked: EdgeRequest) -> Any:
        scheme, _, bearer = asked.headers.get("authorization", "").partition(" ")
        bearer = bearer.strip() if scheme.lower() == "bearer" else ""
        session_key = session_key_in(asked.cookie(settings.SESSION_COOKIE_NAME))
        if not bearer and not session_key:
            return None
        return await self.live.in_thread(_caller, session_key, bearer)

    async def stream(self, asked: EdgeRequest, receive: Receive, send: Send, *, namespace: str) -> Awaitable[None]:
        """Opens a stream. A namespace of another team is 404, as everywhere."""
        credential = await self.viewer(asked, namespace)
        topics = [Topic(namespace, fragments.view_of(asked.query))]
        if credential.session_key:  # a page, which has a bell
            topics.append(Topic(person_channel(credential.user_id)))
        return self.held(credential, partial(self.live.stream, receive, send, topics=topics, credential=credential))

    async def viewer(self, asked: EdgeRequest, namespace: str) -> stream_access.StreamViewer:
        """Raises Refused. Pages, of which thousands come back together, are looked up together."""
        session_key = session_key_in(asked.cookie(settings.SESSION_COOKIE_NAME))
        if session_key and "authorization" not in asked.headers:
            found = await self.openings.ask(stream_access.SessionAsks(session_key, namespace))
            if isinstance(found, Refusal):
                raise Refused(found)
            return found
        who = await self.who(asked)
        if who is None:
            raise Refused(NOT_SIGNED_IN)
        by, session_key, token_prefix = who
        if not await self.live.in_thread(stream_access.may_watch, by, namespace):
            raise Refused(NOT_FOUND)
        return stream_access.StreamViewer(by.user_id, namespace, session_key, token_prefix)

    async def held(self, credential: stream_access.StreamViewer, answering: Callable[[], Awaitable[None]]) -> None:
        """Counts the connection while it is open. Raises Refused (429, 503) at a limit."""
        with self.open.one(credential):
            await answering()

    async def log(self, asked: EdgeRequest, receive: Receive, send: Send, *, tenant: str, name: str) -> None:
        who = await self.who(asked)
        if who is None:
            raise Refused(NOT_SIGNED_IN)
        by, session_key, token_prefix = who
        index, number = _number(asked.query.get("worker", "")), _number(asked.query.get("run", ""))
        namespace, source = await self.live.in_thread(gateway_queries.log_source, by, tenant, name, index, number)
        kept = partial(self.live.in_thread, log_queries.kept_log, by, tenant, name, number, index)
        if "hx-request" in asked.headers:
            return await logs.log_fragment(asked, send, source, kept, person=by.user_id)
        credential = stream_access.StreamViewer(by.user_id, namespace, session_key, token_prefix)
        follow = partial(logs.follow_log, self.live, asked, receive, send)
        follow = partial(follow, credential=credential, person=by.user_id, source=source, kept=kept)
        return await self.held(credential, follow)

    async def watch(self, scope: Scope, asked: EdgeRequest, receive: Receive, send: Send) -> Awaitable[None]:
        """Web's own response says whether the call is in order; then the stream begins."""
        response = await self.live.in_thread(self.page, scope)
        who = await self.who(asked) if response.status_code == 200 else None
        if who is None:
            return answer(send, response.status_code, response.content, carried_headers(response))
        by, session_key, token_prefix = who
        team = asked.query.get("team") or by.confined_to
        namespace = await self.live.in_thread(stream_access.watched_namespace, team)
        credential = stream_access.StreamViewer(by.user_id, namespace, session_key, token_prefix)
        after = asked.headers.get("last-event-id") or asked.query.get("after", "")
        follow = partial(self.events.follow, receive, send, credential=credential)
        watch = Watch(by, team, int(after) if after else None)
        return self.held(credential, partial(follow, watch=watch, headers=[NO_STORE, *carried_headers(response)]))

    # ---- long polling --------------------------------------------------------------------------------------------

    async def waiting(self, scope: Scope, asked: EdgeRequest, receive: Receive, send: Send) -> None:
        """Returns web's own response when the condition holds or time is over. The first response decides access."""
        ends = time.monotonic() + _seconds(asked.query.get("wait", ""))
        response = await self.live.in_thread(self.page, scope)
        run, request = WORKLOAD.fullmatch(scope["path"]), REQUEST.fullmatch(scope["path"])
        who = await self.who(asked) if response.status_code == 200 and (run or request) else None
        if who is not None:
            by, session_key, token_prefix = who
            body = json.loads(response.content)
            namespace = (
                await self.live.in_thread(namespace_of_request, int(body["id"])) if request else body["namespace"]
            )
            credential = stream_access.StreamViewer(by.user_id, namespace, session_key, token_prefix)
            caller = Viewer(credential)

            async def wait() -> None:
                async with self.live.watching(caller, receive):
                    if run is None:
                        await self.until_decided(body["id"], namespace, ends, caller)
                    elif body["status"]["verdict"] != NEVER:
                        number = int(run["number"]) if run["number"] else None
                        waits = AwaitedRun(by, body["team"], namespace, run["name"], number)
                        await self.until(waits, asked.query.get("until", "ready"), ends, caller)

            # A delegate who is not in the team sees the request, and nothing else of the team.
            can_wait = run is not None or await self.live.in_thread(stream_access.may_watch, by, namespace)
            if can_wait:
                await self.held(credential, wait)
            response = await self.live.in_thread(self.page, scope, True)
            if not can_wait and response.status_code == 200:
                response["Retry-After"] = str(RETRY_AFTER_S)
        await answer(send, response.status_code, response.content, carried_headers(response))

    async def until(self, waits: AwaitedRun, until: str, ends: float, caller: Viewer) -> None:
        """Returns early if the run can never start as requested, if the caller has gone or lost access, or if this
        process ends.
        """
        gap = NEVER_AFTER_S
        look_at = time.monotonic() + gap
        while not await self.live.in_thread(
            wait_conditions.has_reached, waits.namespace, waits.name, until, waits.number
        ):
            now = time.monotonic()
            if ends <= now or caller.closed.is_set():
                return
            if look_at <= now:
                if await self.live.in_thread(never_starts, waits.by, waits.tenant, waits.name):
                    return
                gap *= 2
                look_at = time.monotonic() + gap
            within_s = min(ends - now, LOOK_EVERY_S, max(look_at - now, 0.1))
            await self.live.changed(waits.namespace, caller, within_s=within_s)

    async def until_decided(self, pk: int, namespace: str, ends: float, caller: Viewer) -> None:
        """Returns early if the caller has gone or lost access, or if this process ends."""
        while not await self.live.in_thread(is_decided, pk):
            left_s = ends - time.monotonic()
            if left_s <= 0 or caller.closed.is_set():
                return
            await self.live.changed(namespace, caller, within_s=min(left_s, LOOK_EVERY_S))

    def page(self, scope: Scope, is_counted: bool = False) -> HttpResponse:
        """Calls the URL map in a thread: authentication, throttle, view and errors are those of web."""
        request_started.send(sender=type(self), scope=scope)
        request = ASGIRequest(dict(scope), io.BytesIO())
        request.META[WAITED] = "yes"
        request.META[ALREADY_COUNTED] = is_counted
        response = self.pages.get_response(request)
        response.close()
        return response  # type: ignore[return-value]

    # ---- start and shutdown of the process -----------------------------------------------------------------------

    async def lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self.live.start()
                ops_server.start_ops_server()
                self._close_streams_on_signals()
                tune_python()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.live.stop()
                return await send({"type": "lifespan.shutdown.complete"})

    def _close_streams_on_signals(self) -> None:
        """The server waits for open responses before it shuts us down; an open stream would block that forever."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            before = signal.getsignal(number)

            def close(signum: int, frame: Any, before: Any = before) -> None:
                loop.call_soon_threadsafe(self.live.close_all)
                if callable(before):
                    before(signum, frame)

            try:
                signal.signal(number, close)
            except ValueError:  # not the main thread: signals are handled elsewhere
                return


def _caller(session_key: str, bearer: str) -> Any:
    return stream_access.stream_caller(session_key=session_key, bearer=bearer)


def before_upgrade(send: Send) -> Send:
    """`send` for an answer instead of a WebSocket's handshake: the server knows its messages by other names."""

    async def send_instead(message: MutableMapping[str, Any]) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    return send_instead


def carried_headers(response: HttpResponse) -> list[Header]:
    """Those of a response of web that are also those of ours."""
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.items()]
    cookies = [(b"set-cookie", morsel.OutputString().encode("latin-1")) for morsel in response.cookies.values()]
    return [*(header for header in headers if header[0] not in (b"content-length", b"cache-control")), *cookies]


def _seconds(text: str) -> float:
    """Returns seconds, 0 for invalid text: the view refuses that; here it only must not raise."""
    return float(text) if text.isdigit() and len(text) < 5 else 0.0


def _number(text: str) -> int | None:
    """Returns None for "". Raises Refused (404) for what no run or worker has as its number."""
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) < 11:
        return int(text)
    raise Refused(NOT_FOUND)
