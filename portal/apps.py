"""The project as an app: template tags and the sweep task live here."""

from typing import Any

from django.apps import AppConfig
from django.core.management.base import CommandError
from django.db import connections
from django.db.models.signals import pre_migrate

from portal.core.sql import WITHOUT_POOLER, has_own_session


class PortalConfig(AppConfig):
    name = "portal"
    verbose_name = "GPU portal"

    def ready(self) -> None:
        pre_migrate.connect(_migrate_without_limits)


def _migrate_without_limits(using: str, **_signal: Any) -> None:
    """An index of a large table takes minutes. The limit of a wait for a lock stays: all that read the table wait
    behind such a wait, and a migration that gave up can be started again.
    """
    if not has_own_session(connections[using]):
        raise CommandError(f"Migrations need a session of their own. {WITHOUT_POOLER}")
    with connections[using].cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("SET idle_in_transaction_session_timeout = 0")
