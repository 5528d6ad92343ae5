"""Operations on teams: provisioning, decisions, closing, announcements, imports, and the move to another cluster."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.utils import timezone

from accounts.core.actor import Actor, system_actor
from accounts.models import Role, User
from catalog.models import GpuClass, Pool
from cluster.models import AppliedObject, Cluster
from desk.installation.moving.actions import confirm_cluster
from portal.core import due
from tenants.lifecycle.actions import set_namespace_state
from tenants.models import ApproverFor, Namespace, Tenant
from tenants.requests.actions import file_request
from tenants.requests.types import RequestedLine
from tests.faults.crashes.operations.common import (
    TEAM,
    UNITS,
    api,
    look,
    mails_are_sent,
    provisioned,
    quiet,
    team,
    the_cluster,
)
from tests.faults.crashes.operations.runs import running
from tests.faults.crashes.types import Ground, Operation, Place
from tests.support.rows import make
from workloads.models import Run

QUEUES = "kueue.x-k8s.io/v1beta2/clusterqueues"


def is_open(ground: Ground, place: Place) -> bool:
    queue = ground.admin.find(QUEUES, place.name)
    return queue is not None and queue["spec"].get("stopPolicy", "None") == "None" and mails_are_sent()


# ---- provision and decide ------------------------------------------------------------------------------------------


def granted(ground: Ground, place: Place) -> dict[str, Any]:
    found = team(place)
    make.grant(found.tenant, found.gpu_class, units=UNITS)
    Pool.objects.create(cluster=found.cluster)
    look(ground, place)
    return {}


def provision(place: Place) -> None:
    due.touch(Namespace, Namespace.objects.get().pk)


def requested(ground: Ground, place: Place) -> dict[str, Any]:
    found = provisioned(ground, place)
    now = timezone.now()
    lines = [RequestedLine(found.gpu_class.slug, 4, now, now + timedelta(days=9))]
    row = file_request(TEAM, lines=lines, justification="Training.", by=Actor(found.alice, "page"))
    look(ground, place)
    known = {"tokens": found.tokens(), "request": row.pk, "line": row.lines.get().pk}
    ground.work(place)
    return known


def decide(place: Place) -> None:
    body = {"lines": [{"id": place.known["line"], "approve": True}]}
    api(place, "dana", f"requests/{place.known['request']}/decide", body, done={"already_decided"})


def has_more(ground: Ground, place: Place) -> bool:
    queue = ground.admin.get(QUEUES, place.name)
    cells = [cell for g in queue["spec"]["resourceGroups"] for f in g["flavors"] for cell in f["resources"]]
    return max(int(cell["nominalQuota"]) for cell in cells) >= 4 and is_open(ground, place)


# ---- close ---------------------------------------------------------------------------------------------------------


def close(place: Place) -> None:
    row, by = Namespace.objects.get(), Actor(User.objects.get(name="Olga"), via="page")
    if row.wanted != Namespace.Wanted.CLOSED:
        set_namespace_state(row.pk, to="closed", grace_hours=0, keep_days=0, by=by)


def is_closed(ground: Ground, place: Place) -> bool:
    ended = not Run.objects.filter(ended_at=None).exists()
    return Namespace.objects.get().gone_at is not None and ended and mails_are_sent()


# ---- another cluster -------------------------------------------------------------------------------------------------


def another_cluster(ground: Ground, place: Place) -> dict[str, Any]:
    """A team with a run, whose cluster was another one."""
    known = running(ground, place)
    own = ground.admin.get("v1/namespaces", "kube-system")["metadata"]["uid"]
    Cluster.objects.update(uid="the-previous-one", other_uid=own, other_since=timezone.now())
    return {**known, "uid": own}


def confirm(place: Place) -> None:
    row = Cluster.objects.get()
    if row.uid != place.known["uid"]:
        confirm_cluster(row, place.known["uid"], by=system_actor("manage.py"))


def has_moved(ground: Ground, place: Place) -> bool:
    sent = not AppliedObject.objects.exclude(result=AppliedObject.Result.APPLIED).exists()
    return sent and not Run.objects.filter(ended_at=None).exists() and is_open(ground, place)


# ---- announcements and import ----------------------------------------------------------------------------------------


def with_people(ground: Ground, place: Place) -> dict[str, Any]:
    found = team(place)
    now = timezone.now()
    look(ground, place)
    return {"tokens": found.tokens(), "ends_at": (now + timedelta(days=1)).isoformat()}


def announce(place: Place) -> None:
    body = {
        "title": "Tonight", "body": "Save your work.", "severity": "warning", "audience": "teams", "teams": [TEAM],
        "ends_at": place.known["ends_at"], "wants_acknowledgement": True,
    }  # fmt: skip
    api(place, "olga", "operators/announcements", body)


def exported(ground: Ground, place: Place) -> dict[str, Any]:
    cluster = the_cluster(place)
    gpu_class: GpuClass = make.gpu_class(cluster, slug=f"a100-{place.name}", promise_limit=8)
    Pool.objects.create(cluster=cluster)
    mover = make.user("Mover", roles=[Role.ADMIN, Role.APPROVER])
    ApproverFor.objects.create(user=mover, gpu_class=None)
    make.user("Ada")
    make.user("Grace")
    until = timezone.localdate() + timedelta(days=90)
    lines = [
        "kind,team,name,email,role,class,units,until",
        f"team,{place.name},Vision,ada@example.org,,,,",
        f"member,{place.name},,grace@example.org,member,,,",
        f"member,{place.name},,taro@example.org,viewer,,,",
        f"quota,{place.name},,,,{gpu_class.slug},2,{until}",
    ]
    Path(place.directory, "teams.csv").write_text("\n".join(lines) + "\n")
    look(ground, place)
    return {}


def import_teams(place: Place) -> None:
    call_command("import_teams", "csv", str(Path(place.directory, "teams.csv")), "--as", "mover@example.org", "--apply")


def is_imported(ground: Ground, place: Place) -> bool:
    return Tenant.objects.exists() and is_open(ground, place)


OPERATIONS: dict[str, Operation] = {
    "provision": Operation(granted, provision, is_open, quiet),
    "decide": Operation(requested, decide, has_more, quiet),
    "close": Operation(running, close, is_closed, quiet),
    "move to another cluster": Operation(another_cluster, confirm, has_moved, quiet),
    "announcement": Operation(with_people, announce, lambda ground, place: mails_are_sent(), look),
    "import": Operation(exported, import_teams, is_imported, quiet),
}
