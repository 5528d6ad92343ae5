"""No byte of one team reaches another: two teams work at the same time, every name that a user chooses contains a
canary, and all raw output of the portal is searched for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.manifests.run_spec import HOME
from cluster.models import Cluster, MirrorPod, MirrorWarning
from portal.core.hints import page_hint
from tenants.models import JoinRequest, Membership, Namespace, Tenant
from tenants.requests import actions as quota
from tenants.requests.types import RequestedLine
from tests.support.http.routes import all_routes, filled
from tests.support.processes.streaming import Doors, Stream, session_of
from tests.support.rows import make, running
from tests.support.waiting import wait_until
from workloads.credentials.secrets import actions as secret_actions
from workloads.models import Run, Volume, Workload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(240)]

ROUNDS = 4


@dataclass
class Team:
    """`mark` is part of every name that the team's users chose, and of nothing else."""

    mark: str
    tenant: Tenant
    namespace: Namespace
    owner: User
    viewer: User
    filed: int
    raw: list[tuple[str, bytes]] = field(default_factory=list)

    def keep(self, what: str, body: bytes) -> None:
        self.raw.append((what, body))

    @property
    def everything(self) -> bytes:
        return b"".join(body for _what, body in self.raw)


@pytest.fixture
def team(cluster: Cluster, a100: GpuClass, unique: str) -> Callable[[str], Team]:
    def made(mark: str) -> Team:
        tenant = make.tenant(cluster, slug=f"{mark}-team", namespace=f"{mark}-space-{unique}")
        Tenant.objects.filter(pk=tenant.pk).update(name=f"{mark} title")
        tenant.refresh_from_db()
        namespace = tenant.namespaces.get()
        owner, viewer, asking = (make.user(f"{mark}-{who}") for who in ("owner", "viewer", "asking"))
        make.member(tenant, owner, Membership.Role.OWNER)
        make.member(tenant, viewer, Membership.Role.VIEWER)
        JoinRequest.objects.create(tenant=tenant, user=asking, message=f"{mark}-message")
        make.grant(tenant, a100, units=4)
        by = Actor(owner, "page")
        secret_actions.put_secret(tenant.slug, f"{mark}_secret", f"{mark}-value", by=by)
        now = timezone.now()
        line = RequestedLine(a100.slug, 6, now, now + timedelta(days=30))
        filed = quota.file_request(tenant.slug, lines=[line], justification=f"{mark}-justification", by=by)
        return Team(mark, tenant, namespace, owner, viewer, filed.pk)

    return made


def works(of: Team, gpu_class: GpuClass, name: str) -> Workload:
    """Launches work with every name that a launch accepts; its pod, another pod and a warning contain names too."""
    mark, namespace = of.mark, of.namespace
    volume, _new = Volume.objects.get_or_create(
        namespace=namespace, name=f"{mark}-volume", defaults={"size_gib": 10, "due_at": None, "observed_generation": 1}
    )
    options = {
        "env": {f"{mark}_variable": f"{mark}-setting"},
        "secrets": [f"{mark}_secret"],
        "repository": f"https://git.example.org/{mark}/code",
        "reference": f"{mark}-branch",
        "script": f"echo {mark}-script",
        "mount_path": f"{HOME}/{mark}",
    }
    found = running.workload(
        namespace,
        gpu_class,
        name=name,
        by=of.owner,
        kind="job",
        image=f"registry.example.org/{mark}/image:1",
        own_image=True,
        command=[f"{mark}-command"],
        volume=volume,
        options=options,
        origin=f"n{name}"[:20],
    )
    now = timezone.now()
    MirrorPod.objects.create(
        cluster_id=namespace.cluster_id,
        namespace=namespace.name,
        name=f"{mark}-beside-{found.pk}",
        uid=f"beside-{found.pk}",
        owner="",
        run="",
        created_at=now,
        resource_version=1,
        node="a100-1",
        phase="Running",
        gpu_class=gpu_class.slug,
        record={**running._pod_record(now.isoformat(), ""), "labels": {}},
    )
    MirrorWarning.objects.create(
        cluster_id=namespace.cluster_id,
        namespace=namespace.name,
        name=f"{mark}-warning-{found.pk}",
        uid=f"warning-{found.pk}",
        resource_version=1,
        object_kind="Job",
        object_name=f"{name}-1",
        object_uid=f"job-{found.pk}",
        reason="FailedCreate",
        message=f"{mark}-told",
        count=1,
        first_at=now,
        last_at=now,
    )
    return found


