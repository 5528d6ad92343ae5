"""Calls the portal's API over HTTP. Only this module sends the token; it also handles retries, timeouts and errors."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from gpu_cli import __version__
from gpu_cli.api.config import Portal
from gpu_cli.api.errors import CommandError, Refused, StreamTimeout, Unreachable

Json = dict[str, Any]
Say = Callable[[str], None]

TIMEOUT_S = 30.0
# Longest time without data on a stream. A log may have no output for long, but a lost connection may look the same.
SILENCE_S = 300.0
# How long a call is retried while the portal does not respond, or responds with 429 or 503.
RETRY_FOR_S = 120.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 10.0
NO_CONTENT, TOO_MANY, AWAY = 204, 429, 503
# Statuses of a proxy in front of the portal, which may have forwarded the call.
GATEWAY = (502, 504)
REPEATABLE = ("GET", "PUT", "DELETE")
OUTCOME_UNKNOWN = " The call may have been carried out. Check before you repeat it."
PAGE = 200


@dataclass(frozen=True)
class Answer:
    """`retry_after_s`: the portal did not wait although the call requested it; repeat the call after this time.
    `location`: the address of the created object, or "". It is never called, because another host would get the token.
    """

    status: int
    body: Any
    retry_after_s: float | None = None
    location: str = ""


class Client:
    def __init__(
        self,
        portal: Portal,
        *,
        transport: httpx.BaseTransport | None,
        now: Callable[[], float],
        sleep: Callable[[float], None],
        say: Say,
        trace: Say,
    ) -> None:
        """`say`: messages about retries, for people. `trace`: each call and its status, never a request header."""
        self.portal = portal
        self._now, self._sleep, self._say, self._trace = now, sleep, say, trace
        # Redirects are not followed, because the token must be sent only to this portal.
        self._http = httpx.Client(
            base_url=portal.address,
            headers={"Authorization": f"Bearer {portal.token}", "User-Agent": f"gpu-cli/{__version__}"},
            transport=transport,
            timeout=TIMEOUT_S,
            follow_redirects=False,
        )

    # ---- calls and streams ---------------------------------------------------------------------------------------

    def get(self, *path: str, **query: Any) -> Any:
        return self.call("GET", *path, query=query).body

    def everything(self, *path: str, **query: Any) -> Json:
        """Returns all pages of a list as one page."""
        items: list[Any] = []
        query = {**query, "limit": PAGE}
        while True:
            page = self.get(*path, **query)
            items += page["items"]
            if page["next"] is None:
                return {**page, "items": items}
            # Only the query of the next address is used, because another host would get the token.
            query = dict(httpx.URL(page["next"]).params)

    def wait(self, *path: str, wait_s: int, until: str = "", **query: Any) -> Answer:
        """Returns the response when `until` is reached (a request: when it is decided), or after `wait_s`."""
        return self.call("GET", *path, query={**query, "wait": wait_s, "until": until}, timeout_s=wait_s + TIMEOUT_S)

    def call(
        self,
        method: str,
        *path: str,
        query: Mapping[str, Any] | None = None,
        body: Json | None = None,
        key: str = "",
        is_repeatable: bool = False,
        timeout_s: float = TIMEOUT_S,
    ) -> Answer:
        """`path`: the parts of the path below /api/v1. Raises Refused or Unreachable.

        A call is retried if it was certainly not carried out, or if it is idempotent: by its method, by an idempotency
        `key`, or because of `is_repeatable`.
        """
        request = self._http.build_request(
            method,
            address(*path),
            params={name: value for name, value in (query or {}).items() if value not in (None, "")},
            json=body,
            headers={"Idempotency-Key": key} if key else {},
            timeout=timeout_s,
        )
        may_repeat = is_repeatable or bool(key) or method in REPEATABLE
        failed_at: float | None = None
        for pause_s in pauses():
            try:
                response = self._send(request)
                response.read()
            except httpx.TransportError as error:
                was_sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
                problem: CommandError = self._no_answer(error, is_unsure=was_sent and not may_repeat)
                tries_again = may_repeat or not was_sent
            else:
                if response.is_success:
                    location = response.headers.get("Location", "")
                    return Answer(response.status_code, self._body(response), retry_after_s(response), location)
                problem = error_of(response, is_unsure=response.status_code in GATEWAY and not may_repeat)
                tries_again = is_certainly_undone(response, problem) or (may_repeat and response.status_code in GATEWAY)
                asked_s = retry_after_s(response)
                pause_s = pause_s if asked_s is None else asked_s
            failed_at = self._now() if failed_at is None else failed_at
            if not tries_again or self._now() + pause_s > failed_at + RETRY_FOR_S:
                raise problem
            self._say(f"{problem} Retrying in {pause_s:.0f} s.")
            self._sleep(pause_s)
        raise AssertionError("pauses never end")

    @contextmanager
    def stream(self, path: str, **query: Any) -> Iterator[httpx.Response]:
        """Opens a stream, without retries. Raises StreamTimeout if the connection stays open without data."""
        params = {name: value for name, value in query.items() if value is not None}
        timeout = httpx.Timeout(TIMEOUT_S, read=SILENCE_S)
        request = self._http.build_request("GET", path, params=params, timeout=timeout)
        try:
            response = self._send(request)
            try:
                if not response.is_success:
                    response.read()
                    raise error_of(response)
                yield response
            except httpx.ReadTimeout:
                raise StreamTimeout(f"No data for {SILENCE_S:.0f} s.") from None
            finally:
                response.close()
        except httpx.TransportError as error:
            raise self._no_answer(error) from None

    # ---- one attempt of a call -----------------------------------------------------------------------------------

    def _send(self, request: httpx.Request) -> httpx.Response:
        response = self._http.send(request, stream=True)
        told_id = response.headers.get("X-Request-Id", "-")
        self._trace(f"{request.method} {request.url.raw_path.decode()}: {response.status_code}, request {told_id}")
        return response

    def _no_answer(self, error: httpx.TransportError, *, is_unsure: bool = False) -> Unreachable:
        words = str(error) or type(error).__name__
        return Unreachable(f"{self.portal.address} does not answer ({words}).{OUTCOME_UNKNOWN if is_unsure else ''}")

    def _body(self, response: httpx.Response) -> Any:
        if response.status_code == NO_CONTENT:
            return None
        if response.headers.get("Content-Type", "").startswith("text/csv"):
            return response.text
        try:
            return response.json()
        except ValueError:
            raise Unreachable(
                f"The response of {self.portal.address} is not JSON. Check the address of the portal."
            ) from None


def new_idempotency_key() -> str:
    """Returns a key for one call. If the call is repeated with the same key, it is carried out only once."""
    return f"gpu-{uuid.uuid4()}"


def address(*path: str) -> str:
    """Returns the path of a call. Each name is escaped, so it is one part of the path."""
    return "/api/v1/" + "/".join(quote(part, safe="") for part in path)


def pauses() -> Iterator[float]:
    """Yields growing, random times, so that clients do not all retry at the same moment."""
    pause_s = FIRST_PAUSE_S
    while True:
        yield pause_s * random.uniform(1.0, 1.5)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def retry_after_s(response: httpx.Response) -> float | None:
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else None


def is_certainly_undone(response: httpx.Response, problem: CommandError) -> bool:
    is_busy = isinstance(problem, Refused) and problem.code == "busy"
    return response.status_code in (TOO_MANY, AWAY) or is_busy


def error_of(response: httpx.Response, *, is_unsure: bool = False) -> CommandError:
    """Returns the error of a response. Its text is the portal's own message, if there is one."""
    status = response.status_code
    try:
        body = response.json()
    except ValueError:
        body = {}
    body = body if isinstance(body, dict) and "message" in body else {}
    said = str(body.get("message") or f"{response.request.url.host} answered {status} without a message.")
    if status >= 500 or (not body and status != TOO_MANY):
        return Unreachable(said + (OUTCOME_UNKNOWN if is_unsure else ""))
    return Refused(said, status=status, body=body)
