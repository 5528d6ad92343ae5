"""A workload's buttons follow its state, also when that changes while an answer about the former one is on its way."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace
from tests.waiting import wait_until
from tests.workloads import running

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
    page.wait_for_function("window.openStreams === 1")
    held: list[Route] = []
    page.route("**/workloads/one/actions", lambda route: held.append(route), times=1)

    page.evaluate(CHANGED)
    wait_until(lambda: page.title() and held, what="the first question")
    former = held[0].fetch()
    running.make_ready(row)
    page.evaluate(CHANGED)
    with page.expect_response("**/workloads/one/actions"):
        held[0].fulfill(response=former)

    expect(button).to_be_enabled()
    assert button.get_attribute("aria-disabled") is None
