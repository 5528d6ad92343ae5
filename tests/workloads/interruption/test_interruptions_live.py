"""A team reclaims its borrowed units: what page, API, email and history show before and after, on the real control
plane.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.controlplane import hardware
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.models import Membership, Namespace, Tenant
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.live import is_open, of_team, play
from workloads.forecast import prediction_log
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.models import Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]
API = "/api/v1/workloads/borrows?team=team-a"
PAGE = "/teams/team-a/workloads/borrows"


@pytest.fixture
def four(admin: Api, cluster: Cluster, unique: str) -> Iterator[GpuClass]:
    """One node with four GPUs that no other work requests."""
    product = f"LENT-{unique}"
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    labels = {"nvidia.com/gpu": {"product": product, "present": True}}
    name = f"lent-{unique}"
    hardware.add(admin, hardware.node(name, devices={"nvidia.com/gpu": 4}, labels=labels, taints=[taint]))
    selector = {"nvidia.com/gpu.product": product}
    yield make.gpu_class(cluster, slug=name, name="Lent", node_labels=selector, borrowing_limit=4)
    admin.delete("v1/nodes", name)


@pytest.fixture
def team_b(cluster: Cluster, four: GpuClass, unique: str, charlie: User) -> Tenant:
    """Charlie's team; it holds three of the four GPUs."""
    found = make.tenant(cluster, slug="team-b", namespace=f"team-b-{unique}")
    make.member(found, charlie, Membership.Role.OWNER)
    make.grant(found, four, units=3)
    return found


