"""A first visit to a page, with an empty cache: requests, bytes on the wire, and how much of the page moved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, ViewportSize

from tests.support.waiting import wait_until

PROBE = (Path(__file__).parent / "probe.js").read_text()
VIEWPORT: ViewportSize = {"width": 1280, "height": 900}
# All parts that a page fetches are there, and its stream, if it has one, is open. A browser without a screen does not
# fetch the icon of a tab by itself.
IS_SETTLED = """() => document.readyState === 'complete' && !document.querySelector('.htmx-request')
  && (!document.querySelector('[sse-connect]') || document.body.dataset.stream === 'live')"""
FETCH_ICON = "() => fetch(document.querySelector('link[rel=icon]').href).then((answer) => answer.text())"
TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@dataclass
class Traffic:
    """What a page requested. A stream is a request; what it sends for as long as it is open is counted beside."""

    kinds: dict[str, str] = field(default_factory=dict)
    addresses: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    @property
    def requests(self) -> int:
        return len(self.addresses)

    @property
    def total_bytes(self) -> int:
        return sum(size for number, size in self.sizes.items() if self.kinds[number] != "EventSource")

    @property
    def stream_bytes(self) -> int:
        return sum(self.sizes.values()) - self.total_bytes

    @property
    def is_quiet(self) -> bool:
        return all(number in self.ended or kind == "EventSource" for number, kind in self.kinds.items())

    def story(self) -> str:
        by_number = dict(zip(self.kinds, self.addresses, strict=False))
        return "\n".join(f"{self.sizes.get(number, 0):8} {address}" for number, address in by_number.items())

    def listen(self, page: Page) -> None:
        session = page.context.new_cdp_session(page)
        session.on("Network.requestWillBeSent", self._begun)
        session.on("Network.responseReceived", lambda one: self._sized(one, one["response"]["encodedDataLength"]))
        session.on("Network.dataReceived", lambda one: self._more(one, one["encodedDataLength"]))
        session.on("Network.loadingFinished", self._finished)
        session.on("Network.loadingFailed", lambda one: self.ended.add(one["requestId"]))
        session.send("Network.enable")

    def _begun(self, told: dict[str, Any]) -> None:
        if told["request"]["url"].startswith("data:"):
            return  # a drawing within a style sheet
        self.kinds[told["requestId"]] = told.get("type", "")
        self.addresses.append(told["request"]["url"])

    def _sized(self, told: dict[str, Any], size: float) -> None:
        if told["requestId"] in self.kinds:
            self.sizes[told["requestId"]] = int(size)

    def _more(self, told: dict[str, Any], size: float) -> None:
        if told["requestId"] in self.kinds:
            self.sizes[told["requestId"]] = self.sizes.get(told["requestId"], 0) + int(size)

    def _finished(self, told: dict[str, Any]) -> None:
        if told["requestId"] in self.kinds:
            # Of all of it, with its headers.
            self.sizes[told["requestId"]] = int(told["encodedDataLength"])
        self.ended.add(told["requestId"])


@dataclass(frozen=True)
class Visitor:
    """Opens pages of one portal as one person after the other, each time with an empty cache."""

    browser: Browser
    url: str
    cookie_name: str

    @contextmanager
    def page(self, cookie: str, **options: Any) -> Iterator[Page]:
        context = self.browser.new_context(base_url=self.url, viewport=VIEWPORT, **options)
        try:
            if cookie:
                context.add_cookies([{"name": self.cookie_name, "value": cookie, "url": self.url}])
            page = context.new_page()
            page.set_default_timeout(20_000)
            page.add_init_script(PROBE)
            yield page
        finally:
            context.close()

    @contextmanager
    def first_visit(self, path: str, cookie: str) -> Iterator[tuple[Page, Traffic]]:
        with self.page(cookie) as page:
            traffic = Traffic()
            traffic.listen(page)
            answer = page.goto(path)
            assert answer is not None
            assert answer.ok, f"{path} answered {answer.status}"
            settle(page)
            page.evaluate(FETCH_ICON)
            wait_until(lambda: page.evaluate(IS_SETTLED) and traffic.is_quiet, what="all arrived", story=traffic.story)
            yield page, traffic


def settle(page: Page) -> None:
    page.wait_for_function(IS_SETTLED)
    page.evaluate(TWO_FRAMES)


def shift_of(page: Page) -> float:
    page.evaluate(TWO_FRAMES)
    return float(page.evaluate("probe.shift"))


def moved(page: Page) -> Any:
    """What moved, for a message."""
    return page.evaluate("probe.moved")
