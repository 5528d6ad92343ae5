"""Builders: keywords in, a row out, nothing random. They make rows that a test needs but does not test."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, generate_totp_secret, hotp_value
from allauth.mfa.utils import decrypt
from django.contrib.auth.hashers import make_password
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.test import Client
from django.utils import timezone

from accounts.models import Role, User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import ApproverFor, Deputy, Grant, Membership, Namespace, Tenant

PASSWORD = "correct horse battery staple"


def user(name: str, *, roles: Sequence[Role] = (), **fields: Any) -> User:
    """The email address is verified, as for everybody whom an operator creates."""
    found = User.objects.create(
        email=f"{name.lower()}@example.org",
        name=name,
        password=_hashed(PASSWORD),
        roles=[str(role) for role in roles],
        **fields,
    )
    EmailAddress.objects.create(user=found, email=found.email, verified=True, primary=True)
    return found


def second_factor(user: User) -> str:
    """Returns the seed of the user's second factor; creates it if there is none."""
    held = Authenticator.objects.filter(user=user, type=Authenticator.Type.TOTP).first()
    if held is None:
        held = TOTP.activate(user, generate_totp_secret()).instance
        RecoveryCodes.activate(user)
    return str(decrypt(held.data["secret"]))


def code(seed: str) -> str:
    """Returns the code that the authenticator app shows now."""
    return str(format_hotp_value(hotp_value(seed, int(time.time()) // 30)))


def administrator(client: Client, user: User) -> Client:
    """Signs in with a second factor, which the Django admin requires."""
    second_factor(user)
    client.force_login(user)
    held = Authenticator.objects.get(user=user, type=Authenticator.Type.TOTP)
    session = client.session
    session["account_authentication_methods"] = [{"method": "mfa", "at": time.time(), "id": held.pk, "type": "totp"}]
    session["account_authentication_methods_user"] = str(user.pk)
    session.save()
    return client


@functools.cache
def _hashed(password: str) -> str:
    """Hashed once for the whole run: a good hash takes 0.1 s, and every test creates these users."""
    return make_password(password)


def approver(name: str, *, gpu_class: GpuClass | None = None) -> User:
    """Decides on one class, or on all classes."""
    found = user(name, roles=[Role.APPROVER])
    ApproverFor.objects.create(user=found, gpu_class=gpu_class)
    return found


def deputy(who: User, *, of: User, since: datetime | None = None, until: datetime | None = None) -> Deputy:
    """A delegate for 10 days, by default from an hour ago."""
    start = since or timezone.now() - timedelta(hours=1)
    period = DateTimeTZRange(start, until or start + timedelta(days=10))
    return Deputy.objects.create(approver=of, deputy=who, period=period)


def tenant(cluster: Cluster, *, slug: str, namespace: str = "") -> Tenant:
    """A team with its namespace row, not yet provisioned and not due: a test reconciles it when it wants to."""
    found = Tenant.objects.create(slug=slug, name=slug.replace("-", " ").title())
    Namespace.objects.create(tenant=found, cluster=cluster, name=namespace or slug, due_at=None)
    return found


def close(name: str = "", *, runs_for: timedelta = timedelta(0), keep: timedelta = timedelta(0)) -> None:
    """Closes every team, or the one with this namespace; by default now, with its volumes."""
    now = timezone.now()
    rows = Namespace.objects.filter(name=name) if name else Namespace.objects.all()
    rows.update(wanted=Namespace.Wanted.CLOSED, closes_at=now + runs_for, volumes_until=now + runs_for + keep)


def member(of: Tenant, who: User, role: Membership.Role = Membership.Role.MEMBER) -> Membership:
    return Membership.objects.create(tenant=of, user=who, role=role)


def gpu_class(cluster: Cluster, *, slug: str = "a100", **fields: Any) -> GpuClass:
    """By default whole A100 GPUs, active."""
    defaults: dict[str, Any] = {
        "name": "A100 80GB whole card",
        "vendor": "nvidia",
        "product": "NVIDIA-A100-SXM4-80GB",
        "resource": "nvidia.com/gpu",
        "node_labels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.sharing-strategy": "none"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "memory_mib": 81920,
        "life_cycle": GpuClass.LifeCycle.ACTIVE,
    }
    return GpuClass.objects.create(cluster=cluster, slug=slug, **{**defaults, **fields})


def storage(cluster: Cluster, *, slug: str = "storage", **fields: Any) -> GpuClass:
    """An active storage class of which 1,000 GiB may be promised."""
    defaults: dict[str, Any] = {
        "name": "Team storage",
        "interface": GpuClass.Interface.STORAGE,
        "promise_limit": 1000,
        "life_cycle": GpuClass.LifeCycle.ACTIVE,
    }
    return GpuClass.objects.create(cluster=cluster, slug=slug, **{**defaults, **fields})


def grant(
    to: Tenant,
    gpu_class: GpuClass,
    *,
    units: int,
    since: datetime | None = None,
    until: datetime | None = None,
    kind: Grant.Kind = Grant.Kind.BASE,
) -> Grant:
    """By default in force: from an hour ago, for 30 days."""
    start = since or timezone.now() - timedelta(hours=1)
    end = until or start + timedelta(days=30)
    return Grant.objects.create(
        tenant=to, gpu_class=gpu_class, units=units, kind=kind, period=DateTimeTZRange(start, end)
    )
