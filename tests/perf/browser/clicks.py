"""The clicks that people make most: the page on which each is made, how, and what makes it possible again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Error, Page

from tests.support.waiting import wait_until

ARM = """() => { for (const name of ["probe-began", "probe-seen"]) delete sessionStorage[name];
  sessionStorage["probe-armed"] = "1"; }"""
# Never 0, which would be no answer.
ANSWERED = """() => sessionStorage["probe-seen"]
  && Math.max(sessionStorage["probe-seen"] - sessionStorage["probe-began"], 0.1)"""
IS_OVER = "() => document.readyState === 'complete' && !document.documentElement.hasAttribute('data-busy')"
# The floor: a button alone on a page, whose click changes a text at once.
BARE = """() => { const button = document.createElement("button"); button.textContent = "0";
  button.onclick = () => { button.textContent = Number(button.textContent) + 1; };
  document.body.replaceChildren(button); document.head.querySelectorAll("link").forEach((one) => one.remove()); }"""
WORKLOADS = "/teams/vision/workloads"


@dataclass(frozen=True)
class Click:
    """`prepare`: what a person does before it on the page; `again`: rows as they were."""

    name: str
    who: str
    path: str
    act: Callable[[Page], Any]
    prepare: Callable[[Page], Any] = lambda _page: None
    again: Callable[[], Any] = lambda: None


def answered_ms(page: Page, click: Click) -> float:
    """Milliseconds from the event of a real click or key until the first frame with a visible change."""
    page.goto(click.path)
    click.prepare(page)
    found = _answered_ms(page, click.act)
    # The function is asked again on the next page.
    page.wait_for_function(IS_OVER)
    click.again()
    return found


def bare_ms(page: Page, number: int) -> list[float]:
    page.goto("/login")
    page.evaluate(BARE)
    return [_answered_ms(page, lambda one: one.get_by_role("button").click()) for _ in range(number)]


def _answered_ms(page: Page, act: Callable[[Page], Any]) -> float:
    page.evaluate(ARM)
    act(page)
    return float(wait_until(lambda: _read(page), within_s=20, what="a visible change"))


def _read(page: Page) -> float | None:
    try:
        found: float | None = page.evaluate(ANSWERED)
    except Error:
        return None  # the next page is on its way
    return found


def clicks() -> list[Click]:
    run = f"{WORKLOADS}/lab-0"
    return [
        Click("open_dialog", "alice", run, _follow("Delete…")),
        Click("stop", "alice", run, _in_dialog("Stop"), _follow("Stop…"), _not_stopped),
        Click("launch", "alice", "/teams/vision/launch?kind=job", _press("Launch"), _fill_launch, _not_launched),
        Click("filter", "alice", WORKLOADS, lambda page: page.keyboard.press("ArrowDown"), _focus("State")),
        Click("next_page", "alice", WORKLOADS, _follow("Next")),
        Click("theme", "alice", WORKLOADS, _press("Dark"), _open_menu),
        Click("mark_as_read", "alice", "/notices", _mark_as_read, again=_unread),
        Click("approve", "dana", "/inbox", _press("Approve selected"), _tick),
        Click("follow_link", "olga", "/queue", lambda page: page.locator(".mainnav a").last.click()),
    ]


def _mark_as_read(page: Page) -> None:
    page.get_by_role("button", name="Mark as read").first.click(no_wait_after=True)


def _open_menu(page: Page) -> None:
    page.locator("details.menu summary", has_text="Alice").click()


def _press(name: str) -> Callable[[Page], Any]:
    return lambda page: page.get_by_role("button", name=name, exact=True).click(no_wait_after=True)


def _follow(name: str) -> Callable[[Page], Any]:
    return lambda page: page.get_by_role("link", name=name).first.click(no_wait_after=True)


def _in_dialog(name: str) -> Callable[[Page], Any]:
    return lambda page: page.get_by_role("dialog").get_by_role("button", name=name).click(no_wait_after=True)


def _focus(label: str) -> Callable[[Page], Any]:
    return lambda page: page.get_by_label(label).focus()


def _tick(page: Page) -> None:
    with page.expect_response(lambda one: "part=set" in one.url):
        page.get_by_role("checkbox").first.check()
    page.wait_for_function(IS_OVER)


def _fill_launch(page: Page) -> None:
    page.locator("[name=name]").fill("bench-launch")
    page.locator("[name=command]").fill("python train.py")


def _not_stopped() -> None:
    from workloads.models import Run

    Run.objects.filter(workload__name="lab-0").update(stop_requested_at=None)


def _not_launched() -> None:
    from workloads.models import Run, Workload

    Run.objects.filter(workload__name="bench-launch").delete()
    Workload.objects.filter(name="bench-launch").delete()


def _unread() -> None:
    from accounts.models import Notice

    Notice.objects.update(read_at=None)
