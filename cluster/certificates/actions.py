"""Keeps a row for each certificate that there is."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from cluster.certificates import validity as read
from cluster.certificates.validity import Validity
from cluster.client.kube import Kube
from cluster.models import Certificate


def read_certificates(kube: Kube) -> dict[Certificate.Name, Validity | None]:
    """None: there is none, or it could not be read."""
    login = kube.login.current()
    server = read.served_at(login.host)
    return {
        Certificate.Name.PORTAL: read.validity(read.served_at(settings.PORTAL_URL)),
        Certificate.Name.API_SERVER: read.validity(server),
        Certificate.Name.API_CA: read.validity(read.authority(login, server)),
        Certificate.Name.WORKER: read.validity(read.client_certificate(login)),
        Certificate.Name.TOKEN: read.token_validity(login),
    }


@transaction.atomic
def record_certificates(found: Mapping[Certificate.Name, Validity | None]) -> None:
    """A row stays when its certificate cannot be read: it expires nevertheless. It is removed a day later."""
    for name, valid in found.items():
        if valid is not None:
            values = {"begins_at": valid.begins_at, "ends_at": valid.ends_at, "read_at": Now()}
            Certificate.objects.update_or_create(name=name, defaults=values)
    Certificate.objects.filter(read_at__lt=Now() - Certificate.FORGOTTEN_AFTER).delete()
