"""What a notebook's page can do to the portal and to other notebooks, in a browser that is signed in to all of them.

Whoever writes a notebook, or what it loads, runs script at its origin. It asks for everything that a page can ask for;
nothing changes, nothing is read, and the person stays signed in. Every attack is tried once where it has to work, so
that none fails for a reason of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.sessions.models import Session
from django.db.models import Model
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Page, Response, expect

from accounts.core.actor import Actor
from accounts.models import ApiToken, Event, Role, User
from catalog.models import GpuClass
from tenants.models import ApproverFor, Invitation, Membership, Namespace, QuotaLine
from tenants.requests import actions as tenants
from tenants.requests.types import RequestedLine
from tests.e2e.journeys.origins import Origins, origins
from tests.support.rows import make, running
from tests.support.waiting import wait_until
from workloads.models import NotebookSession, Run, Ticket, Volume, Workload

pytestmark = [pytest.mark.browser, pytest.mark.timeout(420), pytest.mark.django_db(transaction=True)]

TEAM = "/teams/team-a"
STARTS_WITHIN_MS = 90_000


# ---- fixtures ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stage(Origins):
    """With the rows that the attacks are about, and what the processes wrote."""

    namespace: Namespace
    decision: QuotaLine
    gpu_class: GpuClass
    log: Path


@pytest.fixture
def stage(
    layout: str,
    services: dict[str, Any],
    tmp_path: Path,
    namespace_a: Namespace,
    a100: GpuClass,
    alice: User,
    decision: QuotaLine,
) -> Iterator[Stage]:
    with origins(layout, tmp_path, services, namespace=namespace_a, gpu_class=a100, owner=alice) as found:
        yield Stage(**vars(found), namespace=namespace_a, decision=decision, gpu_class=a100, log=tmp_path / "log")


@pytest.fixture
def decision(namespace_a: Namespace, a100: GpuClass, alice: User, charlie: User) -> QuotaLine:
    """Alice approves of everything, and a line of another team waits for her."""
    User.objects.filter(pk=alice.pk).update(roles=[str(Role.APPROVER)])
    ApproverFor.objects.create(user=alice, gpu_class=None)
    other = make.tenant(namespace_a.cluster, slug="team-c", namespace=f"{namespace_a.name}-c")
    make.member(other, charlie, Membership.Role.OWNER)
    now = timezone.now()
    asked = RequestedLine(a100.slug, 1, now, now + timedelta(days=9))
    filed = tenants.file_request("team-c", lines=[asked], justification="x", by=Actor(charlie, "page"))
    return filed.lines.get()


@contextmanager
def signed_in(browser: Browser, stage: Stage) -> Iterator[BrowserContext]:
    """A browser of Alice's, signed in to the portal."""
    context = browser.new_context(base_url=stage.portal, ignore_https_errors=True, reduced_motion="reduce")
    context.set_default_timeout(20_000)
    page = context.new_page()
    page.goto("/login")
    page.fill("[name=username]", "alice@example.org")
    page.fill("[name=password]", make.PASSWORD)
    page.press("[name=password]", "Enter")
    page.wait_for_url(lambda url: "/login" not in url)
    page.close()
    yield context
    context.close()


def opened(context: BrowserContext, stage: Stage, name: str) -> Page:
    """A page at the notebook's origin, reached as a person reaches it: by the button on its page."""
    running.known(stage.namespace.cluster_id)
    page = context.new_page()
    page.goto(f"{TEAM}/workloads/{name}")
    with page.expect_popup() as popup:
        page.get_by_role("button", name="Open", exact=True).first.click()
    page.close()
    page = popup.value
    origin = stage.first if name == "first" else stage.second
    page.wait_for_url(f"{origin}/lab**", wait_until="commit", timeout=STARTS_WITHIN_MS)
    # A light page of the same server, with the policy of its pages: what counts is the origin.
    page.goto(f"{origin}/static/logo/logo.png")
    return page


def rows(model: type[Model], *columns: str) -> list[Any]:
    return list(model._default_manager.order_by("pk").values_list("pk", *columns))


