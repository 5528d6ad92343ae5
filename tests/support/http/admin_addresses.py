"""Every address of the Django admin, for tests that visit them all."""

from __future__ import annotations

from collections.abc import Iterator

from django.contrib import admin
from django.db.models import Model
from django.urls import URLPattern

from tests.support.http.routes import filled, routes


def addresses() -> Iterator[str]:
    """Returns addresses with a row of each model; for a model without rows, with a key that does not exist."""
    for model, of_model in admin.site._registry.items():
        for route, _pattern in _below(of_model.urls):
            yield f"/admin/{model._meta.app_label}/{model._meta.model_name}{filled(route, _values(model))}"
    of_site, _app, _name = admin.site.urls
    for route, pattern in _below([one for one in of_site if isinstance(one, URLPattern)]):
        if pattern.name != "logout":
            yield f"/admin{filled(route, {'app_label': 'catalog'})}"


def _below(patterns: list[URLPattern]) -> Iterator[tuple[str, URLPattern]]:
    for route, pattern in routes(patterns):
        yield route.replace("(?P<app_label>", "<app_label>").replace("^", "").replace("$", ""), pattern


def _values(model: type[Model]) -> dict[str, str]:
    row = model._default_manager.first()
    return {name: str(row.pk if row else 4711) for name in ("object_id", "pk")}