def reads(of: Team, who: User, name: str, *, only: str = "") -> None:
    """Requests every page and API call of the portal as a member of the team."""
    client = Client()
    client.force_login(who)
    values = {"tenant": of.tenant.slug, "name": name, "pk": str(of.filed)}
    for route, _pattern in all_routes():
        if route.startswith(("static", "admin", "live/", "logout")) or not route.endswith(only):
            continue
        path = filled(route, values) + (f"?team={of.tenant.slug}" if route.startswith("api/") else "")
        answer = client.get(path)
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content  # type: ignore[arg-type]
        of.keep(f"{who.name} GET {path} {answer.status_code}", body + str(answer.headers).encode())


def test_no_byte_of_one_team_reaches_another(
    doors: Doors, cluster: Cluster, a100: GpuClass, team: Callable[[str], Team]
) -> None:
    teams = [team("zebra"), team("quokka")]
    for one in teams:
        works(one, a100, f"{one.mark}-0")
    running.known(cluster.pk, *("Node", "Job", "Pod", "Workload", "PersistentVolumeClaim", "ResourceClaim"))
    streams: list[tuple[Team, str, Stream]] = []
    try:
        for one in teams:
            for who in (one.owner, one.viewer):
                for view in ("", f"?workload={one.mark}-0", f"?workload={one.mark}-1"):
                    path = f"/live/{one.namespace.name}{view}"
                    streams.append((one, f"{who.name} {path}", Stream(doors, path, session_of(who))))
        homes = [stream for _one, what, stream in streams if "?" not in what]
        wait_until(lambda: all(stream.has("event: state_running") for stream in homes))

        for number in range(ROUNDS):
            for one in teams:
                name = f"{one.mark}-{number + 1}"
                running.make_ready(Workload.objects.get(name=f"{one.mark}-{number}"))
                works(one, a100, name)
                if number > 1:
                    old = Run.objects.filter(workload__name=f"{one.mark}-{number - 2}")
                    old.update(ended_at=timezone.now(), outcome="failed", message=f"{one.mark}-ending")
            for one in teams:
                page_hint(one.namespace.name)
            wait_until(
                lambda last=number + 1: all(  # type: ignore[misc]
                    stream.has(f"{one.mark}-{last}") for one, what, stream in streams if "?" not in what
                )
            )
            # A member of one team requests the stream of the other team: 404.
            for one, other in (teams, teams[::-1]):
                for path in (f"/live/{other.namespace.name}", f"/live/logs/{other.tenant.slug}/{other.mark}-0"):
                    status, headers, body = doors.get(path, cookie=f"session={session_of(one.owner)}")
                    assert status == 404, path
                    one.keep(path, str(headers).encode() + body)
                seconds = 1 if number == ROUNDS - 1 else 0
                call = f"/api/v1/workloads/{one.mark}-{number + 1}?team={one.tenant.slug}&wait={seconds}"
                for path, expected in ((call, 200), (call.replace(one.mark, other.mark), 404)):
                    status, headers, body = doors.get(path, cookie=f"session={session_of(one.viewer)}")
                    assert status == expected, path
                    one.keep(path, str(headers).encode() + body)
    finally:
        for _one, _what, stream in streams:
            stream.close()
    for one, what, stream in streams:
        one.keep(what, str(stream.response.getheaders()).encode() + stream.received)
    for one in teams:
        reads(one, one.owner, f"{one.mark}-{ROUNDS}")
        reads(one, one.viewer, f"{one.mark}-{ROUNDS}", only="/actions")

    for one, other in (teams, teams[::-1]):
        leaks = [what for what, body in one.raw if other.mark.encode() in body.lower()]
        assert leaks == []
        assert other.owner.email.encode() not in one.everything
        # The canary is present in the output of its own team.
        own = ("-team", " title", "-space", "-owner", "-viewer", "-asking", "-message", "_secret", "-justification")
        launched = ("-0", "-volume", "_variable", "/image", "-command", "/code", "-branch", "-script", "-beside")
        shown = {name: f"{one.mark}{name}".encode() in one.everything for name in (*own, *launched)}
        assert [name for name, is_there in shown.items() if not is_there] == []
        # No output contains the value of a secret.
        assert f"{one.mark}-value".encode() not in one.everything
    viewers = [body for one in teams for what, body in one.raw if "-viewer GET" in what and "/actions" in what]
    owners = [body for one in teams for what, body in one.raw if "-owner GET" in what and "/actions" in what]
    assert viewers
    assert not any(b"/stop" in body for body in viewers), "verbs are fetched by who looks"
    assert any(b"/stop" in body for body in owners)
