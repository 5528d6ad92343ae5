"""Two teams with everything that an address can name, and a person for every role.

All texts of team B that are in no address carry CANARY: only team B and staff may read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from http.cookies import SimpleCookie
from typing import Any

from django.conf import settings
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.test import Client
from django.utils import timezone

from accounts.api_tokens import token_text
from accounts.models import ApiToken, Role, User
from catalog.models import Banner, GpuClass, Image, NodeMeasurement
from cluster.models import Cluster
from operations.models import Adoption, Maintenance, MaintenanceNode
from tenants.models import (
    Announcement,
    ApproverFor,
    Bundle,
    BundleLine,
    Grant,
    ImagePrefix,
    Invitation,
    JoinRequest,
    Membership,
    Namespace,
    QuotaLine,
    QuotaRequest,
    RequestComment,
    TeamRequest,
    Tenant,
)
from tests.catalog.classes.test_topology import HOST, RACK, RACKS, topology
from tests.matrix.tables.policy import DEAD, REMOVED, STAFF, TEAM, TOKENS
from tests.support.rows import make, mirrored, running
from workloads.credentials.secrets.models import TeamSecret
from workloads.models import RegistryCredential, Run, TeamBudget, Volume, Workload

CANARY = "canary-b7f3"
NOBODY = 987_654_321
FUTURE = timedelta(days=1)
# A person can have only one open request for a team.
ASK_FOR_NO_TEAM = ("viewer", "operator")


@dataclass
class World:
    people: dict[str, User]
    clients: dict[str, Client]
    sessions: dict[str, str]
    teams: dict[str, Tenant]
    gpu_class: GpuClass
    # By object and relation: the values of its address. The key "own {who}" is for one role.
    things: dict[str, dict[str, dict[str, str]]]

    def client(self, role: str) -> Client:
        """Returns the role's client as a new browser: it keeps the session cookie and no other cookie."""
        client = self.clients[role]
        client.cookies = SimpleCookie({settings.SESSION_COOKIE_NAME: self.sessions.get(role, "")})
        return client

    def address(self, about: str, relation: str, who: str) -> dict[str, str] | None:
        """Returns the values of the address; None where this role has no such object."""
        return self.things[about].get(f"{relation} {who}") or self.things[about].get(relation)


def base(role: str) -> str:
    """Returns the role whose rights this role uses."""
    if role in TOKENS:
        return "approver" if role == "token decide" else "owner"
    return role


def build(cluster: Cluster, unique: str) -> World:
    gpu_class = make.gpu_class(cluster, slug=f"a100-{unique}", promise_limit=100, units_per_workload=4)
    GpuClass.objects.filter(pk=gpu_class.pk).update(run_hours_limit=12, starter=True, topology=RACKS)
    Banner.objects.create(cluster=cluster, text="Tonight.")
    gpu_class.refresh_from_db()
    other_class = make.gpu_class(cluster, slug=f"mig-{unique}", resource="nvidia.com/mig-1g.10gb")
    found = mirrored.with_metadata({"kind": "Namespace", "metadata": {"name": "found"}})
    mirrored.hardware_seen(cluster, Topology=[topology(RACKS, RACK, HOST)], Namespace=[found])
    Image.objects.create(name="python", reference="docker.io/library/python:3.14-slim", kind="job")
    Image.objects.create(name="minimal", reference="quay.io/jupyter/minimal-notebook:2026-09-01", kind="notebook")
    a = make.tenant(cluster, slug="team-a", namespace=f"team-a-{unique}")
    b = make.tenant(cluster, slug="team-b", namespace=f"team-b-{unique}")
    Tenant.objects.filter(pk=b.pk).update(name=f"Team {CANARY}", purpose=CANARY)
    # A class that pending requests are for, so that the other class can still be requested.
    asked_class = make.gpu_class(
        cluster,
        slug=f"h100-{unique}",
        node_labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        promise_limit=100,
    )
    people = _people(a, (gpu_class, asked_class), other_class)
    colin = make.user("Colin")
    make.member(a, colin, Membership.Role.OWNER)
    zoe = make.user("Zoe")
    User.objects.filter(pk=zoe.pk).update(name=f"Zoe {CANARY}")
    zoe.refresh_from_db()
    make.member(b, zoe, Membership.Role.OWNER)
    clients = {role: _signed_in(who) for role, who in people.items()} | _by_token(people)
    clients["anonymous"] = Client()
    Membership.objects.filter(user=people[REMOVED]).delete()
    User.objects.filter(pk=people["suspended"].pk).update(is_active=False)
    cookies = {role: client.cookies.get(settings.SESSION_COOKIE_NAME) for role, client in clients.items()}
    sessions = {role: cookie.value for role, cookie in cookies.items() if cookie is not None}
    world = World(people, clients, sessions, {"a": a, "b": b}, gpu_class, things={"": {"own": {}}})
    _things(world, colin, zoe, asked_class)
    return world


