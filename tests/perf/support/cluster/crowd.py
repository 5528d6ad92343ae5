"""Teams whose members all work at once: as rows in the demo's database, provisioned by its worker."""

from __future__ import annotations

import http.client
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from devcluster.client.kube import Api, ApiError
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from catalog.models import GpuClass

READY_WITHIN_S = 300.0


@dataclass(frozen=True)
class Person:
    """`headers` sign requests in: with a token, or with the cookie of a session."""

    team: str
    number: int
    headers: dict[str, str]
    has_token: bool


class Crowd:
    """`teams` teams with `each` people. The odd ones of a team use tokens, the even ones pages."""

    def __init__(self, prefix: str, *, teams: int, each: int, units: int) -> None:
        from cluster.models import Cluster

        self.prefix = prefix
        self.cluster = Cluster.objects.get()
        self.gpu_class = self._class()
        self.teams = [f"{prefix}-{number:03}" for number in range(teams)]
        self._provision(units)
        # Team after team would arrive otherwise.
        self.people = [self._person(team, number) for number in range(each) for team in self.teams]

    def _class(self) -> GpuClass:
        """Whole GPUs of the device plugin: their Jobs are one object beside the Job itself."""
        from catalog.models import GpuClass

        found = GpuClass.objects.filter(cluster=self.cluster, life_cycle=GpuClass.LifeCycle.ACTIVE)
        return found.filter(resource="nvidia.com/gpu", sharing="none", partition="none").order_by("slug")[0]

    def _provision(self, units: int) -> None:
        from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
        from django.db.models import F
        from django.utils import timezone

        from portal.core.due import touch
        from tenants.models import Grant, Namespace, Tenant

        now = timezone.now()
        teams = Tenant.objects.bulk_create(Tenant(slug=name, name=name) for name in self.teams)
        period = DateTimeTZRange(now - timedelta(minutes=1), now + timedelta(days=1))
        Grant.objects.bulk_create(
            Grant(tenant=team, gpu_class=self.gpu_class, kind=Grant.Kind.BASE, units=units, period=period)
            for team in teams
        )
        rows = Namespace.objects.bulk_create(
            Namespace(tenant=team, cluster=self.cluster, name=team.slug, due_at=None) for team in teams
        )
        for row in rows:
            touch(Namespace, row.pk)
        pks = [row.pk for row in rows]
        late = Namespace.objects.filter(pk__in=pks).exclude(observed_generation=F("generation"))
        wait_until(lambda: not late.count(), within_s=READY_WITHIN_S, every_s=0.2, what="every team is provisioned")

    def _person(self, team: str, number: int) -> Person:
        from django.utils import timezone

        from accounts.api_tokens.token_text import new_token
        from accounts.models import ApiToken, Scope
        from tenants.models import Tenant
        from tests.support.rows import make

        who = make.user(f"{team}-{number}")
        make.member(Tenant.objects.get(slug=team), who)
        if number % 2 == 0:
            return Person(team, number, {"Cookie": signed_in(who)}, has_token=False)
        text = new_token()
        ends = timezone.now() + timedelta(days=1)
        scopes = [Scope.READ, Scope.LAUNCH]
        ApiToken.objects.create(
            user=who, name="bench", prefix=text.prefix, digest=text.digest, scopes=scopes, expires_at=ends
        )
        return Person(team, number, {"Authorization": f"Bearer {text}"}, has_token=True)

    def forget_work(self) -> None:
        """Deletes the rows of all work of these teams; what it has in the cluster stays."""
        from cluster.models import AppliedObject
        from workloads.models import Workload

        work = Workload.objects.filter(namespace__name__in=self.teams)
        owners = [f"{Workload._meta.label_lower}.{pk}" for pk in work.values_list("pk", flat=True)]
        AppliedObject.objects.filter(owner__in=owners).delete()
        _delete(work)

    def clear(self, admin: Api) -> None:
        """Deletes the rows first: otherwise the portal would make again what is deleted."""
        from accounts.models import User
        from cluster.models import AppliedObject
        from tenants.models import Namespace, Tenant

        self.forget_work()
        rows = Namespace.objects.filter(name__in=self.teams)
        owners = [f"{Namespace._meta.label_lower}.{pk}" for pk in rows.values_list("pk", flat=True)]
        AppliedObject.objects.filter(owner__in=owners).delete()
        _delete(Tenant.objects.filter(slug__in=self.teams))
        _delete(User.objects.filter(email__startswith=f"{self.prefix}-"))
        for name in self.teams:
            for resource in ("v1/namespaces", "kueue.x-k8s.io/v1beta2/clusterqueues"):
                with suppress(ApiError, http.client.HTTPException):
                    admin.delete(resource, name)


def _delete(rows: QuerySet[Any]) -> None:
    """With all that refers to them, also where the product protects it."""
    for relation in rows.model._meta.get_fields(include_hidden=True):
        # Hidden ones have no name on this side (related_name="+"). Classes refer to their successors, without end.
        is_to_rows = relation.auto_created and not relation.concrete and not relation.many_to_many
        if is_to_rows and relation.related_model is not rows.model:
            _delete(relation.related_model._base_manager.filter(**{f"{relation.field.name}__in": rows}))
    rows._raw_delete(rows.db)  # type: ignore[attr-defined]


def signed_in(who: Any) -> str:
    """Returns the cookie of a session of this person."""
    from django.conf import settings
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore

    from portal.web.session_cookie import signed_cookie

    session = SessionStore()
    session[SESSION_KEY], session[HASH_SESSION_KEY] = str(who.pk), who.get_session_auth_hash()
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session.create()
    return f"{settings.SESSION_COOKIE_NAME}={signed_cookie(str(session.session_key))}"
