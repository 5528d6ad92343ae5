"""The verb of terms: a person accepts what a class asks of everybody who runs on it."""

from __future__ import annotations

from django.db import transaction

from accounts.actions import record
from accounts.actor import Actor
from catalog.models import GpuClass
from portal.errors import get_or_refuse, refuse
from tenants.models import TermsAccepted


@transaction.atomic
def accept_terms(class_id: int, version: int, *, by: Actor) -> None:
    """Once per person, class and version; the same again changes nothing and is no event.

    Raises Refused: not_found (404), terms_changed (409).
    """
    gpu_class = get_or_refuse(GpuClass.objects.all(), pk=class_id)
    if version != gpu_class.terms_version:
        raise refuse(
            "terms_changed",
            f"{gpu_class.name} has terms of version {gpu_class.terms_version} now, not {version}. Read them again.",
            field="accept_terms",
            status=409,
        )
    _row, is_new = TermsAccepted.objects.get_or_create(user=by.person, gpu_class=gpu_class, version=version)
    if is_new:
        record(by, "terms.accepted", gpu_class, after={"version": version})
