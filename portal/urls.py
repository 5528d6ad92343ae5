"""The whole URL map on one screen."""

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.views import SpectacularJSONAPIView

from accounts import api as accounts_api
from accounts import views as accounts
from accounts.actor import Actor
from portal import health, styleguide, theme
from tenants.models import Tenant


def tenants_of(by: Actor) -> list[str]:
    return list(Tenant.objects.visible_to(by).values_list("slug", flat=True))


urlpatterns: list[URLPattern | URLResolver] = [
    # API
    path("api/v1/events", accounts_api.Events.as_view(tenants_of=tenants_of), name="api-events"),
    path("api/v1/me", accounts_api.Me.as_view(tenants_of=tenants_of), name="api-me"),
    path("api/v1/openapi.json", SpectacularJSONAPIView.as_view(), name="api-schema"),
    path("api/v1/tokens", accounts_api.Tokens.as_view(), name="api-tokens"),
    path("api/v1/tokens/<slug:prefix>", accounts_api.TokenDetail.as_view(), name="api-token"),
    # account
    path("login", accounts.Login.as_view(), name="login"),
    path("logout", accounts.logout, name="logout"),
    path("styleguide", styleguide.styleguide, name="styleguide"),
    path("theme", theme.choose, name="theme"),
    path("tokens", accounts.tokens, name="tokens"),
    path("tokens/<slug:prefix>/revoke", accounts.token_revoke, name="token_revoke"),
    # probes; metrics are on the internal port only
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
]

handler400 = "portal.error_pages.bad_request"
handler403 = "portal.error_pages.permission_denied"
handler404 = "portal.error_pages.page_not_found"
handler500 = "portal.error_pages.server_error"
