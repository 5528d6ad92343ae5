"""Real Kueue holds work back; following the first step that its page offers, by the page's own form, starts it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser

import pytest
from django.test import Client
from django.utils import timezone

from accounts.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.kube import Kube
from devcluster.api import Api
from devcluster.kubelet import Kubelet
from tenants.models import Grant, Namespace, Tenant
from tests import make
from tests.waiting import wait_until
from tests.workloads.conftest import Worker, provision
from tests.workloads.test_problems_live import MISSING, cpu, on_nodes, told
from tests.workloads.test_problems_shared_live import is_open, own
from workloads import actions, queries
from workloads.models import NotebookWatch, Workload
from workloads.next_steps_shown import Helps, helps
from workloads.options import Options
from workloads.policy import Wanted
from workloads.queries.helping import advices

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]

# The fixtures of others, by their names.
__all__ = ["cpu", "own"]

RUNNING = ("running", "running")


class _Form(HTMLParser):
    """What a browser would send of the form with the class `cols`."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._inside, self._select, self._area = False, "", ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {key: value or "" for key, value in attrs}
        if tag == "form":
            self._inside = "cols" in found.get("class", "").split()
        if not self._inside:
            return
        name, value = found.get("name", ""), found.get("value", "on" if found.get("type") == "checkbox" else "")
        is_chosen = found.get("type") not in ("radio", "checkbox") or "checked" in found
        if tag == "input" and name and is_chosen:
            self.fields[name] = value
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select and "selected" in found:
            self.fields[self._select] = value
        elif tag == "textarea":
            self._area = name
            self.fields[name] = ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.fields[self._area] += data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._inside = False
        if tag == "select":
            self._select = ""
        if tag == "textarea":
            self._area = ""


