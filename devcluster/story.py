"""Teams, classes and a few decisions to try the portal with, made through the portal's own actions.

Safe to run again: what exists is kept. Imported after django.setup() by devcluster.seed.
"""

from __future__ import annotations

import time
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from accounts.actor import Actor, system
from accounts.models import User
from catalog import actions as catalog
from catalog import queries as catalog_queries
from catalog.discovery import Proposal
from catalog.models import GpuClass, Image
from cluster.models import Cluster
from devcluster.say import Problem
from tenants import actions as tenants
from tenants.models import ApproverFor, Tenant
from tenants.policy import Asked

LISTED_WITHIN_S = 60
TEAMS = (
    ("team-a", "Team A", "Vision models for microscopy", "Alice"),
    ("team-c", "Team C", "Speech recognition", "Charlie"),
)
IMAGES = (
    ("JupyterLab, minimal", "quay.io/jupyter/minimal-notebook:latest", "JupyterLab and Python", 10),
    ("JupyterLab, PyTorch", "quay.io/jupyter/pytorch-notebook:cuda12-latest", "PyTorch with CUDA 12", 20),
)
# By resource name: what Charlie's team was granted before the demo begins, and what he asks for now.
HELD = (("nvidia.com/gpu", 4), ("nvidia.com/mig-1g.10gb", 2))
ASKED = (("nvidia.com/gpu", 6),)


def tell() -> None:
    cluster = settle_cluster()
    catalog.accept_proposals(proposals(cluster), by=page("Olga"), cluster=cluster)
    for name, reference, contents, position in IMAGES:
        if not Image.objects.filter(name=name).exists():
            values = {"reference": reference, "contents": contents, "kind": "notebook", "position": position}
            catalog.put_image(name=name, by=page("Olga"), **values)
    ApproverFor.objects.get_or_create(user=person("Dana"), gpu_class=None)
    for slug, name, purpose, owner in TEAMS:
        if not Tenant.objects.filter(slug=slug).exists():
            tenants.create_tenant(slug=slug, name=name, purpose=purpose, owner=person(owner), by=system("demo"))
    if not person("Bob").memberships.exists():
        tenants.add_member("team-a", email=person("Bob").email, role="member", by=page("Alice"))
    let_charlie_ask()


def settle_cluster() -> Cluster:
    """The demo's gateway may have another port than last time."""
    values = {"notebooks_domain": settings.NOTEBOOKS_DOMAIN}
    return Cluster.objects.update_or_create(name=settings.CLUSTER_NAME, defaults=values)[0]


def proposals(cluster: Cluster) -> list[Proposal]:
    """One class for each kind of capacity that the watcher has seen."""
    deadline = time.monotonic() + LISTED_WITHIN_S
    while (found := catalog_queries.discover(cluster)) is None:
        if time.monotonic() > deadline:
            raise Problem(
                f"The watcher has not listed the nodes within {LISTED_WITHIN_S} s.",
                "Its log says why; then start the demo again, its data is kept.",
            )
        time.sleep(0.2)
    return list(found.proposals)


def let_charlie_ask() -> None:
    """His team holds something already and asks for more: an approver finds a request to decide."""
    if Tenant.objects.get(slug="team-c").requests.exists():
        return
    held = tenants.file_request(
        "team-c", lines=lines(HELD), justification="Two trainings and two small notebooks.", by=page("Charlie")
    )
    decisions = [tenants.Decision(line_id=line.pk, approve=True) for line in held.lines.all()]
    tenants.decide(held.pk, decisions, by=page("Dana"))
    why = "The large model doubles next week: two more whole cards for the second replica."
    tenants.file_request("team-c", lines=lines(ASKED), justification=why, by=page("Charlie"))


def lines(wanted: tuple[tuple[str, int], ...]) -> list[Asked]:
    """The first exclusive class that is counted by each resource name; hardware without one is left out."""
    now = timezone.now()
    found = []
    for resource, units in wanted:
        gpu_class = GpuClass.objects.filter(
            resource=resource, sharing=GpuClass.Sharing.NONE, life_cycle=GpuClass.LifeCycle.ACTIVE
        ).first()
        if gpu_class is not None:
            found.append(Asked(gpu_class=gpu_class.slug, units=units, starts=now, ends=now + timedelta(days=90)))
    return found


def person(name: str) -> User:
    return User.objects.get(email=f"{name.lower()}@example.org")


def page(name: str) -> Actor:
    return Actor(user=person(name), via="page")
