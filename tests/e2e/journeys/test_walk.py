"""A team's quota from the first request to join to the last GPU released, as Alice, Bob, Charlie and Dana do it in
browsers.

The portal's own worker, beat and watcher do the rest. Every step is checked in PostgreSQL and, by a separate client, at
the API server. Time passes by dates set in the database.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.events.queries import row_label
from accounts.models import Delivery, Event, User
from catalog.classes import actions as catalog
from catalog.classes.capacity import queries as capacity_queries
from catalog.models import GpuClass, Pool
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.controlplane import hardware
from portal.core.due import touch
from tenants.core import queries as core_queries
from tenants.grants import queries
from tenants.models import Grant, Membership, Namespace, QuotaLine, QuotaRequest, Tenant
from tests.e2e.journeys.portal_processes import Portal
from tests.support.rows import make
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(420)]

OWN = "test.example/walk"  # a label and a taint of this test's nodes alone
CARD, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
QUEUES, LOCAL_QUEUES = "kueue.x-k8s.io/v1beta2/clusterqueues", "kueue.x-k8s.io/v1beta2/localqueues"
# A start of three processes, or a sweep of 5 s and what it finds, on a machine that does much else.
PATIENCE_S = 90.0
State = QuotaLine.State


# ---- fixtures ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shop:
    """Two classes on nodes of the test's own."""

    cards: GpuClass
    slices: GpuClass


@pytest.fixture
def shop(cluster: Cluster, admin: Api, unique: str, clean_cluster: None) -> Iterator[Shop]:
    taint = {"key": OWN, "value": "yes", "effect": "NoSchedule"}
    nodes = {"card": {CARD: 8}, "slice": {SLICE: 7}}
    for word, devices in nodes.items():
        labels = {OWN: f"{word}-{unique}"}
        hardware.add(admin, hardware.node(f"walk-{word}-{unique}", devices=devices, labels=labels, taints=[taint]))
    common = {"product": "", "tolerations": [{"key": OWN, "operator": "Exists"}]}
    yield Shop(
        make.gpu_class(
            cluster, slug=f"card-{unique}", name="Walk", resource=CARD, node_labels={OWN: f"card-{unique}"}, **common
        ),
        make.gpu_class(
            cluster,
            slug=f"slice-{unique}",
            name="Walk slice",
            partition="1g.10gb",
            resource=SLICE,
            node_labels={OWN: f"slice-{unique}"},
            **common,
        ),
    )
    for word in nodes:
        admin.delete("v1/nodes", f"walk-{word}-{unique}")


@dataclass(frozen=True)
class Truth:
    """The true state: in the portal's rows, and in the cluster as its administrator sees it."""

    admin: Api
    portal: Portal
    shop: Shop
    namespace: Namespace

    def becomes(self, *, cards: int, slices: int) -> None:
        """So many units are in force by our rows, and the queue is open for them; the fuse behind it is twice that."""
        name = self.namespace.name
        units = {self.shop.cards.pk: cards, self.shop.slices.pk: slices}
        wanted = (
            {pk: number for pk, number in units.items() if number},
            {resource: number for resource, number in ((CARD, cards), (SLICE, slices)) if number},
            {CARD: str(2 * cards), SLICE: str(2 * slices)},
            True,
        )

        def found() -> tuple[Any, ...]:
            queue = self.admin.find(QUEUES, name)
            quota = self.admin.find("v1/resourcequotas", "gpu-portal", namespace=name)
            local = self.admin.find(LOCAL_QUEUES, "gpu-portal", namespace=name)
            hard = quota["spec"]["hard"] if quota else {}
            is_open = queue is not None and queue["spec"].get("stopPolicy", "None") == "None"
            return (
                queries.units_in_force(self.namespace.tenant_id, core_queries.database_now()),
                nominal(queue),
                {resource: hard.get(f"requests.{resource}") for resource in (CARD, SLICE)},
                is_open and local is not None and local["spec"]["clusterQueue"] == name,
            )

        self.wait(lambda: found() == wanted, f"{cards} GPUs and {slices} slices", lambda: str(found()))

    def is_told(self, who: User, subject: str) -> None:
        """The email was written with its event, and was sent."""
        row = Delivery.objects.filter(user=who, subject=subject).latest("pk")
        assert Event.objects.filter(pk=row.event_id).exists()

        def is_sent() -> bool:
            row.refresh_from_db()
            return row.sent_at is not None and subject in self.portal.mails(who)

        self.wait(is_sent, f"“{subject}” to {who.name}", lambda: str(self.portal.mails(who)))

    def has_ended(self, grant: Grant) -> None:
        rows = Event.objects.filter(verb="grant.ended", row=row_label(grant))
        self.wait(rows.exists, f"the end of {grant} is recorded")

    def wait(self, holds: Callable[[], object], what: str, found: Callable[[], str] = str) -> None:
        story = lambda: f"{found()}\n{self.portal.story()}"  # noqa: E731 - read where it is used
        wait_until(holds, within_s=PATIENCE_S, every_s=0.3, what=what, story=story)

    def clock_has_come(self) -> None:
        """What is due at an instant that was set back is looked at: the sweep finds it as it finds every other."""
        Namespace.objects.filter(pk=self.namespace.pk).update(due_at=core_queries.database_now())
        Pool.objects.update(due_at=core_queries.database_now())


