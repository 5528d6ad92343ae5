"""The kinds of rows that the portal stores, and for how long it keeps each. Pure.

Every table of the schema is in exactly one kind; a new table needs a line, and tests fail without one
(tests/desk/retention). Times that a room defines for its own deletion are imported from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from accounts.events.queries import NOTICES_KEPT
from accounts.rest.idempotency import KEPT_FOR
from cluster.apply import drift
from cluster.mirror import admissions, pod_removals
from cluster.models import Certificate
from usage.faults import collection as fault_collection
from usage.samples.sampling import SAMPLE_RETENTION
from usage.telemetry import collection as telemetry_collection
from workloads.forecast.prediction_log import PREDICTION_RETENTION

ALWAYS = "always"
# Where `manage.py retention` and the worker delete.
HERE = "desk/retention"
SENT_EMAILS_KEPT = timedelta(days=90)
EXPIRED_SESSIONS_KEPT = timedelta(days=1)


@dataclass(frozen=True)
class Expiry:
    """What this room deletes of the only table of a kind, when `kept_for` is over.

    `condition`: SQL; a row that does not meet it is still needed. Archived rows have a column `id`. Rows that are not
    archived are found by `at` alone, so that a role may delete them that may not read them.
    """

    condition: str = ""
    is_archived: bool = True


@dataclass(frozen=True)
class Kind:
    """`tables`: the first one is the one whose oldest row is shown, by its column `at` and the index on `order`.

    `kept_for`: after `at`; None: `rule` alone says until when. `deleted_by`: the module or process that deletes; "":
    nothing does.
    """

    name: str
    tables: tuple[str, ...]
    rule: str
    deleted_by: str = ""
    kept_for: timedelta | None = None
    at: str = ""
    order: str = "id"
    expiry: Expiry | None = None


def _tables(app: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{app}_{name}" for name in names)


KINDS: tuple[Kind, ...] = (
    # ---- records of what people did
    Kind("events", ("accounts_event",), f"{ALWAYS}: the record of actions; a trigger refuses deletion", at="at"),
    Kind("admin-log", ("django_admin_log",), f"{ALWAYS}: changes in the Django admin", at="action_time"),
    Kind("api-tokens", ("accounts_apitoken",), f"{ALWAYS}, also revoked ones: events name them", at="created_at"),
    Kind(
        "requests",
        _tables("tenants", "quotarequest", "quotaline", "requestcomment", "teamrequest", "joinrequest", "invitation"),
        f"{ALWAYS}: who asked for what, and who decided",
        at="filed_at",
    ),
    Kind("grants", ("tenants_grant",), f"{ALWAYS}: also expired ones, for the timeline of a team"),
    # ---- messages
    Kind(
        "emails",
        ("accounts_delivery",),
        "after they were sent, once they are archived; others stay",
        HERE,
        SENT_EMAILS_KEPT,
        at="sent_at",
        order="sent_at",
        expiry=Expiry("due_at IS NULL AND leased_until IS NULL"),
    ),
    Kind(
        "notices",
        ("accounts_notice",),
        "deleted when the same person gets the next one",
        "accounts/events",
        NOTICES_KEPT,
        at="at",
    ),
    Kind(
        "announcements",
        _tables("tenants", "announcement", "announcement_classes", "announcement_teams", "acknowledgement"),
        f"{ALWAYS}: what people were told, and who acknowledged it",
        at="created_at",
    ),
    # ---- accounts
    Kind(
        "accounts",
        (
            *_tables("accounts", "user", "user_groups", "user_user_permissions", "identity", "noticepreference"),
            *_tables("account", "emailaddress", "emailconfirmation"),
            "mfa_authenticator",
        ),
        "as long as the account; accounts are suspended and not deleted",
        at="joined_at",
    ),
    Kind(
        "sessions",
        ("django_session",),
        "after they expired",
        HERE,
        EXPIRED_SESSIONS_KEPT,
        at="expire_date",
        order="expire_date",
        expiry=Expiry(is_archived=False),
    ),
    Kind(
        "signed-in-browsers",
        ("usersessions_usersession",),
        "until the session ends; allauth deletes it when the person signs in again",
        at="created_at",
    ),
    Kind(
        "answers-to-idempotency-keys",
        ("accounts_keptanswer",),
        "deleted with the next such call",
        "accounts/rest",
        KEPT_FOR,
        at="at",
        order="at",
    ),
    # ---- runs
    Kind(
        "workloads",
        _tables("workloads", "workload", "volume"),
        f"{ALWAYS}, also deleted ones: runs and reports name them",
        at="created_at",
    ),
    Kind(
        "runs",
        _tables("workloads", "run", "allocationinterval", "notebookwatch"),
        f"{ALWAYS}, with failure records and allocations: usage reports go back 120 months",
        at="requested_at",
    ),
    Kind(
        "logs-of-ended-runs",
        ("workloads_runlog",),
        "for log_retention_days of the class",
        "workloads/logs",
        at="expires_at",
        order="expires_at",
    ),
    Kind(
        "start-estimates",
        ("workloads_startprediction",),
        "deleted with the next estimates",
        "workloads/forecast",
        PREDICTION_RETENTION,
        at="made_at",
    ),
    Kind(
        "passes-to-notebooks",
        _tables("workloads", "ticket", "notebooksession"),
        "expired ones are deleted when the same person opens a notebook",
        "workloads/gateway",
        at="expires_at",
        order="",
    ),
    Kind(
        "secrets",
        _tables("workloads", "teamsecret", "registrycredential"),
        "until the team deletes them",
        "workloads/credentials",
        at="updated_at",
    ),
    # ---- use
    Kind(
        "use-by-hour",
        _tables("workloads", "usagesample", "usagehour"),
        "deleted in each minute that is sampled",
        "usage/samples",
        SAMPLE_RETENTION,
        at="hour",
        order="hour",
    ),
    Kind(
        "activity-by-hour",
        _tables("usage", "runhour", "classhour"),
        "deleted in each minute that is read",
        "usage/telemetry",
        telemetry_collection.RETENTION,
        at="hour",
        order="hour",
    ),
    Kind(
        "gpu-faults",
        _tables("usage", "gpufault", "faultrun"),
        "after they are over; deleted in each minute that is read",
        "usage/faults",
        fault_collection.RETENTION,
        at="cleared_at",
        order="",
    ),
    Kind(
        "adoptions",
        ("operations_adoption",),
        f"{ALWAYS}: what a namespace contained, and who agreed to its adoption",
        at="proposed_at",
    ),
    Kind(
        "maintenance",
        _tables("operations", "maintenance", "maintenancenode", "maintenancenotice"),
        f"{ALWAYS}: what was done to nodes, and who was told",
        at="created_at",
    ),
    Kind(
        "cordons",
        _tables("operations", "nodecordon", "cordonnotice"),
        f"{ALWAYS}: when nodes were cordoned, and who was told",
        at="noticed_at",
    ),
    Kind("idle-runs", ("usage_idlerun",), "until the idle stretch ends", "usage/idle", at="idle_since", order=""),
    Kind(
        "capacity",
        ("usage_capacityinterval",),
        f"{ALWAYS}: usage reports go back 120 months",
        at="starts_at",
    ),
    Kind("prices", ("catalog_classprice",), f"{ALWAYS}: usage reports go back 120 months", at="since"),
    # ---- the cluster
    Kind(
        "mirror",
        _tables(
            "cluster",
            "mirrorepoch",
            "mirrorkind",
            "mirrornode",
            "mirrorpod",
            "mirrorjob",
            "mirrorworkload",
            "mirrorobject",
            "mirrorwarning",
            "mirrorlease",
            "mirrorunits",
            "mirroruse",
            "mirrornews",
        ),
        "as long as the object is in the cluster; news until owners were told",
        "cluster/mirror",
    ),
    Kind(
        "applied-objects", ("cluster_appliedobject",), "as long as the object is wanted", "cluster/apply", at="sent_at"
    ),
    Kind(
        "drift",
        ("cluster_objectdrift",),
        "after it was last seen; deleted when drift is recorded",
        "cluster/apply",
        drift.KEPT,
        at="last_at",
        order="last_at",
    ),
    Kind(
        "removed-pods",
        ("cluster_podremoval",),
        "deleted when the next pod is removed",
        "cluster/mirror",
        pod_removals.KEPT,
        at="removed_at",
        order="",
    ),
    Kind(
        "admissions",
        ("cluster_admissionperiod",),
        "after the end; the worker copied them to the runs; deleted when the next one ends",
        "cluster/mirror",
        admissions.KEPT,
        at="ended_at",
        order="",
    ),
    Kind(
        "certificates",
        ("cluster_certificate",),
        "after it was last read",
        "cluster/certificates",
        Certificate.FORGOTTEN_AFTER,
        at="read_at",
        order="",
    ),
    # ---- what people set up
    Kind(
        "catalog",
        _tables("catalog", "gpuclass", "image", "pool", "nodeunits", "banner", "devicetrial", "dismissedproposal"),
        "until somebody removes it; classes are retired and not deleted",
        "catalog",
    ),
    Kind(
        "measurements",
        ("catalog_nodemeasurement",),
        f"{ALWAYS}: what operators measured of nodes, also of those that are gone",
        at="recorded_at",
    ),
    Kind(
        "teams",
        _tables(
            "tenants",
            "tenant",
            "namespace",
            "plan",
            "membership",
            "approverfor",
            "deputy",
            "rule",
            "bundle",
            "bundleline",
            "classaccess",
            "imageprefix",
            "termsaccepted",
        ),
        "until somebody removes it; closed teams keep their rows, because events and reports name them",
        "tenants",
    ),
    Kind(
        "state-of-a-team-or-cluster",
        (*_tables("usage", "faultsource", "telemetrysource"), "workloads_teambudget", "cluster_cluster"),
        "one row for each",
    ),
    Kind(
        "installation",
        (
            *_tables("django", "migrations", "content_type"),
            *_tables("auth", "permission", "group", "group_permissions"),
        ),
        "as long as the release",
    ),
)
