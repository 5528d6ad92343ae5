"""The whole URL map on one screen."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, path

from accounts import account_views as account
from accounts import api as accounts_api
from accounts import oidc_views as oidc
from accounts import views as accounts
from accounts.actor import Actor
from desk import api as desk_api
from desk import api_catalog, api_cluster, api_inbox, api_live, api_queue, api_usage, cluster_views, queue_views
from desk import change_views as changes
from desk import hardware_views as hardware
from desk import history_views as history
from desk import inbox_views as inbox
from desk import views as desk
from desk.queries.facts import measured
from portal import api_docs, health, staff, styleguide, theme
from tenants import (
    account_api,
    account_views,
    api_deputies,
    api_grants,
    api_images,
    api_life,
    api_thread,
    api_tokens,
    deputy_views,
    founding_api,
    from_groups,
    grant_views,
    reclaim_views,
    token_views,
)
from tenants import api as tenants_api
from tenants import api_people as people
from tenants import founding_views as founding
from tenants import life_views as life
from tenants import member_views as members
from tenants import views as tenants
from tenants.models import Membership, Tenant
from workloads import api as workloads_api
from workloads import (
    giving_back_api,
    priority_api,
    registry_api,
    registry_views,
    runs_api,
    secret_api,
    secret_views,
    volume_api,
    volume_views,
)
from workloads import giving_back_views as giving_back
from workloads import launch_views as launch
from workloads import next_steps_views as next_steps
from workloads import views as workloads
from workloads.queries.inside import inside


def tenants_of(by: Actor) -> list[str]:
    return list(Tenant.objects.visible_to(by).values_list("slug", flat=True))


def own_tenants(by: Actor) -> list[str]:
    return list(Membership.objects.of(by).values_list("tenant__slug", flat=True))


# Pages about requests are the tenants' own; what was measured comes from above.
MEASURE = {"measure": measured}
# So is a team's own page, with what runs in it.
INSIDE = {"look_inside": inside}

admin.site.login = staff.sign_in  # type: ignore[method-assign]
admin.site.logout = accounts.logout  # type: ignore[method-assign,assignment]
admin.site.password_change = staff.password_change  # type: ignore[method-assign,assignment]
admin.site.has_permission = staff.may_enter  # type: ignore[method-assign]

urlpatterns: list[URLPattern | URLResolver] = [
    # API. Patterns are tried in order: first what CI asks all day.
    path("api/v1/workloads", workloads_api.Workloads.as_view(), name="api-workloads"),
    path("api/v1/workloads/<slug:name>", workloads_api.WorkloadDetail.as_view(), name="api-workload"),
    path("api/v1/workloads/<slug:name>/extend", giving_back_api.Extend.as_view(), name="api-workload-extend"),
    path("api/v1/workloads/<slug:name>/keep", giving_back_api.Keep.as_view(), name="api-workload-keep"),
    path("api/v1/workloads/<slug:name>/priority", priority_api.Priority.as_view(), name="api-workload-priority"),
    path("api/v1/workloads/<slug:name>/restart", runs_api.Restart.as_view(), name="api-workload-restart"),
    path("api/v1/workloads/<slug:name>/runs", runs_api.Runs.as_view(), name="api-workload-runs"),
    path("api/v1/workloads/<slug:name>/runs/<int:number>", runs_api.RunDetail.as_view(), name="api-workload-run"),
    path("api/v1/workloads/<slug:name>/stop", runs_api.Stop.as_view(), name="api-workload-stop"),
    path("api/", api_docs.api_docs, name="api-docs"),
    path("api/v1/bundles", founding_api.Bundles.as_view(), name="api-bundles"),
    path("api/v1/capacity", desk_api.CapacityView.as_view(), name="api-capacity"),
    path("api/v1/classes", api_catalog.Classes.as_view(), name="api-classes"),
    path("api/v1/classes/<slug:slug>", api_catalog.ClassDetail.as_view(), name="api-class"),
    path("api/v1/cluster", api_cluster.ClusterView.as_view(), name="api-cluster"),
    path("api/v1/cluster/banner", api_cluster.BannerView.as_view(), name="api-banner"),
    path("api/v1/deputies", api_deputies.Deputies.as_view(), name="api-deputies"),
    path("api/v1/deputies/<int:pk>/end", api_deputies.DeputyEnd.as_view(), name="api-deputy-end"),
    path("api/v1/events", accounts_api.Events.as_view(tenants_of=tenants_of), name="api-events"),
    path("api/v1/images", api_catalog.Images.as_view(), name="api-images"),
    path("api/v1/inbox", api_inbox.Inbox.as_view(), name="api-inbox"),
    path("api/v1/invitations", people.Invitations.as_view(), name="api-invitations"),
    path("api/v1/invitations/<int:pk>/accept", people.InvitationAccept.as_view(), name="api-invitation-accept"),
    path("api/v1/invitations/<int:pk>/decline", people.InvitationDecline.as_view(), name="api-invitation-decline"),
    path("api/v1/joins", people.Joins.as_view(), name="api-joins"),
    path("api/v1/joins/<int:pk>", people.JoinDetail.as_view(), name="api-join"),
    path("api/v1/me", accounts_api.Me.as_view(tenants_of=own_tenants), name="api-me"),
    path("api/v1/openapi.json", accounts_api.contract, name="api-schema"),
    path("api/v1/people", account_api.People.as_view(), name="api-people"),
    path("api/v1/people/<int:pk>", account_api.PersonDetail.as_view(), name="api-person"),
    path("api/v1/people/<int:pk>/password-code", account_api.PasswordCode.as_view(), name="api-person-password-code"),
    path(
        "api/v1/people/<int:pk>/second-factor-drop",
        account_api.SecondFactorDrop.as_view(),
        name="api-person-second-factor-drop",
    ),
    path("api/v1/people/<int:pk>/approver-for-all", account_api.ApproverForAll.as_view(), name="api-approver-for-all"),
    path(
        "api/v1/people/<int:pk>/approver-for/<slug:slug>",
        account_api.ApproverForClass.as_view(),
        name="api-approver-for",
    ),
    path("api/v1/queue", api_queue.QueueView.as_view(), name="api-queue"),
    path("api/v1/registries", registry_api.Registries.as_view(), name="api-registries"),
    path("api/v1/registries/<str:registry>", registry_api.RegistryDetail.as_view(), name="api-registry"),
    path("api/v1/requests", tenants_api.Requests.as_view(**MEASURE), name="api-requests"),
    path("api/v1/requests/<int:pk>", tenants_api.RequestDetail.as_view(), name="api-request"),
    path("api/v1/requests/<int:pk>/comments", api_thread.Comments.as_view(), name="api-request-comments"),
    path("api/v1/requests/<int:pk>/decide", tenants_api.RequestDecide.as_view(**MEASURE), name="api-request-decide"),
    path("api/v1/requests/<int:pk>/withdraw", tenants_api.RequestWithdraw.as_view(), name="api-request-withdraw"),
    path("api/v1/secrets", secret_api.Secrets.as_view(), name="api-secrets"),
    path("api/v1/secrets/<slug:name>", secret_api.SecretDetail.as_view(), name="api-secret"),
    path("api/v1/team-requests", founding_api.TeamRequests.as_view(), name="api-team-requests"),
    path("api/v1/team-requests/<int:pk>/decide", founding_api.TeamRequestDecide.as_view(), name="api-team-decide"),
    path("api/v1/team-requests/<int:pk>/withdraw", founding_api.TeamRequestWithdraw.as_view(), name="api-team-drop"),
    path("api/v1/tenants", tenants_api.Tenants.as_view(), name="api-tenants"),
    path("api/v1/tenants/<slug:tenant>", tenants_api.TenantDetail.as_view(), name="api-tenant"),
    path("api/v1/tenants/<slug:tenant>/live", api_live.TenantLive.as_view(), name="api-tenant-live"),
    path("api/v1/tenants/<slug:tenant>/usage", api_usage.TenantUsage.as_view(), name="api-tenant-usage"),
    path("api/v1/tenants/<slug:tenant>/grants", api_grants.TeamGrants.as_view(), name="api-tenant-grants"),
    path(
        "api/v1/tenants/<slug:tenant>/grants/<int:pk>/renew",
        api_life.GrantRenew.as_view(**MEASURE),
        name="api-tenant-grant-renew",
    ),
    path(
        "api/v1/tenants/<slug:tenant>/namespace",
        api_life.TeamNamespace.as_view(**INSIDE),
        name="api-tenant-namespace",
    ),
    path("api/v1/tenants/<slug:tenant>/image-prefixes", api_images.ImagePrefixes.as_view(), name="api-image-prefixes"),
    path(
        "api/v1/tenants/<slug:tenant>/image-prefixes/<int:pk>",
        api_images.ImagePrefixDetail.as_view(),
        name="api-image-prefix",
    ),
    path("api/v1/tenants/<slug:tenant>/invitations", people.TeamInvitations.as_view(), name="api-tenant-invitations"),
    path(
        "api/v1/tenants/<slug:tenant>/invitations/<int:pk>",
        people.TeamInvitation.as_view(),
        name="api-tenant-invitation",
    ),
    path("api/v1/tenants/<slug:tenant>/joins", people.TeamJoins.as_view(), name="api-tenant-joins"),
    path("api/v1/tenants/<slug:tenant>/joins/<int:pk>", people.TeamJoin.as_view(), name="api-tenant-join"),
    path("api/v1/tenants/<slug:tenant>/members", people.Members.as_view(), name="api-tenant-members"),
    path("api/v1/tenants/<slug:tenant>/members/<int:pk>", people.MemberDetail.as_view(), name="api-tenant-member"),
    path("api/v1/tenants/<slug:tenant>/tokens", api_tokens.TeamTokens.as_view(), name="api-tenant-tokens"),
    path(
        "api/v1/tenants/<slug:tenant>/tokens/<slug:prefix>",
        api_tokens.TeamTokenDetail.as_view(),
        name="api-tenant-token",
    ),
    path("api/v1/tokens", accounts_api.Tokens.as_view(), name="api-tokens"),
    path("api/v1/tokens/<slug:prefix>", accounts_api.TokenDetail.as_view(), name="api-token"),
    path("api/v1/trials", founding_api.Trials.as_view(), name="api-trials"),
    path("api/v1/volumes", volume_api.Volumes.as_view(), name="api-volumes"),
    path("api/v1/volumes/<slug:name>/delete", volume_api.VolumeDelete.as_view(), name="api-volume-delete"),
    path("api/v1/volumes/<slug:name>/keep", volume_api.VolumeKeep.as_view(), name="api-volume-keep"),
    # account and administration
    path("admin/", admin.site.urls),
    path("account", account.account, name="account"),
    path("account/password", account.password_change, name="password-change"),
    path("account/second-factor", account.second_factor, name="second-factor"),
    path("account/second-factor/codes", account.recovery_codes, name="recovery-codes"),
    path("account/second-factor/remove", account.second_factor_remove, name="second-factor-remove"),
    path("account/sessions/end", account.sessions_end, name="sessions-end"),
    path("account/sessions/<int:pk>/end", account.session_end, name="session-end"),
    path("login", accounts.Login.as_view(), name="login"),
    path("login/code", account.sign_in_code, name="mfa_authenticate"),  # the name by which allauth sends people here
    path("login/password", account.password_code, name="password-code"),
    path("login/oidc", oidc.begin, name="oidc-begin"),
    path("login/oidc/back", oidc.back, {"settle": from_groups.settle}, name="oidc-back"),
    path("logout", accounts.logout, name="logout"),
    path("people", account_views.people, name="people"),
    path("people/new", account_views.person_new, name="person-new"),
    path("people/<int:pk>", account_views.person, name="person"),
    path("people/<int:pk>/decides", account_views.person_decides, name="person-decides"),
    path("people/<int:pk>/decides-no-more", account_views.person_decides_no_more, name="person-decides-no-more"),
    path("people/<int:pk>/password-code", account_views.person_password_code, name="person-password-code"),
    path("people/<int:pk>/restore", account_views.person_restore, name="person-restore"),
    path("people/<int:pk>/roles", account_views.person_roles, name="person-roles"),
    path(
        "people/<int:pk>/second-factor-drop",
        account_views.person_second_factor_drop,
        name="person-second-factor-drop",
    ),
    path("people/<int:pk>/suspend", account_views.person_suspend, name="person-suspend"),
    path("styleguide", styleguide.styleguide, name="styleguide"),
    path("theme", theme.choose, name="theme"),
    path("tokens", accounts.tokens, name="tokens"),
    path("tokens/everybody", accounts.all_tokens, name="all-tokens"),
    path("tokens/<slug:prefix>/revoke", accounts.token_revoke, name="token_revoke"),
    # pages that join apps
    path("", desk.home, name="home"),
    path("catalog", desk.catalog_page, name="catalog"),
    path("catalog/choose", desk.choose, name="catalog-choose"),
    path("catalog/compare", desk.compare, name="catalog-compare"),
    path("catalog/changes", changes.catalog_changes, name="catalog-changes"),
    path("catalog/<slug:slug>", hardware.class_page, name="class"),
    path("cluster", cluster_views.cluster, name="cluster"),
    path("cluster/banner", cluster_views.banner_set, name="banner-set"),
    path("health", desk.health, name="health"),
    path("history", history.everything, name="history"),
    path("inbox", inbox.inbox, name="inbox"),
    path("inbox/approve", inbox.decide, {"approve": True}, name="inbox-approve"),
    path("inbox/deny", inbox.decide, {"approve": False}, name="inbox-deny"),
    path("nodes", hardware.node_list, name="nodes"),
    path("nodes/<str:name>", hardware.node_page, name="node"),
    path("queue", queue_views.queue, name="queue"),
    path("queue/classes/<slug:slug>", queue_views.queue_class, name="queue-class"),
    path("queue/teams/<slug:tenant>", queue_views.queue_team, name="queue-team"),
    path("queue/teams/<slug:tenant>/<slug:name>/priority", queue_views.queue_priority, name="queue-priority"),
    path("teams/<slug:tenant>", desk.tenant_home, name="tenant-home"),
    path("teams/<slug:tenant>/history", history.of_team, name="team-history"),
    # workloads
    path("launch", launch.launch_link, name="launch-link"),
    path("teams/<slug:tenant>/images", registry_views.team_images, name="team-images"),
    path("teams/<slug:tenant>/images/prefixes", registry_views.prefix_allow, name="prefix-allow"),
    path("teams/<slug:tenant>/images/prefixes/<int:pk>/end", registry_views.prefix_end, name="prefix-end"),
    path("teams/<slug:tenant>/images/registries", registry_views.registry_put, name="registry-put"),
    path(
        "teams/<slug:tenant>/images/registries/<str:registry>/delete",
        registry_views.registry_delete,
        name="registry-delete",
    ),
    path("teams/<slug:tenant>/launch", launch.launch, name="launch"),
    path("teams/<slug:tenant>/next-steps", next_steps.of_team, name="next-steps"),
    path("teams/<slug:tenant>/secrets", secret_views.secret_list, name="secrets"),
    path("teams/<slug:tenant>/secrets/<slug:name>/delete", secret_views.secret_delete, name="secret-delete"),
    path("teams/<slug:tenant>/volumes", volume_views.volume_list, name="volumes"),
    path("teams/<slug:tenant>/volumes/<slug:name>/delete", volume_views.volume_delete, name="volume-delete"),
    path("teams/<slug:tenant>/volumes/<slug:name>/keep", volume_views.volume_keep, name="volume-keep"),
    path("teams/<slug:tenant>/workloads", workloads.workloads, name="workloads"),
    path("teams/<slug:tenant>/workloads/<slug:name>", workloads.workload, name="workload"),
    path("teams/<slug:tenant>/workloads/<slug:name>/actions", workloads.workload_actions, name="workload-actions"),
    path("teams/<slug:tenant>/workloads/<slug:name>/change", launch.change, name="workload-change"),
    path("teams/<slug:tenant>/workloads/<slug:name>/delete", workloads.delete, name="workload-delete"),
    path("teams/<slug:tenant>/workloads/<slug:name>/extend", giving_back.extend, name="workload-extend"),
    path(
        "teams/<slug:tenant>/workloads/<slug:name>/giving-back",
        giving_back.giving_back_part,
        name="workload-giving-back",
    ),
    path("teams/<slug:tenant>/workloads/<slug:name>/keep", giving_back.keep, name="workload-keep"),
    path("teams/<slug:tenant>/workloads/<slug:name>/next-steps", next_steps.of_workload, name="workload-next-steps"),
    path("teams/<slug:tenant>/workloads/<slug:name>/open", workloads.open_notebook, name="workload-open"),
    path("teams/<slug:tenant>/workloads/<slug:name>/restart", workloads.restart, name="workload-restart"),
    path("teams/<slug:tenant>/workloads/<slug:name>/start", workloads.start, name="workload-start"),
    path("teams/<slug:tenant>/workloads/<slug:name>/stop", workloads.stop, name="workload-stop"),
    path("open/<slug:origin>", workloads.by_origin, name="open"),
    # served by doors (portal/asgi.py)
    path("live/logs/<slug:tenant>/<slug:name>", workloads.served_by_doors, name="workload-log"),
    path("live/<slug:namespace>", workloads.served_by_doors, name="live"),
    # quota and teams
    path("deputies", deputy_views.deputy_list, name="deputies"),
    path("deputies/<int:pk>/end", deputy_views.deputy_end, name="deputy-end"),
    path("requests/<int:pk>", tenants.request_page, MEASURE, name="request"),
    path("requests/<int:pk>/comment", tenants.request_comment, MEASURE, name="request-comment"),
    path("requests/<int:pk>/decide", tenants.request_decide, MEASURE, name="request-decide"),
    path("requests/<int:pk>/withdraw", tenants.request_withdraw, name="request-withdraw"),
    path("start", members.start, name="start"),
    path("start/try", founding.try_portal, name="try"),
    path("start/found", founding.team_ask, name="team-ask"),
    path("start/found/<int:pk>/withdraw", founding.team_withdraw, name="team-withdraw"),
    path("start/invitations/<int:pk>", members.invitation_answer, name="invitation-answer"),
    path("start/join", members.join, name="join"),
    path("start/join/<int:pk>/withdraw", members.join_withdraw, name="join-withdraw"),
    path("team-requests/<int:pk>", founding.team_request, name="team-request"),
    path("team-requests/<int:pk>/decide", founding.team_decide, name="team-decide"),
    path("teams/<slug:tenant>/grants", grant_views.grant_list, name="grants"),
    path("teams/<slug:tenant>/grants/<int:pk>/reclaim", reclaim_views.grant_reclaim, name="grant-reclaim"),
    path("teams/<slug:tenant>/grants/<int:pk>/renew", grant_views.grant_renew, MEASURE, name="grant-renew"),
    path("teams/<slug:tenant>/invitations/<int:pk>/revoke", members.invitation_revoke, name="invitation-revoke"),
    path("teams/<slug:tenant>/joins/<int:pk>", members.join_answer, name="join-answer"),
    path("teams/<slug:tenant>/namespace", life.namespace_set, name="namespace-set"),
    path("teams/<slug:tenant>/members", members.team, INSIDE, name="team"),
    path("teams/<slug:tenant>/members/add", members.member_add, name="member-add"),
    path("teams/<slug:tenant>/members/<int:pk>/remove", members.member_remove, name="member-remove"),
    path("teams/<slug:tenant>/members/<int:pk>/role", members.member_role, name="member-role"),
    path("teams/<slug:tenant>/tokens", token_views.team_tokens, name="team-tokens"),
    path("teams/<slug:tenant>/tokens/<slug:prefix>/revoke", token_views.team_token_revoke, name="team-token-revoke"),
    path("teams/<slug:tenant>/requests", tenants.request_list, name="requests"),
    path("teams/<slug:tenant>/requests/new", tenants.request_new, MEASURE, name="request-new"),
    # probes; metrics are on the internal port only
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
]

handler400 = "portal.error_pages.bad_request"
handler403 = "portal.error_pages.permission_denied"
handler404 = "portal.error_pages.page_not_found"
handler500 = "portal.error_pages.server_error"
