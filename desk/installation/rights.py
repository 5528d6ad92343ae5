"""What each process may do with each table. Pure.

Every process has a role in PostgreSQL: `portal_web`, `portal_doors`, … A privilege that is not written here is refused
by the database, whatever the code asks for. The owner of the tables has all of them, and only migrations use it. A new
table needs a line, and tests fail without one (tests/desk/installation).
"""

from __future__ import annotations

ROLES = {process: f"portal_{process}" for process in ("web", "doors", "worker", "watcher", "beat")}

READ = "SELECT"
WRITE = "SELECT, INSERT, UPDATE, DELETE"
# PostgreSQL lets a role lock a row if it may update a column of it; foreign keys hold the id.
LOCK = "SELECT, UPDATE (id)"
# Work that is due (portal/core/due.py): a worker claims it, web asks for it, the watcher wakes it, all measure it.
CLAIM = "generation, observed_generation, due_at, leased_until, attempts, error_code, error_text"
ASK = "generation, due_at"
WAKE = "SELECT (id, due_at, leased_until, error_code), UPDATE (due_at)"
MEASURE = "SELECT (due_at, leased_until)"
# What the metrics of every process count: desk/health/metrics.py.
MEASURE_RUN = "SELECT (id, workload_id, spec, requested_at, admitted_at, reason)"
# Of an encrypted value, which only the worker reads. Web replaces it without reading it.
NOT_SEALED = "id, namespace_id, created_by_id, updated_at"
REPLACE_SEALED = "UPDATE (sealed, created_by_id, updated_at)"

# Everything that follows the cluster is read by all, and written by the watcher alone.
_MIRROR = {"web": READ, "doors": READ, "worker": READ, "watcher": WRITE, "beat": READ}
_MIRROR_TABLES = (
    *("epoch", "kind", "node", "pod", "job", "workload", "object", "warning", "lease", "units", "use"),
    "news",
)
_EVERYBODY = dict.fromkeys(ROLES, READ)
# Read where people see it, written by web.
_BY_WEB = {"web": WRITE, "doors": READ, "worker": READ}

