"""`manage.py keys`: after a new key, values of before are read, encrypted again, and then the old key opens nothing."""

from __future__ import annotations

import base64
import secrets
import time
from io import StringIO

import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from nacl.encoding import Base64Encoder
from nacl.public import PrivateKey

from accounts.credentials import actions as credential_actions
from accounts.models import User
from tenants.models import Namespace
from tests.support.database_roles import in_role
from tests.support.rows import make
from workloads.credentials import sealing
from workloads.credentials.registries.actions import RegistryLogin, seal_login, unseal_login
from workloads.models import RegistryCredential, TeamSecret

pytestmark = pytest.mark.django_db


def keys(process: str) -> str:
    told = StringIO()
    with in_role(process):
        call_command("keys", stdout=told)
    return told.getvalue()


def test_secrets_are_unsealed_all_the_time_and_the_old_pair_then_opens_nothing(
    namespace_a: Namespace, alice: User, settings: LazySettings
) -> None:
    settings.SECOND_FACTOR_KEY = ""  # the worker's process
    of_team = {"namespace": namespace_a, "created_by": alice}
    TeamSecret.objects.create(**of_team, name="TOKEN", sealed=sealing.seal("a value"))
    RegistryCredential.objects.create(
        **of_team, registry="registry.example.org", sealed=seal_login(RegistryLogin("robot", "a password"))
    )
    pair, old = PrivateKey.generate(), settings.SECRETS_PRIVATE_KEY
    settings.SECRETS_PRIVATE_KEY = pair.encode(Base64Encoder).decode()
    settings.SECRETS_PRIVATE_KEY_FALLBACKS = [old]
    assert opened() == ("a value", RegistryLogin("robot", "a password"))
    # Web still encrypts for the old pair.
    TeamSecret.objects.create(**of_team, name="OTHER", sealed=sealing.seal("another"))

    assert "3 encrypted with the current key, 0 cannot be decrypted" in keys("worker")
    settings.SECRETS_PRIVATE_KEY_FALLBACKS = []

    assert opened() == ("a value", RegistryLogin("robot", "a password"))
    assert ": 0 encrypted with the current key, 0 cannot" in keys("worker")
    settings.SECRETS_PRIVATE_KEY = old
    assert opened() == (None, None)
    with pytest.raises(SystemExit):
        keys("worker")


def opened() -> tuple[str | None, RegistryLogin | None]:
    return (
        sealing.unseal(bytes(TeamSecret.objects.get(name="TOKEN").sealed)),
        unseal_login(bytes(RegistryCredential.objects.get().sealed)),
    )


def test_codes_are_right_all_the_time_and_the_old_key_then_opens_none(alice: User, settings: LazySettings) -> None:
    settings.SECRETS_PRIVATE_KEY = ""  # web's process
    seed, old = make.second_factor(alice), settings.SECOND_FACTOR_KEY
    settings.SECOND_FACTOR_KEY = base64.b64encode(secrets.token_bytes(32)).decode()
    settings.SECOND_FACTOR_KEY_FALLBACKS = [old]
    with in_role("web"):
        assert credential_actions.consume_code(alice, code_of(seed, -1))

    assert "0 cannot be decrypted" in keys("web")
    settings.SECOND_FACTOR_KEY_FALLBACKS = []

    assert credential_actions.consume_code(alice, code_of(seed, 0))
    settings.SECOND_FACTOR_KEY = old
    assert credential_actions.consume_code(alice, code_of(seed, 1)) is None
    with pytest.raises(SystemExit):
        keys("web")


def code_of(seed: str, step: int) -> str:
    """Of the step before or after now: each code works once."""
    return str(format_hotp_value(hotp_value(seed, int(time.time()) // 30 + step)))


def test_a_process_without_keys_says_so(settings: LazySettings) -> None:
    settings.SECRETS_PRIVATE_KEY = settings.SECOND_FACTOR_KEY = ""
    with pytest.raises(CommandError, match="no key"):
        keys("web")
