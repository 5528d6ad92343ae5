"""A team as CI uses it, with a token, among many others; made of rows only."""

from __future__ import annotations

import json

from tests.perf.support.pace import Asked

# PostgreSQL takes 65,535 parameters in one statement.
IN_ONE = 1_000
BODY = {"kind": "job", "gpu_class": "a100", "units": 1, "image": "python", "command": ["python", "train.py"]}


class Ground:
    """team-0 with two ready notebooks, a job that waits, one that runs, one that has ended, and `nightly`, which was
    declared and never started.
    """

    def __init__(self) -> None:
        from django.utils import timezone

        from accounts.api_tokens import actions as api_token_actions
        from accounts.core.actor import Actor
        from catalog.models import Image
        from cluster.models import Cluster
        from tests.support.rows import make, running
        from workloads.launch import actions
        from workloads.launch.types import LaunchSpec
        from workloads.models import Run

        self.cluster = Cluster.objects.create(name="main", notebooks_domain="notebooks.localhost")
        self.gpu_class = gpu_class = make.gpu_class(self.cluster)
        self.other = make.user("Other")
        team, person = make.tenant(self.cluster, slug="team-0"), make.user("Bob")
        make.member(team, person)
        make.grant(team, gpu_class, units=8)
        namespace = team.namespaces.get()
        running.known(self.cluster.pk)
        for name, kind in (("lab", "notebook"), ("study", "notebook"), ("train", "job")):
            running.make_ready(running.workload(namespace, gpu_class, name=name, kind=kind, by=person))
        for name in ("waits", "ended"):
            running.workload(namespace, gpu_class, name=name, kind="job", by=person)
        now = timezone.now()
        Run.objects.filter(workload__name="ended").update(
            admitted_at=now, started_at=now, ended_at=now, outcome="succeeded"
        )
        by = Actor(person, via="page")
        Image.objects.create(name="python", reference="docker.io/library/python:3.14-slim", kind="job")
        actions.declare("team-0", LaunchSpec(name="nightly", **{**BODY, "command": tuple(BODY["command"])}), by=by)
        _row, token = api_token_actions.create_token(name="ci", scopes=["read", "launch"], expires_in_days=1, by=by)
        headers = {"Host": "localhost", "Authorization": f"Bearer {token}"}
        workloads = "/api/v1/workloads"
        self.calls = {
            "list": Asked(f"{workloads}?team=team-0", headers),
            "get": Asked(f"{workloads}/lab?team=team-0", headers),
            "put": Asked(
                f"{workloads}/nightly?team=team-0",
                {**headers, "Content-Type": "application/json"},
                "PUT",
                json.dumps(BODY).encode(),
            ),
        }

    def fill(self, teams: int) -> None:
        """Adds teams up to this number, each with a member and a grant."""
        from tenants.models import Grant, Membership, Namespace, Tenant

        new = [f"team-{number}" for number in range(Tenant.objects.count(), teams)]
        made = Tenant.objects.bulk_create([Tenant(slug=slug, name=slug) for slug in new], batch_size=IN_ONE)
        Namespace.objects.bulk_create(
            [Namespace(tenant=one, cluster=self.cluster, name=one.slug, due_at=None) for one in made], batch_size=IN_ONE
        )
        Membership.objects.bulk_create(
            [Membership(tenant=one, user=self.other, role="owner") for one in made], batch_size=IN_ONE
        )
        period = Grant.objects.get(tenant__slug="team-0").period
        grants = [Grant(tenant=one, gpu_class=self.gpu_class, units=1, period=period) for one in made]
        Grant.objects.bulk_create(grants, batch_size=IN_ONE)
