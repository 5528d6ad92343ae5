"""A figure says what was measured and whether its bar holds; a form is sent as a browser would send it."""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from devcluster.cli import bench, machine
from devcluster.cli.bench import Bar, Figure, summary
from devcluster.demo.http_client import Page
from devcluster.processes import console
from devcluster.processes.console import UserError


@pytest.fixture(autouse=True)
def _console(monkeypatch: pytest.MonkeyPatch) -> None:
    """`bench` sends messages to standard error, which pytest closes after the test: later tests need another stream."""
    monkeypatch.setattr(console, "_stream", None)


def test_the_first_round_is_dropped_and_the_median_decides() -> None:
    rounds = [(900.0, 1.0), (12.0, 10.0), (14.0, 10.0), (11.0, 10.0), (13.0, 10.0), (40.0, 10.0)]
    line = summary(Figure("click p50", "ms", "raw POST", rounds, Bar("delta", 25)))
    assert line == {
        "name": "click p50",
        "unit": "ms",
        "ours": 13.0,
        "peer": 10.0,
        "peer_name": "raw POST",
        "ratio": {"min": 1.1, "median": 1.3, "max": 4.0},
        "delta": {"min": 1.0, "median": 3.0, "max": 30.0},
        "rounds": 5,
        "bar": "delta <= 25",
        "holds": True,
    }
    assert summary(Figure("same", "ms", "raw POST", rounds, Bar("ratio", 1.2)))["holds"] is False
    assert summary(Figure("same", "ms", "raw POST", rounds))["holds"] is None


def test_too_few_rounds_are_no_figure() -> None:
    with pytest.raises(ValueError, match="5 rounds are too few"):
        summary(Figure("hasty", "ms", "raw POST", [(1.0, 1.0)] * 5))


def test_an_unknown_benchmark_is_refused_before_anything_starts() -> None:
    arguments = argparse.Namespace(name="no-such", list=False, hardware="mixed", kubeconfig=None)
    with pytest.raises(UserError, match="Unknown benchmark no-such"):
        bench.bench(arguments)


def test_busy_is_all_that_is_not_idle_with_stolen_time() -> None:
    before = [100, 0, 50, 1000, 10, 0, 0, 7]
    assert machine.busy_part(before, [130, 0, 60, 1140, 20, 0, 0, 17]) == pytest.approx(50 / 200)
    assert machine.busy_part(before, before) == 1


@pytest.mark.parametrize(("quiet", "code", "holds"), [(True, 1, False), (False, 3, None)])
def test_on_a_busy_machine_nothing_is_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], quiet: bool, code: int, holds: bool | None
) -> None:
    figure = Figure("slow", "ms", "fast", [(2.0, 1.0)] * 6, Bar("ratio", 1.5))

    @contextmanager
    def no_services(*_: Any, **__: Any) -> Iterator[bench.Context]:
        yield bench.Context({})

    monkeypatch.setattr(bench, "_table", bench._Table({"slow": bench.Benchmark("", lambda _: [figure], False)}))
    monkeypatch.setattr(bench, "_find", lambda: None)
    monkeypatch.setattr(bench, "_ground", no_services)
    monkeypatch.setattr(machine, "machine", lambda: {"quiet": quiet, "busy_before": 0.5})

    assert bench.bench(argparse.Namespace(name="slow", list=False, hardware="mixed", kubeconfig=None)) == code

    described, measured = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert described["machine"]["quiet"] is quiet
    assert measured["holds"] is holds


def test_a_form_is_filled_as_the_page_has_it() -> None:
    html = b"""<form method="get" action="/find"><input name="q"></form>
    <form method="post" action="/launch"><input type="hidden" name="csrf" value="x"><input type="checkbox" name="no">
      <input type="radio" name="kind" value="a"><input type="radio" name="kind" value="b" checked>
      <select name="image"><option value="1">one</option><option value="2" selected>two</option></select>
      <textarea name="why">because</textarea><button type="submit" name="go" value="1">Go</button></form>"""
    page = Page("http://localhost:1/launch", 200, {}, html)
    form = page.form(having="image")
    assert (form.method, form.action) == ("post", "/launch")
    assert form.fields == {"csrf": "x", "kind": "b", "image": "2", "why": "because"}
    with pytest.raises(AssertionError, match="has no form with 'nothing'"):
        page.form(having="nothing")
    assert json.dumps(page.words()) == '"one two because Go"'