def everything() -> dict[str, list[Any]]:
    """All that the attacks could have changed."""
    return {
        "users": rows(User, "email", "password", "is_active", "roles"),
        "sessions": rows(Session, "expire_date"),
        "tokens": rows(ApiToken, "revoked_at"),
        "workloads": rows(Workload, "name", "units", "options", "delete_requested_at"),
        "runs": rows(Run, "number", "stop_requested_at", "ended_at"),
        "volumes": rows(Volume, "name", "delete_requested_at"),
        "members": rows(Membership, "user", "tenant", "role"),
        "invitations": rows(Invitation, "email", "state"),
        "lines": rows(QuotaLine, "state"),
        "tickets": rows(Ticket, "used_at"),
        "notebook sessions": rows(NotebookSession, "workload"),
        "events": rows(Event, "verb"),
    }


def is_signed_in(context: BrowserContext) -> bool:
    page = context.new_page()
    page.goto("/tokens")
    found = urlsplit(page.url).path == "/tokens" and "Alice" in page.content()
    page.close()
    return found


# ---- requests that a notebook's page can send --------------------------------------------------------------------

# {url, method, fields, type, target} → posted; the answer goes into a frame or a tab that nobody looks at.
POST = """({url, fields, type, target}) => new Promise(done => {
  const frame = document.createElement('iframe');
  frame.name = 'f' + Math.random();
  document.documentElement.append(frame);
  const form = document.createElement('form');
  Object.assign(form, {action: url, method: 'post', enctype: type, target: target || frame.name});
  for (const [name, value] of Object.entries(fields)) {
    const field = document.createElement('input');
    Object.assign(field, {name, value, type: 'hidden'});
    form.append(field);
  }
  document.documentElement.append(form);
  frame.addEventListener('load', () => done('loaded'));
  form.submit();
  setTimeout(() => done('waited'), target ? 500 : 4000);
})"""
FETCH = """async ([url, options]) => {
  try {
    const response = await fetch(url, {credentials: 'include', cache: 'no-store', ...options});
    return response.type + ' ' + (await response.text()).slice(0, 200);
  } catch (error) { return 'refused'; }
}"""
LOAD = """([tag, url]) => new Promise(done => {
  const element = document.createElement(tag);
  element.addEventListener('load', () => done('loaded'));
  element.addEventListener('error', () => done('refused'));
  if (tag === 'link') { element.rel = 'stylesheet'; element.href = url; }
  else if (tag === 'object') { element.data = url; }
  else { element.src = url; }
  document.documentElement.append(element);
})"""
FRAME = """url => new Promise(done => {
  const frame = document.createElement('iframe');
  frame.src = url;
  frame.addEventListener('load', () => {
    try { done(frame.contentDocument ? frame.contentDocument.documentElement.outerHTML : 'refused'); }
    catch (error) { done('refused'); }
  });
  document.documentElement.append(frame);
  setTimeout(() => done('refused'), 8000);
})"""
SOCKET = """url => new Promise(done => {
  const socket = new WebSocket(url);
  socket.addEventListener('open', () => { socket.close(); done('open'); });
  socket.addEventListener('error', () => done('refused'));
})"""
REGISTER = """async url => {
  try { await navigator.serviceWorker.register(url); return 'registered'; }
  catch (error) { return error.name; }
}"""
HOLD = """async () => {
  // The browser tells it with some delay.
  for (let i = 0; i < 100 && !window.held.closed; i++) await new Promise(done => setTimeout(done, 100));
  const told = [];
  for (const look of [w => w.document.title, w => w.location.href, w => w.name, w => w.frames.length || '']) {
    try { told.push(String(look(window.held))); } catch (error) { told.push('refused'); }
  }
  return {closed: window.held.closed, told};
}"""
KINDS = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")


