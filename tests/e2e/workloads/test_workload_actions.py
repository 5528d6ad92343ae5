"""A workload's buttons follow its state, also when that changes while an answer about the former one is on its way."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace
from tests.support.rows import running
from tests.support.waiting import wait_until
from workloads.launch import actions
from workloads.lifetime.idle import reconcile as idle_reconcile
from workloads.models import NotebookWatch, Workload

pytestmark = pytest.mark.browser
# As the stream's extension does when the state changes.
CHANGED = "htmx.trigger('#workload-actions', 'sse:state_workload')"


def test_a_change_meanwhile_is_asked_about_too(
    open_page: Callable[..., Page], namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    row = running.workload(namespace_a, a100, by=alice)
    running.known(namespace_a.cluster_id)
    page = open_page("/teams/team-a/workloads/one", as_user=alice)
    button = page.locator("#workload-actions").get_by_role("button", name="Open")
    expect(button).to_have_attribute("aria-disabled", "true")
    page.wait_for_function("() => window.openStreams === 1")
    held: list[Route] = []
    page.route("**/workloads/one/actions", lambda route: held.append(route), times=1)

    page.evaluate(CHANGED)
    wait_until(lambda: page.title() and held, what="the first question")
    former = held[0].fetch()
    running.make_ready(row)
    page.evaluate(CHANGED)
    with page.expect_response("**/workloads/one/actions"):
        # Not what the page shows already, which would not be put in again.
        held[0].fulfill(response=former, body=former.text().replace("Open", "Opens"))

    expect(button).to_be_enabled()
    assert button.get_attribute("aria-disabled") is None


def test_a_press_outlasts_an_answer_that_changes_nothing(
    open_page: Callable[..., Page], namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    """A button that is replaced between press and release is not clicked: the first event of a stream does that to
    whoever is quick.
    """
    running.make_ready(running.workload(namespace_a, a100, by=alice))
    running.known(namespace_a.cluster_id)
    page = open_page("/teams/team-a/workloads/one", as_user=alice)
    page.wait_for_function("() => window.openStreams === 1")
    page.get_by_role("link", name="Stop…").click()
    page.get_by_role("button", name="Stop", exact=True).hover()
    page.mouse.down()
    page.evaluate(f"""new Promise((done) => {{
        document.addEventListener("htmx:afterOnLoad", () => requestAnimationFrame(done), {{ once: true }});
        {CHANGED};
    }})""")
    page.mouse.up()
    expect(page.get_by_text("Restart when stopped")).to_have_count(1)


def test_what_a_stream_says_again_is_left_alone(
    open_page: Callable[..., Page], namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    """Whoever selects text there, or reads it with a screen reader, is not thrown back by the first event."""
    running.make_ready(running.workload(namespace_a, a100, by=alice))
    running.known(namespace_a.cluster_id)
    page = open_page("/teams/team-a/workloads/one", as_user=alice)
    page.wait_for_function("() => window.openStreams === 1")
    part = page.locator("[sse-swap=state_workload]")
    part.evaluate("(part) => { part.firstElementChild.isOfThePage = true; }")
    says = """async (part, more) => {
        const page = new DOMParser().parseFromString(await (await fetch(location)).text(), "text/html");
        const data = page.querySelector("[sse-swap=state_workload]").innerHTML + more;
        window.stream.dispatchEvent(new MessageEvent("state_workload", { data }));
        return part.firstElementChild.isOfThePage === true;
    }"""
    assert part.evaluate(says, "")
    assert not part.evaluate(says, "<p>And one thing more.</p>")
    expect(part.get_by_text("And one thing more.")).to_be_visible()
    part.evaluate("(part) => { part.firstElementChild.isOfThePage = true; }")
    assert part.evaluate(says, "<p>And one thing more.</p>")


@pytest.fixture
def idle_one(namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    """A notebook that is ready, on a class with an idle rule."""
    GpuClass.objects.filter(pk=a100.pk).update(idle_stop_minutes=60)
    a100.refresh_from_db()
    row = running.workload(namespace_a, a100, by=alice)
    running.make_ready(row)
    idle_reconcile.start_watch(row.runs.get())
    return row


def test_a_reason_that_is_being_typed_stays(open_page: Callable[..., Page], idle_one: Workload, alice: User) -> None:
    page = open_page("/teams/team-a/workloads/one", as_user=alice)
    page.get_by_text("Keep running while idle").click()
    reason = page.get_by_label("Reason (shown to users waiting")
    reason.focus()
    page.keyboard.type("a demo at ")
    NotebookWatch.objects.update(asked_at=timezone.now(), problem="It did not answer.")
    with page.expect_response("**/workloads/one/limits"):
        page.evaluate("htmx.trigger('#limits', 'sse:state_workload')")
    expect(page.get_by_text("It did not answer.")).to_be_visible()
    expect(reason).to_have_value("a demo at ")
    expect(reason).to_be_focused()
    page.keyboard.type("four")
    page.keyboard.press("Enter")
    expect(page.get_by_text("a demo at four")).to_be_visible()


def test_a_name_that_is_being_typed_stays(open_page: Callable[..., Page], idle_one: Workload, alice: User) -> None:
    page = open_page("/teams/team-a/workloads/one", as_user=alice)
    page.get_by_role("link", name="Delete…").click()
    dialog = page.get_by_role("dialog", name="Delete this workload")
    dialog.get_by_label("Type one to confirm").fill("one")
    actions.stop("team-a", "one", by=Actor(alice, via="page"))
    with page.expect_response("**/workloads/one/actions"):
        page.evaluate(CHANGED)
    expect(page.get_by_text("Restart when stopped")).to_have_count(1)
    expect(dialog.get_by_label("Type one to confirm")).to_have_value("one")
    expect(dialog.get_by_label("Type one to confirm")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Deletion of one was requested.")).to_be_visible()


def test_open_on_the_home_is_for_who_can_open_it_and_leaves_the_page(
    open_page: Callable[..., Page], namespace_a: Namespace, a100: GpuClass, alice: User, bob: User
) -> None:
    """The part of the page is the same for both; a second press opens it again."""
    running.make_ready(running.workload(namespace_a, a100, by=alice, visibility="private"))
    running.known(namespace_a.cluster_id)
    bobs = open_page("/teams/team-a", as_user=bob)
    expect(bobs.get_by_role("link", name="one", exact=True)).to_be_visible()
    expect(bobs.get_by_role("button", name="Open one")).to_be_hidden()
    page = open_page("/teams/team-a", as_user=alice)
    button = page.get_by_role("button", name="Open one")
    expect(button).to_have_attribute("title", "Opens in a new tab")
    for _ in range(2):
        # Nothing serves the notebook here: the journeys follow it to its own address.
        with page.context.expect_event("request", lambda request: request.url.endswith("/one/open")):
            button.click()
    assert page.url.endswith("/teams/team-a")
    expect(button).to_be_visible()
