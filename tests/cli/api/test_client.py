"""What the client retries when the portal does not answer, for how long, and what it never retries."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from accounts.models import User
from catalog.models import GpuClass
from gpu_cli.api.client import RETRY_FOR_S
from tenants.models import QuotaRequest
from tests.cli.command import PORTAL, Gpu, answered, unheard

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("team_a")]
ASK = ("request", "new", "a100=2", "--until", "2027-03-31", "--because", "Two.", "--team", "team-a")
ANSWER = ("inbox", "deny", "1", "--line", "1", "--reason", "No.")


def test_it_comes_back_when_the_portal_says(gpu: Gpu) -> None:
    gpu.between.faults = [answered(429, body={"code": "x", "message": "Too many."}, Retry_After="7")]
    gpu.between.faults += [answered(503, Retry_After="11")]
    done = gpu("status")
    assert (done.code, gpu.slept) == (0, [7.0, 11.0])
    assert "Too many. Retrying in 7 s." in done.err


def test_not_for_ever(gpu: Gpu) -> None:
    gpu.between.faults = 1000 * [unheard(httpx.ConnectError)]
    done = gpu("status")
    assert (done.code, done.out) == (5, "")
    assert f"{PORTAL} does not answer (no way)." in done.err
    assert 0.8 * RETRY_FOR_S < sum(gpu.slept) <= RETRY_FOR_S
    gpu.slept.clear()
    gpu.between.faults = [answered(503, Retry_After="3600")]
    assert (gpu("status").code, gpu.slept) == (5, [])


@pytest.mark.parametrize("error", [httpx.ConnectError, httpx.ReadTimeout, httpx.RemoteProtocolError, httpx.ReadError])
def test_what_only_reads_is_asked_again(gpu: Gpu, error: type[httpx.TransportError]) -> None:
    gpu.between.faults = [unheard(error), answered(502), answered(504)]
    assert (gpu("status").code, len(gpu.slept)) == (0, 3)


@pytest.mark.parametrize("fault", [unheard(httpx.ReadTimeout), unheard(httpx.WriteError), answered(502), answered(504)])
def test_what_may_have_been_done_is_not_done_twice(gpu: Gpu, fault: object) -> None:
    gpu.between.faults = [fault]  # type: ignore[list-item]
    done = gpu(*ANSWER)
    assert (done.code, gpu.slept, len(gpu.between.asked)) == (5, [], 1)
    assert "Check before you repeat it." in done.err


def test_what_was_not_done_is_done_once(gpu: Gpu) -> None:
    """The first call did not arrive, and the portal answered the others that it did nothing: the retry is done once."""
    busy = answered(409, body={"code": "busy", "message": "Busy.", "field": None}, Retry_After="2")
    gpu.between.faults = [unheard(httpx.ConnectTimeout), answered(503, Retry_After="5"), busy]
    assert gpu(*ANSWER).code == 6  # the portal's own 404: there is no such request
    assert gpu.slept[1:] == [5.0, 2.0]


def test_a_call_with_a_key_whose_answer_was_lost_is_done_once(
    gpu_of: Callable[..., Gpu], alice: User, a100: GpuClass
) -> None:
    gpu = gpu_of(alice, "read", "request")

    def lost(request: httpx.Request) -> httpx.Response | None:
        gpu.between.answer(request)
        raise httpx.ReadTimeout("no way", request=request)

    gpu.between.faults = [lost]
    done = gpu(*(part.replace("a100", a100.slug) for part in ASK))
    assert done.code == 0, done.err
    assert QuotaRequest.objects.count() == 1
    first, second = (request.headers["Idempotency-Key"] for request in gpu.between.asked)
    assert first == second


@pytest.mark.parametrize(
    "fault",
    [answered(302, location="https://elsewhere.example.org/"), answered(404), answered(500), answered(200)],
)
def test_what_is_not_the_portal_is_no_refusal(gpu: Gpu, fault: object) -> None:
    """A redirect is not followed: its target would get the token."""
    gpu.between.faults = [fault]  # type: ignore[list-item]
    done = gpu("quota", "--team", "team-a", "--json")
    assert (done.code, done.out, len(gpu.between.asked)) == (5, "", 1)


def test_a_page_in_place_of_json_is_told(gpu: Gpu) -> None:
    gpu.between.faults = [lambda _request: httpx.Response(200, text="<html>Sign in to the Wi-Fi")]
    done = gpu("status")
    assert done.code == 5
    assert "is not JSON" in done.err


def test_who_is_refused_is_not_asked_again(gpu: Gpu) -> None:
    gpu.environment["GPU_TOKEN"] = "gpt_aaaaaaaa_" + 43 * "x"
    done = gpu("status")
    assert (done.code, gpu.slept, len(gpu.between.asked)) == (7, [], 1)
    assert done.err.strip()
