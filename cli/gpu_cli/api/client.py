"""The portal's API over HTTP: the one place for the token, retries, time-outs and refusals."""

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
# A log may be quiet for long; a connection that is lost without a word is quiet for ever.
SILENCE_S = 300.0
# So long a call is tried again while there is no answer, or only that there is none now.
RETRY_FOR_S = 120.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 10.0
NO_CONTENT, TOO_MANY, AWAY = 204, 429, 503
# Of something between here and the portal, which may have passed the call on.
GATEWAY = (502, 504)
REPEATABLE = ("GET", "PUT", "DELETE")
OUTCOME_UNKNOWN = " It may have been done all the same: look before you ask again."
PAGE = 200


@dataclass(frozen=True)
class Answer:
    """`retry_after_s`: nobody waited although the call asked for it; the same again after that time. `location`: the
    address of what was made, "" where none was; never one to call, since another host would get the token.
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
        """`say`: why it takes longer, for people. `trace`: each call and its answer's status, never a header sent."""
        self.portal = portal
        self._now, self._sleep, self._say, self._trace = now, sleep, say, trace
        # A redirect is not followed: the token is for this portal alone.
        self._http = httpx.Client(
            base_url=portal.address,
            headers={"Authorization": f"Bearer {portal.token}", "User-Agent": f"gpu-cli/{__version__}"},
            transport=transport,
            timeout=TIMEOUT_S,
            follow_redirects=False,
        )

    # ---- calls ---------------------------------------------------------------------------------------------------

    def get(self, *path: str, **query: Any) -> Any:
        return self.call("GET", *path, query=query).body

    def everything(self, *path: str, **query: Any) -> Json:
        """All pages of a list, in the shape of one."""
        items: list[Any] = []
        query = {**query, "limit": PAGE}
        while True:
            page = self.get(*path, **query)
            items += page["items"]
            if page["next"] is None:
                return {**page, "items": items}
            # Of its address only what leads on is taken: another host would get the token.
            query = dict(httpx.URL(page["next"]).params)

    def wait(self, *path: str, wait_s: int, until: str, **query: Any) -> Answer:
        """Answers when it is so far, or after `wait_s`."""
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
        """Raises Refused or Unreachable. `path` below /api/v1, part by part.

        A call is made again if nothing was done, or doing it twice is doing it once: that is what methods, an
        idempotency `key` or the caller say.
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
                    return Answer(response.status_code, self._json(response), retry_after_s(response), location)
                problem = error_of(response, is_unsure=response.status_code in GATEWAY and not may_repeat)
                tries_again = is_certainly_undone(response, problem) or (may_repeat and response.status_code in GATEWAY)
                asked_s = retry_after_s(response)
                pause_s = pause_s if asked_s is None else asked_s
            failed_at = self._now() if failed_at is None else failed_at
            if not tries_again or self._now() + pause_s > failed_at + RETRY_FOR_S:
                raise problem
            self._say(f"{problem} Trying again in {pause_s:.0f} s.")
            self._sleep(pause_s)
        raise AssertionError("pauses never end")

    @contextmanager
    def stream(self, path: str, **query: Any) -> Iterator[httpx.Response]:
        """One try. Raises Silent where it stays open and nothing comes."""
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
                raise StreamTimeout(f"Nothing came for {SILENCE_S:.0f} s.") from None
            finally:
                response.close()
        except httpx.TransportError as error:
            raise self._no_answer(error) from None

    # ---- one try -------------------------------------------------------------------------------------------------

    def _send(self, request: httpx.Request) -> httpx.Response:
        response = self._http.send(request, stream=True)
        told_id = response.headers.get("X-Request-Id", "-")
        self._trace(f"{request.method} {request.url.raw_path.decode()}: {response.status_code}, request {told_id}")
        return response

    def _no_answer(self, error: httpx.TransportError, *, is_unsure: bool = False) -> Unreachable:
        words = str(error) or type(error).__name__
        return Unreachable(f"{self.portal.address} does not answer ({words}).{OUTCOME_UNKNOWN if is_unsure else ''}")

    def _json(self, response: httpx.Response) -> Any:
        if response.status_code == NO_CONTENT:
            return None
        try:
            return response.json()
        except ValueError:
            raise Unreachable(
                f"What {self.portal.address} answers is not the portal's JSON. Is it its address?"
            ) from None


def new_idempotency_key() -> str:
    """For one call: sent again with it, it is still carried out once."""
    return f"gpu-{uuid.uuid4()}"


def address(*path: str) -> str:
    """A name is one part of a path, whatever is in it."""
    return "/api/v1/" + "/".join(quote(part, safe="") for part in path)


def pauses() -> Iterator[float]:
    """Growing, and a little different for everybody who lost the portal at the same moment."""
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
    """The portal's own sentence where it is the portal that answers."""
    status = response.status_code
    try:
        body = response.json()
    except ValueError:
        body = {}
    body = body if isinstance(body, dict) and "message" in body else {}
    said = str(body.get("message") or f"{response.request.url.host} answered {status} without a reason.")
    if status >= 500 or (not body and status != TOO_MANY):
        return Unreachable(said + (OUTCOME_UNKNOWN if is_unsure else ""))
    return Refused(said, status=status, body=body)
