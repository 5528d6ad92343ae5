"""What the doors process reads of a request."""

from __future__ import annotations

import pytest

from workloads.gateway.asgi import EdgeRequest


@pytest.mark.parametrize(
    "before",
    ["", "theme=dark; ", 'settings={"a": 1}; ', "flag; ", "=; ", 'name="unclosed; '],
    ids=["alone", "another", "json", "flag", "nameless", "unclosed"],
)
def test_a_cookie_is_found_beside_any_other(before: str) -> None:
    """Any page may set other cookies on a notebook's origin: they must not lock users out of their own notebook."""
    asked = EdgeRequest(path="/lab", query={}, headers={"cookie": f"{before}notebook=abc-_1"})

    assert asked.cookie("notebook") == "abc-_1"
    assert asked.cookie("session") == ""


def test_all_cookies_of_a_name_are_told() -> None:
    """In the browser's order, including cookies that a page on another host set for the shared domain."""
    sent = "notebook=evil; __Host-notebook=not this; a=1;notebook=second ; mynotebook=no; notebook=a=b; notebook"
    asked = EdgeRequest(path="/lab", query={}, headers={"cookie": sent})

    assert asked.cookies("notebook") == ("evil", "second", "a=b", "")
    assert asked.cookies("session") == ()