def forms(decision: QuotaLine, gpu_class: str) -> dict[str, dict[str, str]]:
    """Address → fields that would do it, if they came from the portal's own page."""
    launch = {"kind": "notebook", "name": "evil", "gpu_class": gpu_class, "units": "1", "image": "minimal"}
    second = f"{TEAM}/workloads/second"
    return {
        f"{TEAM}/launch": launch,
        f"{second}/stop": {},
        f"{second}/start": {},
        f"{second}/open": {},
        f"{second}/delete": {"confirm": "second"},
        f"{TEAM}/members/add": {"email": "mallory@example.org", "role": "owner"},
        f"/requests/{decision.request_id}/decide": {"decision": "approve", f"approve-{decision.pk}": "on"},
        "/inbox/approve": {"line": str(decision.pk)},
        "/tokens": {"name": "evil", "scopes": "read", "expires_in_days": "90"},
        "/theme": {"theme": "dark"},
        "/logout": {},
        "/login": {"username": "mallory@example.org", "password": "x"},
        # JSON in the name of a field: what a form can send without a preflight.
        "/api/v1/workloads?team=team-a": {json.dumps(launch): ""},
        "/api/v1/workloads/second/stop?team=team-a": {},
        "/api/v1/tokens": {'{"name": "evil", "scopes": ["read"], "expires_in_days": 1}': ""},
    }


def a_notebooks_page_reaches_nothing_else(stage: Stage, context: BrowserContext) -> None:
    second, first = (opened(context, stage, name) for name in ("second", "first"))
    kernel = second.evaluate(
        "async () => (await (await fetch('/api/kernels', {method: 'POST', body: '{}'})).json()).id"
    )
    portal = context.new_page()
    portal.goto("/tokens")
    controls_work(portal, second, stage, kernel)
    before, inside = everything(), what_is_in(stage)
    answers: list[Response] = []
    context.on("response", lambda response: answers.append(response))

    post_forms(first, stage, stage.decision, stage.gpu_class.slug)
    fetch_everything(first, stage)
    load_and_frame(first, stage)
    open_windows(first, stage)
    reach_the_other_notebook(first, stage, kernel)
    toss_cookies(first, stage, context)

    elsewhere = [one for one in answers if not one.url.startswith(stage.first) and one.request.method != "GET"]
    reached = {urlsplit(one.url).path for one in elsewhere}
    assert {one.status for one in elsewhere} == {403}, [(one.url, one.status) for one in elsewhere if one.status != 403]
    assert reached >= {urlsplit(path).path for path in forms(stage.decision, stage.gpu_class.slug)}
    assert everything() == before
    assert what_is_in(stage) == inside
    assert is_signed_in(context)


def controls_work(portal: Page, second: Page, stage: Origins, kernel: str) -> None:
    """The same requests from their own origins."""
    assert "alice@example.org" in portal.evaluate(FETCH, ["/api/v1/me", {}])
    assert portal.evaluate(LOAD, ["script", "/static/portal/portal.js"]) == "loaded"
    assert "forty-two" in second.evaluate(FETCH, ["/api/contents/secret.txt?content=1", {}])
    assert second.evaluate(LOAD, ["script", "/files/results.js"]) == "loaded"
    assert second.evaluate("window.stolen") == 42
    assert second.evaluate(SOCKET, socket_of(stage.second, kernel)) == "open"


def socket_of(origin: str, kernel: str) -> str:
    return f"{origin.replace('http', 'ws', 1)}/api/kernels/{kernel}/channels"


def what_is_in(stage: Origins) -> list[Any]:
    """Of the notebook that is attacked: its files, and its kernels by id."""
    server = stage.servers["second"]
    files = sorted((one.name, one.read_text()) for one in server.home.iterdir() if one.is_file())
    return [files, sorted(one["id"] for one in server.ask("/api/kernels"))]


def post_forms(first: Page, stage: Origins, decision: QuotaLine, gpu_class: str) -> None:
    for path, fields in forms(decision, gpu_class).items():
        for kind in KINDS:
            form = {"url": stage.portal + path, "fields": fields, "type": kind, "target": ""}
            first.evaluate(POST, form)
    for path in (f"{TEAM}/workloads/second/stop", "/logout", "/tokens"):
        fields = forms(decision, gpu_class)[path]
        with first.context.expect_page() as tab:
            first.evaluate(POST, {"url": stage.portal + path, "fields": fields, "type": KINDS[0], "target": "_blank"})
        tab.value.wait_for_load_state()
        assert "Alice" not in tab.value.content()
        tab.value.close()


