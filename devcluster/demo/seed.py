"""Creates demo data, mostly with the portal's own actions: first accounts and teams; then the catalog, when the watcher
has seen the nodes; then, for a scenario with a past, the runs that have started are moved into it.

    python -m devcluster.demo.seed people ACCOUNTS.json [SCENARIO [PROCESS=FILE …]]
    python -m devcluster.demo.seed catalog ACCOUNTS.json [SCENARIO]
    python -m devcluster.demo.seed past ACCOUNTS.json SCENARIO

Runs again at every start and adds what is missing. Passwords and tokens are stored in the accounts file (mode 0600);
the database contains only their hashes.
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django
from django.conf import settings
from django.core.management import call_command

from devcluster.demo import scenarios
from devcluster.demo.sample import activity, contention, history, idle_gpus, quota_setup, sample_classes
from devcluster.demo.scenarios import EVERYDAY, MORNING, WASTE, Scenario
from devcluster.node import images
from devcluster.node.configuration import LABELS
from devcluster.processes.private_files import write_private

if TYPE_CHECKING:
    from accounts.core.actor import Actor
    from accounts.models import User
    from cluster.models import Cluster

TOKEN_DAYS = 90
MIRROR_WITHIN_S = 60.0
# (resource, units): the quota of Charlie's team when the demo starts, and the new total that he requests.
HELD = (("nvidia.com/gpu", 4), ("nvidia.com/mig-1g.10gb", 2))
ASKED = (("nvidia.com/gpu", 6),)
# The bundles of quota for new teams: name, summary, days, and units of the class with the least memory of a kind. Kinds
# that the hardware does not have are left out.
BUNDLES = (
    (
        "Research",
        "For experiments: time-sliced shares and a small MIG slice.",
        90,
        (("share", 2), ("slice", 1), ("storage", 200)),
    ),
    ("Training", "Whole GPUs.", 60, (("gpu", 2), ("storage", 500))),
    ("Inference", "MIG slices with isolated memory, for services.", 180, (("slice", 2), ("storage", 50))),
)
# The allocation limit of storage, in GiB.
STORAGE_GIB = 20_000
# An image that is built for any CUDA 12 runs on drivers that offer CUDA 12.0 (docs.nvidia.com, minor version
# compatibility).
IMAGES: dict[str, dict[str, str]] = {
    "JupyterLab with PyTorch": {
        "kind": "notebook",
        "version": "2025-11-10",
        "reference": "quay.io/jupyter/pytorch-notebook:cuda12-2025-11-10",
        "contents": "JupyterLab, Python, PyTorch, CUDA 12",
        "vendor": "nvidia",
        "min_cuda": "12.0",
    },
    "JupyterLab": {
        "kind": "notebook",
        "version": "2025-11-10",
        "reference": "quay.io/jupyter/scipy-notebook:2025-11-10",
        "contents": "JupyterLab, Python, SciPy, pandas",
    },
    "PyTorch": {
        "kind": "job",
        "version": "2.9.1",
        "reference": "docker.io/pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime",
        "contents": "Python, PyTorch, CUDA 12.8, cuDNN 9",
        "vendor": "nvidia",
        "min_cuda": "12.0",
    },
    "PyTorch for AMD": {
        "kind": "job",
        "version": "2.9.1",
        "reference": "docker.io/rocm/pytorch:rocm7.1.1_ubuntu24.04_py3.12_pytorch_release_2.9.1",
        "contents": "Python 3.12, PyTorch, ROCm 7.1.1",
        "vendor": "amd",
    },
}
# Terms of use of the MPS class, if the hardware has one.
TERMS = """\
This class is a pilot. Several workloads run on one GPU at the same time; each has a GPU memory limit.

