"""All addresses of pages. Those of the API are in portal/api_urls.py."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, path

from accounts.account_setup import views as account_setup_views
from accounts.api_tokens import views as api_token_views
from accounts.credentials import views as credential_views
from accounts.notices import views as notice_views
from accounts.sign_in import admin_site
from accounts.sign_in import views as sign_in_views
from accounts.sign_in.oidc import views as oidc_views
from desk.adoption import views as adoption_views
from desk.capacity import views as capacity_views
from desk.catalog import views as catalog_views
from desk.catalog.editor import views as catalog_editor_views
from desk.classes import views as class_views
from desk.cockpit import views as cockpit_views
from desk.health import views as health_views
from desk.health.observe_only import views as observe_only_views
from desk.history import views as history_views
from desk.history.catalog_changes import views as catalog_change_views
from desk.home import views as home_views
from desk.inbox import views as inbox_views
from desk.maintenance import views as maintenance_views
from desk.maintenance.choices import views as drain_choice_views
from desk.nodes import views as node_views
from desk.nodes.mig_sets import views as mig_set_views
from desk.queue import views as queue_views
from desk.search import views as search_views
from desk.teams import views as teams_views
from portal import api_urls
from portal.api_urls import INSIDE, MEASURE
from portal.docs import views as docs_views
from portal.ops import health
from portal.ui import styleguide
from portal.web import theme
from tenants.announcements import views as announcement_views
from tenants.approvers.delegation import views as delegation_views
from tenants.approvers.delegation.queries import roles_lent_to
from tenants.lifecycle import views as lifecycle_views
from tenants.members.group_sync import actions as group_sync_actions
from tenants.members.tokens import views as token_views
from tenants.onboarding.imports import views as import_views
from tenants.onboarding.team_requests import views as team_request_views
from tenants.onboarding.trials import views as trial_views
from tenants.pages.grants import views as grant_views
from tenants.pages.start import views as start_views
from tenants.pages.team import views as team_views
from tenants.people import views as people_views
from tenants.requests import views as request_views
from tenants.requests.decisions import views as decision_views
from tenants.requests.reclaims import views as reclaim_views
from tenants.requests.renewals import views as renewal_views
from usage.activity import views as activity_views
from usage.faults import views as fault_views
from usage.idle import views as idle_views
from usage.reports import views as report_views
from usage.right_size.quota import views as quota_advice_views
from workloads.advice import views as advice_views
from workloads.budgets import views as budget_views
from workloads.credentials.registries import views as registry_views
from workloads.credentials.secrets import views as secret_views
from workloads.lifetime import views as lifetime_views
from workloads.pages import views as workload_views
from workloads.pages.launch import views as launch_views
from workloads.storage import views as storage_views

# What a workload and a team hold without using it, faults of its GPUs, maintenance of its nodes: their pages are of
# lower apps.
MEASURED_RUN = {
    "read_idle": idle_views.workload_context,
    "read_faults": fault_views.workload_context,
    "read_maintenance": drain_choice_views.workload_context,
}
IDLE_RUNS = {"read_idle": idle_views.team_context}
SMALLER_TOTALS = {"read_advice": quota_advice_views.team_context}

admin.site.login = admin_site.admin_sign_in  # type: ignore[method-assign]
admin.site.logout = sign_in_views.logout  # type: ignore[method-assign,assignment]
admin.site.password_change = admin_site.admin_password_change  # type: ignore[method-assign,assignment]
admin.site.has_permission = admin_site.may_open_admin  # type: ignore[method-assign]

urlpatterns: list[URLPattern | URLResolver] = [
    *api_urls.urlpatterns,
    # account and administration
    path("admin/", admin.site.urls),
    path("account", credential_views.account, name="account"),
    path("account/password", credential_views.password_change, name="password-change"),
    path("account/second-factor", credential_views.second_factor, name="second-factor"),
    path("account/second-factor/codes", credential_views.recovery_codes, name="recovery-codes"),
    path("account/second-factor/remove", credential_views.second_factor_remove, name="second-factor-remove"),
    path("account/sessions/end", credential_views.sessions_end, name="sessions-end"),
    path("account/sessions/<int:pk>/end", credential_views.session_end, name="session-end"),
    path("login", sign_in_views.Login.as_view(), name="login"),
    path(
        "login/code", sign_in_views.sign_in_code, name="mfa_authenticate"
    ),  # allauth redirects users here by this name
    path("login/password", account_setup_views.password_code, {"lent_to": roles_lent_to}, name="password-code"),
    path("login/oidc", oidc_views.begin, name="oidc-begin"),
    path("login/oidc/back", oidc_views.back, {"settle": group_sync_actions.sync_groups}, name="oidc-back"),
    path("logout", sign_in_views.logout, name="logout"),
    path("session", sign_in_views.session, name="session"),
    path("people", people_views.people, name="people"),
    path("help", docs_views.help_page, name="help"),
    path("notices", notice_views.notices, name="notices"),
    path("notices/preferences", notice_views.notice_preferences, name="notice-preferences"),
    path("notices/read", notice_views.notices_read, name="notices-read"),
    path("people/new", people_views.person_new, name="person-new"),
    path("people/<int:pk>", people_views.person, name="person"),
    path("people/<int:pk>/grant-class", people_views.person_class_grant, name="person-class-grant"),
    path("people/<int:pk>/revoke-class", people_views.person_class_revoke, name="person-class-revoke"),
    path("people/<int:pk>/password-code", people_views.person_password_code, name="person-password-code"),
    path("people/<int:pk>/restore", people_views.person_restore, name="person-restore"),
    path("people/<int:pk>/roles", people_views.person_roles, name="person-roles"),
    path(
        "people/<int:pk>/second-factor-drop",
        people_views.person_second_factor_drop,
        name="person-second-factor-drop",
    ),
    path("people/<int:pk>/suspend", people_views.person_suspend, name="person-suspend"),
    path("styleguide", styleguide.styleguide, name="styleguide"),
    path("theme", theme.theme_set, name="theme"),
    path("tokens", api_token_views.tokens, name="tokens"),
    path("tokens/everybody", api_token_views.all_tokens, name="all-tokens"),
    path("tokens/<slug:prefix>/revoke", api_token_views.token_revoke, name="token-revoke"),
    # pages that join apps
    path("", home_views.home, name="home"),
    path("catalog", catalog_views.catalog_page, name="catalog"),
    path("catalog/choose", catalog_views.choose, name="catalog-choose"),
    path("catalog/compare", catalog_views.compare, name="catalog-compare"),
    path("catalog/changes", catalog_change_views.catalog_changes, name="catalog-changes"),
    path("catalog/<slug:slug>", class_views.class_page, name="class"),
    path("catalog/<slug:slug>/activity", activity_views.class_activity_by_day, name="class-activity"),
    path("cluster", capacity_views.cluster, name="cluster"),
    path("cluster/activity", activity_views.cluster_activity_by_day, name="cluster-activity"),
    path("cluster/banner", capacity_views.banner_set, name="banner-set"),
    path("cluster/observe-only", observe_only_views.observe_only, name="observe-only"),
    path("cluster/observe-only/set", observe_only_views.observe_only_set, name="observe-only-set"),
    path("health", health_views.health, name="health"),
    path("history", history_views.all_history, name="history"),
    path("inbox", inbox_views.inbox, name="inbox"),
    path("inbox/approve", inbox_views.decide, {"approve": True}, name="inbox-approve"),
    path("inbox/deny", inbox_views.decide, {"approve": False}, name="inbox-deny"),
    path("nodes", node_views.node_list, name="nodes"),
    path("nodes/<str:name>", node_views.node_page, name="node"),
    path("nodes/<str:name>/measurements", node_views.measure, name="node-measure"),
    path("nodes/<str:name>/measurements/<int:pk>/withdraw", node_views.withdraw, name="node-measurement-withdraw"),
    path("nodes/<str:name>/mig", node_views.mig_plan_page, name="node-mig"),
    path("maintenance", maintenance_views.maintenance_list, name="maintenances"),
    path("maintenance/new", maintenance_views.maintenance_new, name="maintenance-new"),
    path("maintenance/<int:pk>", maintenance_views.maintenance_page, name="maintenance"),
    *(
        path(
            f"maintenance/<int:pk>/{control}",
            maintenance_views.maintenance_control,
            {"control": control},
            name=f"maintenance-{control}",
        )
        for control in maintenance_views.CONTROLS
    ),
    path("search", search_views.search, name="search"),
    path("operators", cockpit_views.cockpit, name="cockpit"),
    path("operators/catalog", catalog_editor_views.class_list, name="catalog-editor"),
    path("operators/catalog/new", catalog_editor_views.class_new, name="class-new"),
    path("operators/catalog/classes/<slug:slug>", catalog_editor_views.class_edit, name="class-edit"),
    path("operators/catalog/classes/<slug:slug>/state", catalog_editor_views.class_state, name="class-state"),
    path("operators/catalog/images/new", catalog_editor_views.image_new, name="image-new"),
    path("operators/catalog/images/<int:pk>", catalog_editor_views.image_edit, name="image-edit"),
    path("operators/catalog/images/<int:pk>/move", catalog_editor_views.image_move, name="image-move"),
    path("operators/catalog/images/<int:pk>/remove", catalog_editor_views.image_remove, name="image-remove"),
    path("operators/teams", teams_views.team_list, name="all-teams"),
    path("operators/teams/import", import_views.team_import, name="team-import"),
    path("operators/teams.csv", teams_views.teams_as_csv, name="all-teams-csv"),
    path("queue", queue_views.queue, name="queue"),
    path("queue/classes/<slug:slug>", queue_views.queue_class, name="queue-class"),
    path("queue/teams/<slug:tenant>", queue_views.queue_team, name="queue-team"),
    path("queue/teams/<slug:tenant>/<slug:name>/priority", queue_views.queue_priority, name="queue-priority"),
    path("teams/<slug:tenant>", home_views.tenant_home, name="tenant-home"),
    path("teams/<slug:tenant>/quick-start", home_views.quick_start, name="quick-start"),
    path("teams/<slug:tenant>/history", history_views.team_history, name="team-history"),
    path("operators/idle", idle_views.idle_holders, name="idle-holders"),
    path("operators/idle/<slug:tenant>/<slug:name>/stop", idle_views.stop, name="idle-stop"),
    path("operators/mig-layouts", mig_set_views.mig_set_page, name="mig-sets"),
    path("operators/usage", report_views.all_usage, name="all-usage"),
    path("operators/usage.csv", report_views.all_usage_as_csv, name="all-usage-csv"),
    path("operators/capacity-report.csv", report_views.capacity_as_csv, name="capacity-report-csv"),
    path("teams/<slug:tenant>/budget", budget_views.budget_set, name="budget-set"),
    path("teams/<slug:tenant>/budget/confirm", budget_views.budget_confirm, name="budget-confirm"),
    path("teams/<slug:tenant>/activity", activity_views.team_activity_by_day, name="team-activity"),
    path("teams/<slug:tenant>/usage", report_views.team_usage, name="team-usage"),
    path("teams/<slug:tenant>/usage.csv", report_views.team_usage_as_csv, name="team-usage-csv"),
    # workloads
    path("launch", launch_views.launch_link, name="launch-link"),
    path("teams/<slug:tenant>/images", registry_views.team_images, name="team-images"),
    path("teams/<slug:tenant>/images/prefixes", registry_views.prefix_allow, name="prefix-allow"),
    path("teams/<slug:tenant>/images/prefixes/<int:pk>/end", registry_views.prefix_end, name="prefix-end"),
    path("teams/<slug:tenant>/images/registries", registry_views.registry_put, name="registry-put"),
    path(
        "teams/<slug:tenant>/images/registries/<str:registry>/delete",
        registry_views.registry_delete,
        name="registry-delete",
    ),
    path("teams/<slug:tenant>/launch", launch_views.launch, name="launch"),
    path("teams/<slug:tenant>/next-steps", advice_views.team_advice, name="next-steps"),
    path("teams/<slug:tenant>/secrets", secret_views.secret_list, name="secrets"),
    path("teams/<slug:tenant>/secrets/<slug:name>/delete", secret_views.secret_delete, name="secret-delete"),
    path("teams/<slug:tenant>/volumes", storage_views.volume_list, name="volumes"),
    path("teams/<slug:tenant>/volumes/<slug:name>/delete", storage_views.volume_delete, name="volume-delete"),
    path("teams/<slug:tenant>/volumes/<slug:name>/keep", storage_views.volume_keep, name="volume-keep"),
    path("teams/<slug:tenant>/workloads", workload_views.workloads, name="workloads"),
    path("teams/<slug:tenant>/workloads/<slug:name>", workload_views.workload, MEASURED_RUN, name="workload"),
    path("teams/<slug:tenant>/workloads/<slug:name>/actions", workload_views.workload_actions, name="workload-actions"),
    path(
        "teams/<slug:tenant>/workloads/<slug:name>/activity", activity_views.workload_activity, name="workload-activity"
    ),
    path("teams/<slug:tenant>/workloads/<slug:name>/change", launch_views.change, name="workload-change"),
    path("teams/<slug:tenant>/workloads/<slug:name>/delete", workload_views.delete, name="workload-delete"),
    path("teams/<slug:tenant>/workloads/<slug:name>/extend", lifetime_views.extend, name="workload-extend"),
    path("teams/<slug:tenant>/workloads/<slug:name>/faults", fault_views.faults_fragment, name="workload-faults"),
    path("teams/<slug:tenant>/workloads/<slug:name>/idle", idle_views.idle_fragment, name="workload-idle"),
    path("teams/<slug:tenant>/workloads/<slug:name>/idle/keep", idle_views.keep, name="workload-idle-keep"),
    path("teams/<slug:tenant>/workloads/<slug:name>/limits", lifetime_views.limits_fragment, name="workload-limits"),
    path("teams/<slug:tenant>/workloads/<slug:name>/keep", lifetime_views.keep, name="workload-keep"),
    path(
        "teams/<slug:tenant>/workloads/<slug:name>/maintenance",
        drain_choice_views.maintenance_fragment,
        name="workload-maintenance",
    ),
    path(
        "teams/<slug:tenant>/workloads/<slug:name>/maintenance/<int:pk>",
        drain_choice_views.choose,
        name="workload-maintenance-choose",
    ),
    path(
        "teams/<slug:tenant>/workloads/<slug:name>/next-steps", advice_views.workload_advice, name="workload-next-steps"
    ),
    path("teams/<slug:tenant>/workloads/<slug:name>/open", workload_views.open_notebook, name="workload-open"),
    path("teams/<slug:tenant>/workloads/<slug:name>/restart", workload_views.restart, name="workload-restart"),
    path("teams/<slug:tenant>/workloads/<slug:name>/start", workload_views.start, name="workload-start"),
    path("teams/<slug:tenant>/workloads/<slug:name>/stop", workload_views.stop, name="workload-stop"),
    path("teams/<slug:tenant>/workloads/<slug:name>/visibility", workload_views.visibility, name="workload-visibility"),
    path("open/<slug:origin>", workload_views.by_origin, name="open"),
    # served by doors (desk/streaming)
    path("live/logs/<slug:tenant>/<slug:name>", workload_views.served_by_doors, name="workload-log"),
    path("live/<slug:namespace>", workload_views.served_by_doors, name="live"),
    # quota and teams
    path("announcements/now", announcement_views.announcements_now, name="announcements-now"),
    path("announcements/<int:pk>", announcement_views.announcement, name="announcement"),
    path(
        "announcements/<int:pk>/acknowledge",
        announcement_views.announcement_acknowledge,
        name="announcement-acknowledge",
    ),
    path("announcements/<int:pk>/end", announcement_views.announcement_end, name="announcement-end"),
    path("announcements/<int:pk>/withdraw", announcement_views.announcement_withdraw, name="announcement-withdraw"),
    path("operators/adoptions", adoption_views.adoption_list, name="adoptions"),
    path("teams/<slug:tenant>/adoption", adoption_views.adoption, name="adoption"),
    path("teams/<slug:tenant>/adoption/accept", adoption_views.adoption_accept, name="adoption-accept"),
    path("teams/<slug:tenant>/adoption/undo", adoption_views.adoption_undo, name="adoption-undo"),
    path("teams/<slug:tenant>/adoption/withdraw", adoption_views.adoption_withdraw, name="adoption-withdraw"),
    path("operators/announcements", announcement_views.announcement_list, name="announcements"),
    path("delegations", delegation_views.delegation_list, name="delegations"),
    path("delegations/<int:pk>/end", delegation_views.delegation_end, name="delegation-end"),
    path("requests/<int:pk>", decision_views.request_page, MEASURE, name="request"),
    path("requests/<int:pk>/comment", decision_views.request_comment, MEASURE, name="request-comment"),
    path("requests/<int:pk>/decide", decision_views.request_decide, MEASURE, name="request-decide"),
    path("requests/<int:pk>/withdraw", request_views.request_withdraw, name="request-withdraw"),
    path("start", start_views.start, name="start"),
    path("start/trial", trial_views.trial_start, name="trial-start"),
    path("start/team-requests", start_views.team_request_new, name="team-request-new"),
    path(
        "start/team-requests/<int:pk>/withdraw", team_request_views.team_request_withdraw, name="team-request-withdraw"
    ),
    path("start/invitations/<int:pk>", start_views.invitation_answer, name="invitation-answer"),
    path("start/join", start_views.join, name="join"),
    path("start/join/<int:pk>/withdraw", start_views.join_withdraw, name="join-withdraw"),
    path("team-requests/<int:pk>", team_request_views.team_request, name="team-request"),
    path("team-requests/<int:pk>/decide", team_request_views.team_request_decide, name="team-request-decide"),
    path("teams/<slug:tenant>/grants", grant_views.grant_list, SMALLER_TOTALS, name="grants"),
    path("teams/<slug:tenant>/grants/<int:pk>/reclaim", reclaim_views.grant_reclaim, name="grant-reclaim"),
    path("teams/<slug:tenant>/grants/<int:pk>/renew", renewal_views.grant_renew, MEASURE, name="grant-renew"),
    path("teams/<slug:tenant>/invitations/<int:pk>/revoke", team_views.invitation_revoke, name="invitation-revoke"),
    path("teams/<slug:tenant>/joins/<int:pk>", team_views.join_answer, name="join-answer"),
    path("teams/<slug:tenant>/namespace", lifecycle_views.namespace_set, name="namespace-set"),
    path("teams/<slug:tenant>/members", team_views.team, INSIDE | IDLE_RUNS, name="team"),
    path("teams/<slug:tenant>/members/add", team_views.member_add, name="member-add"),
    path("teams/<slug:tenant>/members/<int:pk>/remove", team_views.member_remove, name="member-remove"),
    path("teams/<slug:tenant>/sharing", team_views.team_sharing, name="team-sharing"),
    path("teams/<slug:tenant>/members/<int:pk>/role", team_views.member_role, name="member-role"),
    path("teams/<slug:tenant>/tokens", token_views.team_tokens, name="team-tokens"),
    path("teams/<slug:tenant>/tokens/<slug:prefix>/revoke", token_views.team_token_revoke, name="team-token-revoke"),
    path("teams/<slug:tenant>/requests", request_views.request_list, name="requests"),
    path("teams/<slug:tenant>/requests/new", request_views.request_new, MEASURE, name="request-new"),
    # probes; metrics are on the internal port only
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
]

handler400 = "portal.web.error_pages.bad_request"
handler403 = "portal.web.error_pages.permission_denied"
handler404 = "portal.web.error_pages.page_not_found"
handler500 = "portal.web.error_pages.server_error"