def fetch_everything(first: Page, stage: Origins) -> None:
    body = json.dumps({"name": "evil"})
    ways: list[dict[str, Any]] = [
        {},
        {"mode": "no-cors"},
        {"mode": "no-cors", "redirect": "manual"},
        {"method": "POST", "mode": "no-cors", "body": body},
        {"method": "POST", "body": "name=evil", "headers": {"Content-Type": KINDS[0]}},
        {"method": "POST", "body": body, "headers": {"Content-Type": "application/json"}},
        {"method": "POST", "body": body, "headers": {"Content-Type": "text/plain", "X-CSRFToken": "x"}},
        {"method": "PUT", "body": body},
        {"method": "DELETE"},
    ]
    paths = ["/api/v1/me", "/api/v1/workloads/second?team=team-a", "/api/v1/tokens", "/tokens", "/", "/live/team-a"]
    for path in paths:
        for way in ways:
            told = first.evaluate(FETCH, [stage.portal + path, way])
            assert told in ("refused", "opaque ", "opaqueredirect "), f"{path} {way}: {told}"


def load_and_frame(first: Page, stage: Origins) -> None:
    for tag, path in (
        ("script", "/api/v1/me"),
        ("script", "/static/portal/portal.js"),
        ("img", "/static/portal/favicon.svg"),
        ("link", "/static/portal/portal.css"),
        ("link", "/tokens"),
        ("object", "/tokens"),
    ):
        assert first.evaluate(LOAD, [tag, stage.portal + path]) == "refused", path
    for path in ("/", "/tokens", f"{TEAM}/workloads/second"):
        assert first.evaluate(FRAME, stage.portal + path) == "refused"
    framed = [frame for frame in first.frames if frame != first.main_frame]
    assert framed
    assert not [frame.url for frame in framed if "Alice" in frame.content()]
    for origin in (stage.portal, stage.second):
        script = f"{origin}/static/portal/portal.js"
        assert first.evaluate(REGISTER, script) == "SecurityError"


def open_windows(first: Page, stage: Origins) -> None:
    """The page that was opened is the real one, and neither has a hold on the other."""
    for url in (f"{stage.portal}/tokens", f"{stage.second}/static/logo/logo.png"):
        with first.context.expect_page() as tab:
            first.evaluate("url => { window.held = window.open(url, 'held'); }", url)
        tab.value.wait_for_load_state()
        assert tab.value.url == url
        assert tab.value.evaluate("window.opener") is None
        held = first.evaluate(HOLD)
        assert held["closed"] is True
        assert set(held["told"]) <= {"refused", "", "about:blank", "undefined"}, held
        tab.value.close()


def reach_the_other_notebook(first: Page, stage: Origins, kernel: str) -> None:
    ways: list[tuple[str, dict[str, Any]]] = [
        ("/api/contents/secret.txt?content=1", {}),
        ("/api/contents/secret.txt?content=1", {"mode": "no-cors"}),
        ("/api/contents/evil.txt", {"method": "PUT", "body": '{"type": "file", "format": "text", "content": "x"}'}),
        ("/api/contents/secret.txt", {"method": "DELETE"}),
        ("/api/kernels", {"method": "POST", "body": "{}"}),
        ("/api/kernels", {"method": "POST", "mode": "no-cors", "body": "{}"}),
        ("/api/shutdown", {"method": "POST", "mode": "no-cors"}),
    ]
    for path, way in ways:
        told = first.evaluate(FETCH, [stage.second + path, way])
        assert told in ("refused", "opaque ") or told.startswith("opaque Pages of another"), f"{path} {way}: {told}"
    assert first.evaluate(SOCKET, socket_of(stage.second, kernel)) == "refused"
    assert first.evaluate(LOAD, ["script", f"{stage.second}/files/results.js"]) == "refused"
    assert first.evaluate("window.stolen") is None
    assert first.evaluate(FRAME, f"{stage.second}/lab") == "refused"
    for path in ("/api/kernels", "/api/shutdown"):
        form = {"url": stage.second + path, "fields": {}, "type": "text/plain", "target": ""}
        first.evaluate(POST, form)