def _people(a: Tenant, decided: Sequence[GpuClass], other_class: GpuClass) -> dict[str, User]:
    found = {role: make.user(role.title()) for role in (*TEAM, "suspended", REMOVED)}
    for role in TEAM:
        make.member(a, found[role], Membership.Role(role))
    for role in ("suspended", REMOVED):
        make.member(a, found[role], Membership.Role.OWNER)
    found["approver"] = make.approver("Approver", gpu_class=decided[0])
    ApproverFor.objects.create(user=found["approver"], gpu_class=decided[1])
    found["other approver"] = make.approver("Other", gpu_class=other_class)
    for role in STAFF[2:]:
        found[role] = make.user(role.title(), roles=[Role(role)])
    return found


def _signed_in(who: User) -> Client:
    """With a second factor, which the addresses of administrators and tokens of scope admin require."""
    return make.administrator(Client(), who)


def _by_token(people: dict[str, User]) -> dict[str, Client]:
    """`last used` lies in the future: a token's use is recorded once a minute, and the tests must not see that as a
    change.
    """
    found = {}
    scopes = {role: [role.removeprefix("token ")] for role in TOKENS}
    dead = {role: ["read", "launch", "request", "decide", "admin"] for role in DEAD if role.startswith("token ")}
    for role, given in (scopes | dead).items():
        who = people["suspended"] if role == "token suspended" else people[base(role) if role in scopes else "owner"]
        text = token_text.new_token()
        now = timezone.now()
        ApiToken.objects.create(
            user=who,
            name=role,
            prefix=text.prefix,
            digest=text.digest,
            scopes=given,
            expires_at=now - FUTURE if role == "token expired" else now + 30 * FUTURE,
            revoked_at=now if role == "token revoked" else None,
            last_used_at=now + FUTURE,
        )
        found[role] = Client(headers={"authorization": f"Bearer {text}"})
    return found


