"""When the portal does not answer, or not now: what is tried again, for how long, and what never is."""

from __future__ import annotations

import httpx
import pytest

from gpu_cli.client import RETRY_FOR_S
from tenants.models import QuotaRequest, Tenant
from tests.cli.command import PORTAL, Gpu, answered, unheard

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("team_a")]
ASK = ("request", "new", "a100=2", "--until", "2027-03-31", "--because", "Two.", "--tenant", "team-a")


def test_it_comes_back_when_the_portal_says(gpu: Gpu) -> None:
    gpu.between.faults = [answered(429, body={"code": "x", "message": "Too many."}, Retry_After="7")]
    gpu.between.faults += [answered(503, Retry_After="11")]
    done = gpu("status")
    assert (done.code, gpu.slept) == (0, [7.0, 11.0])
    assert "Too many. Trying again in 7 s." in done.err


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
    done = gpu(*ASK)
    assert (done.code, gpu.slept, len(gpu.between.asked)) == (5, [], 1)
    assert "look before you ask again" in done.err


def test_what_was_not_done_is_done_once(gpu: Gpu, team_a: Tenant) -> None:
    """Nobody heard of the first, and of the others the portal says that it did nothing."""
    busy = answered(409, body={"code": "busy", "message": "Busy.", "field": None}, Retry_After="2")
    gpu.between.faults = [unheard(httpx.ConnectTimeout), answered(503, Retry_After="5"), busy]
    assert gpu(*ASK).code == 2  # there is no such class, says the portal itself
    assert gpu.slept[1:] == [5.0, 2.0]
    assert not QuotaRequest.objects.exists()


@pytest.mark.parametrize(
    "fault",
    [answered(302, location="https://elsewhere.example.org/"), answered(404), answered(500), answered(200)],
)
def test_what_is_not_the_portal_is_no_refusal(gpu: Gpu, fault: object) -> None:
    """A redirect is not followed: whoever it leads to would get the token."""
    gpu.between.faults = [fault]  # type: ignore[list-item]
    done = gpu("quota", "--tenant", "team-a", "--json")
    assert (done.code, done.out, len(gpu.between.asked)) == (5, "", 1)


def test_a_page_in_place_of_json_is_told(gpu: Gpu) -> None:
    gpu.between.faults = [lambda _request: httpx.Response(200, text="<html>Sign in to the Wi-Fi")]
    done = gpu("status")
    assert done.code == 5
    assert "not the portal's JSON" in done.err


def test_who_is_refused_is_not_asked_again(gpu: Gpu) -> None:
    gpu.environment["GPU_TOKEN"] = "gpt_aaaaaaaa_" + 43 * "x"
    done = gpu("status")
    assert (done.code, gpu.slept, len(gpu.between.asked)) == (2, [], 1)
    assert done.err.strip()