def toss_cookies(first: Page, stage: Origins, context: BrowserContext) -> None:
    """Names of the portal's own cookies, set from below for every domain that a browser might take."""
    own = {one["name"]: one["value"] for one in context.cookies(stage.portal)}
    for name in {*own, "session", "csrf", "sessionid", "csrftoken", "__Host-session", "__Host-csrf"}:
        for domain in (*stage.parents, "localhost"):
            for path in ("/", "/teams", "/login"):
                for secure in ("", "; Secure"):
                    first.evaluate(
                        "text => { document.cookie = text; }", f"{name}=evil; Domain={domain}; Path={path}{secure}"
                    )
    after = {(one["name"], one["value"]) for one in context.cookies(stage.portal) if one["name"] in own}
    assert after == set(own.items())
    assert is_signed_in(context)


def no_number_of_cookies_signs_anybody_out(stage: Stage, context: BrowserContext) -> None:
    """The notebooks' domain is a site of its own there, as it should be everywhere (docs/operators.md)."""
    first = opened(context, stage, "first")
    first.evaluate(
        """parents => { for (let i = 0; i < 400; i++) for (const domain of parents)
             document.cookie = `c${i}=${'x'.repeat(3000)}; Domain=${domain}; Path=/`; }""",
        list(stage.parents),
    )
    assert is_signed_in(context)
    page = context.new_page()
    page.goto(f"{TEAM}/workloads/second")
    expect(page.get_by_role("heading", name="second")).to_be_visible()


def cookies_tossed_at_another_notebook_shut_nobody_out(stage: Stage, context: BrowserContext) -> None:
    """Of its own name, in front of its own, and so many others that servers refuse their length."""
    second, first = (opened(context, stage, name) for name in ("second", "first"))
    first.evaluate(
        """parents => { for (const domain of parents) {
             for (const name of ['notebook', '__Host-notebook', ''])
               for (const path of ['/', '/lab', '/api', '/api/contents', '/static/logo'])
                 for (const secure of ['', '; Secure'])
                   document.cookie = `${name}=${'x'.repeat(43)}; Domain=${domain}; Path=${path}${secure}`;
             for (let i = 0; i < 40; i++)
               document.cookie = `c${i}=${'x'.repeat(3900)}; Domain=${domain}; Path=/`;
           } }""",
        list(stage.parents),
    )

    def tossed() -> list[Any]:
        return [one for one in context.cookies(stage.second) if set(one["value"]) == {"x"}]

    # The browser takes them one by one, after the script has said so.
    wait_until(lambda: sum(len(one["value"]) for one in tossed()) > 100_000, what="the cookies are set")
    # Without https nothing keeps the name itself from being taken.
    own = "notebook" if stage.layout == "demo" else "__Host-notebook"
    assert any(one["name"] == own for one in tossed()) is (stage.layout == "demo")

    second.reload()
    assert "forty-two" in second.evaluate(FETCH, ["/api/contents/secret.txt?content=1", {}])
    page = context.new_page()
    found = page.goto(f"{stage.second}/lab", wait_until="commit")
    assert found is not None
    assert (found.status, page.url) == (200, f"{stage.second}/lab")
    # Under a common site the browser drops the portal's own cookies for so many (docs/operators.md).
    assert stage.layout == "one site" or is_signed_in(context)


PICTURE = """<svg xmlns="http://www.w3.org/2000/svg" width="42" height="42"></svg>"""
PREVIEW = "<!doctype html><title>report</title><img id='own' src='picture.svg'>"
# A frame of an origin of its own, as anybody's page can make one: whether a picture loads in it.
SANDBOXED = """url => new Promise(done => {
  const frame = document.createElement('iframe');
  frame.sandbox = 'allow-scripts';
  frame.srcdoc = `<img src="${url}" onload="parent.postMessage('loaded', '*')"
                       onerror="parent.postMessage('refused', '*')">`;
  addEventListener('message', event => done(event.data), {once: true});
  document.documentElement.append(frame);
})"""


