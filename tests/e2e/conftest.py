"""A real browser against Django's own live server. For pages only: streams and notebooks need the doors process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from accounts.models import Role, User
from tests.support.rows import make

# Replaces streams from doors: counts them, and delivers what a test passes to `window.stream`.
QUIET_STREAM = """
window.openStreams = 0;
window.EventSource = class extends EventTarget {
  constructor() { super(); window.openStreams += 1; window.stream = this; }
  close() { window.openStreams -= 1; }
};
"""
# Its own 5 s are too few for a page that several test processes and a browser keep waiting.
expect.set_options(timeout=20_000)
QUIET = [
    "--no-sandbox",  # the container runs as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The system's Chromium, named by `run.py test`; Playwright's own is not downloaded."""
    # Playwright's synchronous API keeps a loop in this thread, which Django takes for asynchronous code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    return {**browser_type_launch_args, "executable_path": os.environ["PORTAL_TEST_BROWSER"], "args": QUIET}


@pytest.fixture
def open_page(browser: Browser, live_server: LiveServer, transactional_db: None) -> Iterator[Callable[..., Page]]:
    """open_page("/styleguide", as_user=olga, theme="dark", width=390): a page in a browser of its own."""
    contexts: list[BrowserContext] = []

    def open_it(
        path: str, *, as_user: User | None = None, theme: str = "auto", width: int = 1280, **options: Any
    ) -> Page:
        context = browser.new_context(
            base_url=live_server.url, viewport={"width": width, "height": 900}, reduced_motion="reduce", **options
        )
        contexts.append(context)
        context.add_cookies([{"name": "theme", "value": theme, "url": live_server.url}])
        if as_user is not None:
            cookie = {"name": settings.SESSION_COOKIE_NAME, "value": signed_in(as_user), "url": live_server.url}
            context.add_cookies([cookie])
        page = context.new_page()
        page.set_default_timeout(20_000)
        # Doors serves it; here it sends nothing.
        page.route("**/live/logs/**", lambda route: route.fulfill(content_type="text/html", body="<p>No log.</p>"))
        page.add_init_script(QUIET_STREAM)
        page.goto(path)
        return page

    yield open_it
    for context in contexts:
        context.close()


def signed_in(user: User) -> str:
    """The session cookie of a signed-in user; the form has tests of its own."""
    client = Client()
    if user.has_role(Role.ADMIN):
        make.administrator(client, user)
    else:
        client.force_login(user)
    return client.cookies[settings.SESSION_COOKIE_NAME].value
