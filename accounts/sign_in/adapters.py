"""allauth's adapters: client addresses and redirects, messages and emails, and the encryption of TOTP seeds."""

from __future__ import annotations

import base64
import ipaddress
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.authentication import get_authentication_records
from allauth.mfa.adapter import DefaultMFAAdapter
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest, HttpResponse
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from accounts.core.request_actor import actor
from accounts.credentials.authentication_records import BY_ISSUER
from accounts.sign_in import actions
from portal.web.client_address import client_address
from portal.web.safe_redirect import safe_redirect_target

# A working day. After that, the user signs in by the issuer again, which confirms the account and its groups.
SESSION_BY_ISSUER_S = 12 * 3600


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        address = client_address(request)
        try:
            return str(ipaddress.ip_address(address))
        except ValueError:
            return "0.0.0.0"  # a Unix socket; the list of sessions takes addresses only

    def is_safe_url(self, url: str | None) -> bool:
        return bool(safe_redirect_target(url, otherwise=""))

    def post_login(self, request: HttpRequest, user: AbstractBaseUser, **kwargs: Any) -> HttpResponse:
        """Runs once per sign-in, for every method, after all steps have been passed."""
        response = super().post_login(request, user, **kwargs)
        records = get_authentication_records(request, user)
        shown = [record["type"] for record in records if record["method"] == "mfa"]
        by_issuer = any(record["method"] == BY_ISSUER for record in records)
        if by_issuer:
            request.session.set_expiry(SESSION_BY_ISSUER_S)
        actions.signed_in(
            by=actor(request),
            address=client_address(request),
            second_factor=shown[-1] if shown else "",
            issuer=settings.OIDC.issuer if by_issuer and settings.OIDC else "",
        )
        return response

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """No messages of allauth: the portal's pages show their own."""

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Sends nothing: web cannot reach a mail server. Emails are Deliveries, in the transaction of their Event."""
        raise NotImplementedError(template_prefix)


class SecondFactorAdapter(DefaultMFAAdapter):
    """Encrypts seeds in the database, so that a copy of it is not enough to compute codes."""

    def encrypt(self, text: str) -> str:
        return base64.b64encode(_box().encrypt(text.encode())).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Raises nacl's CryptoError if the text was encrypted with a key that is not known any more."""
        text = base64.b64decode(encrypted_text)
        for key in settings.SECOND_FACTOR_KEY_FALLBACKS:
            try:
                return bytes(SecretBox(base64.b64decode(key)).decrypt(text)).decode()
            except CryptoError:
                continue
        return bytes(_box().decrypt(text)).decode()


def _box() -> SecretBox:
    return SecretBox(base64.b64decode(settings.SECOND_FACTOR_KEY))