def a_preview_of_html_shows_its_pictures_in_its_own_notebook_alone(stage: Stage, context: BrowserContext) -> None:
    home = stage.servers["second"].home
    (home / "picture.svg").write_text(PICTURE)
    (home / "preview.html").write_text(PREVIEW)
    second = opened(context, stage, "second")
    second.goto(f"{stage.second}/lab/tree/preview.html?factory=HTML%20Viewer")
    picture = second.frame_locator("iframe").locator("#own")
    picture.wait_for(state="attached", timeout=STARTS_WITHIN_MS)
    expect(picture).to_have_js_property("complete", True)
    expect(picture).to_have_js_property("naturalWidth", 42)

    # A frame without an origin is anybody's: also the notebook's own page gets nothing by it.
    first = opened(context, stage, "first")
    own = opened(context, stage, "second")
    for page in (first, own):
        assert page.evaluate(SANDBOXED, f"{stage.second}/files/picture.svg") == "refused"
    assert own.evaluate(LOAD, ["img", "/files/picture.svg"]) == "loaded"


# path → headers and body of the answer, whatever it is.
WHOLE = """async path => {
  const response = await fetch(path, {cache: 'no-store'});
  return JSON.stringify([...response.headers]) + await response.text();
}"""


def the_token_is_in_no_answer_address_log_or_event(stage: Stage, context: BrowserContext) -> None:
    """The canary is the token of the notebook that a whole JupyterLab is opened in."""
    server = stage.servers["second"]
    (server.home / "preview.html").write_text(PREVIEW)
    answers: list[Response] = []
    context.on("response", lambda response: answers.append(response))
    page = opened(context, stage, "second")
    page.goto(f"{stage.second}/lab/tree/preview.html?factory=HTML%20Viewer")
    page.frame_locator("iframe").locator("#own").wait_for(state="attached", timeout=STARTS_WITHIN_MS)

    paths = [
        "/lab",
        "/tree",
        "/login",
        "/logout",
        "/api/status",
        "/api/me",
        "/files/none",
        "/view/preview.html",
        "/none",
    ]
    told = [page.evaluate(WHOLE, path) for path in paths]
    told.append(page.evaluate("JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])"))
    told += [page.content(), json.dumps(context.cookies())]
    told += [part for one in answers for part in (one.url, str(one.headers), str(one.request.headers))]
    assert any("appVersion" in one for one in told)  # JupyterLab's page, with what it tells its scripts
    assert not [one for one in told if server.token in one]

    logs = {path.name: path.read_text(errors="replace") for path in stage.log.iterdir()}
    assert len(logs) == 5
    assert stage.second.removeprefix("http://") in "".join(logs.values())
    assert not [name for name, text in logs.items() if server.token in text]
    events = [str(event) for event in Event.objects.values_list("verb", "after", "before")]
    assert any("notebook.opened" in event for event in events)
    assert not [event for event in events if server.token in event]


# ---- the test ----------------------------------------------------------------------------------------------------

# Of each layout, what may be different in it; a start of all processes takes as long as any two of them.
SHOWN = {
    "demo": (
        the_token_is_in_no_answer_address_log_or_event,
        a_preview_of_html_shows_its_pictures_in_its_own_notebook_alone,
        a_notebooks_page_reaches_nothing_else,
        cookies_tossed_at_another_notebook_shut_nobody_out,
        no_number_of_cookies_signs_anybody_out,
    ),
    "one site": (
        a_notebooks_page_reaches_nothing_else,
        cookies_tossed_at_another_notebook_shut_nobody_out,
    ),
}


@pytest.mark.parametrize("layout", SHOWN)
def test_a_notebook_is_an_origin_of_its_own(stage: Stage, browser: Browser, subtests: pytest.Subtests) -> None:
    for is_so in SHOWN[stage.layout]:
        with subtests.test(is_so.__name__), signed_in(browser, stage) as context:
            is_so(stage, context)