A fatal error in one workload can end the others. Use checkpointing, and do not run production workloads here."""


def main(what: str, file: Path, named: str = EVERYDAY.name, *logins: str) -> None:
    django.setup()
    scenario = scenarios.scenario_named(named)
    if what == "people":
        call_command("migrate", interactive=False, verbosity=0)
        call_command("database_roles", *logins)
        known = {account["name"]: account for account in json.loads(file.read_text())} if file.exists() else {}
        write_private(file, json.dumps([_account(*one, known=known) for one in scenario.cast], indent=1))
        _cluster_and_teams(scenario)
    elif what == "past":
        idle_gpus.move_back(timedelta(hours=scenario.past_hours))
    else:
        _catalog(scenario)


def _account(name: str, role: str, tenant: str, *, known: dict[str, Any]) -> dict[str, Any]:
    from accounts.models import Role, User

    roles = {"Dana": [Role.APPROVER], "Olga": [Role.OPERATOR, Role.ADMIN]}.get(name, [])
    email = f"{name.lower()}@example.org"
    account = known.get(name) or {"name": name, "email": email, "role": role, "tenant": tenant}
    account.setdefault("password", f"{name.lower()}-{secrets.token_urlsafe(9)}")
    user = User.objects.filter(email=email).first()
    if user is None:
        user = User.objects.create_user(
            email=email,
            name=name,
            password=account["password"],
            roles=[str(one) for one in roles],
        )
    account["token"] = _token(user, str(account.get("token", "")))
    return account


def _token(user: User, known: str) -> str:
    """Returns the token of the previous start if it is still valid, otherwise a new one. It lacks the scope admin,
    which requires a second factor: with one, nobody could sign in to the demo without an app.
    """
    from django.utils import timezone

    from accounts.api_tokens import actions, token_text
    from accounts.core.actor import Actor
    from accounts.models import ApiToken, Scope

    text = token_text.parse_token(known)
    works = ApiToken.objects.filter(user=user, revoked_at=None, expires_at__gt=timezone.now())
    if text is not None and works.filter(prefix=text.prefix).exists():
        return known
    scopes = [str(scope) for scope in Scope if scope != Scope.ADMIN]
    name = f"demo {secrets.token_hex(2)}"
    by = Actor(user=user, via="page")
    _, made = actions.create_token(name=name, scopes=scopes, expires_in_days=TOKEN_DAYS, by=by)
    return made


def _by(name: str) -> Actor:
    """Returns an actor that acts as this user on a page."""
    from accounts.core.actor import Actor
    from accounts.models import User

    return Actor(user=User.objects.get(email=f"{name.lower()}@example.org"), via="page")


def _cluster_and_teams(scenario: Scenario) -> None:
    from django.conf import settings

    from cluster.models import Cluster
    from tenants.members import actions as member_actions
    from tenants.models import ApproverFor, Membership, Tenant
    from tenants.onboarding.teams import actions as team_actions

    domain = settings.NOTEBOOKS_DOMAIN
    cluster, _ = Cluster.objects.update_or_create(name=settings.CLUSTER_NAME, defaults={"notebooks_domain": domain})
    ApproverFor.objects.get_or_create(user=_by("Dana").person, gpu_class=None)
    owners = {team: name for name, role, team in scenario.cast if role == "owner"}
    for slug, owner in owners.items():
        if not Tenant.objects.filter(slug=slug).exists():
            title = slug.replace("-", " ").title()
            team_actions.create_tenant(slug=slug, name=title, owner=_by(owner).person, by=_by("Olga"), cluster=cluster)
    for name, role, slug in scenario.cast:
        person = _by(name).person
        if role == "member" and not Membership.objects.filter(tenant__slug=slug, user=person).exists():
            member_actions.add_member(slug, email=person.email, role=Membership.Role.MEMBER, by=_by(owners[slug]))


def _catalog(scenario: Scenario) -> None:
    """Accepts all proposals for classes that discovery found on the nodes, adds images, and creates the quota and
    requests of the scenario.
    """
    from catalog.classes import actions as class_actions
    from catalog.classes.proposals import actions as proposal_actions
    from catalog.discovery import queries
    from catalog.images import actions as image_actions
    from catalog.models import GpuClass
    from cluster.reads import queries as read_queries

    olga = _by("Olga")
    cluster = read_queries.current_cluster()
    deadline = time.monotonic() + MIRROR_WITHIN_S
    while queries.discover_cluster(cluster) is None or not _is_tried(cluster):
        if time.monotonic() > deadline:
            sys.exit(f"The cluster was not listed, or its device classes not tried, within {MIRROR_WITHIN_S:.0f} s.")
        time.sleep(0.2)
    found = queries.discover_cluster(cluster)
    assert found is not None
    proposal_actions.accept_proposals(list(found.proposals), by=olga)
    has_real_node = GpuClass.objects.filter(product=LABELS["nvidia.com/gpu.product"]).exists()
    offered = {**IMAGES, **(images.CATALOG if has_real_node else {})}
    for position, (name, values) in enumerate(offered.items()):
        image_actions.put_image(name=name, by=olga, position=10 * position + 10, **values)
    for pilot in GpuClass.objects.filter(sharing=GpuClass.Sharing.MPS, terms_version=0):
        class_actions.edit_class(pilot.pk, by=olga, terms_version=1, terms=TERMS)
    _open_storage(scenario, olga)
    _offer_bundles(olga)
    if scenario == MORNING:
        contention.fill_cluster(_by)
    elif scenario == WASTE:
        idle_gpus.hold_all(_by)
    elif scenario == EVERYDAY:
        names = sample_classes.class_names()
        activity.overcommit(olga, names)
        history.create_past(_by, names)
        activity.create_activity(_by, names)
    else:
        _let_charlie_ask()


def _is_tried(cluster: Cluster) -> bool:
    """Takes one step of the trials that a worker would make within seconds: proposals need what Kueue counts."""
    from django.utils import timezone

    from catalog.trials.queries import device_requests, trials
    from catalog.trials.reconcile import try_devices
    from cluster.client.kube import connect
    from portal.core.due import Deadline

    wanted = device_requests(cluster)
    if not settings.PORTAL_KUBECONFIG or not wanted - trials(cluster).keys():
        return True
    try_devices(cluster, wanted, kube=connect(), deadline=Deadline(), now=timezone.now())
    return False


def _open_storage(scenario: Scenario, olga: Actor) -> None:
    """Creates the storage class and grants storage to the teams of the scenario, so that notebooks can have volumes.
    New teams get storage with their bundle.
    """
    from catalog.classes import actions as class_actions
    from catalog.models import GpuClass

    if GpuClass.objects.filter(interface=GpuClass.Interface.STORAGE).exists():
        return
    storage = class_actions.create_class(
        slug="storage",
        name="Team storage",
        summary="Volumes for notebooks and jobs.",
        interface=GpuClass.Interface.STORAGE,
        promise_limit=STORAGE_GIB,
        by=olga,
    )
    class_actions.activate(storage.pk, by=olga)
    for name, team, gib in scenario.storage:
        why = "Volumes for notebooks and checkpoints."
        quota_setup.approve_request(
            quota_setup.file_request(team, [(storage.slug, gib)], why, by=_by(name)), by=_by("Dana")
        )


def _offer_bundles(olga: Actor) -> None:
    """Creates the bundles that are missing. Only before the first bundle exists, one class with sharing becomes the
    starter class, which users can try without a team: if staff change that later, the next start does not set it again.
    """
    from catalog.classes import actions as class_actions
    from catalog.models import GpuClass
    from tenants.models import Bundle
    from tenants.onboarding.bundles import actions as bundle_actions

    none = GpuClass.Sharing.NONE
    open_to_all = GpuClass.objects.filter(
        life_cycle=GpuClass.LifeCycle.ACTIVE, visibility=GpuClass.Visibility.EVERYONE
    ).exclude(interface__in=[GpuClass.Interface.NONE, GpuClass.Interface.STORAGE])
    kinds = {
        "storage": GpuClass.objects.filter(interface=GpuClass.Interface.STORAGE, life_cycle=GpuClass.LifeCycle.ACTIVE),
        "share": open_to_all.exclude(sharing=none),
        "slice": open_to_all.filter(sharing=none).exclude(partition="none"),
        "gpu": open_to_all.filter(sharing=none, partition="none"),
    }
    if (share := kinds["share"].order_by("memory_mib", "slug").first()) and not Bundle.objects.exists():
        class_actions.edit_class(share.pk, by=olga, starter=True, run_hours_limit=8, idle_stop_minutes=60)
    for position, (name, summary, days, parts) in enumerate(BUNDLES, start=1):
        found = [(kinds[kind].order_by("memory_mib", "slug").first(), units) for kind, units in parts]
        lines = [(one.slug, units) for one, units in found if one is not None]
        has_gpu = any(one is not None and not one.is_storage for one, _ in found)
        if has_gpu and not Bundle.objects.filter(name=name).exists():
            bundle_actions.put_bundle(
                name=name, summary=summary, days=days, position=10 * position, lines=lines, by=olga
            )


def _let_charlie_ask() -> None:
    """Gives Charlie's team quota and requests more, so that an approver finds a pending request."""
    from catalog.models import GpuClass
    from tenants.models import Tenant

    asked = Tenant.objects.get(slug="team-c").requests
    if asked.exclude(lines__gpu_class__interface=GpuClass.Interface.STORAGE).exists():
        return
    charlie = _by("Charlie")
    held = quota_setup.file_request("team-c", _lines(HELD), "Two training jobs and two small notebooks.", by=charlie)
    quota_setup.approve_request(held, by=_by("Dana"))
    why = "The large model doubles next week: two more GPUs for the second replica."
    quota_setup.file_request("team-c", _lines(ASKED), why, by=charlie)


def _lines(wanted: tuple[tuple[str, int], ...]) -> list[tuple[str, int]]:
    """Returns (class slug, units) with the first class without sharing for each resource. Resources without such a
    class are left out.
    """
    from catalog.models import GpuClass

    found = []
    for resource, units in wanted:
        exclusive = GpuClass.objects.filter(resource=resource, sharing=GpuClass.Sharing.NONE)
        gpu_class = exclusive.filter(life_cycle=GpuClass.LifeCycle.ACTIVE).first()
        if gpu_class is not None:
            found.append((gpu_class.slug, units))
    return found


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