@pytest.fixture
def by_hand(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


@pytest.fixture
def asked(own: GpuClass, job: Wanted) -> Wanted:
    return replace(job, gpu_class=own.slug, options=Options(checkpoints=True))


def help_of(by: Actor, name: str) -> Helps:
    namespace, team = queries.team(by, "team-a")
    rows = queries.rows(queries.with_names(Workload.objects.filter(name=name)))
    return helps(name, advices(by, namespace, team, rows)[name], "team-a")


def until_waits(worker: Worker, by: Actor, name: str, verb: str, *, reason: str) -> Helps:
    """Until the page's first step is that one, for that reason."""

    def is_so() -> bool:
        if told().get(name, ("", ""))[1] != reason:
            return False
        return help_of(by, name).steps[0].verb == verb

    worker(is_so)
    return help_of(by, name)


def follow(client: Client, href: str, **typed: str) -> None:
    """As a person does: to the page of the step, and its form sent as it stands there."""
    page = client.get(href.partition("#")[0])
    fields = _Form(page.content.decode()).fields | typed
    answer = client.post(href.partition("?")[0].partition("#")[0], fields)
    assert answer.status_code == 302, answer.content.decode()


def runs(name: str) -> Callable[[], bool]:
    return lambda: told().get(name) == RUNNING


def test_fewer_units_another_class_and_stopping_an_idle_notebook(
    own: GpuClass, cpu: GpuClass, asked: Wanted, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube,
    clean_cluster: None, by_alice: Actor, by_hand: Client, worker: Worker,
) -> None:  # fmt: skip
    """Four cards are granted, all on the one node that has so many; first three of them are in use, then all four."""
    GpuClass.objects.filter(pk=own.pk).update(borrowing_limit=0)
    make.grant(team_a, own, units=4)
    provision(namespace_a, kube_worker)
    notebook = replace(asked, name="idle", kind="notebook", image="minimal", command=(), units=3, options=Options())
    actions.launch("team-a", notebook, by=by_alice)
    worker(lambda: told().get("idle", ("", ""))[0] in ("starting", "ready", "running"))

    # Two asked for, one is left.
    actions.launch("team-a", replace(asked, name="fewer", units=2), by=by_alice)
    found = until_waits(worker, by_alice, "fewer", "fewer_units", reason="waiting_for_quota")
    assert found.steps[0].label == "Ask for 1 card instead of 2"
    follow(by_hand, found.steps[0].href)
    worker(runs("fewer"))

    # Nothing is left: what nobody uses holds enough.
    actions.launch("team-a", replace(asked, name="waits", units=3), by=by_alice)
    until_waits(worker, by_alice, "waits", "wait", reason="waiting_for_quota")
    idle = Workload.objects.get(name="idle").runs.get()
    NotebookWatch.objects.update_or_create(
        run=idle, defaults={"idle_since": timezone.now() - timedelta(hours=1), "due_at": None}
    )
    found = until_waits(worker, by_alice, "waits", "stop_other", reason="waiting_for_quota")
    assert found.steps[0].href == "/teams/team-a/workloads/idle"
    assert by_hand.post(f"{found.steps[0].href}/stop").status_code == 302
    worker(runs("waits"))

    # Another class that the team holds and that takes its image.
    make.grant(team_a, cpu, units=4)
    wait_until(lambda: is_open(namespace_a, kube_worker))
    actions.launch("team-a", replace(asked, name="elsewhere"), by=by_alice)
    found = until_waits(worker, by_alice, "elsewhere", "other_class", reason="waiting_for_quota")
    follow(by_hand, found.steps[0].href)
    worker(runs("elsewhere"))
    assert Workload.objects.get(name="elsewhere").gpu_class == cpu


def test_what_can_never_start_any_more_is_asked_for_smaller(
    own: GpuClass, asked: Wanted, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None,
    by_alice: Actor, by_hand: Client, worker: Worker,
) -> None:  # fmt: skip
    """It waited when its grant became smaller; beside it, what only waits."""
    GpuClass.objects.filter(pk=own.pk).update(borrowing_limit=0)
    make.grant(team_a, own, units=2)
    make.grant(team_a, own, units=1, kind=Grant.Kind.BOOST)
    provision(namespace_a, kube_worker)
    actions.launch("team-a", replace(asked, name="holds", units=3), by=by_alice)
    worker(runs("holds"))
    actions.launch("team-a", replace(asked, name="large", units=3), by=by_alice)
    found = until_waits(worker, by_alice, "large", "wait", reason="waiting_for_quota")
    assert found.verdict == "not_yet"

    Grant.objects.filter(kind=Grant.Kind.BOOST).delete()
    wait_until(lambda: is_open(namespace_a, kube_worker))
    worker(lambda: told()["large"][1] == "exceeds_maximum")
    actions.stop("team-a", "holds", by=by_alice)
    found = until_waits(worker, by_alice, "large", "fewer_units", reason="exceeds_maximum")
    assert (found.verdict, found.steps[0].label) == ("never", "Ask for 2 cards instead of 3")
    follow(by_hand, found.steps[0].href)
    worker(runs("large"))


def test_two_cards_together_that_no_node_has(
    own: GpuClass, asked: Wanted, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None,
    by_alice: Actor, by_hand: Client, worker: Worker,
) -> None:  # fmt: skip
    """Three cards are free, on three nodes."""
    make.grant(team_a, own, units=6)
    provision(namespace_a, kube_worker)
    actions.launch("team-a", replace(asked, name="holds", units=3), by=by_alice)
    worker(runs("holds"))
    actions.launch("team-a", replace(asked, name="together", units=2), by=by_alice)
    found = until_waits(worker, by_alice, "together", "fewer_units", reason="no_node_fits")
    assert found.steps[0].why.startswith("Uses 4 of 6 cards; 1 free now on one node")
    follow(by_hand, found.steps[0].href)
    worker(runs("together"))


def test_an_image_that_is_not_there_is_changed(
    own: GpuClass, asked: Wanted, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None,
    by_alice: Actor, by_hand: Client, worker: Worker, admin: Api,
) -> None:  # fmt: skip
    make.grant(team_a, own, units=2)
    provision(namespace_a, kube_worker)
    kubelet = Kubelet(admin)
    notebook = replace(asked, name="mistyped", kind="notebook", image="absent", command=(), options=Options())
    with kubelet.claim(namespace_a.name):
        actions.launch("team-a", notebook, by=by_alice)
        worker(lambda: on_nodes(admin, namespace_a.name))
        kubelet.pull_error(kubelet.bound(namespace_a.name), MISSING)
        found = until_waits(worker, by_alice, "mistyped", "change", reason="image_not_found")
        assert found.steps[0].href == "/teams/team-a/workloads/mistyped/change#id_image"
    follow(by_hand, found.steps[0].href, image="minimal")
    worker(lambda: told()["mistyped"][0] in ("starting", "ready"))
    assert Workload.objects.get(name="mistyped").runs.count() == 2
