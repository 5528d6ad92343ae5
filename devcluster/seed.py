"""Demo data, put there as people would: accounts first, the catalog once the watcher has seen the nodes.

    python -m devcluster.seed people ACCOUNTS.json
    python -m devcluster.seed catalog ACCOUNTS.json

Runs again at every start and adds what is missing. Passwords and tokens are kept in the accounts file (mode 0600); the
database holds only their hashes.
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
from django.core.management import call_command

from devcluster.pki import write_private

if TYPE_CHECKING:
    from accounts.actor import Actor
    from accounts.models import User
    from tenants.policy import Asked

TOKEN_DAYS = 90
MIRROR_WITHIN_S = 60.0
TENANT = "team-a"
# name, role as a person would say it, tenant; an owner's tenant is made. Charlie is a stranger to team A.
CAST = (
    ("Alice", "owner", TENANT),
    ("Bob", "member", TENANT),
    ("Charlie", "owner", "team-c"),
    ("Dana", "approver of all classes", ""),
    ("Olga", "operator and administrator", ""),
)
# By resource name: what Charlie's team was granted before the demo begins, and what he asks for now.
HELD = (("nvidia.com/gpu", 4), ("nvidia.com/mig-1g.10gb", 2))
ASKED = (("nvidia.com/gpu", 6),)
# What a new team may begin with: units of the smallest class of a kind, for hardware that has one.
BUNDLES = (
    (
        "Research",
        "To try things: shares of cards, and a small slice.",
        90,
        (("share", 2), ("slice", 1), ("storage", 200)),
    ),
    ("Training", "Whole cards.", 60, (("card", 2), ("storage", 500))),
    ("Inference", "Slices with memory of their own, for services.", 180, (("slice", 2), ("storage", 50))),
)
# GiB that may be promised to all teams, and what the cast's own were granted, so that notebooks have volumes.
STORAGE_GIB = 20_000
STORAGE_HELD = (("alice", TENANT, 100), ("charlie", "team-c", 200))
# What is built for any CUDA 12 runs on drivers that offer 12.0 (docs.nvidia.com, minor version compatibility).
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
# Of the class that MPS shares, where the hardware has one.
TERMS = """\
This class is a pilot. Several workloads run on one card at the same moment; each has its part of the memory.