def _things(world: World, colin: User, zoe: User, asked_class: GpuClass) -> None:
    a, b, gpu_class = world.teams["a"], world.teams["b"], world.gpu_class
    team_a, team_b, no_team = {"tenant": a.slug}, {"tenant": b.slug}, {"tenant": "no-such"}
    things = world.things
    things["team"] = {"own": team_a, "foreign": team_b, "random": no_team}
    things["team in query"] = things["team in body"] = things["team"]
    things["class"] = {"own": {"slug": gpu_class.slug}, "random": {"slug": "no-such"}}
    things["api section"] = {"own": {"section_slug": "account"}}
    things["search"] = {"own": {"q": "team"}}
    image = Image.objects.create(name="older", reference="docker.io/library/python:3.13-slim", kind="job", position=200)
    things["image"] = {"own": {"pk": str(image.pk)}, "random": {"pk": str(NOBODY)}}
    things["maintenance"] = {
        "own": {"pk": str(_maintenance(gpu_class.cluster, world.people["operator"]).pk)},
        "random": {"pk": str(NOBODY)},
    }
    things["node"] = {"own": {"name": "a100-1"}, "random": {"name": "no-such"}}
    measured = NodeMeasurement.objects.create(
        cluster=gpu_class.cluster, node="a100-1", kind="all_reduce", measured_on=timezone.localdate(), gpus=2,
        bus_gb_s=200, message_bytes=2**33, by=world.people["operator"],
    )  # fmt: skip
    things["measurement"] = {
        "own": {"name": "a100-1", "pk": str(measured.pk)},
        "random": {"name": "a100-1", "pk": str(NOBODY)},
    }

    for kind in ("workload", "stopped"):
        things[kind] = {
            "others": team_a | {"name": f"{kind}-colin"},
            "foreign": team_b | {"name": f"{kind}-zoe"},
            "deleted": team_a | {"name": f"{kind}-gone"},
            "random": team_a | {"name": "no-such"},
        }
        for role in ("member", "manager", "owner"):
            _workload(a, gpu_class, f"{kind}-{role}", world.people[role])
            things[kind][f"own {role}"] = team_a | {"name": f"{kind}-{role}"}
        _workload(a, gpu_class, f"{kind}-colin", colin)
        _workload(b, gpu_class, f"{kind}-zoe", zoe, command=[CANARY])
        gone = _workload(a, gpu_class, f"{kind}-gone", colin)
        gone.runs.update(ended_at=timezone.now(), outcome=Run.Outcome.STOPPED)
        Workload.objects.filter(pk=gone.pk).update(deleted_at=timezone.now())
    stopped = Run.objects.filter(workload__name__startswith="stopped")
    stopped.update(ended_at=timezone.now(), outcome=Run.Outcome.STOPPED)

    for tenant, note in ((a, "Ours."), (b, CANARY)):
        namespace = tenant.namespaces.get()
        for name, values in (("data", {}), ("old", {"gone_at": timezone.now(), "delete_requested_at": timezone.now()})):
            Volume.objects.create(namespace=namespace, name=name, size_gib=5, due_at=None, **values)
        who = colin if tenant == a else zoe
        TeamSecret.objects.create(namespace=namespace, name="API_KEY", sealed=b"sealed", created_by=who)
        ImagePrefix.objects.create(tenant=tenant, prefix=f"registry.example.org/{note.strip('.').lower()}/")
        RegistryCredential.objects.create(
            namespace=namespace, registry="registry.example.org", sealed=b"sealed", created_by=who
        )
        make.grant(tenant, gpu_class, units=40)
        TeamBudget.objects.create(tenant=tenant, amount=100)
    _named(world, "volume", "name", "data", "old")
    _named(world, "secret", "name", "API_KEY")
    _named(world, "registry", "registry", "registry.example.org")
    _numbered(world, "prefix", ImagePrefix.objects.get(tenant=a).pk, ImagePrefix.objects.get(tenant=b).pk)
    _numbered(world, "grant", Grant.objects.get(tenant=a).pk, Grant.objects.get(tenant=b).pk)
    make.member(a, make.user("Mia"))
    make.member(b, make.user("Mib"))
    _numbered(world, "member", User.objects.get(name="Mia").pk, User.objects.get(name="Mib").pk)

    until = timezone.now() + 9 * FUTURE
    for tenant, who in ((a, "a"), (b, "b")):
        Invitation.objects.create(tenant=tenant, email=f"to-{who}@example.org", role="viewer", expires_at=until)
        asks = make.user(f"Asks {who}")
        JoinRequest.objects.create(tenant=tenant, user=asks, message=CANARY if tenant == b else "")
    ids = {tenant: Invitation.objects.get(tenant=tenant).pk for tenant in (a, b)}
    _numbered(world, "invitation of team", ids[a], ids[b])
    joins = {tenant: JoinRequest.objects.get(tenant=tenant).pk for tenant in (a, b)}
    _numbered(world, "join of team", joins[a], joins[b])

    things["invitation"] = {"others": {"pk": str(ids[b])}, "random": {"pk": str(NOBODY)}}
    things["join"] = {"others": {"pk": str(joins[b])}, "random": {"pk": str(NOBODY)}}
    things["token"] = {"random": {"prefix": "nosuchno"}}
    things["team request"] = {"random": {"pk": str(NOBODY)}}
    third = make.tenant(a.namespaces.get().cluster, slug="team-c", namespace=f"{a.namespaces.get().name}-c")
    things["adopted team"] = {"own": {"tenant": third.slug}}
    for tenant in (a, b, third):
        _adoption(tenant, world.people["operator"], is_adopted=tenant == third)
    bundle = Bundle.objects.create(name="Small", summary="One card.", days=30)
    BundleLine.objects.create(bundle=bundle, gpu_class=gpu_class, units=1)
    for role, who in [*world.people.items(), ("zoe", zoe)]:
        slug = role.replace(" ", "-")
        invited = Invitation.objects.create(tenant=third, email=who.email, role="viewer", expires_at=until)
        asked = JoinRequest.objects.create(tenant=third, user=who)
        relation = "others" if role == "zoe" else f"own {role}"
        if role not in ASK_FOR_NO_TEAM:
            name = CANARY if role == "zoe" else role
            team = TeamRequest.objects.create(name=name, slug=f"new-{slug}", purpose="x", bundle=bundle, user=who)
            things["team request"][relation] = {"pk": str(team.pk)}
        token = ApiToken.objects.create(
            user=who, name="spare", prefix=f"spare{slug.replace('-', '')[:7]}", digest="-", scopes=["read"],
            expires_at=until,
        )  # fmt: skip
        if role != "zoe":
            things["invitation"][relation] = {"pk": str(invited.pk)}
            things["join"][relation] = {"pk": str(asked.pk)}
        things["token"][relation] = {"prefix": token.prefix}
    deputies = make.user("Dave"), make.user("Dirk"), make.user("Dora")
    soon = DateTimeTZRange(timezone.now() - FUTURE, timezone.now() + FUTURE)
    for_all, for_b = (
        Announcement.objects.create(
            title="T", body="B", audience=audience, period=soon, wants_acknowledgement=True, created_by=colin
        )
        for audience in ("everybody", "teams")
    )
    for_b.teams.add(world.teams["b"])
    things["announcement"] = {
        "own": {"pk": str(for_all.pk)},
        "foreign": {"pk": str(for_b.pk)},
        "random": {"pk": str(NOBODY)},
    }
    own = make.deputy(deputies[0], of=world.people["approver"])
    foreign = make.deputy(deputies[1], of=make.approver("Elsewhere"))
    over = make.deputy(deputies[2], of=world.people["approver"], since=timezone.now() - 40 * FUTURE)
    things["deputy"] = {
        "own": {"pk": str(own.pk)}, "others": {"pk": str(foreign.pk)}, "deleted": {"pk": str(over.pk)},
        "random": {"pk": str(NOBODY)},
    }  # fmt: skip
    origin = {"others": "workload-colin", "foreign": "workload-zoe", "deleted": "workload-gone"}
    things["origin"] = {key: {"origin": f"n{name}"} for key, name in origin.items()} | {"random": {"origin": "nosuch"}}
    things["run"] = {key: value | {"number": "1"} for key, value in things["workload"].items()}
    things["run in maintenance"] = {
        key: value | things["maintenance"]["own"] for key, value in things["workload"].items()
    }
    decides = make.approver("Ada", gpu_class=gpu_class)
    sleeps = make.user("Sven", is_active=False)
    nobody = {"pk": str(NOBODY)}
    of_teams = [(a, colin, "teamtokenaa"), (b, zoe, "teamtokenbb")]
    for tenant, who, prefix in of_teams:
        ApiToken.objects.create(
            user=who, name=prefix, prefix=prefix, digest="-", scopes=["read"], expires_at=until, tenant=tenant.slug
        )  # fmt: skip
    things["token of team"] = {
        "own": team_a | {"prefix": "teamtokenaa"},
        "foreign": team_b | {"prefix": "teamtokenbb"},
        "random": team_a | {"prefix": "teamtokenbb"},
    }
    things["session"] = {"random": nobody}
    things["person"] = {"own": {"pk": str(decides.pk)}, "random": nobody}
    # An administrator without other roles opens only accounts without other roles.
    plain, guarded = make.user("Paula"), make.user("Greta")
    make.second_factor(guarded)
    things["plain person"] = {"own": {"pk": str(plain.pk)}, "random": nobody}
    things["guarded person"] = {"own": {"pk": str(guarded.pk)}, "random": nobody}
    things["suspended person"] = {"own": {"pk": str(sleeps.pk)}, "random": nobody}
    things["class of person"] = {
        "own": {"pk": str(decides.pk), "slug": gpu_class.slug},
        "random": {"pk": str(decides.pk), "slug": "no-such"},
    }
    things["new class of person"] = {
        "own": {"pk": str(decides.pk), "slug": asked_class.slug},
        "random": {"pk": str(decides.pk), "slug": "no-such"},
    }
    everything = make.approver("Eva")
    things["who decides all"] = {"own": {"pk": str(everything.pk)}, "random": {"pk": str(decides.pk)}}
    for kind in ("workload", "secret", "registry"):
        there = things[kind].items()
        things[f"{kind} there"] = {key: value for key, value in there if key not in ("deleted", "random")}
    things["new workload"] = {"own": team_a | {"name": "new"}, "foreign": team_b | {"name": "new"}}
    things["new secret"] = {"own": team_a | {"name": "NEW_KEY"}, "foreign": team_b | {"name": "NEW_KEY"}}
    requests = {tenant: _request(tenant, asked_class, who) for tenant, who in ((a, colin), (b, zoe))}
    things["request"] = {
        "own": {"pk": str(requests[a].pk)}, "foreign": {"pk": str(requests[b].pk)}, "random": {"pk": str(NOBODY)}
    }  # fmt: skip


