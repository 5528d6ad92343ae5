"""Every form of every template can be sent by the people to whom it is shown.

The elements that send something are found in the templates: a new one that no page here renders is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import Client
from django.urls import resolve
from django.utils import timezone

from accounts.models import Event, Notice, NoticeKind, Role, User
from catalog.classes.proposals.queries import open_proposals
from catalog.models import DismissedProposal, GpuClass
from cluster.models import Cluster, MirrorEpoch, MirrorKind
from tenants.models import Membership, Namespace
from tests.matrix.sweep import path_of
from tests.matrix.tables import policy
from tests.matrix.tables.page_table import PAGES
from tests.matrix.tables.policy import STAFF, TEAM
from tests.matrix.world import World, build
from tests.support.http.admin_addresses import addresses
from tests.support.http.forms import Sent, places, sent_from
from tests.support.http.visits import undone
from tests.support.identity.issuer import issuing
from tests.support.rows import make, running, waiting_runs
from tests.support.rows.usage import budget
from tests.usage.idle import rows as idle_rows
from workloads.lifetime.idle import reconcile as idle_reconcile
from workloads.models import Run, Volume

pytestmark = pytest.mark.django_db
# Is to show the second factor; showed it, and so may open the Django admin; has none, and is signed in twice.
MORE = ("asked", "clerk", "fresh")
PARTS = {**policy.PARTS, "others": ("anonymous", *MORE)}
# The forms that the pages of each part had. All tests of a file run in one process.
SEEN: dict[str, set[str]] = {}

# Objects whose pages have other forms than the row's own, and pages that are about no row of the table.
ALSO = {
    "person": ("plain person", "guarded person", "suspended person", "who decides all"),
    "class": ("class in draft", "class in retirement"),
    "workload": ("stopped", "stopping", "followed", "queued", "sized"),
}
OTHERS = (
    "/teams/team-c/members",
    "/teams/team-c/adoption",
    "/teams/team-d/usage",
    "/start?q=team",
    "/teams/team-a/launch?volume=leaving",
    "/teams/team-a/launch?kind=job",
    "/login",
    "/login/password",
    "/styleguide",
)


@pytest.fixture
def world(cluster: Cluster, unique: str, settings: Any) -> Iterator[World]:
    (engine,) = settings.TEMPLATES
    loaders = ["tests.support.http.forms.MarkingLoader", "django.template.loaders.app_directories.Loader"]
    # Without the cached loader, every page would parse its templates again.
    options = {**engine["OPTIONS"], "loaders": [("django.template.loaders.cached.Loader", loaders)]}
    settings.TEMPLATES = [{**engine, "APP_DIRS": False, "OPTIONS": options}]
    found = build(cluster, unique)
    stage(found)
    with issuing() as issuer:
        settings.OIDC = issuer.sso()
        yield found


def stage(world: World) -> None:
    """The states in which a page has a form that it does not have for other rows."""
    namespace, owner = world.teams["a"].namespaces.get(), world.people["owner"]
    now = timezone.now()
    for name in ("stopping", "followed", "queued"):
        found = running.workload(namespace, world.gpu_class, name=name, by=owner, image="python")
        world.things[name] = {"own": {"tenant": "team-a", "name": name}}
        if name == "queued":
            waiting_runs.mirror_wait(found, waiting_runs.NEEDED)
        else:
            running.make_ready(found)
            found.runs.update(stop_requested_at=now, next_wanted_by=owner if name == "followed" else None)
    GpuClass.objects.update(idle_stop_minutes=60, borrowing_limit=4)
    for run in Run.objects.filter(workload__name="workload-owner"):
        run.spec["idle_stop_minutes"] = 60
        run.save(update_fields=["spec"])
        idle_reconcile.start_watch(run)
        idle_rows.idle(run)
    GpuClass.objects.exclude(pk=world.gpu_class.pk).update(held_since=now, held_reason="Maintenance.")
    Volume.objects.create(namespace=namespace, name="leaving", size_gib=5, due_at=None, delete_requested_at=now)
    running.known(namespace.cluster_id, "Node", "ResourceSlice")
    discovered = open_proposals(namespace.cluster)
    assert discovered is not None
    DismissedProposal.objects.create(cluster=namespace.cluster, slug=discovered.proposals[0].slug, reason="No.")
    for state in (GpuClass.LifeCycle.DRAFT, GpuClass.LifeCycle.RETIRING):
        one = make.gpu_class(namespace.cluster, slug=f"{state}-one", life_cycle=state, node_labels={"state": state})
        world.things["class in draft" if state == "draft" else "class in retirement"] = {"own": {"slug": one.slug}}
    # A run that asks for devices with so much memory.
    sized = make.gpu_class(
        namespace.cluster, slug="sized", interface="dra", resource="dra.portal/sized", device_class="gpu.example.org",
        device_selector="device.driver == 'gpu.example.org'",
    )  # fmt: skip
    make.grant(namespace.tenant, sized, units=1)
    running.workload(namespace, sized, name="sized", by=owner, image="python", options={"gpu_memory_gib": 40})
    world.things["sized"] = {"own": {"tenant": "team-a", "name": "sized"}}
    # A budget that is used up, so that an owner can confirm launches.
    spent = make.tenant(namespace.cluster, slug="team-d", namespace=f"{namespace.name}-d")
    make.member(spent, owner, Membership.Role.OWNER)
    budget(spent, cost="100", at_limit="confirm")
    # A team that is suspended while a run of it is queued.
    suspended = Namespace.objects.get(tenant__slug="team-c")
    waiting = running.workload(suspended, world.gpu_class, name="held", by=owner, image="python")
    waiting_runs.mirror_wait(waiting, waiting_runs.NEEDED)
    Namespace.objects.filter(pk=suspended.pk).update(wanted=Namespace.Wanted.SUSPENDED)
    # The rows above are of a newer epoch than the levels of the class's topology.
    MirrorKind.objects.filter(kind="Topology").update(epoch=MirrorEpoch.objects.get().epoch)
    notice = {
        "event": Event.objects.create(verb="tenant.created", via="page"),
        "kind": NoticeKind.TEAM,
        "subject": "A notice.",
        "link": "/",
    }
    Notice.objects.bulk_create(Notice(user=one, **notice) for one in User.objects.all())
    asked, shown = User.objects.get(name="Greta"), make.user("Clerk", roles=[Role.OPERATOR])
    fresh = make.user("Fred")
    Client().post("/login", {"username": fresh.email, "password": make.PASSWORD})
    signed_in = {"asked": Client(), "fresh": Client(), "clerk": make.administrator(Client(), shown)}
    signed_in["asked"].force_login(asked)
    signed_in["fresh"].post("/login", {"username": fresh.email, "password": make.PASSWORD})
    for role, client in signed_in.items():
        world.sessions[role] = client.cookies[settings.SESSION_COOKIE_NAME].value


def browser(world: World, role: str) -> Client:
    """A new browser that is checked as the portal checks it, unlike Django's test client by default."""
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.cookies = SimpleCookie({settings.SESSION_COOKIE_NAME: world.sessions.get(role, "")})
    return client


