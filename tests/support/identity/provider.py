"""Settings and start of a real issuer: allauth's own, a Django project in its own process with its own database.

It is configured by its environment: GIVEN, a JSON object (see `Told`), and FOLDER, a writable folder.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any, TypedDict
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.identity.issuer import pem


class Person(TypedDict):
    email: str
    password: str
    verified: bool


class Told(TypedDict):
    """Groups are read from the file groups.json in FOLDER at each sign-in: address → names."""

    client: str
    secret: str
    back: list[str]
    people: list[Person]


FOLDER = Path(os.environ.get("FOLDER", "."))
SECRET_KEY = "of an issuer that lives as long as a test"
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": FOLDER / "issuer.sqlite3",
        "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE"},
    }
}
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "allauth",
    "allauth.account",
    "allauth.idp.oidc",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]
# allauth also hashes the client's secret, and web waits 3 s for its token: a million rounds took 5 s on a busy machine.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
ROOT_URLCONF = "tests.support.identity.provider_urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "issuer-session", "issuer-csrf"  # browsers do not separate cookies by port
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_RATE_LIMITS = False
IDP_OIDC_ADAPTER = "tests.support.identity.provider_urls.Adapter"
IDP_OIDC_PRIVATE_KEY = pem(rsa.generate_private_key(public_exponent=65537, key_size=2048))


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


def main() -> None:
    """Prints its port on standard output when it answers requests, and serves until its standard input ends."""
    import threading

    import django
    from django.core.management import call_command
    from django.core.wsgi import get_wsgi_application

    django.setup()
    call_command("migrate", verbosity=0)
    _fill(json.loads(os.environ["GIVEN"]))
    server = make_server("127.0.0.1", 0, get_wsgi_application(), server_class=Server, handler_class=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    sys.stdin.read()


def _fill(told: Any) -> None:
    from allauth.account.models import EmailAddress
    from allauth.idp.oidc.models import Client
    from django.contrib.auth.models import User

    for number, person in enumerate(told["people"]):
        user = User.objects.create_user(f"person-{number}", person["email"], person["password"], first_name="Ada")
        EmailAddress.objects.create(user=user, email=person["email"], verified=person["verified"], primary=True)
    client = Client(id=told["client"], name="GPU portal")
    client.set_secret(told["secret"])
    client.set_redirect_uris(told["back"])
    client.set_scopes(["openid", "profile", "email"])
    client.save()