def test_who_lends_takes_back_and_the_borrower_reads_it_before_and_after(
    four: GpuClass, job: LaunchSpec, team_a: Tenant, namespace_a: Namespace, team_b: Tenant, kube_worker: Kube,
    clean_cluster: None, alice: User, charlie: User, olga: User, by_alice: Actor, by_charlie: Actor, worker: Worker,
    admin: Api, client: Client,
) -> None:  # fmt: skip
    make.grant(team_a, four, units=1)
    namespace_b = Namespace.objects.get(tenant=team_b)
    provision(namespace_a, kube_worker)
    wait_until(lambda: is_open(namespace_b, kube_worker))
    client.force_login(alice)
    kubelet = ScriptedKubelet(admin)
    wanted = replace(job, gpu_class=four.slug, options=Options(checkpoints=True, run_hours=8))
    # The pods ignore the stop: with an exit code the Job could fail, depending on timing, and another run would follow.
    with kubelet.claim(namespace_a.name, is_silent=True), kubelet.claim(namespace_b.name, is_silent=True):
        actions.launch("team-a", replace(wanted, name="borrows", units=4), by=by_alice)
        play(kubelet, worker, namespace_a.name, "borrows")
        worker(lambda: of_team(team_a) == {"borrows": ("running", "running")})

        before = client.get(API).json()["interruption"]
        assert before == {
            "standing": "borrowed",
            "holds_units": True,
            "borrowed_units": 3,
            "by": [
                {"who": "other_team", "rule": "InCohortReclamation", "priorities": []},
                {"who": "own_team", "rule": "InClusterQueue", "priorities": ["production", "interactive"]},
            ],
            "checkpoints": True,
            "sentence": "3 of its 4 GPUs are borrowed: the lending team reclaims them as soon as it needs them, and "
            "then the run loses all 4. Workloads of your team with the priority production or interactive can also "
            "preempt it.",
            "loses": "It restarts automatically and continues from its last checkpoint; later progress is lost. It has "
            "no volume: files are deleted when it stops, and memory is lost.",
            "last": None,
        }
        shown = text_of(client, PAGE)
        assert f"Interruptions: {before['sentence']} It restarts automatically and continues from its last" in shown
        assert "on borrowed units, preemptible" in text_of(client, "/teams/team-a/workloads")
        assert "yes, borrowed units may be reclaimed" in text_of(client, "/teams/team-a")
        assert Delivery.objects.count() == 0

        actions.launch("team-b", replace(wanted, name="unheard-of", units=3), by=by_charlie)
        play(kubelet, worker, namespace_b.name, "unheard-of")
        worker(lambda: of_team(team_b) == {"unheard-of": ("running", "running")} and Delivery.objects.exists())
        worker(lambda: client.get(API).json()["status"]["facts"].get("missing_units"))

        after = client.get(API).json()
        last = after["interruption"]["last"]
        assert (last["rule"], last["who"], last["times"]) == ("InCohortReclamation", "other_team", 1)
        assert last["at"] is not None
        assert last["back_at"] is None
        assert (after["run"]["ended_at"], after["run"]["preemptions"]) == (None, 1)
        assert after["status"]["reason"] == "preempted"
        assert after["interruption"]["holds_units"] is False
        assert after["estimate"] is not None
        shown = text_of(client, PAGE)
        assert "by Kueue's rule InCohortReclamation, for the 1st time." in shown
        assert "Starts: No start estimate It waits for idle GPUs of other teams" in shown
        (event,) = Event.objects.filter(verb="workload.interrupted")
        assert event.after == {"run": 1, "rule": "InCohortReclamation", "times": 1, "earlier": 0, "at": last["at"]}
        (mail,) = Delivery.objects.all()
        assert mail.user == alice
        assert mail.subject == "borrows of Team A was preempted"
        assert last["sentence"] in mail.body
        assert "continues from its last checkpoint" in mail.body
        assert "No start estimate: it waits for idle GPUs of other teams" in mail.body
        assert PAGE in mail.body
        for word in ("unheard-of", "team-b", "Team B", "Charlie", "UID"):
            assert word not in f"{mail.subject} {mail.body} {event.after} {after} {shown}", "never another team's"

        # A run of the other team that waits for a known end gets a range, which is stored beside the actual start.
        actions.launch("team-b", replace(wanted, name="next", units=3), by=by_charlie)
        worker(lambda: "earliest" in (estimate_of(client, charlie, "next") or {}))
        ends_at = Run.objects.get(workload__name="unheard-of").ends_at
        assert ends_at is not None
        told = estimate_of(client, charlie, "next")
        assert told["basis"].startswith("1st in your team's queue; based on the known end times of your team's runs")
        earliest, latest = (datetime.fromisoformat(told[name]) for name in ("earliest", "latest"))
        # Other teams may leave units idle at any time; its own are free at that end, plus the time to hand them over.
        assert earliest <= timezone.now()
        assert timedelta(minutes=5) <= latest - ends_at <= timedelta(minutes=6)
        raw = client.get("/teams/team-b/workloads/next").content.decode()
        assert f'<b>now to <time datetime="{latest:%Y-%m-%dT%H:%M}' in raw
        assert told["basis"] in html.unescape(raw)
        Run.objects.filter(workload__name="next").update(requested_at=timezone.now() - timedelta(minutes=2))
        assert prediction_log.log_predictions() >= 1

        # The neighbour: a run that a user stops causes no notice.
        actions.stop("team-b", "unheard-of", by=by_charlie)
        worker(lambda: Run.objects.get(workload__name="unheard-of").ended_at)
        play(kubelet, worker, namespace_b.name, "next")
        worker(lambda: Run.objects.get(workload__name="next").started_at)
        client.force_login(olga)
        assert "1 of 1 start in the last 30 days was within the first estimated range; 0 earlier, 0 later." in text_of(
            client, f"/catalog/{four.slug}"
        )
        actions.stop("team-b", "next", by=by_charlie)
        client.force_login(alice)
        play(kubelet, worker, namespace_a.name, "borrows")
        worker(lambda: Event.objects.filter(verb="workload.resumed").exists())
        last = client.get(API).json()["interruption"]["last"]
        assert (last["rule"], last["times"]) == ("InCohortReclamation", 1)
        assert last["back_at"] is not None
        assert "It has been running again since" in text_of(client, PAGE)
        assert Delivery.objects.count() == 1, "a job goes on by itself"


def estimate_of(client: Client, by: User, name: str) -> Any:
    client.force_login(by)
    return client.get(f"/api/v1/workloads/{name}?team=team-b").json()["estimate"]


def text_of(client: Client, path: str) -> str:
    page: Any = client.get(path)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page.content.decode())))