def pages(world: World, role: str) -> Iterator[str]:
    if role in MORE:
        yield from addresses() if role == "clerk" else ("/account", "/account/second-factor")
        return
    for row in PAGES:
        if row.method == "GET":
            for about in (row.about, *ALSO.get(row.about, ())):
                values = [world.address(about, relation, role) for relation in ("own", "others")]
                yield from (path_of(row.route, one) for one in values if one is not None)
    yield from OTHERS
    yield f"/teams/team-a/requests/new?units-{world.gpu_class.slug}=2"
    yield f"/teams/team-a/requests/new?class={world.gpu_class.slug}"
    yield f"/teams/team-a/launch?kind=job&class={world.gpu_class.slug}"


def look(world: World, part: str, *, sends: bool = True) -> dict[str, Any]:
    """Visits all pages in the roles of the part, and sends each form once in each role. Returns what was wrong."""
    seen: set[str] = set()
    wrong: dict[str, Any] = {}
    for role in PARTS[part]:
        tried: set[tuple[str, str]] = set()
        for path in pages(world, role):
            client = browser(world, role)
            answer = client.get(path)
            if not answer.headers["Content-Type"].startswith("text/html"):
                continue
            for sent in sent_from(answer.content.decode()):
                seen.add(sent.place)
                for action in {urljoin(path, one) for one in sent.actions}:
                    case = f"{sent.place} as {role} on {path}"
                    way = sent.place, resolve(urlsplit(action).path).view_name
                    if not sent.token:
                        wrong[case] = "no token"
                    elif sends and sent.is_sendable and way not in tried:
                        tried.add(way)
                        with undone():
                            said = post(client, action, sent)
                        # The home is one text for all: it hides the buttons of others' private notebooks.
                        is_private = b"This notebook is private to" in said.content
                        if (said.status_code == 403 and not is_private) or said.status_code >= 500:
                            wrong[case] = (action, said.status_code, said.content)
    SEEN[part] = seen
    return wrong


@pytest.mark.parametrize("part", PARTS)
def test_every_form_is_sent(world: World, part: str) -> None:
    assert look(world, part) == {}


def test_every_form_is_on_a_page(world: World) -> None:
    """Alone, it visits the pages itself."""
    assert {role for roles in PARTS.values() for role in roles} == {*TEAM, *STAFF, "anonymous", *MORE}
    for part in PARTS.keys() - SEEN.keys():
        look(world, part, sends=False)
    assert sorted(places() - set().union(*SEEN.values())) == []


def post(client: Client, action: str, sent: Sent) -> HttpResponse:
    headers = {"X-CSRFToken": sent.token, "HX-Request": "true"} if sent.is_htmx else {}
    fields = sent.fields if sent.is_htmx else {**sent.fields, "csrfmiddlewaretoken": sent.token}
    return client.post(action, fields, headers=headers)  # type: ignore[return-value]
