"""/api/: the contract as pages, one for each section, and as JSON; and the page Help. They contain no user data, and
load no third-party script.
"""

from __future__ import annotations

import functools
import hashlib

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import condition, require_safe

from portal.docs.contract import contract_text
from portal.docs.curl_examples import V1, curl
from portal.docs.help import HELP
from portal.docs.sections import ApiSection, schema_places, section, sections


@functools.cache
def _contract_tag() -> str:
    return f'"{hashlib.sha256(contract_text()).hexdigest()[:32]}"'


@require_safe
@condition(etag_func=lambda _request: _contract_tag())
def contract(request: HttpRequest) -> HttpResponse:
    """With the tag of its text as If-None-Match: 304."""
    return HttpResponse(contract_text(), content_type="application/vnd.oai.openapi+json")


@require_safe
def api_docs(request: HttpRequest) -> HttpResponse:
    """The index: how to begin, and every call and schema with a link to its section."""
    parts = {
        "sections": sections(),
        "schemas": schema_places(),
        "begin": f"PORTAL={settings.PORTAL_URL}\nTOKEN=gpt_…\n{curl('GET', f'{V1}/me')}",
    }
    return render(request, "portal/docs/api_docs.html", parts)


@require_safe
def api_section(request: HttpRequest, section_slug: str) -> HttpResponse:
    found = section(section_slug)
    if found is None:
        raise Http404
    parts = {"section": found, "sections": sections(), "reference": _reference(found.slug)}
    return render(request, "portal/docs/api_section.html", parts)


@functools.cache
def _reference(slug: str) -> SafeString:
    """The same for all users and many tables long: rendered once per process. `slug`: of a section."""
    found: ApiSection | None = section(slug)
    assert found is not None
    parts = {"operations": found.operations, "schemas": list(found.schemas.items())}
    # Safe: the template has escaped it.
    return mark_safe(render_to_string("portal/docs/_api_reference.html", parts))


@require_safe
def help_page(request: HttpRequest) -> HttpResponse:
    """For everybody, also before signing in."""
    return render(request, "portal/docs/help.html", {"sections": HELP, "portal": settings.PORTAL_URL})