A fatal error of one of them can end the work of the others. Keep checkpoints, and run nothing that others wait for."""


def main(what: str, file: Path) -> None:
    django.setup()
    if what == "people":
        call_command("migrate", interactive=False, verbosity=0)
        known = {account["name"]: account for account in json.loads(file.read_text())} if file.exists() else {}
        write_private(file, json.dumps([_account(*member, known=known) for member in CAST], indent=1))
        _cluster_and_team()
    else:
        _catalog()


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
            is_staff=Role.ADMIN in roles,
        )
    account["token"] = _token(user, str(account.get("token", "")), is_admin=Role.ADMIN in roles)
    return account


def _token(user: User, known: str, *, is_admin: bool) -> str:
    """The one of the start before, while it works; otherwise a new one."""
    from django.utils import timezone

    from accounts import actions, tokens
    from accounts.actor import Actor
    from accounts.models import ApiToken, Scope

    text = tokens.parse(known)
    works = ApiToken.objects.filter(user=user, revoked_at=None, expires_at__gt=timezone.now())
    if text is not None and works.filter(prefix=text.prefix).exists():
        return known
    scopes = [str(scope) for scope in Scope if scope != Scope.ADMIN or is_admin]
    name = f"demo {secrets.token_hex(2)}"
    by = Actor(user=user, via="page")
    _, made = actions.create_token(name=name, scopes=scopes, expires_in_days=TOKEN_DAYS, by=by)
    return made


def _cluster_and_team() -> None:
    from django.conf import settings

    from accounts.actor import Actor
    from accounts.models import User
    from cluster.models import Cluster
    from tenants import actions
    from tenants.models import ApproverFor, Membership, Tenant

    domain = settings.NOTEBOOKS_DOMAIN
    cluster, _ = Cluster.objects.update_or_create(name=settings.CLUSTER_NAME, defaults={"notebooks_domain": domain})
    people = {user.name: user for user in User.objects.filter(name__in=[name for name, *_ in CAST])}
    ApproverFor.objects.get_or_create(user=people["Dana"], gpu_class=None)
    olga = Actor(user=people["Olga"], via="page")
    for name, role, slug in CAST:
        if role == "owner" and not Tenant.objects.filter(slug=slug).exists():
            title = slug.replace("-", " ").title()
            actions.create_tenant(slug=slug, name=title, owner=people[name], by=olga, cluster=cluster)
    if not Membership.objects.filter(tenant__slug=TENANT, user=people["Bob"]).exists():
        alice = Actor(user=people["Alice"], via="page")
        actions.add_member(TENANT, email=people["Bob"].email, role=Membership.Role.MEMBER, by=alice)


def _catalog() -> None:
    """A class per kind of capacity that the watcher has seen, and images to choose from."""
    from accounts.actor import Actor
    from accounts.models import User
    from catalog import actions, queries
    from catalog.models import GpuClass

    olga = Actor(user=User.objects.get(email="olga@example.org"), via="page")
    deadline = time.monotonic() + MIRROR_WITHIN_S
    while (found := queries.discover(queries.cluster())) is None:
        if time.monotonic() > deadline:
            sys.exit(f"The watcher has not listed the cluster within {MIRROR_WITHIN_S:.0f} s.")
        time.sleep(0.2)
    actions.accept_proposals(list(found.proposals), by=olga)
    for position, (name, values) in enumerate(IMAGES.items()):
        actions.put_image(name=name, by=olga, position=10 * position + 10, **values)
    for pilot in GpuClass.objects.filter(sharing=GpuClass.Sharing.MPS, terms_version=0):
        actions.edit_class(pilot.pk, by=olga, terms_version=1, terms=TERMS)
    _open_storage(olga)
    _offer_bundles(olga)
    _let_charlie_ask()


def _open_storage(olga: Actor) -> None:
    """And some of it for the teams that there are; new ones have it from their bundles."""
    from accounts.actor import Actor
    from accounts.models import User
    from catalog import actions as catalog
    from catalog.models import GpuClass
    from tenants import actions
    from tenants.decisions import Decision

    if GpuClass.objects.filter(interface=GpuClass.Interface.STORAGE).exists():
        return
    storage = catalog.create_class(
        slug="storage",
        name="Team storage",
        summary="For volumes of notebooks and jobs.",
        interface=GpuClass.Interface.STORAGE,
        promise_limit=STORAGE_GIB,
        by=olga,
    )
    catalog.activate(storage.pk, by=olga)
    dana = Actor(User.objects.get(email="dana@example.org"), via="page")
    for name, team, gib in STORAGE_HELD:
        owner = Actor(User.objects.get(email=f"{name}@example.org"), via="page")
        filed = actions.file_request(
            team, lines=[_line(storage.slug, gib)], justification="Volumes for notebooks and checkpoints.", by=owner
        )
        actions.decide(filed.pk, [Decision(line.pk, approve=True) for line in filed.lines.all()], by=dana)


def _offer_bundles(olga: Actor) -> None:
    """And a share to be tried without a team, once: who takes that back finds it so after the next start."""
    from catalog import actions
    from catalog.models import GpuClass
    from tenants import founding
    from tenants.models import Bundle

    none = GpuClass.Sharing.NONE
    open_to_all = GpuClass.objects.filter(
        life_cycle=GpuClass.LifeCycle.ACTIVE, visibility=GpuClass.Visibility.EVERYONE
    ).exclude(interface__in=[GpuClass.Interface.NONE, GpuClass.Interface.STORAGE])
    kinds = {
        "storage": GpuClass.objects.filter(interface=GpuClass.Interface.STORAGE, life_cycle=GpuClass.LifeCycle.ACTIVE),
        "share": open_to_all.exclude(sharing=none),
        "slice": open_to_all.filter(sharing=none).exclude(partition="none"),
        "card": open_to_all.filter(sharing=none, partition="none"),
    }
    if (share := kinds["share"].order_by("memory_mib", "slug").first()) and not Bundle.objects.exists():
        actions.edit_class(share.pk, by=olga, starter=True, run_hours_limit=8, idle_stop_minutes=60)
    for position, (name, summary, days, parts) in enumerate(BUNDLES, start=1):
        found = [(kinds[kind].order_by("memory_mib", "slug").first(), units) for kind, units in parts]
        lines = [(one.slug, units) for one, units in found if one is not None]
        has_card = any(one is not None and not one.is_storage for one, _ in found)
        if has_card and not Bundle.objects.filter(name=name).exists():
            founding.put_bundle(name=name, summary=summary, days=days, position=10 * position, lines=lines, by=olga)


def _let_charlie_ask() -> None:
    """His team holds something already and asks for more: an approver finds a request to decide."""
    from accounts.actor import Actor
    from accounts.models import User
    from catalog.models import GpuClass
    from tenants import actions
    from tenants.decisions import Decision
    from tenants.models import Tenant

    charlie, dana = (Actor(User.objects.get(email=f"{name}@example.org"), via="page") for name in ("charlie", "dana"))
    asked = Tenant.objects.get(slug="team-c").requests
    if asked.exclude(lines__gpu_class__interface=GpuClass.Interface.STORAGE).exists():
        return
    held = actions.file_request(
        "team-c", lines=_lines(HELD), justification="Two trainings and two small notebooks.", by=charlie
    )
    decisions = [Decision(line_id=line.pk, approve=True) for line in held.lines.all()]
    actions.decide(held.pk, decisions, by=dana)
    why = "The large model doubles next week: two more whole cards for the second replica."
    actions.file_request("team-c", lines=_lines(ASKED), justification=why, by=charlie)


def _lines(wanted: tuple[tuple[str, int], ...]) -> list[Asked]:
    """Of the first exclusive class that is counted by each resource name; hardware without one is left out."""
    from catalog.models import GpuClass

    found = []
    for resource, units in wanted:
        exclusive = GpuClass.objects.filter(resource=resource, sharing=GpuClass.Sharing.NONE)
        gpu_class = exclusive.filter(life_cycle=GpuClass.LifeCycle.ACTIVE).first()
        if gpu_class is not None:
            found.append(_line(gpu_class.slug, units))
    return found


def _line(slug: str, units: int) -> Asked:
    from django.utils import timezone

    from tenants.policy import Asked

    now = timezone.now()
    return Asked(gpu_class=slug, units=units, starts=now, ends=now + timedelta(days=90))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
