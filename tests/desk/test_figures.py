"""Every sentence with a number on the main pages, after each of 30 random steps, against a count that knows only what
the steps did.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.models import MirrorEpoch, MirrorJob, MirrorKind, MirrorNode, MirrorPod, MirrorWorkload
from devcluster.demo.http_client import Page
from tenants.models import Grant, Namespace, QuotaRequest, Tenant
from tenants.requests import actions as request_actions
from tests.support.rows import make, mirrored
from tests.support.rows.homes import ready, stranger
from tests.support.rows.usage import file
from tests.support.rows.waiting_runs import waits
from workloads.models import Run

pytestmark = pytest.mark.django_db

NODES = ("a100-1", "a100-2", "a100-3", "a100-4")
PER_NODE, STEPS = 4, 30
NUMBERS = {"none": 0, "no": 0, "No": 0}


@dataclass
class World:
    """What the steps did, in plain collections: this is the other way to count. `on`: node → units by pod."""

    gpu_class: GpuClass
    namespaces: dict[str, Namespace]
    people: dict[str, User]
    dice: random.Random
    granted: dict[str, int] = field(default_factory=lambda: {"team-a": 4, "team-b": 6})
    running: dict[str, tuple[str, int]] = field(default_factory=dict)
    queued: dict[str, tuple[str, int]] = field(default_factory=dict)
    on: dict[str, dict[str, int]] = field(default_factory=lambda: {node: {} for node in NODES})
    cordoned: set[str] = field(default_factory=set)
    pending: dict[str, tuple[int, int]] = field(default_factory=dict)
    number: int = 0

    # ---- steps -------------------------------------------------------------------------------------------------

    def launch(self) -> None:
        team, units, node = self._team(), self.dice.choice((1, 2)), self.dice.choice(NODES)
        if node in self.cordoned or self._free(node) < units or self.used(team) + units > self.granted[team]:
            return self.queue()
        name = self._name("run")
        ready(self.namespaces[team], self.gpu_class, name, self.people[team], units=units)
        MirrorPod.objects.filter(run=f"{name}-1").update(node=node)
        self.running[name] = (team, units)
        self.on[node][name] = units
        return None

    def queue(self) -> None:
        team, units, name = self._team(), self.dice.choice((1, 2)), self._name("wait")
        waits(self.namespaces[team], self.gpu_class, self.people[team], name, units=units)
        self.queued[name] = (team, units)

    def end(self) -> None:
        if not self.running:
            return self.launch()
        name = self.dice.choice(sorted(self.running))
        MirrorPod.objects.filter(run=f"{name}-1").delete()
        MirrorJob.objects.filter(run=f"{name}-1").delete()
        Run.objects.filter(workload__name=name).update(ended_at=timezone.now(), outcome="stopped")
        del self.running[name]
        for pods in self.on.values():
            pods.pop(name, None)
        return None

    def give_up(self) -> None:
        if not self.queued:
            return self.queue()
        name = self.dice.choice(sorted(self.queued))
        job = MirrorJob.objects.get(run=f"{name}-1")
        MirrorWorkload.objects.filter(job_uid=job.uid).delete()
        job.delete()
        Run.objects.filter(workload__name=name).update(ended_at=timezone.now(), outcome="stopped")
        del self.queued[name]
        return None

    def grant(self) -> None:
        team = self._team()
        self.granted[team] = max(self.used(team), self.dice.choice((3, 4, 5, 6, 7, 8)))
        Grant.objects.filter(tenant__slug=team).update(units=self.granted[team])

    def cordon(self) -> None:
        node = self.dice.choice(NODES)
        self.cordoned ^= {node}
        MirrorNode.objects.filter(name=node).update(schedulable=node not in self.cordoned)

    def outsider(self) -> None:
        """A pod that nobody started in the portal."""
        node = self.dice.choice(NODES)
        if self._free(node) < 2 or node in self.cordoned:
            return self.cordon()
        name = self._name("pod")
        stranger(self.namespaces["team-b"], name, node=node)
        self.on[node][name] = 2
        return None

    def ask(self) -> None:
        team = self._team()
        if team in self.pending:
            pk, _ = self.pending.pop(team)
            request_actions.withdraw_request(pk, by=Actor(self.people[team], "page"))
            return
        units = self.granted[team] + 2
        filed = file(self.namespaces[team].tenant, self.people[team], **{self.gpu_class.slug.replace("-", "_"): units})
        self.pending[team] = (filed.pk, units)

    # ---- counts ------------------------------------------------------------------------------------------------

    def used(self, team: str) -> int:
        """Pods that nobody started in the portal are not counted for a team."""
        return sum(units for owner, units in self.running.values() if owner == team)

    def waiting(self, team: str = "") -> list[int]:
        return [units for owner, units in self.queued.values() if team in ("", owner)]

    @property
    def in_use(self) -> int:
        return sum(sum(pods.values()) for pods in self.on.values())

    @property
    def free(self) -> int:
        return sum(self._free(node) for node in NODES if node not in self.cordoned)

    @property
    def most_on_one(self) -> int:
        return max((self._free(node) for node in NODES if node not in self.cordoned), default=0)

    @property
    def allocated(self) -> int:
        return sum(self.granted.values())

    def _free(self, node: str) -> int:
        return PER_NODE - sum(self.on[node].values())

    def _team(self) -> str:
        return self.dice.choice(("team-a", "team-a", "team-b"))

    def _name(self, kind: str) -> str:
        self.number += 1
        return f"{kind}-{self.number}"


@pytest.fixture
def world(a100: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User, bob: User, unique: str) -> World:
    cluster = a100.cluster
    mirrored.hardware_seen(cluster)
    other = make.tenant(cluster, slug="team-b")
    charlie = make.user("Charlie")
    make.member(other, charlie, "owner")
    for team, units in ((team_a, 4), (other, 6)):
        make.grant(team, a100, units=units)
    namespaces = {"team-a": namespace_a, "team-b": other.namespaces.get()}
    return World(a100, namespaces, {"team-a": alice, "team-b": charlie}, random.Random(20))


def current() -> None:
    """The mirror was listed a moment ago, whatever a helper set."""
    now = timezone.now()
    MirrorEpoch.objects.update(epoch=1, heard_at=now, beat_at=now)
    MirrorKind.objects.update(epoch=1, listed_at=now, heard_at=now)


def words(who: User, path: str) -> str:
    client = Client()
    client.force_login(who)
    answer = client.get(path)
    assert answer.status_code == 200, path
    return Page(path, 200, {}, answer.content).words()


def figures(pattern: str, text: str) -> tuple[int, ...] | None:
    found = re.search(pattern, text)
    return None if found is None else tuple(NUMBERS[one] if one in NUMBERS else int(one) for one in found.groups())


N = r"(\d+|[Nn]one?|no)"


def home(world: World, people: dict[str, User]) -> None:
    text = words(people["alice"], "/teams/team-a")
    mine = sum(owner == "team-a" for owner, _ in world.running.values())
    waits = world.waiting("team-a")
    assert figures(rf"{N} workloads? (?:is|are) running or starting, {N} (?:is|are) queued", text) == (mine, len(waits))
    used, granted = world.used("team-a"), world.granted["team-a"]
    quota = text.split("Expiring quota")[0]
    shown = figures(r"granted (\d+) used (\d+) borrowed (\d+) lent (?:\S+ )*?queued (\d+)", quota)
    assert shown == (granted, used, 0, sum(waits))
    assert figures(r"Running (\d+) All workloads", text) == (mine,)
    assert figures(r"Queued (\d+) ", text.split("Preemptible")[-1]) == (len(waits),)
    assert figures(r"whole card, (\d+) of (\d+) GPUs in use", text) == ((used, granted) if mine else None)
    if waits:
        left = granted - used
        unused = figures(rf"{N} of (\d+) GPUs of your team's quota (?:is|are) unused", text)
        assert unused == ((left, granted) if left else None)
        assert figures(r"Queued workloads request (\d+) GPU", text) == (sum(waits),)


def catalog(world: World, people: dict[str, User]) -> None:
    text = words(people["alice"], "/catalog")
    there = PER_NODE * len(NODES)
    shown = figures(r"GPUs free now (\d+) of (\d+) most free on one node (\d+)", text)
    assert shown == (world.free, there, world.most_on_one)
    shown = figures(
        r"Allocated to teams: (\d+) of (\d+); (\d+) more queued\.", re.sub(r"(of \d+)\.", r"\1; 0 more queued.", text)
    )
    assert shown == (world.allocated, there, sum(world.waiting()))
    waits = sum(world.waiting("team-a"))
    mine = figures(r"Team A: (\d+) of (\d+) used(?:, (\d+) queued)?", re.sub(r"used\.", "used, 0 queued.", text))
    assert mine == (world.used("team-a"), world.granted["team-a"], waits)


def class_page(world: World, people: dict[str, User]) -> None:
    text = words(people["alice"], f"/catalog/{world.gpu_class.slug}")
    shown = figures(
        r"free now (\d+) of (\d+) GPUs most free on one node (\d+) in use (\d+) allocated (\d+) queued (\d+)", text
    )
    expected = (world.free, 16, world.most_on_one, world.in_use, world.allocated, sum(world.waiting()))
    assert shown == expected
    closed = PER_NODE * len(world.cordoned)
    assert figures(r"unhealthy (\d+) cordoned (\d+)", text) == (0, closed)
    assert figures(r"quota of (\d+) GPUs", text) == (world.granted["team-a"],)


def launch(world: World, people: dict[str, User]) -> None:
    text = words(people["alice"], "/teams/team-a/launch?kind=job")
    shown = figures(r"Uses (\d+) of (\d+) GPUs; (\d+) free now on one node; starts now", text)
    granted, would_use = world.granted["team-a"], world.used("team-a") + 1
    for units in world.waiting("team-a"):  # what fits starts before it; the queue passes over what does not
        would_use += units if would_use - 1 + units <= granted else 0
    if would_use <= granted and world.most_on_one:
        assert shown == (would_use, granted, world.most_on_one)
    else:
        assert shown is None


def workloads(world: World, people: dict[str, User]) -> None:
    text = words(people["alice"], "/teams/team-a/workloads")
    for names, word in ((world.running, "Ready"), (world.queued, "Queued")):
        for name, (team, units) in names.items():
            size = f"notebook, {units} GPU{'s' if units > 1 else ''}"
            row = rf"{name} A100 80GB whole card, \w+ {word} .*?{size}"
            assert (re.search(row, text) is not None) == (team == "team-a"), name


def grants(world: World, people: dict[str, User]) -> None:
    text = words(people["alice"], "/teams/team-a/grants")
    assert figures(r"(\d+) GPUs total", text) == (world.granted["team-a"],)
    assert figures(r"Total of (\d+) GPUs", text) == (world.granted["team-a"],)


def inbox(world: World, people: dict[str, User]) -> None:
    text = words(people["dana"], "/inbox")
    assert figures(r"(\d+) requests? pending", text) == ((len(world.pending),) if world.pending else None)
    for team, (pk, units) in world.pending.items():
        row = text[text.index(f"#{pk} ") :]
        shown = figures(
            r"whole card: (\d+) → (\d+) GPUs until .*? (\d+) of (\d+) allocated to teams; (\d+) free now", row
        )
        assert shown == (world.granted[team], units, world.allocated, 16, world.free)


def nodes(world: World, people: dict[str, User]) -> None:
    text = words(people["olga"], "/nodes")
    for node in NODES:
        row = text[text.index(f"{node} NVIDIA-A100-SXM4-80GB") :]
        assert figures(r"(\d+) of (\d+) nvidia\.com/gpu", row) == (sum(world.on[node].values()), PER_NODE)
        assert ("Cordoned" in row[:80]) == (node in world.cordoned)


def capacity(world: World, people: dict[str, User]) -> None:
    text = words(people["alice"], "/cluster")
    assert figures(r"(\d+) of (\d+) GPUs free", text) == (world.free, 16)


def queue(world: World, people: dict[str, User]) -> None:
    text = words(people["olga"], "/queue")
    shown = figures(r"queued runs per class A100 80GB whole card (\d+) runs?, (\d+) GPUs?", text)
    waits = world.waiting()
    assert shown == ((len(waits), sum(waits)) if waits else None)


def cockpit(world: World, people: dict[str, User]) -> None:
    text = words(people["olga"], "/operators")
    shown = figures(r"Whole GPU 1 class (\d+) (\d+) (\d+) (\d+) (\d+)", text)
    assert shown == (world.free, world.in_use, 16, world.allocated, sum(world.waiting()))
    assert figures(rf"{N} queued runs?", text) == (len(world.waiting()),)
    assert figures(rf"{N} pending requests?", text) == (len(world.pending),)


def teams(world: World, people: dict[str, User]) -> None:
    text = words(people["olga"], "/operators/teams")
    for team, granted in world.granted.items():
        row = text[text.rindex(f"{team} ") :]
        shown = figures(r"(\d+)/(\d+) GPUs \S+ (\d+) ", row)
        assert shown == (world.used(team), granted, len(world.waiting(team)))


PAGES: tuple[Callable[[World, dict[str, User]], None], ...] = (
    home, catalog, class_page, launch, workloads, grants, inbox, nodes, capacity, queue, cockpit, teams,
)  # fmt: skip


def test_every_number_on_the_main_pages_is_what_was_done(world: World, alice: User, dana: User, olga: User) -> None:
    people = {"alice": alice, "dana": dana, "olga": olga}
    steps = (
        world.launch, world.launch, world.launch, world.queue, world.end, world.give_up, world.grant, world.cordon,
        world.outsider, world.ask,
    )  # fmt: skip
    done = []
    for _ in range(STEPS):
        step = world.dice.choice(steps)
        step()
        done.append(step.__name__)
        current()
        for page in PAGES:
            try:
                page(world, people)
            except AssertionError as error:
                raise AssertionError(f"{page.__name__} after {done}: {error}") from error
    assert {step.__name__ for step in steps} <= set(done)
    assert QuotaRequest.objects.filter(lines__state="pending").count() == len(world.pending)
    assert timezone.now() - Run.objects.earliest("requested_at").requested_at < timedelta(minutes=10)
