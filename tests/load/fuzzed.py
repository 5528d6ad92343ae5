"""Calls that Schemathesis generates from the contract, at and beyond its bounds, as the owners of two teams.

They run in this process, in one transaction: each call is rolled back before the next one. Most addresses name existing
objects, since invented ones would only show 404.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import schemathesis
from django.apps import apps
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.db.models import Model
from django.utils import timezone
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.specs.openapi import checks

from accounts.api_tokens import token_text
from accounts.models import ApiToken, Scope, User
from cluster.models import Cluster
from tenants.models import JoinRequest, QuotaRequest, RequestComment, Tenant
from tests.matrix.sweep import OURS, ROUTES, tuples_written
from tests.matrix.tables.api_table import API
from tests.matrix.tables.policy import RELATIONS
from tests.matrix.world import CANARY, FUTURE, World, build
from tests.support.http.visits import undone
from tests.support.rows import make
from workloads.models import Workload

SEED = 2026
# In all texts of a team that only its own people may read.
MARKS = {"team-a": "canary-a1c9", "team-b": CANARY}
EXPECTED = ("400", "401", "403", "404", "405", "409", "415", "422")
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.unsupported_method,
    checks.ignored_auth,
]


def contract(*, max_examples: int) -> Any:
    """The document as the application serves it; each operation gets so many random calls beside its bounds."""
    config = SchemathesisConfig.from_dict(
        {
            "seed": SEED,
            "generation": {"deterministic": True, "max-examples": max(max_examples, 1), "no-shrink": True},
            # An If-Match tag that does not match has a status of its own.
            "checks": {"negative_data_rejection": {"expected-statuses": [*EXPECTED, "412"]}},
            "phases": {
                "coverage": {"generate-duplicate-query-parameters": True},
                "fuzzing": {"enabled": max_examples > 0},
            },
        }
    )
    return schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application(), config=config)


def operations(schema: Any) -> list[Any]:
    """Operations of the web process: doors serves logs."""
    found = [one.ok() for one in schema.get_all_operations()]
    return [one for one in found if one.path.startswith("/api/")]


def found_in(schema: Any, operation: Any, ask: Callable[[Any], None]) -> str:
    """The first problem in the answers of one operation."""

    def asked(case: Any) -> None:
        ask(case)

    made = build_operation_test(
        config=schema.config, operation=operation, test_func=asked, given_kwargs={}, feedback=FeedbackSources()
    )
    try:
        made()
    except BaseExceptionGroup as found:
        return "\n".join(str(one) for one in found.exceptions) + f"\n{found.message[-1500:]}"
    except Exception as error:
        return "".join(traceback.format_exception_only(error))
    return ""


@contextmanager
def in_one_transaction() -> Iterator[None]:
    """As in Django's own test client: the end of a request closes no connection."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    try:
        yield
    finally:
        for signal in (request_started, request_finished):
            signal.connect(close_old_connections)


@dataclass
class Two:
    """The two owners and their objects."""

    world: World
    teams: dict[str, Tenant]
    people: dict[str, User]
    tokens: dict[str, str]
    before: dict[str, str]
    made: int = field(default=0)
    # Operations of which at least one call was carried out.
    done: set[str] = field(default_factory=set)

    def ask(self, case: Any) -> None:
        """Sends one call, by one owner and the other in turn, and checks its answer. Raises if a check fails."""
        self.made += 1
        team, other = MARKS if self.made % 2 else reversed(MARKS)
        if self.made % 7:
            self.name_what_is_there(case)
        headers = {"Authorization": f"Bearer {self.tokens[team]}"}
        with undone():
            written = tuples_written()
            answer = case.call(headers=headers)
            self.done |= {case.operation.label} if answer.status_code < 300 else set()
            assert MARKS[other] not in answer.text, f"shows what is of {other}: {answer.text[:500]}"
            if tuples_written() != written:
                now = rows_of_team(self.teams[other], asked_by=self.people[team])
                assert now == self.before[other], f"changed what is of {other}"
            case.validate_response(answer, checks=CHECKS, headers=headers, transport_kwargs={"headers": headers})

    def name_what_is_there(self, case: Any) -> None:
        """Uses, in turn, objects of the owner's team, of the other team, deleted ones, and ones that never existed.
        Values that violate the contract stay as generated.
        """
        about = ABOUT.get((case.operation.method.upper(), case.operation.path), "")
        values = self.world.address(about, RELATIONS[self.made % len(RELATIONS)], "owner")
        components = case.meta.components
        for part, sent in ((ParameterLocation.PATH, case.path_parameters), (ParameterLocation.QUERY, case.query)):
            if values and sent and part in components and components[part].mode.is_positive:
                sent.update({name: value for name, value in values.items() if name in sent})


def _path(route: str) -> str:
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", f"/{ROUTES[route]}")


ABOUT = {(row.method, _path(row.route)): row.about for row in API}


def two(cluster: Cluster, unique: str) -> Two:
    world = build(cluster, unique)
    people = {"team-a": world.people["owner"], "team-b": User.objects.get(name__startswith="Zoe")}
    teams = {tenant.slug: tenant for tenant in world.teams.values()}
    _mark(teams["team-a"], MARKS["team-a"])
    texts = {team: _token(who) for team, who in people.items()}
    other = {"team-a": people["team-b"], "team-b": people["team-a"]}
    before = {slug: rows_of_team(one, asked_by=other[slug]) for slug, one in teams.items()}
    return Two(world, teams, people, texts, before)


def _mark(team: Tenant, mark: str) -> None:
    """Marks this team's texts as the world marks the other team's."""
    Tenant.objects.filter(pk=team.pk).update(name=f"Team {mark}", purpose=mark)
    Workload.objects.filter(tenant=team).update(command=[mark])
    QuotaRequest.objects.filter(tenant=team).update(justification=mark)
    RequestComment.objects.filter(request__tenant=team).update(text=mark)
    JoinRequest.objects.filter(tenant=team).update(message=mark)


def _token(who: User) -> str:
    """Its last use lies in the future, so that no call records a use."""
    text, now = token_text.new_token(), timezone.now()
    make.second_factor(who)
    ApiToken.objects.create(
        user=who,
        name="fuzz",
        prefix=text.prefix,
        digest=text.digest,
        scopes=list(Scope.values),
        expires_at=now + 30 * FUTURE,
        last_used_at=now + FUTURE,
    )
    return str(text)


def rows_of_team(team: Tenant, *, asked_by: User) -> str:
    """Every row of the team, except join requests of strangers."""
    found: list[Any] = [list(Tenant.objects.filter(pk=team.pk).values())]
    for app in OURS:
        for model in apps.get_app_config(app).get_models():
            for name in ("tenant", "namespace__tenant", "workload__tenant", "request__tenant"):
                if _leads_to_a_team(model, name):
                    rows = model._default_manager.filter(**{name: team}).order_by("pk")
                    if model is JoinRequest:
                        rows = rows.exclude(user=asked_by)
                    found.append(list(rows.values()))
                    break
    return repr(found)


@cache
def _leads_to_a_team(model: type[Model], name: str) -> bool:
    for part in name.split("__"):
        relation = next((one for one in model._meta.fields if one.name == part), None)
        if relation is None or relation.related_model is None:
            return False
        model = relation.related_model
    return model is Tenant
