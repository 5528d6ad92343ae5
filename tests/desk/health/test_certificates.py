"""Certificates that expire, on Health, in `manage.py doctor`, in metrics and in the alert."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from django.test import Client
from django.utils import timezone

from accounts.models import User
from cluster.certificates.policy import RENEWED_BEFORE_AT_MOST, RENEWED_BEFORE_SHARE
from cluster.models import Certificate, Cluster
from tests.desk.health.test_doctor import doctor
from tests.support.http.metrics import figures
from tests.support.rows import mirrored

pytestmark = pytest.mark.django_db
ALERTS = Path(__file__).parents[3] / "deploy" / "monitoring" / "rules" / "portal-alerts.yaml"


def certificate(name: Certificate.Name, *, days: float, of: float = 90) -> None:
    ends_at = timezone.now() + timedelta(days=days)
    Certificate.objects.create(name=name, begins_at=ends_at - timedelta(days=of), ends_at=ends_at)


def page(olga: User) -> str:
    client = Client()
    client.force_login(olga)
    return client.get("/health").text


def test_one_that_expires_is_a_finding(cluster: Cluster, olga: User) -> None:
    mirrored.hardware_seen(cluster)
    certificate(Certificate.Name.API_CA, days=400, of=3650)
    certificate(Certificate.Name.PORTAL, days=60)
    assert "expire" not in doctor()[1].lower()
    assert "Certificate of the portal" in page(olga)

    Certificate.objects.filter(name=Certificate.Name.PORTAL).update(ends_at=timezone.now() + timedelta(days=3))
    code, text = doctor()
    assert code == 1
    assert "the certificate of the portal expires soon" in text.splitlines()[0]
    assert "CA" not in text.splitlines()[0]
    assert "Replace certificate and key of the gateway" in text
    assert "Replace certificate and key of the gateway" in page(olga)

    Certificate.objects.filter(name=Certificate.Name.PORTAL).update(ends_at=timezone.now() - timedelta(days=1))
    assert "the certificate of the portal has expired" in doctor()[1].splitlines()[0]
    assert "expired</span>" in page(olga)


def test_the_seconds_that_are_left(cluster: Cluster) -> None:
    certificate(Certificate.Name.PORTAL, days=60)
    certificate(Certificate.Name.WORKER, days=-1)
    found = figures()
    day = timedelta(days=1).total_seconds()
    assert found["portal_certificate_expiry_seconds", "portal"] == pytest.approx(60 * day, abs=60)
    assert found["portal_certificate_expiry_seconds", "worker"] == pytest.approx(-day, abs=60)
    assert found["portal_certificate_lifetime_seconds", "portal"] == pytest.approx(90 * day, abs=60)


def test_the_alert_has_the_rule_of_health() -> None:
    [group] = yaml.safe_load(ALERTS.read_text())["groups"]
    [rule] = [rule for rule in group["rules"] if rule["alert"] == "PortalCertificateExpires"]
    share, most = re.findall(r"\d+", rule["expr"])
    assert (int(share), timedelta(seconds=int(most))) == (RENEWED_BEFORE_SHARE, RENEWED_BEFORE_AT_MOST)
