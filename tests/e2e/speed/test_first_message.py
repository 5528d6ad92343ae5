"""A stream begins with the state as it is: where a page was loaded with the same, its parts are not fetched again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.support.browser.busy_team import BusyTeam

pytestmark = pytest.mark.browser
# What the portal says now, with the words for moments that a stream has; with another moment if one is given. Returns
# whether it was put in.
FIRST = """async (moment) => {
  const text = await (await fetch(location)).text();
  const find = (root) => root.querySelector("[sse-swap=state_running]");
  const said = find(new DOMParser().parseFromString(text, "text/html")), before = find(document).firstElementChild;
  for (const time of said.querySelectorAll("time")) {
    time.textContent = "27 Nov, 10:42";
    if (moment) time.setAttribute("datetime", moment);
  }
  window.stream.dispatchEvent(new MessageEvent("state_running", { data: said.innerHTML }));
  return find(document).firstElementChild !== before;
}"""


@pytest.mark.parametrize(("moment", "is_news"), [("", False), ("2030-01-01T00:00:00+00:00", True)])
def test_a_first_message_is_news_if_it_says_something_else(
    open_page: Callable[..., Page], small: BusyTeam, moment: str, is_news: bool
) -> None:
    page = open_page("/teams/vision", as_user=small.alice)
    page.wait_for_function("() => window.openStreams === 1")
    assert page.evaluate(FIRST, moment) == is_news
