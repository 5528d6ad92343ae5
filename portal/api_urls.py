"""All addresses of the API, and its documentation. The pages are in portal/urls.py."""

from django.urls import URLPattern, path

from accounts.api_tokens import api as api_token_api
from accounts.events import api as event_api
from accounts.notices import api as notice_api
from accounts.people import api as people_api
from desk.adoption import api as adoption_api
from desk.capacity import api as capacity_api
from desk.classes import api as class_api
from desk.health import api as health_api
from desk.health.observe_only import api as observe_only_api
from desk.home import api as home_api
from desk.inbox import api as inbox_api
from desk.inbox.evidence import usage_evidence
from desk.maintenance import api as maintenance_api
from desk.maintenance.choices import api as drain_choice_api
from desk.nodes import api as node_api
from desk.nodes.mig_sets import api as mig_set_api
from desk.queue import api as queue_api
from desk.search import api as search_api
from desk.teams import api as teams_api
from portal.docs import views as docs_views
from tenants.announcements import api as announcement_api
from tenants.approvers.delegation import api as delegation_api
from tenants.class_access.image_prefixes import api as image_prefix_api
from tenants.grants import api as grant_api
from tenants.lifecycle import api as lifecycle_api
from tenants.members import api as member_api
from tenants.members.invitations import api as invitation_api
from tenants.members.queries import own_slugs, visible_slugs
from tenants.members.tokens import api as token_api
from tenants.onboarding.bundles import api as bundle_api
from tenants.onboarding.team_requests import api as team_request_api
from tenants.onboarding.trials import api as trial_api
from tenants.pages.team import api as team_api
from tenants.people import api as person_api
from tenants.requests import api as request_api
from tenants.requests.comments import api as comment_api
from tenants.requests.renewals import api as renewal_api
from usage.activity import api as activity_api
from usage.faults import api as fault_api
from usage.idle import api as idle_api
from usage.reports import api as report_api
from workloads.budgets import api as budget_api
from workloads.credentials.registries import api as registry_api
from workloads.credentials.secrets import api as secret_api
from workloads.gateway import api as gateway_api
from workloads.lifetime import api as lifetime_api
from workloads.pages import api as workload_api
from workloads.pages.queries import namespace_contents
from workloads.runs import api as run_api
from workloads.runs.priority import api as priority_api
from workloads.storage import api as storage_api

# The pages about requests belong to `tenants`, which cannot import `desk`, a higher layer: the function is passed in.
MEASURE = {"measure": usage_evidence}
# The same for a team's page, which shows its workloads.
INSIDE = {"look_inside": namespace_contents}