def nominal(queue: dict[str, Any] | None) -> dict[str, int]:
    groups = queue["spec"].get("resourceGroups", []) if queue else []
    cells = [cell for group in groups for flavor in group["flavors"] for cell in flavor["resources"]]
    return {cell["name"]: int(cell["nominalQuota"]) for cell in cells if cell["nominalQuota"] not in ("", "0")}


@pytest.fixture
def truth(admin: Api, portal: Portal, shop: Shop, team_a: Tenant, namespace_a: Namespace, bob: User) -> Truth:
    """Team A is provisioned and holds nothing; Bob manages it."""
    Membership.objects.filter(user=bob).update(role=Membership.Role.MANAGER)
    catalog.ensure_pool(namespace_a.cluster)
    for model, pk in ((Pool, Pool.objects.get().pk), (Namespace, namespace_a.pk)):
        with transaction.atomic():
            touch(model, pk)
    found = Truth(admin, portal, shop, namespace_a)

    def allocatable() -> list[int | None]:
        """Until the watcher has seen the nodes, nobody knows what may be promised."""
        classes = [shop.cards, shop.slices]
        capacities = capacity_queries.capacities(namespace_a.cluster, classes)
        return [capacities[one.pk].allocatable for one in classes]

    found.wait(lambda: allocatable() == [8, 7], "the nodes are seen", lambda: str(allocatable()))
    return found


def end(grant: Grant, at: datetime) -> None:
    Grant.objects.filter(pk=grant.pk).update(period=DateTimeTZRange(grant.period.lower, at))


# ---- steps of users ------------------------------------------------------------------------------------------------


def ask(page: Page, units: dict[str, int], *, boost: bool = False, until: str = "") -> QuotaRequest:
    """By the form."""
    page.goto("/teams/team-a/requests/new?" + "&".join(f"units-{slug}=" for slug in units))
    for slug, number in units.items():
        page.fill(f"[name=units-{slug}]", str(number))
        if boost:
            page.select_option(f"[name=kind-{slug}]", "boost")
    if until:
        page.fill("[name=until_date]", until)
    page.fill("[name=justification]", "Two trainings until the conference.")
    page.get_by_role("button", name="Submit request").click()
    page.wait_for_url(re.compile(r"/requests/\d+$"))
    return QuotaRequest.objects.get(pk=int(page.url.rpartition("/")[2]))


def look_at_plan(page: Page, request: QuotaRequest, truth: Truth) -> None:
    """From the inbox to the request, until a worker has tried its objects on the API server."""
    page.goto("/inbox")
    page.locator(f"main a[href='/requests/{request.pk}']").first.click()
    page.wait_for_url(f"**/requests/{request.pk}")

    def is_planned() -> bool:
        page.reload()
        return page.locator("#plan").get_by_text("dry run on the API server").is_visible()

    truth.wait(is_planned, "the plan is made")


def approve(page: Page) -> None:
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("All lines are decided.")).to_be_visible()


# ---- the test ------------------------------------------------------------------------------------------------------


