"""A figure says what was measured and whether its bar holds; a form is sent as a browser would send it."""

import argparse
import json

import pytest

from devcluster.cli import bench
from devcluster.cli.bench import Bar, Figure, summary
from devcluster.demo.http_client import Page
from devcluster.processes.console import UserError


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
