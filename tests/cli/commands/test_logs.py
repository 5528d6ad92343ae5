"""`gpu logs`: the log itself is simulated, since doors serves it; the rest is the portal's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace, Tenant
from tests.cli.command import Gpu, answered
from tests.cli.commands.run_rows import ended
from tests.support.rows import running
from workloads.models import Workload

pytestmark = pytest.mark.django_db
NOTE = "This is the log of run 1, kept 01 Jan 2027, 10:00 UTC. It is deleted on 15 Jan 2027, 10:00 UTC."
NO_LOG = "There is no log of run 1: its class keeps no logs."
NOT_YET = "There is no log: the pod has not started yet or was deleted."
Fault = Callable[[httpx.Request], httpx.Response | None]


@pytest.fixture
def train(granted: Tenant, namespace_a: Namespace, a100: GpuClass, bob: User) -> Workload:
    found = running.workload(namespace_a, a100, name="train", kind="job", by=bob)
    running.make_ready(found)
    return found


def ask(_request: httpx.Request) -> None:
    """The portal itself answers."""


def log(
    *parts: bytes, cut: type[httpx.TransportError] | None = None, then: Callable[[], object] = lambda: None
) -> Fault:
    def written() -> Iterator[bytes]:
        yield from parts
        then()
        if cut is not None:
            raise cut("cut off")

    return lambda _request: httpx.Response(200, content=written())


def nothing_yet(_request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, text=NOT_YET, headers={"Retry-After": "5"})


def test_what_is_there(gpu: Gpu, train: Workload) -> None:
    gpu.between.faults = [ask, log(b"one\nt\xc3", b"\xa4wo\n", b"end")]
    done = gpu("logs", "train", "--worker", "2")
    assert (done.code, done.out, done.err) == (0, "one\ntäwo\nend", "")
    url = gpu.between.asked[-1].url
    assert (url.path, dict(url.params)) == ("/live/logs/team-a/train", {"follow": "0", "worker": "2"})
    assert gpu.between.asked[-1].headers["Authorization"].startswith("Bearer gpt_")


def kept(text: bytes) -> Fault:
    headers = {"X-Log-Source": "kept", "X-Log-Note": NOTE}
    return lambda _request: httpx.Response(200, content=text, headers=headers)


def no_log(_request: httpx.Request) -> httpx.Response:
    return httpx.Response(404, json={"code": "no_log", "message": NO_LOG, "field": None})


def test_no_log_is_no_line_of_one_and_no_success(gpu: Gpu, train: Workload) -> None:
    gpu.between.faults = [ask, nothing_yet]
    done = gpu("logs", "train")
    assert (done.code, done.out, done.err.strip()) == (6, "", NOT_YET)
    ended("failed", "It ended with 3.", 3)()
    for arguments in (("train",), ("-f", "train")):
        gpu.between.faults = [ask, no_log]
        done = gpu("logs", *arguments)
        assert (done.code, done.out) == (6, "")
        assert NO_LOG in done.err
        gpu.between.faults = [ask, nothing_yet]
        done = gpu("logs", *arguments)
        assert (done.code, done.out) == (6, "")


def test_a_kept_log_is_printed_and_said_to_be_one(gpu: Gpu, train: Workload) -> None:
    gpu.between.faults = [ask, kept(b"one\ntwo\n")]
    done = gpu("logs", "train", "--run", "1")
    assert (done.code, done.out, done.err.strip()) == (0, "one\ntwo\n", NOTE)
    assert dict(gpu.between.asked[-1].url.params) == {"follow": "0", "run": "1"}
    assert gpu("logs", "-f", "train", "--run", "1").code == 2


def test_what_an_earlier_attempt_wrote_is_not_the_log_that_is_followed(gpu: Gpu, train: Workload) -> None:
    end = ended("succeeded", "It is done.")
    gpu.between.faults = [ask, kept(b"before\n"), ask, log(b"one\n", then=end), ask, kept(b"one\ntwo\n")]
    done = gpu("logs", "-f", "train")
    assert (done.code, done.out) == (0, "one\ntwo\n")


def test_what_was_printed_is_the_log_of_a_run_that_kept_none(gpu: Gpu, train: Workload) -> None:
    end = ended("stopped", "Stopped.")
    gpu.between.faults = [ask, log(b"one\n", then=end), ask, no_log]
    done = gpu("logs", "-f", "train")
    assert (done.code, done.out) == (0, "one\n")


def test_a_lost_connection_loses_and_repeats_no_line(gpu: Gpu, train: Workload) -> None:
    """The connection is cut within a line, refused, and closed by the portal; then the run is over."""
    end = ended("succeeded", "It is done.")
    gpu.between.faults = [
        ask, log(b"one\ntwo\nth", cut=httpx.ReadError),
        ask, answered(503, Retry_After="30"),
        ask, log(b"one\ntwo\nthree\nfo"),
        ask, log(b"two\nthree\nfour\n", then=end),
        ask, log(b"two\nthree\nfour\nfive"),
    ]  # fmt: skip
    done = gpu("logs", "-f", "train")
    assert (done.code, done.out) == (0, "one\ntwo\nthree\nfour\nfive")
    assert "Reconnecting." in done.err
    followed = [one.url.params["follow"] for one in gpu.between.asked if one.url.path.startswith("/live/")]
    assert followed == ["1", "1", "1", "1", "0"]


def test_a_quiet_log_is_looked_at_again_without_a_word(gpu: Gpu, train: Workload) -> None:
    """It reconnects as often as needed: a quiet log is no failure."""
    gpu.between.faults = [ask, log(b"one\n", cut=httpx.ReadTimeout)]
    gpu.between.faults += 20 * [ask, log(b"one\n", cut=httpx.ReadTimeout)]
    gpu.between.faults += [ask, log(b"one\ntwo\n", then=ended("succeeded", "It is done."))]
    gpu.between.faults += [ask, log(b"one\ntwo\n")]
    done = gpu("logs", "-f", "train")
    assert (done.code, done.out, done.err) == (0, "one\ntwo\n", "")


def test_it_waits_for_the_first_line_and_tells_why(gpu: Gpu, train: Workload) -> None:
    gpu.between.faults = [ask, nothing_yet, ask, log(b"one\n", then=ended("failed", "It ended with 3.", 3))]
    gpu.between.faults += [ask, log(b"one\n")]
    done = gpu("logs", "--follow", "train")
    assert (done.code, done.out) == (0, "one\n")
    assert "Running on a100-1." in done.err
    assert NOT_YET not in done.err


def test_a_log_that_never_comes_is_not_waited_for_for_ever(gpu: Gpu, train: Workload) -> None:
    gpu.between.faults = 20 * [ask, answered(502)]
    done = gpu("logs", "-f", "train")
    assert (done.code, done.out) == (5, "")


def test_who_may_not_look_any_more_is_told(gpu: Gpu, train: Workload, bob: User) -> None:
    """The portal ends the stream; the next call gives the reason."""
    gpu.between.faults = [ask, log(b"one\n", then=lambda: bob.memberships.all().delete())]
    done = gpu("logs", "-f", "train")
    assert (done.code, done.out) == (6, "one\n")
    assert "Not found: the address is wrong" in done.err


def test_the_log_of_a_run_of_ci_does_not_change_its_exit_code(gpu: Gpu, train: Workload) -> None:
    ended("succeeded", "It was done.")()
    gpu.meanwhile = iter([lambda: running_again(train), ended("failed", "It ended with 3.", 3)])
    gpu.between.asked.clear()

    def broken(request: httpx.Request) -> httpx.Response | None:
        return httpx.Response(502) if request.url.path.startswith("/live/") else None

    gpu.between.faults = 60 * [broken]
    done = gpu("run", "train", "--log")
    assert done.code == 1
    assert "answered 502" in done.err


def running_again(train: Workload) -> object:
    return train.runs.filter(number=2).update(admitted_at=train.created_at, started_at=train.created_at)
