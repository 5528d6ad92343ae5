"""How large the database of 10,000 teams is after a year: 100 teams are filled with a year, and the rest is computed.

What a team does in a year is assumed below; rows with a shorter life are those of their last days (desk/retention).
Rows are inserted in the order of their times, as in life, so that the pages of indexes on teams are as full as there.
Sizes are those after VACUUM, with indexes; dead rows of a busy database come on top. The peer is the size of the same
tables without indexes. Standard error has the tables, largest first, and indexes that another one makes unnecessary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from devcluster.processes.console import note
from tests.perf.servers.database import own_database

TEAMS, ALL_TEAMS = 100, 10_000
ROUNDS = 7
GIB = 1024**3
GIB_MOST, WITH_INDEXES_MOST, COVERED_MOST = 50, 1.6, 8
# Of a team in a year: ten people, two runs on each working day, four hours each on two GPUs.
PEOPLE, RUNS, RUN_HOURS = 10, 500, 4
RUNS_PER_WORKLOAD = 2
EVENTS_PER_RUN, OTHER_EVENTS = 3, 500
SIGN_INS = 200 * PEOPLE
# Of those with a shorter life, by run: two emails and notices, five estimates, 30 KB of log; sessions by sign-in.
EMAILS_PER_RUN, ESTIMATES_PER_RUN, LOG_LINES = 2, 5, 400
SHORT_DAYS, LOG_DAYS, SESSION_DAYS = 90, 14, 15
YEAR = 365


@benchmark("size", f"the database of {ALL_TEAMS:,} teams after a year, from {TEAMS} teams", cluster=False)
def size(context: Context) -> Iterator[Figure]:
    services = context.services
    with own_database("size", database_url=services["database_url"], redis_url=services["redis_url"]):
        before = _sizes()
        _fill_year()
        after = _sizes()
        scale = ALL_TEAMS / TEAMS
        grown = {name: [scale * (now - then) for now, then in zip(after[name], before[name], strict=True)]
                 for name in after}  # fmt: skip
        note(f"{'table':34} {'GiB':>8} {'indexes':>8}   KiB a team and year")
        for name, (total, indexes) in sorted(grown.items(), key=lambda one: -one[1][0])[:20]:
            note(f"{name:34} {total / GIB:8.2f} {indexes / GIB:8.2f}   {total / ALL_TEAMS / 1024:.1f}")
        unnecessary = _unnecessary_indexes()
        for name, by in unnecessary:
            note(f"{name}: {by} begins with the same columns")
    total = sum(one for one, _ in grown.values()) / GIB
    indexes = sum(one for _, one in grown.values()) / GIB
    pairs = [(total, total - indexes)] * ROUNDS
    yield Figure("size_of_all_teams_and_a_year", "GiB", "tables without indexes", pairs, Bar("ours", GIB_MOST))
    yield Figure("size_with_indexes", "GiB", "tables without indexes", pairs, Bar("ratio", WITH_INDEXES_MOST))
    counted = [(float(len(unnecessary)), float(len(unnecessary)))] * ROUNDS
    yield Figure("size_indexes_that_others_cover", "indexes", "the same", counted, Bar("ours", COVERED_MOST))


def _fill_year() -> None:
    from django.contrib.sessions.models import Session
    from django.db import connection

    from accounts.models import Delivery, Event, Notice
    from usage.samples.models import UsageSample
    from usage.telemetry.models import RunHour
    from workloads.models import AllocationInterval, Run, RunLog, StartPrediction, Workload

    ids, spec = _ground()
    of_team = f"mod(n, {TEAMS})"
    runs, workloads = TEAMS * RUNS, TEAMS * RUNS // RUNS_PER_WORKLOAD
    namespace_of = f"namespaces[1 + {of_team}]"
    base = "FROM generate_series(0, {}) n, (SELECT %s::bigint[] AS namespaces, %s::bigint[] AS tenants) ids"

    def at(rows: int, days: int = YEAR) -> str:
        """The n-th of `rows` moments of the last days."""
        return f"now() - interval '{days} days' + n * (interval '{days} days' / {rows})"

    def fill(model: Any, source: str, values: list[Any], /, **columns: str) -> None:
        """`columns`: SQL. Others have the default of the model."""
        names, expressions, given = [], [], []
        for field in model._meta.concrete_fields:
            if field.column in columns:
                names.append(field.column)
                expressions.append(columns[field.column])
            elif not (field.primary_key or field.null or field.has_db_default()):
                names.append(field.column)
                expressions.append("%s")
                given.append(field.get_db_prep_save(field.get_default(), connection))
        table = model._meta.db_table
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(expressions)} {source}",
                [*given, *values] or None,
            )

    person, gpu_class = str(ids["person"]), str(ids["gpu_class"])
    both = [ids["namespaces"], ids["tenants"]]
    fill(
        Workload, base.format(workloads - 1), both,
        tenant_id=f"tenants[1 + {of_team}]", namespace_id=namespace_of, name="'train-' || n", kind="'job'",
        origin="md5(n::text)::varchar(20)", gpu_class_id=gpu_class, units="2",
        image="'registry.example.org/team/pytorch:2.9-cuda13'", command="'[\"python\", \"train.py\", \"--epochs\"]'",
        created_by_id=person, created_at=at(workloads), deleted_at="now()",
    )  # fmt: skip
    fill(
        Run, f"FROM generate_series(0, {runs - 1}) n, (SELECT min(id) AS first FROM workloads_workload) w", [],
        workload_id=f"w.first + mod(n, {workloads})", number=f"1 + n / {workloads}", spec=spec,
        requested_at=at(runs), requested_by_id=person, admitted_at=at(runs), started_at=at(runs), ready_at=at(runs),
        ended_at=f"{at(runs)} + interval '{RUN_HOURS} hours'", outcome="'succeeded'", reason="'Completed'",
    )  # fmt: skip
    of_runs = "FROM workloads_run run JOIN workloads_workload workload ON workload.id = run.workload_id"
    fill(
        AllocationInterval, f"{of_runs} ORDER BY run.id", [],
        run_id="run.id", namespace_id="workload.namespace_id", gpu_class_id=gpu_class, flavor="'a100-0c5a9bf8e2'",
        units="2", weight="1", price_per_unit_hour="3", priority="'batch'", source="'queue'",
        queued_uid="gen_random_uuid()::text", starts_at="run.started_at", ends_at="run.ended_at",
        end_reason="'Finished'",
    )  # fmt: skip
    hours = f"CROSS JOIN generate_series(0, {RUN_HOURS}) place"
    hour = "date_trunc('hour', run.started_at) + place * interval '1 hour'"
    measured = {
        field.column: "60" for field in RunHour._meta.concrete_fields
        if field.get_internal_type() in ("FloatField", "IntegerField", "BigIntegerField", "PositiveIntegerField",
                                         "PositiveSmallIntegerField", "PositiveBigIntegerField")
    }  # fmt: skip
    fill(
        RunHour, f"{of_runs} {hours} ORDER BY {hour}", [],
        run_id="run.id", hour=hour, namespace_id="workload.namespace_id", gpu_class_id=gpu_class,
        measure="'utilisation'", **measured,
    )  # fmt: skip
    fill(
        UsageSample, f"{of_runs} {hours} GROUP BY workload.namespace_id, {hour} ORDER BY {hour}", [],
        namespace_id="workload.namespace_id", gpu_class_id=gpu_class, hour=hour, units_max="2", units_sum="120",
        samples="60",
    )  # fmt: skip
    events = TEAMS * (RUNS * EVENTS_PER_RUN + OTHER_EVENTS)
    fill(
        Event, f"FROM generate_series(0, {events - 1}) n", [],
        at=at(events), actor_id=f"{person} + mod(n, 7)",
        actor="'Alice Example'", via="'page'", verb="'workload.launched'",
        tenant=f"'team-' || {of_team}", row=f"'workloads.workload.' || n / {EVENTS_PER_RUN}",
        name="'train-' || n", after="'{\"class\": \"a100\", \"units\": 2, \"run\": 2, \"priority\": \"batch\"}'",
        request_id="md5(n::text)",
    )  # fmt: skip
    emails = TEAMS * RUNS * EMAILS_PER_RUN * SHORT_DAYS // YEAR
    of_events = "FROM (SELECT id, at, row_number() OVER (ORDER BY id DESC) AS n FROM accounts_event) event"
    recent = f"{of_events} WHERE n <= {emails} ORDER BY id"
    fill(
        Delivery, recent, [], event_id="event.id", user_id=person, subject="'Your run train-' || n || ' has ended'",
        body="repeat('The run has ended after four hours with success. ', 8)", sent_at="event.at", due_at="NULL",
    )  # fmt: skip
    fill(
        Notice, recent, [], event_id="event.id", user_id=person, kind="'stopped'", at="event.at",
        subject="'Your run train-' || n || ' has ended'", link="'/teams/team-1/workloads/train-' || n",
    )  # fmt: skip
    fill(
        StartPrediction,
        f"{of_runs}, generate_series(1, {ESTIMATES_PER_RUN}) place"
        f" WHERE run.requested_at > now() - interval '{SHORT_DAYS} days' ORDER BY run.id",
        [], run_id="run.id", made_at="run.requested_at", checked_at="run.requested_at", earliest="run.requested_at",
        latest="run.started_at", basis="'queue'",
    )  # fmt: skip
    line = "md5(run.id::text || place) || ' step ' || place || ' loss 0.0123 lr 1e-4 samples/s 812.3'"
    fill(
        RunLog, f"{of_runs} WHERE run.ended_at > now() - interval '{LOG_DAYS} days'", [],
        run_id="run.id", worker="0", rank="0", read_at="run.ended_at", expires_at="run.ended_at",
        text=f"(SELECT string_agg({line}, E'\\n') FROM generate_series(1, {LOG_LINES}) place)",
    )  # fmt: skip
    sessions = TEAMS * SIGN_INS * SESSION_DAYS // YEAR
    fill(
        Session, f"FROM generate_series(1, {sessions}) n", [], session_key="md5(n::text)",
        session_data="repeat(md5(n::text), 8)", expire_date=at(sessions, SESSION_DAYS),
    )  # fmt: skip
    _sign_ins(fill, at)


def _sign_ins(fill: Any, at: Any) -> None:
    from allauth.usersessions.models import UserSession

    from accounts.models import User

    rows = TEAMS * SIGN_INS * SESSION_DAYS // YEAR
    fill(
        UserSession, f"FROM generate_series(1, {rows}) n", [], user_id=str(User.objects.get().pk), ip="'10.1.2.3'",
        session_key="md5(n::text)", created_at=at(rows, SESSION_DAYS), last_seen_at=at(rows, SESSION_DAYS), data="'{}'",
        user_agent="'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0'",
    )  # fmt: skip


def _ground() -> tuple[dict[str, Any], str]:
    """Teams, their namespaces, one class; and the frozen spec of a run, as SQL."""
    import json

    from cluster.models import Cluster
    from tenants.models import Namespace, Tenant
    from tests.support.rows import make
    from workloads.launch.spec import frozen_spec
    from workloads.models import Workload

    cluster = Cluster.objects.create(name="main", notebooks_domain="notebooks.localhost")
    person, gpu_class = make.user("Alice"), make.gpu_class(cluster)
    slugs = [f"team-{place}" for place in range(TEAMS)]
    teams = Tenant.objects.bulk_create(Tenant(slug=slug, name=slug) for slug in slugs)
    namespaces = Namespace.objects.bulk_create(
        Namespace(tenant=team, cluster=cluster, name=team.slug, due_at=None) for team in teams
    )
    one = Workload(
        tenant=teams[0], namespace=namespaces[0], name="train", kind="job", gpu_class=gpu_class, units=2,
        image="registry.example.org/team/pytorch:2.9-cuda13", command=["python", "train.py", "--epochs", "90"],
        created_by=person,
    )  # fmt: skip
    ids = {
        "person": person.pk,
        "gpu_class": gpu_class.pk,
        "tenants": [team.pk for team in teams],
        "namespaces": [namespace.pk for namespace in namespaces],
    }
    text = json.dumps(frozen_spec(one, 1).to_json()).replace("'", "''")
    return ids, f"'{text}'::jsonb"


def _sizes() -> dict[str, tuple[int, int]]:
    """Bytes of each table with indexes, and of its indexes alone."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("SELECT relname, pg_total_relation_size(relid), pg_indexes_size(relid) FROM pg_stat_user_tables")
        return {name: (total, indexes) for name, total, indexes in cursor.fetchall()}


def _unnecessary_indexes() -> list[tuple[str, str]]:
    """Indexes on the first columns of another index, which has the same condition and finds the same rows."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("""
            SELECT one.indexrelid::regclass::text, other.indexrelid::regclass::text
              FROM pg_index one
              JOIN pg_index other ON other.indrelid = one.indrelid AND other.indexrelid <> one.indexrelid
              JOIN pg_class short ON short.oid = one.indexrelid
              JOIN pg_class long ON long.oid = other.indexrelid AND long.relam = short.relam
              JOIN pg_am method ON method.oid = short.relam AND method.amname = 'btree'
              JOIN pg_stat_user_indexes ours ON ours.indexrelid = one.indexrelid
             WHERE NOT one.indisunique AND one.indexprs IS NULL AND other.indexprs IS NULL
               AND one.indpred IS NOT DISTINCT FROM other.indpred
               AND other.indkey::text || ' ' LIKE one.indkey::text || ' %'
               AND other.indclass::text || ' ' LIKE one.indclass::text || ' %'
               AND other.indoption::text || ' ' LIKE one.indoption::text || ' %'
             ORDER BY 1""")
        return [(name, by) for name, by in cursor.fetchall()]
