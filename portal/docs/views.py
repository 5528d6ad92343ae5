"""/api/: the contract as a page and as JSON. Both contain no user data, and the page loads no third-party script."""

from __future__ import annotations

import functools
import hashlib
import json

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import condition, require_safe

from portal.docs.contract import contract_text
from portal.docs.curl_examples import V1, curl
from portal.docs.reference import Part, fields_by_schema, operations_by_theme


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
    parts = {
        "reference": _reference(),
        "themes": list(operations_by_theme(_contract()).items()),
        "begin": f"PORTAL={settings.PORTAL_URL}\nTOKEN=gpt_…\n{curl('GET', f'{V1}/me')}",
    }
    return render(request, "portal/docs/api_docs.html", parts)


@functools.cache
def _contract() -> Part:
    found: Part = json.loads(contract_text())
    return found


@functools.cache
def _reference() -> SafeString:
    """The same for all users and a few hundred tables long: rendered once per process."""
    contract = _contract()
    parts = {"themes": list(operations_by_theme(contract).items()), "things": list(fields_by_schema(contract).items())}
    # Safe: the template has escaped it.
    return mark_safe(render_to_string("portal/docs/_api_reference.html", parts))
