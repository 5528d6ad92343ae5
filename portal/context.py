"""What every page needs: navigation and teams."""

from typing import Any

from django.http import HttpRequest


def page(request: HttpRequest) -> dict[str, Any]:
    return {"nav_items": [], "tenants": [], "current_tenant": None}