def _adoption(tenant: Tenant, by: User, *, is_adopted: bool) -> None:
    now = timezone.now()
    loss = {"effect": "lost", "code": "network", "kind": "Pod", "name": "all", "text": "Not reached any more."}
    if is_adopted:
        tenant.namespaces.update(origin=Namespace.Origin.ADOPTED)
    Adoption.objects.create(
        namespace=tenant.namespaces.get(),
        proposed_by=by,
        read_at=now,
        findings=[loss],
        adopted_at=now if is_adopted else None,
    )


def _maintenance(cluster: Cluster, by: User) -> Maintenance:
    now = timezone.now()
    row = Maintenance.objects.create(
        cluster=cluster,
        kind="hardware",
        reason="A broken fan.",
        holds_from=now,
        starts_at=now + FUTURE,
        ends_at=now + 2 * FUTURE,
        created_by=by,
    )
    MaintenanceNode.objects.create(maintenance=row, cluster=cluster, name="a100-1", step="held")
    return row


def _workload(tenant: Tenant, gpu_class: GpuClass, name: str, by: User, **fields: Any) -> Workload:
    namespace = Namespace.objects.get(tenant=tenant)
    found = running.workload(namespace, gpu_class, name=name, by=by, image="python", visibility="private", **fields)
    running.make_ready(found)
    now = timezone.now()
    for run in found.runs.all():
        run.spec["run_minutes"] = 60
        run.ends_at = now + timedelta(hours=1)
        run.save(update_fields=["spec", "ends_at"])
    return found


