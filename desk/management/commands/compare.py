"""`manage.py compare`: how runs and the Jobs in the cluster differ, for the time after a restore.

    python manage.py compare                                 # lists what is to decide; changes nothing
    python manage.py compare --after-restore                 # prepares the rows first; with the owner's DATABASE_URL
    python manage.py compare --delete-job NAMESPACE/NAME     # in the worker
    python manage.py compare --stop TEAM/WORKLOAD

And how rows differ from another cluster, for the time before and after a move to one:

    python manage.py compare --new-cluster                   # lists what is made again and lost; changes nothing
    python manage.py compare --new-cluster --confirm UID     # this cluster takes the place of the previous one

Exits with 0 if rows and Jobs agree, 1 if there is something to decide, 2 if the cluster is not known. With
`--new-cluster`: 1 if another cluster is reached, or if something is left after a move.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.core.actor import system_actor
from cluster.apply.applied_objects import send_all_again
from cluster.client.errors import ObserveOnly
from cluster.client.kube import connect
from cluster.models import Cluster
from cluster.reads import queries as read_queries
from desk.installation.backup.sequences import move_sequences
from desk.installation.moving.actions import confirm_cluster
from desk.installation.moving.queries import move_of
from desk.installation.moving.shown import move_lines
from portal.core.errors import Refused
from workloads.launch import actions as launch_actions
from workloads.runs.objects import actions
from workloads.runs.objects.comparison import JobState, compared_jobs, runs_without_job

DIFFERENT, UNKNOWN = 1, 2
_STATES = {
    JobState.ORPHAN: "orphan: no workload has it",
    JobState.UNRECORDED: "unrecorded: its workload has no such run, and no active one",
    JobState.DUPLICATE: "duplicate: its workload has no such run, and another one is active",
}


class Command(BaseCommand):
    help = "Compare runs with the Jobs in the cluster, for the time after a restore."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--after-restore",
            action="store_true",
            help="first move primary keys beyond those in the cluster, and let workers send every object again",
        )
        parser.add_argument(
            "--delete-job", action="append", default=[], metavar="NAMESPACE/NAME", help="no run owns it"
        )
        parser.add_argument("--stop", action="append", default=[], metavar="TEAM/WORKLOAD", help="stop its active run")

        parser.add_argument(
            "--new-cluster",
            action="store_true",
            help="what a move to another cluster makes again and loses, and what is left after one",
        )
        parser.add_argument(
            "--confirm", default="", metavar="UID", help="with --new-cluster: use the cluster with this uid from now on"
        )

    def handle(self, *args: Any, after_restore: bool, delete_job: list[str], stop: list[str], **options: Any) -> None:
        if options["confirm"] and not options["new_cluster"]:
            raise CommandError("--confirm needs --new-cluster.")
        if options["new_cluster"]:
            if after_restore or delete_job or stop:
                raise CommandError("--new-cluster takes no other decision than --confirm.")
            self._new_cluster(options["confirm"])
            return
        try:
            cluster = read_queries.current_cluster()
            as_of = read_queries.as_of(cluster.pk)
            if not as_of.is_current:
                self.stderr.write(f"The cluster is not known: {as_of.problem} Start the watcher, and try again.")
                sys.exit(UNKNOWN)
            by = system_actor("manage.py")
            for namespace, name in map(_pair, delete_job):
                actions.delete_job(cluster, namespace, name, by=by, kube=connect())
                self.stdout.write(f"Job {namespace}/{name}: deletion requested.")
            for team, workload in map(_pair, stop):
                launch_actions.stop(team, workload, by=by)
                self.stdout.write(f"{team}/{workload}: stop requested.")
        except (Refused, ObserveOnly) as refused:
            raise CommandError(str(refused)) from refused
        if after_restore:
            self._move_sequences(cluster)
            self.stdout.write(f"{send_all_again(cluster.pk)} objects will be sent again when workers run.")
        if not (delete_job or stop) and self._list(cluster):
            sys.exit(DIFFERENT)

    def _new_cluster(self, confirmed: str) -> None:
        try:
            cluster = read_queries.current_cluster()
            if confirmed and confirmed != cluster.other_uid:
                raise CommandError(f"The watcher reaches no other cluster with the uid {confirmed}.")
            if confirmed:
                sent = confirm_cluster(cluster, confirmed, by=system_actor("manage.py"))
                self.stdout.write(f"Confirmed. {sent} objects of the previous cluster will be made again by workers.")
                cluster.refresh_from_db()
        except Refused as refused:
            raise CommandError(str(refused)) from refused
        found = move_of(cluster)
        for line in move_lines(found):
            self.stdout.write(line)
        if not confirmed and found.is_after and not found.is_known:
            sys.exit(UNKNOWN)
        if not confirmed and (found.other_uid or (found.is_after and found.left)):
            sys.exit(DIFFERENT)

    def _move_sequences(self, cluster: Cluster) -> None:
        moved = move_sequences(cluster.pk)
        for one in moved:
            if one.last is None:
                text = f"{one.table}: an object in the cluster names the row {one.seen}, which cannot be one of ours."
                self.stdout.write(f"{text} Look for its label gpu-portal/owner. The next keys stay as they are.")
            else:
                self.stdout.write(f"{one.table}: the next key is {one.seen + 1}; it was {one.last + 1}.")
        if not moved:
            self.stdout.write("No object in the cluster names a row that is still to come.")

    def _list(self, cluster: Cluster) -> bool:
        """Returns whether there is something to decide."""
        jobs, runs = compared_jobs(cluster), runs_without_job(cluster)
        counts = Counter(job.state for job in jobs)
        self.stdout.write(f"{len(jobs)} Jobs in the cluster, {counts[JobState.RECORDED]} of them with their run.")
        for job in jobs:
            if job.state in _STATES:
                state = f"{_STATES[job.state]}, {'ended' if job.is_over else 'not ended'}"
                self.stdout.write(f"Job {job.namespace}/{job.name} of {job.created_at:%Y-%m-%d %H:%M:%S}: {state}.")
        for run in runs:
            then = (
                "its Job is gone; a worker records it as lost, and its result is unknown"
                if run.was_sent
                else "it has no Job; a worker creates it, also if the run was over when the database was lost"
            )
            self.stdout.write(f"Run {run.number} of {run.team}/{run.workload}: {then}.")
        is_different = bool(runs) or len(jobs) > counts[JobState.RECORDED]
        if is_different:
            self.stdout.write(
                "Decide each: --delete-job NAMESPACE/NAME, or keep the Job, which runs to its end and holds its units; "
                "--stop TEAM/WORKLOAD, or let the run go on."
            )
        return is_different


def _pair(text: str) -> tuple[str, str]:
    first, _, second = text.partition("/")
    if not first or not second:
        raise CommandError(f"{text} is not of the form A/B.")
    return first, second
