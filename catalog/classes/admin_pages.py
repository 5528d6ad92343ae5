"""What our own pages of the admin share."""

from __future__ import annotations

from django.http import HttpResponseRedirect
from django.urls import reverse


def redirect_to_class(pk: int) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("admin:catalog_gpuclass_change", args=[pk]))
