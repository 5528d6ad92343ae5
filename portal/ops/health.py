"""Probes: /livez (the process responds) and /readyz (it can serve requests: database, migrations)."""

from __future__ import annotations

import redis.sentinel
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from portal.core import hints

# Migrations are applied once and never reverted while a process runs. A check costs 100 ms.
_migrated = False


@require_safe
@never_cache
def livez(request: HttpRequest) -> HttpResponse:
    """Checks no service: a process that cannot reach its database must not be restarted for that."""
    return HttpResponse("alive\n", content_type="text/plain")


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    status, text = readiness()
    return HttpResponse(text, status=status, content_type="text/plain")


def readiness() -> tuple[int, str]:
    """Status and text: 200 "ready", or 503 with the problem. Without Redis pages work, only later than usual: they must
    not go away while its primary is replaced. The text says it.
    """
    if problem := _database():
        return 503, f"{problem}\n"
    return 200, "".join(f"{line}\n" for line in ("ready", redis_problem()) if line)


def _database() -> str:
    global _migrated
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        if _migrated:
            return ""
        executor = MigrationExecutor(connection)
        missing = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    except (DatabaseError, InterfaceError) as error:
        return f"PostgreSQL does not answer ({type(error).__name__})."
    if missing:
        return f"{missing} migrations are not applied."
    _migrated = True
    return ""


def redis_problem() -> str:
    """One sentence without addresses, or an empty text."""
    try:
        hints.redis_connection().ping()
    except redis.sentinel.MasterNotFoundError:
        return "Redis has no primary: no sentinel that answers names one."
    except redis.RedisError as error:
        return f"Redis does not answer ({type(error).__name__})."
    return ""
