"""Limits of requests a minute: for each token, for a person's pages, for all tokens of a person, and for all tokens and
pages of a team. Counted in Redis over all processes. While Redis is unavailable every request passes, and none waits.

What goes first when web is full (portal/web/admission/kinds.py) is counted apart: whoever has used up a limit with
lists can still go home and stop a run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from accounts.models import ApiToken, User
from portal.core import hints
from portal.core.errors import Refusal, Refused
from portal.web.admission.kinds import Kind, kind_of
from portal.web.admission.refusal import later

if TYPE_CHECKING:
    # DRF's views import this module through the settings.
    from rest_framework.views import APIView


log = structlog.get_logger(__name__)
WINDOW_S = 60
# The doors process sets it when it dispatches a waiting call again. A client cannot set it: headers become HTTP_….
ALREADY_COUNTED = "portal.counted"
# The headers for the response. A client cannot set it either.
HEADERS = "portal.rate_limit"
# The limit of a team for which a page was counted. Nor this one.
TEAM_COUNTED = "portal.team_counted"
# After a failure Redis is not called for this time: each attempt may cost the time-out of 1 s.
PAUSE_S = 5.0


# All personal tokens of a person together, and everything of a team, in limits of one token (API_REQUESTS_PER_MINUTE):
# a person's tokens for three scripts, a team of ten who are all busy. Many tokens are no way around the limit of one.
PERSON_TOKENS = 3
TEAM = 10
# A page asks for its parts, up to seven; who opens a page each second is far below it.
WORDS = {
    "token": "Too many requests with this token: the limit is {most} a minute. Try again in {wait_s} s.",
    "user": "Too many requests of yours: the limit is {most} a minute. Nothing was done. Try again in {wait_s} s.",
    "tokens-of": "Too many requests with your tokens: the limit is {most} a minute together. Try again in {wait_s} s.",
    "team": (
        "Too many requests of the team {name}: the limit is {most} a minute for its tokens and pages together. Nothing "
        "was done. Try again in {wait_s} s."
    ),
}


class TokenThrottle(BaseThrottle):
    _away_until = 0.0

    def allow_request(self, request: Request, view: APIView) -> bool:
        if request.META.get(ALREADY_COUNTED):
            return True
        is_first = _is_first(request._request)
        limits = limits_of(request.auth if isinstance(request.auth, ApiToken) else None, request.user, is_first)
        counts = count(limits)
        if counts is None:
            return True
        own = counts[0]
        request.META[HEADERS] = {
            "RateLimit-Limit": str(own.most),
            "RateLimit-Remaining": str(max(0, own.most - own.number)),
            "RateLimit-Reset": str(seconds_left()),
        }
        refuse_over(counts)
        return True


class RequestLimitMiddleware:
    """Counts the pages of a person and of a team; and adds to the response of a counted call how many are left, and in
    how many seconds the count starts again.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        for name, text in request.META.get(HEADERS, {}).items():
            response[name] = text
        # Who may not see a team uses nothing of its limit; a wrong method is refused before that is asked.
        if response.status_code in (403, 404, 405) and (team := request.META.get(TEAM_COUNTED)):
            uncount(team)
        return response

    def process_view(self, request: HttpRequest, _view: Any, _args: Any, kwargs: dict[str, Any]) -> HttpResponse | None:
        # Calls of the API are counted when their token is known. Without a cookie nobody is signed in.
        has_session = settings.SESSION_COOKIE_NAME in request.COOKIES
        if request.path.startswith("/api/") or not has_session or not request.user.is_authenticated:
            return None
        limits = [Limit("user", str(request.user.pk), 1, _is_first(request))]
        if slug := kwargs.get("tenant", ""):
            limits.append(Limit("team", slug, TEAM, _is_first(request)))
        counts = count(limits)
        if counts is None:
            return None
        if len(counts) > 1:
            request.META[TEAM_COUNTED] = counts[1].limit
        for one in counts:
            if one.is_over and (one.limit.of != "team" or self.is_member(request.user, slug)):
                return later(request, one.refusal())
        return None

    def is_member(self, user: User, slug: str) -> bool:
        """Asked only when the team's limit is reached: who cannot see the team gets 404, as always."""
        raise NotImplementedError


@dataclass(frozen=True)
class Limit:
    """`of`: a key of WORDS. `times`: API_REQUESTS_PER_MINUTE. `is_first`: the count of what goes first."""

    of: str
    name: str
    times: int
    is_first: bool = False
    minute: int = field(default_factory=lambda: int(time.time() // WINDOW_S))

    @property
    def key(self) -> str:
        return f"throttle:{self.of}:{self.name}:{'first:' if self.is_first else ''}{self.minute}"


@dataclass(frozen=True)
class Counted:
    limit: Limit
    number: int

    @property
    def most(self) -> int:
        most: int = settings.API_REQUESTS_PER_MINUTE * self.limit.times
        return most

    @property
    def is_over(self) -> bool:
        return self.number > self.most

    def refusal(self) -> Refusal:
        wait_s = seconds_left() + 1
        text = WORDS[self.limit.of].format(name=self.limit.name, most=f"{self.most:,}", wait_s=wait_s)
        return Refusal("too_many_requests", text, status=429, retry_after_s=wait_s)


def limits_of(token: ApiToken | None, user: Any, is_first: bool) -> list[Limit]:
    """A team's token counts for the team and not for the person who created it, who may have other work to do."""
    if token is None:
        return [Limit("user", str(getattr(user, "pk", None)), 1, is_first)]
    own = Limit("token", str(token.pk), 1, is_first)
    if token.tenant:
        return [own, Limit("team", token.tenant, TEAM, is_first)]
    return [own, Limit("tokens-of", str(token.user_id), PERSON_TOKENS, is_first)]


def count(limits: Sequence[Limit]) -> list[Counted] | None:
    """Counts this request for each limit, in one round trip. None: Redis is unavailable, and nothing is counted.

    A request beyond the first limit, a token's or a person's own, uses nothing of the others: a script that is refused
    in a loop must not use up the limit of its team.
    """
    now = time.time()
    if now < TokenThrottle._away_until:
        return None
    try:
        with hints.redis_connection().pipeline(transaction=False) as round_trip:
            for limit in limits:
                round_trip.incr(limit.key)
                round_trip.expire(limit.key, 2 * WINDOW_S)
            found = round_trip.execute()
    except RedisError as error:
        TokenThrottle._away_until = now + PAUSE_S
        log.warning("throttle_away", error=type(error).__name__)
        return None
    own, *others = [Counted(limit, int(number)) for limit, number in zip(limits, found[::2], strict=True)]
    if own.is_over:
        for other in others:
            uncount(other.limit)
        return [own]
    return [own, *others]


def uncount(limit: Limit) -> None:
    try:
        hints.redis_connection().decr(limit.key)
    except RedisError as error:
        log.warning("throttle_away", error=type(error).__name__)


def refuse_over(counts: Sequence[Counted]) -> None:
    for one in counts:
        if one.is_over:
            raise Refused(one.refusal())


def seconds_left() -> int:
    """Until the counts start again."""
    return math.ceil(WINDOW_S - math.fmod(time.time(), WINDOW_S))


def _is_first(request: HttpRequest) -> bool:
    is_fragment = request.headers.get("HX-Request") == "true"
    return kind_of(request.path_info, request.method or "", is_fragment=is_fragment) in (Kind.FIRST, Kind.SIGN_IN)
