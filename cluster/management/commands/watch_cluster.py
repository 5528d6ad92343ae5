"""`manage.py watch_cluster`: follows one Kubernetes cluster and keeps its mirror, until it is stopped."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection

from cluster.client.kube import connect
from cluster.mirror.watch import WatchLimits
from cluster.mirror.watcher import SharedSession, Watcher, WatcherOptions
from cluster.models import Cluster
from portal.core.due import owner_label
from portal.ops import ops_server

CLUSTER_AGAIN_S = 2.0


class Command(BaseCommand):
    help = "Watch the Kubernetes cluster CLUSTER_NAME and update its mirror. One per cluster; a second process waits."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--cluster", default=settings.CLUSTER_NAME, help="name of the Cluster row")
        parser.add_argument(
            "--silence", type=float, default=WatchLimits.silence_s, help="seconds until a watch is reopened"
        )

    def handle(self, *args: Any, cluster: str, silence: float, **options: Any) -> None:
        ops_server.start_ops_server()
        stopped = threading.Event()
        row = self._find(cluster, stopped)
        if row is None:
            return
        watcher = Watcher(
            row,
            connect(is_watcher=True),
            WatcherOptions(limits=WatchLimits(silence_s=silence), capacity_owners=lambda: _capacity_owners(row.pk)),
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: watcher.stop())
        try:
            watcher.run()
        except SharedSession as shared:
            raise CommandError(str(shared)) from shared

    def _find(self, name: str, stopped: threading.Event) -> Cluster | None:
        """Waits, with one log line, while the row is not seeded or the database is not up yet."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        said = ""
        while not stopped.is_set():
            problem = f"There is no cluster named {name} in the database yet; waiting."
            try:
                row = Cluster.objects.filter(name=name).first()
                if row is not None:
                    return row
            except DatabaseError as error:
                problem = f"The database does not respond yet ({type(error).__name__}); waiting: {error}"
                connection.close()
            if problem != said:
                said = problem
                self.stderr.write(problem)
            stopped.wait(CLUSTER_AGAIN_S)
        return None


def _capacity_owners(cluster_id: int) -> Iterable[str]:
    models = [apps.get_model(label) for label in settings.CAPACITY_OWNERS]
    return [owner_label(row) for model in models for row in model._base_manager.filter(cluster_id=cluster_id)]