def test_from_joining_to_giving_back(
    open_page: Callable[..., Page],
    truth: Truth,
    shop: Shop,
    team_a: Tenant,
    alice: User,
    bob: User,
    charlie: User,
    dana: User,
) -> None:
    # join
    hers, his, strangers = (open_page("/start", as_user=user) for user in (alice, bob, charlie))
    strangers.get_by_label("Team name").fill("Team A")
    strangers.get_by_role("button", name="Search").click()
    strangers.get_by_role("button", name="Request to join Team A").click()
    expect(strangers.get_by_role("region", name="Your join requests")).to_contain_text("Pending")
    truth.is_told(alice, "Charlie requests to join Team A")
    hers.goto("/teams/team-a/members")
    hers.get_by_role("button", name="Approve Charlie").click()
    expect(hers.get_by_role("row", name="Charlie")).to_be_visible()
    assert Membership.objects.get(tenant=team_a, user=charlie).role == "member"
    truth.is_told(charlie, "Your role in Team A is now: member")
    truth.becomes(cards=0, slices=0)

    # file
    request = ask(his, {shop.cards.slug: 4, shop.slices.slug: 2})
    cards, slices = (request.lines.get(gpu_class=one) for one in (shop.cards, shop.slices))
    assert [(line.kind, line.asked_units, line.state) for line in (cards, slices)] == [
        ("base", 4, State.PENDING),
        ("base", 2, State.PENDING),
    ]
    assert Event.objects.get(verb="request.filed").actor_id == bob.pk
    truth.is_told(dana, "Team A requests quota")

    # facts, plan, edit, decide
    desk = open_page("/", as_user=dana)
    look_at_plan(desk, request, truth)
    expect(desk.get_by_role("row", name="Allocatable in the cluster 8 7")).to_be_visible()
    expect(desk.get_by_role("row", name="Peak, 30 days")).to_be_visible()
    plan = desk.locator("#plan")
    expect(plan.get_by_role("listitem").filter(has_text="ClusterQueue")).to_contain_text("dry run accepted")
    expect(plan.get_by_role("listitem").filter(has_text="ResourceQuota")).to_contain_text("dry run accepted")
    truth.becomes(cards=0, slices=0)  # tried, and not done
    last_day = timezone.localdate() + timedelta(days=20)
    desk.fill(f"[name=units-{cards.pk}]", "3")
    desk.fill(f"[name=until-{slices.pk}]", last_day.isoformat())
    desk.fill("[name=reason]", "Three until the next node is here.")
    approve(desk)
    for line in (cards, slices):
        line.refresh_from_db()
    assert (cards.state, cards.asked_units, cards.decided_units) == (State.APPROVED, 4, 3)
    assert (slices.state, slices.asked_units, slices.decided_units) == (State.APPROVED, 2, 2)
    assert slices.decided_until is not None
    assert slices.asked_until > slices.decided_until
    assert timezone.localtime(slices.decided_until).date() == last_day
    assert (cards.decided_by, cards.rule) == (dana, "")
    base, lent = (Grant.objects.get(gpu_class=one) for one in (shop.cards, shop.slices))
    assert (base.units, base.line, lent.units, lent.period.upper) == (3, cards, 2, slices.decided_until)
    assert Event.objects.get(verb="request.decided").actor_id == dana.pk
    truth.is_told(bob, "Quota request of Team A: decision")

    # objects in the cluster, in force
    truth.becomes(cards=3, slices=2)
    his.goto("/teams/team-a/grants")
    expect(his.get_by_role("row", name=re.compile(r"3 GPUs total .* in force"))).to_be_visible()
    expect(his.get_by_role("row", name=re.compile(r"2 slices total .* in force"))).to_be_visible()

    # boost
    week = (timezone.localdate() + timedelta(days=7)).isoformat()
    request = ask(his, {shop.cards.slug: 2}, boost=True, until=week)
    look_at_plan(desk, request, truth)
    approve(desk)
    boost = Grant.objects.get(line__request=request)
    assert (boost.kind, boost.units) == (Grant.Kind.BOOST, 2)
    truth.is_told(bob, "Quota request of Team A: decision")
    truth.becomes(cards=5, slices=2)

    # its end, a week early
    end(boost, core_queries.database_now())
    truth.clock_has_come()
    truth.becomes(cards=3, slices=2)
    truth.has_ended(boost)
    truth.is_told(bob, "Expired: temporary increase of Walk for Team A")

    # renewal
    his.goto("/teams/team-a/grants")
    last_card = his.get_by_role("listitem").filter(has_text="Total of 3 GPUs")
    last_card.get_by_role("button", name="Renew").click()
    expect(his.get_by_text("Renewal requested. Approvers are notified.")).to_be_visible()
    request = QuotaRequest.objects.latest("pk")
    look_at_plan(desk, request, truth)
    approve(desk)
    renewed = Grant.objects.get(line__request=request)
    assert (renewed.units, renewed.period.lower) == (3, base.period.upper)
    truth.is_told(bob, "Quota request of Team A: decision")
    at = core_queries.database_now()
    with transaction.atomic():
        end(base, at)
        Grant.objects.filter(pk=renewed.pk).update(period=DateTimeTZRange(at, renewed.period.upper))
    truth.clock_has_come()
    truth.wait(lambda: Namespace.objects.filter(applied_as_of__gte=at).exists(), "the cluster is of after the change")
    truth.becomes(cards=3, slices=2)
    his.goto("/teams/team-a/grants")
    in_force = his.get_by_role("row", name=re.compile(r"3 GPUs total .* in force"))
    expect(in_force).to_contain_text(f"#{request.pk}")

    # end
    end(lent, core_queries.database_now())
    truth.clock_has_come()
    truth.becomes(cards=3, slices=0)
    truth.has_ended(lent)
    truth.is_told(bob, "Expired: grant of Walk slice for Team A")
    his.goto("/teams/team-a/grants")
    last_card = his.get_by_role("listitem").filter(has_text="Total of 2 slices")
    expect(last_card).to_contain_text("No new workloads start on it")
    expect(last_card).to_contain_text("Kept with all data")
    his.goto("/teams/team-a/launch")
    expect(his.get_by_label("Walk", exact=True)).to_be_visible()
    expect(his.get_by_label("Walk slice")).to_have_count(0)

    # release
    request = ask(his, {shop.cards.slug: 0})
    expect(his.get_by_text("Approved").first).to_be_visible()
    line = request.lines.get()
    assert (line.state, line.rule, line.decided_by, line.decided_units) == (State.APPROVED, "decrease", None, 0)
    truth.becomes(cards=0, slices=0)
    decided = Event.objects.filter(verb="request.decided").order_by("id")
    assert [one.actor for one in decided][-1] == "system rule decrease"
    truth.is_told(bob, "Quota request of Team A: decision")
    truth.wait(lambda: not Delivery.objects.filter(sent_at=None).exists(), "every mail has left")