urlpatterns: list[URLPattern] = [
    # Patterns are tried in order: the most frequent calls of CI come first.
    path("api/v1/workloads", workload_api.Workloads.as_view(), name="api-workloads"),
    path("api/v1/workloads/<slug:name>", workload_api.WorkloadDetail.as_view(), name="api-workload"),
    path(
        "api/v1/workloads/<slug:name>/activity", activity_api.WorkloadActivity.as_view(), name="api-workload-activity"
    ),
    path("api/v1/workloads/<slug:name>/extend", lifetime_api.Extend.as_view(), name="api-workload-extend"),
    path("api/v1/workloads/<slug:name>/keep", lifetime_api.Keep.as_view(), name="api-workload-keep"),
    path(
        "api/v1/workloads/<slug:name>/maintenance",
        drain_choice_api.RunMaintenances.as_view(),
        name="api-workload-maintenance",
    ),
    path(
        "api/v1/workloads/<slug:name>/maintenance/<int:pk>",
        drain_choice_api.RunMaintenanceChoice.as_view(),
        name="api-workload-maintenance-choose",
    ),
    path("api/v1/workloads/<slug:name>/priority", priority_api.Priority.as_view(), name="api-workload-priority"),
    path("api/v1/workloads/<slug:name>/restart", run_api.Restart.as_view(), name="api-workload-restart"),
    path("api/v1/workloads/<slug:name>/runs", run_api.Runs.as_view(), name="api-workload-runs"),
    path("api/v1/workloads/<slug:name>/runs/<int:number>", run_api.RunDetail.as_view(), name="api-workload-run"),
    path("api/v1/workloads/<slug:name>/stop", run_api.Stop.as_view(), name="api-workload-stop"),
    path("api/v1/workloads/<slug:name>/visibility", gateway_api.Visibility.as_view(), name="api-workload-visibility"),
    path("api/", docs_views.api_docs, name="api-docs"),
    path("api/<slug:section_slug>", docs_views.api_section, name="api-section"),
    path("api/v1/bundles", bundle_api.Bundles.as_view(), name="api-bundles"),
    path("api/v1/capacity", capacity_api.CapacityView.as_view(), name="api-capacity"),
    path("api/v1/classes", class_api.Classes.as_view(), name="api-classes"),
    path("api/v1/classes/<slug:slug>", class_api.ClassDetail.as_view(), name="api-class"),
    path("api/v1/classes/<slug:slug>/activity", activity_api.ClassActivityDetail.as_view(), name="api-class-activity"),
    path("api/v1/classes/<slug:slug>/prices", class_api.Prices.as_view(), name="api-class-prices"),
    path("api/v1/cluster", capacity_api.ClusterView.as_view(), name="api-cluster"),
    path("api/v1/adoptions", adoption_api.Adoptions.as_view(), name="api-adoptions"),
    path("api/v1/adoptions/<slug:tenant>", adoption_api.AdoptionDetail.as_view(), name="api-adoption"),
    path("api/v1/adoptions/<slug:tenant>/accept", adoption_api.AdoptionAccept.as_view(), name="api-adoption-accept"),
    path("api/v1/adoptions/<slug:tenant>/undo", adoption_api.AdoptionUndo.as_view(), name="api-adoption-undo"),
    path(
        "api/v1/adoptions/<slug:tenant>/withdraw", adoption_api.AdoptionWithdraw.as_view(), name="api-adoption-withdraw"
    ),
    path("api/v1/announcements", announcement_api.OwnAnnouncements.as_view(), name="api-own-announcements"),
    path(
        "api/v1/announcements/<int:pk>/acknowledge",
        announcement_api.AnnouncementAcknowledge.as_view(),
        name="api-announcement-acknowledge",
    ),
    path("api/v1/cluster/observe-only", observe_only_api.ObserveOnlyView.as_view(), name="api-observe-only"),
    path("api/v1/cluster/banner", capacity_api.BannerView.as_view(), name="api-banner"),
    path("api/v1/delegations", delegation_api.Delegations.as_view(), name="api-delegations"),
    path("api/v1/delegations/<int:pk>/end", delegation_api.DelegationEnd.as_view(), name="api-delegation-end"),
    path("api/v1/events", event_api.Events.as_view(tenants_of=visible_slugs), name="api-events"),
    # served by doors, which call this view first
    path("api/v1/watch", event_api.Watch.as_view(tenants_of=visible_slugs), name="api-watch"),
    path("api/v1/gpu-faults", fault_api.GpuFaultList.as_view(), name="api-gpu-faults"),
    path("api/v1/idle-holders", idle_api.IdleHolderList.as_view(), name="api-idle-holders"),
    path("api/v1/idle-holders/<slug:name>/keep", idle_api.IdleKeep.as_view(), name="api-idle-keep"),
    path("api/v1/idle-holders/<slug:name>/stop", idle_api.IdleStop.as_view(), name="api-idle-stop"),
    path("api/v1/images", class_api.Images.as_view(), name="api-images"),
    path("api/v1/inbox", inbox_api.Inbox.as_view(), name="api-inbox"),
    path("api/v1/invitations", invitation_api.Invitations.as_view(), name="api-invitations"),
    path("api/v1/invitations/<int:pk>/accept", invitation_api.InvitationAccept.as_view(), name="api-invitation-accept"),
    path(
        "api/v1/invitations/<int:pk>/decline", invitation_api.InvitationDecline.as_view(), name="api-invitation-decline"
    ),
    path("api/v1/joins", invitation_api.Joins.as_view(), name="api-joins"),
    path("api/v1/joins/<int:pk>", invitation_api.JoinDetail.as_view(), name="api-join"),
    path("api/v1/me", people_api.Me.as_view(tenants_of=own_slugs), name="api-me"),
    path("api/v1/me/notices", notice_api.Notices.as_view(), name="api-notices"),
    path("api/v1/me/notices/preferences", notice_api.NoticePreferences.as_view(), name="api-notice-preferences"),
    path("api/v1/me/notices/read", notice_api.NoticesRead.as_view(), name="api-notices-read"),
    path("api/v1/me/token", api_token_api.OwnToken.as_view(), name="api-me-token"),
    path("api/v1/openapi.json", docs_views.contract, name="api-schema"),
    path("api/v1/mig-sets", mig_set_api.MigSets.as_view(), name="api-mig-sets"),
    path("api/v1/mig-sets/plan", mig_set_api.MigSetPlans.as_view(), name="api-mig-set-plan"),
    path("api/v1/operators/teams", teams_api.TeamOverviews.as_view(), name="api-operators-teams"),
    path("api/v1/operators/activity", activity_api.ClusterActivity.as_view(), name="api-cluster-activity"),
    path("api/v1/operators/health", health_api.HealthView.as_view(), name="api-health"),
    path("api/v1/operators/nodes", node_api.Nodes.as_view(), name="api-nodes"),
    path("api/v1/operators/usage-report", report_api.AllReport.as_view(), name="api-all-report"),
    path("api/v1/operators/usage-report.csv", report_api.AllReportCsv.as_view(), name="api-all-report-csv"),
    path("api/v1/operators/capacity-report.csv", report_api.CapacityCsv.as_view(), name="api-capacity-report-csv"),
    path("api/v1/operators/announcements", announcement_api.Announcements.as_view(), name="api-announcements"),
    path(
        "api/v1/operators/announcements/<int:pk>",
        announcement_api.AnnouncementDetail.as_view(),
        name="api-announcement",
    ),
    path(
        "api/v1/operators/announcements/<int:pk>/withdraw",
        announcement_api.AnnouncementWithdraw.as_view(),
        name="api-announcement-withdraw",
    ),
    path("api/v1/people", person_api.People.as_view(), name="api-people"),
    path("api/v1/people/<int:pk>", person_api.PersonDetail.as_view(), name="api-person"),
    path("api/v1/people/<int:pk>/password-code", person_api.PasswordCode.as_view(), name="api-person-password-code"),
    path(
        "api/v1/people/<int:pk>/second-factor-drop",
        person_api.SecondFactorDrop.as_view(),
        name="api-person-second-factor-drop",
    ),
    path("api/v1/people/<int:pk>/approver-for-all", person_api.ApproverForAll.as_view(), name="api-approver-for-all"),
    path(
        "api/v1/people/<int:pk>/approver-for/<slug:slug>",
        person_api.ApproverForClass.as_view(),
        name="api-approver-for",
    ),
    path("api/v1/maintenances", maintenance_api.Maintenances.as_view(), name="api-maintenances"),
    path("api/v1/maintenances/preview", maintenance_api.MaintenancePreview.as_view(), name="api-maintenance-preview"),
    path("api/v1/maintenances/<int:pk>", maintenance_api.MaintenanceDetail.as_view(), name="api-maintenance"),
    path(
        "api/v1/maintenances/<int:pk>/confirm",
        maintenance_api.MaintenanceConfirm.as_view(),
        name="api-maintenance-confirm",
    ),
    path(
        "api/v1/maintenances/<int:pk>/cancel",
        maintenance_api.MaintenanceCancel.as_view(),
        name="api-maintenance-cancel",
    ),
    path(
        "api/v1/maintenances/<int:pk>/release",
        maintenance_api.MaintenanceRelease.as_view(),
        name="api-maintenance-release",
    ),
    path("api/v1/nodes/<str:name>/measurements", node_api.NodeMeasurements.as_view(), name="api-node-measurements"),
    path(
        "api/v1/nodes/<str:name>/measurements/<int:pk>/withdraw",
        node_api.NodeMeasurementWithdrawal.as_view(),
        name="api-node-measurement-withdraw",
    ),
    path("api/v1/queue", queue_api.QueueView.as_view(), name="api-queue"),
    path("api/v1/registries", registry_api.Registries.as_view(), name="api-registries"),
    path("api/v1/registries/<str:registry>", registry_api.RegistryDetail.as_view(), name="api-registry"),
    path("api/v1/requests", request_api.Requests.as_view(**MEASURE), name="api-requests"),
    path("api/v1/requests/<int:pk>", request_api.RequestDetail.as_view(), name="api-request"),
    path("api/v1/requests/<int:pk>/comments", comment_api.Comments.as_view(), name="api-request-comments"),
    path("api/v1/requests/<int:pk>/decide", request_api.RequestDecide.as_view(**MEASURE), name="api-request-decide"),
    path("api/v1/requests/<int:pk>/facts", inbox_api.RequestFacts.as_view(), name="api-request-facts"),
    path("api/v1/requests/<int:pk>/withdraw", request_api.RequestWithdraw.as_view(), name="api-request-withdraw"),
    path("api/v1/secrets", secret_api.Secrets.as_view(), name="api-secrets"),
    path("api/v1/secrets/<slug:name>", secret_api.SecretDetail.as_view(), name="api-secret"),
    path("api/v1/team-requests", team_request_api.TeamRequests.as_view(), name="api-team-requests"),
    path(
        "api/v1/team-requests/<int:pk>/decide",
        team_request_api.TeamRequestDecide.as_view(),
        name="api-team-request-decide",
    ),
    path(
        "api/v1/team-requests/<int:pk>/withdraw",
        team_request_api.TeamRequestWithdraw.as_view(),
        name="api-team-request-withdraw",
    ),
    path("api/v1/search", search_api.Search.as_view(), name="api-search"),
    path("api/v1/teams", team_api.Tenants.as_view(), name="api-teams"),
    path("api/v1/teams/<slug:tenant>", team_api.TeamDetail.as_view(), name="api-team"),
    path("api/v1/teams/<slug:tenant>/live", home_api.TeamLive.as_view(), name="api-team-live"),
    path("api/v1/teams/<slug:tenant>/budget", budget_api.Budget.as_view(), name="api-budget"),
    path("api/v1/teams/<slug:tenant>/budget/confirm", budget_api.BudgetConfirm.as_view(), name="api-budget-confirm"),
    path("api/v1/teams/<slug:tenant>/activity", activity_api.TeamActivity.as_view(), name="api-team-activity"),
    path("api/v1/teams/<slug:tenant>/usage", inbox_api.TeamUsageDetail.as_view(), name="api-team-usage"),
    path("api/v1/teams/<slug:tenant>/usage-report", report_api.TeamReport.as_view(), name="api-team-report"),
    path("api/v1/teams/<slug:tenant>/usage-report.csv", report_api.TeamReportCsv.as_view(), name="api-team-report-csv"),
    path("api/v1/teams/<slug:tenant>/grants", grant_api.TeamGrants.as_view(), name="api-team-grants"),
    path(
        "api/v1/teams/<slug:tenant>/grants/<int:pk>/renew",
        renewal_api.GrantRenew.as_view(**MEASURE),
        name="api-team-grant-renew",
    ),
    path(
        "api/v1/teams/<slug:tenant>/namespace",
        lifecycle_api.TeamNamespace.as_view(**INSIDE),
        name="api-team-namespace",
    ),
    path(
        "api/v1/teams/<slug:tenant>/image-prefixes",
        image_prefix_api.ImagePrefixes.as_view(),
        name="api-image-prefixes",
    ),
    path(
        "api/v1/teams/<slug:tenant>/image-prefixes/<int:pk>",
        image_prefix_api.ImagePrefixDetail.as_view(),
        name="api-image-prefix",
    ),
    path(
        "api/v1/teams/<slug:tenant>/invitations", invitation_api.TeamInvitations.as_view(), name="api-team-invitations"
    ),
    path(
        "api/v1/teams/<slug:tenant>/invitations/<int:pk>",
        invitation_api.TeamInvitation.as_view(),
        name="api-team-invitation",
    ),
    path("api/v1/teams/<slug:tenant>/joins", invitation_api.TeamJoins.as_view(), name="api-team-joins"),
    path("api/v1/teams/<slug:tenant>/joins/<int:pk>", invitation_api.TeamJoin.as_view(), name="api-team-join"),
    path("api/v1/teams/<slug:tenant>/members", member_api.Members.as_view(), name="api-team-members"),
    path("api/v1/teams/<slug:tenant>/members/<int:pk>", member_api.MemberDetail.as_view(), name="api-team-member"),
    path("api/v1/teams/<slug:tenant>/tokens", token_api.TeamTokens.as_view(), name="api-team-tokens"),
    path("api/v1/teams/<slug:tenant>/tokens/<slug:prefix>", token_api.TeamTokenDetail.as_view(), name="api-team-token"),
    path("api/v1/tokens", api_token_api.Tokens.as_view(), name="api-tokens"),
    path("api/v1/tokens/<slug:prefix>", api_token_api.TokenDetail.as_view(), name="api-token"),
    path("api/v1/trials", trial_api.Trials.as_view(), name="api-trials"),
    path("api/v1/volumes", storage_api.Volumes.as_view(), name="api-volumes"),
    path("api/v1/volumes/<slug:name>/delete", storage_api.VolumeDelete.as_view(), name="api-volume-delete"),
    path("api/v1/volumes/<slug:name>/keep", storage_api.VolumeKeep.as_view(), name="api-volume-keep"),
]