def _request(tenant: Tenant, gpu_class: GpuClass, by: User) -> QuotaRequest:
    why = CANARY if by.name.endswith(CANARY) else "For the course."
    found = QuotaRequest.objects.create(tenant=tenant, filed_by=by, justification=why)
    now = timezone.now()
    QuotaLine.objects.create(
        request=found, tenant=tenant, gpu_class=gpu_class, kind=QuotaLine.Kind.BOOST, asked_units=2, asked_from=now,
        asked_until=now + 5 * FUTURE,
    )  # fmt: skip
    RequestComment.objects.create(request=found, author=by, text=why)
    return found


def _named(world: World, about: str, key: str, name: str, gone: str = "") -> None:
    world.things[about] = {
        "own": {"tenant": "team-a", key: name},
        "foreign": {"tenant": "team-b", key: name},
        "random": {"tenant": "team-a", key: "no-such"},
    }
    if gone:
        world.things[about]["deleted"] = {"tenant": "team-a", key: gone}


def _numbered(world: World, about: str, own: int, foreign: int) -> None:
    """ "random" is another team's object under the address of the user's own team."""
    world.things[about] = {
        "own": {"tenant": "team-a", "pk": str(own)},
        "foreign": {"tenant": "team-b", "pk": str(foreign)},
        "random": {"tenant": "team-a", "pk": str(foreign)},
    }