RIGHTS: dict[str, dict[str, str]] = {
    # ---- Django
    "django_migrations": _EVERYBODY,
    "django_content_type": {"web": READ},
    "django_admin_log": {"web": "SELECT, INSERT"},
    # Who sees the session of a password that was changed since deletes it. The worker deletes expired ones, and cannot
    # read whose they are.
    "django_session": {"web": WRITE, "doors": "SELECT, DELETE", "worker": "SELECT (expire_date), DELETE"},
    "auth_permission": {"web": READ},
    "auth_group": {"web": READ},
    "auth_group_permissions": {"web": READ},
    # ---- accounts
    "account_emailaddress": {"web": WRITE},
    "account_emailconfirmation": {"web": "SELECT, DELETE"},
    "mfa_authenticator": {"web": WRITE, "doors": "SELECT (id, user_id, type)", "worker": "SELECT (id, user_id, type)"},
    "usersessions_usersession": {"web": WRITE},
    "accounts_user": {"web": "SELECT, INSERT, UPDATE", "doors": READ, "worker": READ},
    "accounts_user_groups": {"web": READ},
    "accounts_user_user_permissions": {"web": READ},
    "accounts_identity": {"web": "SELECT, INSERT, DELETE"},
    "accounts_apitoken": {
        "web": "SELECT, INSERT, UPDATE (last_used_at, revoked_at)",
        "doors": "SELECT, UPDATE (last_used_at)",
    },
    "accounts_keptanswer": {"web": WRITE},
    "accounts_event": {"web": "SELECT, INSERT", "doors": READ, "worker": "SELECT, INSERT"},
    "accounts_delivery": {
        "web": f"SELECT, INSERT, UPDATE (subject, body, {ASK}), DELETE",
        "worker": f"SELECT, INSERT, UPDATE (subject, body, sent_at, {CLAIM}), DELETE",
        "doors": MEASURE,
        "watcher": MEASURE,
        "beat": MEASURE,
    },
    "accounts_notice": {
        "web": "SELECT, INSERT, UPDATE (read_at), DELETE",
        "doors": READ,
        "worker": "SELECT, INSERT, UPDATE (read_at), DELETE",
    },
    "accounts_noticepreference": {"web": "SELECT, INSERT, DELETE", "worker": READ},
    # ---- cluster
    "cluster_cluster": {
        "web": "SELECT, INSERT, UPDATE",
        "doors": READ,
        "worker": READ,
        "watcher": "SELECT, UPDATE (site, uid, other_uid, other_since)",
        "beat": READ,
    },
    "cluster_appliedobject": {
        "web": READ,
        "doors": READ,
        "worker": WRITE,
        "watcher": "SELECT, UPDATE (difference)",
        "beat": READ,
    },
    "cluster_certificate": {**_EVERYBODY, "worker": WRITE},
    "cluster_objectdrift": {"web": READ, "worker": WRITE},
    "cluster_podremoval": {"web": READ, "doors": READ, "worker": READ, "watcher": "SELECT, INSERT, DELETE"},
    "cluster_admissionperiod": {"worker": READ, "watcher": WRITE},
    **{f"cluster_mirror{name}": _MIRROR for name in _MIRROR_TABLES},
    # ---- catalog
    "catalog_banner": _BY_WEB,
    "catalog_classprice": {"web": "SELECT, INSERT", "doors": READ, "worker": READ},
    "catalog_devicetrial": {**_EVERYBODY, "worker": WRITE},
    "catalog_dismissedproposal": {"web": WRITE},
    "catalog_gpuclass": {**_BY_WEB, "watcher": READ, "beat": READ},
    "catalog_image": _BY_WEB,
    "catalog_nodemeasurement": {
        "web": "SELECT, INSERT, UPDATE (withdrawn_at, withdrawn_because)",
        "doors": READ,
        "worker": READ,
    },
    "catalog_nodeunits": {"web": "SELECT, DELETE", "doors": READ, "worker": WRITE, "watcher": READ, "beat": READ},
    "catalog_pool": {
        "web": f"SELECT, INSERT, UPDATE ({ASK})",
        "doors": READ,
        "worker": f"SELECT, UPDATE (applied_as_of, changed_at, {CLAIM})",
        "watcher": "SELECT, UPDATE (due_at)",
        "beat": READ,
    },
    # ---- tenants
    "tenants_acknowledgement": _BY_WEB,
    "tenants_announcement": _BY_WEB,
    "tenants_announcement_classes": _BY_WEB,
    "tenants_announcement_teams": _BY_WEB,
    "tenants_approverfor": _BY_WEB,
    "tenants_bundle": _BY_WEB,
    "tenants_bundleline": _BY_WEB,
    "tenants_classaccess": _BY_WEB,
    "tenants_deputy": _BY_WEB,
    "tenants_grant": {"web": WRITE, "doors": READ, "worker": WRITE},
    "tenants_imageprefix": _BY_WEB,
    "tenants_invitation": _BY_WEB,
    "tenants_joinrequest": _BY_WEB,
    "tenants_membership": _BY_WEB,
    "tenants_namespace": {
        "web": f"SELECT, INSERT, UPDATE (wanted, closes_at, volumes_until, is_trial, origin, {ASK})",
        "doors": READ,
        "worker": f"SELECT, UPDATE (name, wanted, applied_as_of, closes_at, volumes_until, gone_at, origin, {CLAIM})",
        "watcher": f"SELECT (cluster_id, gone_at), {WAKE}",
        "beat": f"SELECT (id, cluster_id, gone_at), {MEASURE}",
    },
    "tenants_plan": {
        "web": f"SELECT, INSERT, UPDATE ({ASK})",
        "doors": READ,
        "worker": f"SELECT, INSERT, UPDATE (objects_planned, made_at, {CLAIM})",
        "watcher": WAKE,
        "beat": f"SELECT (id), {MEASURE}",
    },
    "tenants_quotaline": _BY_WEB,
    # The worker locks it while it escalates it.
    "tenants_quotarequest": {**_BY_WEB, "worker": LOCK},
    "tenants_requestcomment": _BY_WEB,
    "tenants_rule": _BY_WEB,
    "tenants_teamrequest": _BY_WEB,
    "tenants_tenant": _BY_WEB,
    "tenants_termsaccepted": _BY_WEB,
    # ---- workloads
    "workloads_workload": {
        "web": f"SELECT, INSERT, UPDATE (kind, gpu_class_id, units, image, own_image, command, volume_id, options, "
        f"created_by_id, visibility, delete_requested_at, {ASK})",
        "doors": READ,
        "worker": f"SELECT, UPDATE (deleted_at, {CLAIM})",
        "watcher": f"SELECT (namespace_id, deleted_at), {WAKE}",
        "beat": f"SELECT (id, namespace_id, deleted_at), {MEASURE}",
    },
    # Nobody changes what a run was launched with: the worker executes it.
    "workloads_run": {
        "web": "SELECT, INSERT, UPDATE (priority, stop_requested_at, stop_reason, stop_message, next_wanted_by_id, "
        "ends_at, extended_minutes, drain_choices)",
        "doors": READ,
        "worker": "SELECT, INSERT, UPDATE (priority, stop_requested_at, stop_reason, stop_message, next_wanted_by_id, "
        "ends_at, admitted_at, put_back_at, started_at, ready_at, ended_at, outcome, reason, message, exit_code, kept, "
        "preemptions, disruptions, token_key, drain_requested_at, drained_at, drain_reason)",
        "watcher": MEASURE_RUN,
        "beat": MEASURE_RUN,
    },
    "workloads_notebookwatch": {
        "web": f"SELECT, UPDATE (kept_until, kept_reason, kept_by_id, warned_at, stops_at, {ASK})",
        "doors": READ,
        "worker": WRITE,
        "watcher": WAKE,
        "beat": MEASURE,
    },
    "workloads_volume": {
        "web": f"SELECT, INSERT, UPDATE (delete_requested_at, {ASK})",
        "doors": READ,
        "worker": f"SELECT, UPDATE (delete_requested_at, gone_at, {CLAIM})",
        "watcher": f"SELECT (gone_at), {WAKE}",
        "beat": f"SELECT (id, gone_at), {MEASURE}",
    },
    "workloads_teamsecret": {
        "web": f"SELECT ({NOT_SEALED}, name), INSERT, {REPLACE_SEALED}, DELETE",
        "worker": "SELECT, UPDATE (sealed)",
    },
    "workloads_registrycredential": {
        "web": f"SELECT ({NOT_SEALED}, registry), INSERT, {REPLACE_SEALED}, DELETE",
        "worker": "SELECT, UPDATE (sealed)",
    },
    "workloads_ticket": {"web": "SELECT, INSERT, DELETE", "doors": "SELECT, UPDATE (used_at)"},
    "workloads_notebooksession": {"doors": "SELECT, INSERT, DELETE"},
    "workloads_runlog": {"web": READ, "doors": READ, "worker": WRITE},
    "workloads_startprediction": {"web": READ, "doors": READ, "worker": WRITE},
    "workloads_allocationinterval": {"web": READ, "doors": READ, "worker": "SELECT, INSERT, UPDATE"},
    # Web records that a run is kept.
    "usage_idlerun": {
        "web": "SELECT, UPDATE (kept_until, kept_reason, kept_by_id, stops_at)",
        "doors": READ,
        "worker": WRITE,
    },
    "usage_gpufault": {"web": READ, "doors": READ, "worker": WRITE},
    "usage_faultrun": {"web": READ, "doors": READ, "worker": WRITE},
    "usage_faultsource": {"web": READ, "doors": READ, "worker": WRITE},
    "usage_classhour": {"web": READ, "doors": READ, "worker": WRITE},
    "usage_runhour": {"web": READ, "doors": READ, "worker": WRITE},
    "usage_telemetrysource": {"web": READ, "doors": READ, "worker": WRITE},
    "usage_capacityinterval": {"web": READ, "doors": READ, "worker": "SELECT, INSERT, UPDATE (ends_at)"},
    # Web sets it, the worker measures it.
    "workloads_teambudget": {
        "web": "SELECT, INSERT, UPDATE (amount, at_limit, confirmed_at, confirmed_by_id, told_percent), DELETE",
        "doors": READ,
        "worker": "SELECT, UPDATE (cost, month_since, month_until, measured_at, recent_cost, recent_since, "
        "told_percent, confirmed_at, confirmed_by_id)",
    },
    "workloads_usagehour": {"web": READ, "doors": READ, "worker": WRITE},
    "workloads_usagesample": {"web": READ, "doors": READ, "worker": WRITE},
    # ---- operations
    "operations_adoption": {
        "web": f"SELECT, INSERT, UPDATE (accepted_by_id, accepted_at, accepted, undo_requested_at, undone_at, {ASK})",
        "doors": READ,
        "worker": "SELECT, UPDATE (read_at, findings, consent, accepted_at, adopted_at, undo_requested_at, undone_at, "
        f"{CLAIM})",
        "watcher": WAKE,
        "beat": f"SELECT (id), {MEASURE}",
    },
    "operations_maintenance": {
        "web": f"SELECT, INSERT, UPDATE (confirmed_at, cancel_requested_at, release_requested_at, {ASK})",
        "doors": READ,
        "worker": f"SELECT, UPDATE (ended_at, outcome, {CLAIM})",
        "watcher": WAKE,
        "beat": f"SELECT (id), {MEASURE}",
    },
    "operations_maintenancenode": {"web": "SELECT, INSERT", "doors": READ, "worker": "SELECT, UPDATE"},
    "operations_maintenancenotice": {"web": READ, "doors": READ, "worker": "SELECT, INSERT"},
    "operations_nodecordon": {
        "web": READ,
        "doors": READ,
        "worker": "SELECT, INSERT, UPDATE (ended_at, is_node_gone)",
    },
    "operations_cordonnotice": {"web": READ, "doors": READ, "worker": "SELECT, INSERT, UPDATE (over_told_at)"},
}
