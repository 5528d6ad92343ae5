"""The certificates, the one that expires first in front."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from cluster.certificates.policy import is_to_renew
from cluster.models import Certificate

_DO = {
    Certificate.Name.PORTAL: "Replace certificate and key of the gateway (GATEWAY_TLS; in the cluster the Secret "
    "gateway-tls). It reads them within seconds, and connections stay open.",
    Certificate.Name.API_SERVER: "Renew the certificate of the API server as your cluster's documentation says.",
    Certificate.Name.API_CA: "Plan the change of the CA. During it, kubeconfigs need the old and the new one.",
    Certificate.Name.WORKER: "Replace the kubeconfigs of worker, watcher and doors. They are read within seconds.",
    Certificate.Name.TOKEN: "Replace the kubeconfigs of worker, watcher and doors. They are read within seconds.",
}


@dataclass(frozen=True)
class CertificateState:
    name: str
    ends_at: datetime
    read_at: datetime
    is_expired: bool
    is_to_renew: bool
    do: str


def certificate_states() -> list[CertificateState]:
    now = timezone.now()
    return [
        CertificateState(
            row.get_name_display(),
            row.ends_at,
            row.read_at,
            row.ends_at <= now,
            is_to_renew(row.begins_at, row.ends_at, now),
            _DO[Certificate.Name(row.name)],
        )
        for row in Certificate.objects.order_by("ends_at", "name")
    ]
