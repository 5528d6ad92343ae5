"""All settings, read from the environment once; a missing or malformed one ends the process with its name.

Every secret NAME may also be given as NAME_FILE, the path of a file that holds it.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from accounts.schema.enum_names import ENUM_NAMES
from portal.core import single_sign_on
from portal.core.connections import redis_server
from portal.core.connections.object_names import namespaced_name
from portal.core.connections.prometheus_server import prometheus_server
from portal.core.postgresql.session import database
from portal.core.secret_settings import former_keys, require_encryption_keys, secret
from portal.ops import logs

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()
Given = TypeVar("Given")
Parsed = TypeVar("Parsed")


def parsed(name: str, parse: Callable[[Given], Parsed], value: Given) -> Parsed:
    try:
        return parse(value)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is malformed: {error}.") from error


DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = secret("SECRET_KEY")
# Keys of before: signatures, notebooks and stored values that were made with them stay valid until they are removed.
SECRET_KEY_FALLBACKS = former_keys("SECRET_KEY")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1"])
PORTAL_URL: str = env.str("PORTAL_URL", default="http://localhost:8000").rstrip("/")
NOTEBOOKS_DOMAIN: str = env.str("NOTEBOOKS_DOMAIN", default="notebooks.localhost:8000")
NOTEBOOK_TOKEN_KEY = secret("NOTEBOOK_TOKEN_KEY", default="")
NOTEBOOK_TOKEN_KEY_FALLBACKS = former_keys("NOTEBOOK_TOKEN_KEY")
# The two keys of a pair (deploy/make_secrets.py): the first encrypts, the second decrypts.
SECRETS_PUBLIC_KEY = secret("SECRETS_PUBLIC_KEY", default="")
SECRETS_PRIVATE_KEY = secret("SECRETS_PRIVATE_KEY", default="")
SECRETS_PRIVATE_KEY_FALLBACKS = former_keys("SECRETS_PRIVATE_KEY")
SECOND_FACTOR_KEY = secret("SECOND_FACTOR_KEY", default="")
SECOND_FACTOR_KEY_FALLBACKS = former_keys("SECOND_FACTOR_KEY")
require_encryption_keys("SECRETS_PUBLIC_KEY", SECRETS_PUBLIC_KEY)
require_encryption_keys("SECRETS_PRIVATE_KEY", SECRETS_PRIVATE_KEY, *SECRETS_PRIVATE_KEY_FALLBACKS)
require_encryption_keys("SECOND_FACTOR_KEY", SECOND_FACTOR_KEY, *SECOND_FACTOR_KEY_FALLBACKS)
PORTAL_KUBECONFIG: str = env.str("PORTAL_KUBECONFIG", default="")
CLUSTER_NAME: str = env.str("CLUSTER_NAME", default="main")
# Models with a `cluster` whose rows the watcher wakes when nodes or devices of that cluster change.
CAPACITY_OWNERS = ("catalog.Pool",)
INTERNAL_PORT: int = env.int("INTERNAL_PORT", default=0)
INTERNAL_ADDRESS: str = env.str("INTERNAL_ADDRESS", default="127.0.0.1")
# Peers whose X-Forwarded-For is trusted: the gateway is always on this machine or in a private network.
TRUSTED_PROXIES = [
    ipaddress.ip_network(network)
    for network in env.list(
        "TRUSTED_PROXIES",
        default=["127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7"],
    )
]
REDIS_URL = secret("REDIS_URL")
parsed("REDIS_URL", redis_server.sentinels_of, REDIS_URL)
HTTPS = urlsplit(PORTAL_URL).scheme == "https"
PORTAL_HOST = urlsplit(PORTAL_URL).hostname or ""

DATABASES = {"default": parsed("DATABASE_URL", database, environ.Env.db_url_config(secret("DATABASE_URL")))}
if env.bool("DATABASE_POOL", default=False):
    # For web and doors: one pool per process.
    DATABASES["default"]["OPTIONS"]["pool"] = {
        "min_size": 1,
        "max_size": env.int("DATABASE_POOL_SIZE", default=8),
        "timeout": 5,
    }
else:
    # For the worker, one task at a time. Checked only after an error: a lost task costs seconds, a check slows each.
    DATABASES["default"]["CONN_MAX_AGE"] = env.int("DATABASE_CONN_MAX_AGE", default=0)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "csp",
    "django_filters",
    "django_htmx",
    "django_structlog",
    "drf_spectacular",
    "rest_framework",
    "portal.apps.PortalConfig",
    "accounts",
    "cluster",
    "catalog",
    "tenants",
    "workloads",
    "usage",
    "operations",
    "desk",
]
MIDDLEWARE = [
    "portal.web.request_id.RequestIdMiddleware",
    "portal.web.security_headers.SecurityHeadersMiddleware",
    "portal.ops.metrics.MetricsMiddleware",
    "portal.web.request_body.RequestBodyMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "portal.web.fetch_metadata.FetchMetadataMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "portal.web.admission.middleware.AdmissionMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "portal.web.session_cookie.SignedSessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "portal.web.hidden_characters.HiddenCharactersMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "tenants.members.request_limits.TeamRequestLimitMiddleware",
    "portal.web.refusals.RefusalMiddleware",
]
ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "desk.navigation.context_processors.page_context",
            ],
        },
    }
]

AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
PASSWORD_HASHERS = [f"django.contrib.auth.hashers.{name}PasswordHasher" for name in ("Scrypt", "PBKDF2")]

# allauth signs users in through the portal's own pages and forms; none of its own URLs is in the URL map.
ACCOUNT_ADAPTER = "accounts.sign_in.adapters.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_LOGIN_TIMEOUT = 300  # from the password to the code
ACCOUNT_RATE_LIMITS = False  # allauth's limits lock others out; accounts/credentials/login_backoff.py does not
MFA_ADAPTER = "accounts.sign_in.adapters.SecondFactorAdapter"
MFA_TOTP_ISSUER = "GPU portal"
MFA_TOTP_TOLERANCE = 1
MFA_RECOVERY_CODE_DIGITS = 12

OIDC = single_sign_on.single_sign_on_config(
    issuer=env.str("OIDC_ISSUER", default=""),
    client_id=env.str("OIDC_CLIENT_ID", default=""),
    client_secret=secret("OIDC_CLIENT_SECRET", default=""),
    name=env.str("OIDC_NAME", default="your organisation"),
    groups_claim=env.str("OIDC_GROUPS_CLAIM", default="groups"),
    groups=secret("OIDC_GROUPS", default=""),
    http_on_loopback=DEBUG,
)

PROMETHEUS = prometheus_server(
    url=env.str("PROMETHEUS_URL", default=""),
    token=secret("PROMETHEUS_TOKEN", default=""),
    basic=(env.str("PROMETHEUS_USER", default=""), secret("PROMETHEUS_PASSWORD", default="")),
    org=env.str("PROMETHEUS_ORG_ID", default=""),
    ca_file=env.str("PROMETHEUS_CA_FILE", default=""),
    metrics=env.dict("PROMETHEUS_METRICS", default={}),
)

MIG_LAYOUTS_CONFIG_MAP = parsed(
    "MIG_LAYOUTS_CONFIG_MAP", namespaced_name, env.str("MIG_LAYOUTS_CONFIG_MAP", default="")
)  # None: the portal writes no layouts
RETENTION_ARCHIVE: str = env.str("RETENTION_ARCHIVE", default="")  # a folder; "": what it would get stays
LANGUAGE_CODE = "en-gb"
TIME_ZONE = env.str("TIME_ZONE", default="UTC")
USE_TZ = True

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# The demo serves files from the source folders, without collectstatic. Production images create the folder, then
# collect and hash the files into it.
STATIC_ROOT = BASE_DIR / ".static" if (BASE_DIR / ".static").is_dir() else None
WHITENOISE_USE_FINDERS = STATIC_ROOT is None
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if STATIC_ROOT
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}

# ---- cookies and security headers ------------------------------------------------------------------------------
SESSION_COOKIE_NAME = "__Host-session" if HTTPS else "session"
CSRF_COOKIE_NAME = "__Host-csrf" if HTTPS else "csrf"
THEME_COOKIE_NAME = "__Host-theme" if HTTPS else "theme"
# Django's default uses an extra cookie. Every page loads its session anyway; only messages write it.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = 14 * 24 * 3600
CSRF_TRUSTED_ORIGINS = [PORTAL_URL]
CSRF_FAILURE_VIEW = "portal.web.error_pages.csrf_failure"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 31536000 if HTTPS else 0
# Notebooks without their own domain are on subdomains of the portal's host and use https, too. Otherwise the
# subdomains belong to the site, which may use plain http there and could not revoke this for a year.
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS and f".{NOTEBOOKS_DOMAIN}".partition(":")[0].endswith(f".{PORTAL_HOST}")
SECURE_SSL_REDIRECT = HTTPS
# Probes call these at the address of the process, without the portal's host name.
SECURE_REDIRECT_EXEMPT = ["^livez$", "^readyz$"]
# W005, subdomains: see above. W021, preload: it affects the site's whole domain, so only its owner may decide it.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        # "Open" is a form whose response redirects to the notebook's origin; browsers check the final target of a form.
        "form-action": [SELF, f"{urlsplit(PORTAL_URL).scheme}://*.{NOTEBOOKS_DOMAIN}"],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "manifest-src": [SELF],
    }
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 500

# ---- background tasks ------------------------------------------------------------------------------------------
# Order asserted by tests/test_shape.py: API time-out < budget of a reconcile < task limit < lease < resync.
KUBE_TIMEOUT_S = 5
RECONCILE_BUDGET_S = 8
TASK_LIMIT_S = 15
LEASE_S = 18
# A row of a vanished worker waits for the end of its lease and the next sweep: less than 25 s together.
SWEEP_S = 5
RESYNC_S = 600
# Monday to Friday in TIME_ZONE; a request that waits longer is overdue, and all approvers are notified.
ESCALATE_AFTER_WORKING_DAYS = env.int("ESCALATE_AFTER_WORKING_DAYS", default=3)
if not 1 <= ESCALATE_AFTER_WORKING_DAYS <= 60:
    raise ImproperlyConfigured("ESCALATE_AFTER_WORKING_DAYS is a number from 1 to 60.")

CELERY_BROKER_URL = redis_server.broker_url(REDIS_URL)
CELERY_BROKER_TRANSPORT_OPTIONS = redis_server.broker_options(REDIS_URL)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_DEFAULT_QUEUE = "people"
CELERY_TASK_TIME_LIMIT = TASK_LIMIT_S
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CONCURRENCY = env.int("WORKER_CONCURRENCY", default=4)
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# Otherwise Celery closes the connection around every task; portal.tasks closes it by Django's own rule.
CELERY_DB_REUSE_MAX = 1_000_000


def in_background(task: str, *, every_s: float) -> dict[str, object]:
    """A message that no worker took until the next one is sent is dropped."""
    return {"task": task, "schedule": every_s, "options": {"queue": "background", "expires": int(every_s)}}


CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "portal.sweep", "schedule": float(SWEEP_S), "options": {"queue": "background", "expires": 10}},
    "leaving": in_background("workloads.leaving.wake", every_s=5.0),  # Apps that know no runs may suspend an account.
    "orphans": in_background("workloads.orphans.wake", every_s=60.0),
    # Usage is a mean: a minute without a sample is missing from its sum and its count; a second sample is ignored.
    "usage": in_background("usage.samples.sample", every_s=60.0),
    "budgets": in_background("usage.budgets.measure", every_s=300.0),
    "telemetry": in_background("usage.telemetry.read", every_s=15.0),  # So that a minute is read soon after its end.
    "idle": in_background("usage.idle.update", every_s=60.0),
    "gpu-faults": in_background("usage.faults.read", every_s=15.0),
    "allocations": in_background("workloads.allocations.update", every_s=60.0),
    "logs": in_background("workloads.logs.delete_expired", every_s=60.0),
    "certificates": in_background("cluster.validity", every_s=60.0),
    "cordons": in_background("operations.cordons.follow", every_s=10.0),
    "trials": in_background("catalog.trials.try", every_s=10.0),
    "starts": in_background("workloads.predicting.predict", every_s=60.0),
    "retention": in_background("desk.retention.delete", every_s=600.0),
}
# Beat stores its last runs here. The file may be lost without consequences.
CELERY_BEAT_SCHEDULE_FILENAME = env.str("BEAT_SCHEDULE_FILE", default=str(BASE_DIR / ".run" / "beat"))

# ---- API -------------------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.api_tokens.authentication.TokenAuthentication",
        "accounts.api_tokens.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "accounts.rest.permissions.HasScope",
        "accounts.rest.strict.query.StrictQuery",
    ],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["accounts.rest.strict.parsers.ObjectParser"],
    "DEFAULT_PAGINATION_CLASS": "accounts.rest.paging.KeysetPagination",
    "DEFAULT_THROTTLE_CLASSES": ["accounts.rest.throttles.TokenThrottle"],
    "DEFAULT_FILTER_BACKENDS": ["accounts.rest.filters.OptionalFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "accounts.schema.extensions.PortalAutoSchema",
    "EXCEPTION_HANDLER": "portal.web.refusals.api_exception_handler",
    "UNAUTHENTICATED_USER": None,
    "SCHEMA_COERCE_PATH_PK": False,
}
API_REQUESTS_PER_MINUTE = env.int("API_REQUESTS_PER_MINUTE", default=600)
SPECTACULAR_SETTINGS = {
    "TITLE": "GPU portal",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "ENFORCE_NON_BLANK_FIELDS": True,
    "COMPONENT_SPLIT_PATCH": False,  # a PATCH body lists its required fields as every other body does
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,  # it would only repeat each value of `enum` as its description
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "GET_LIB_DOC_EXCLUDES": "accounts.schema.hooks.undocumented_bases",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "accounts.schema.hooks.add_refusals",
        "accounts.schema.responses.add_responses",
        "accounts.schema.hooks.add_path_parameters",
        "accounts.schema.document.add_document",
        "portal.docs.examples.add_examples",
    ],
    "ENUM_NAME_OVERRIDES": ENUM_NAMES,
}
CACHES = {"default": redis_server.cache(REDIS_URL)}

# ---- mail ------------------------------------------------------------------------------------------------------
EMAIL_CONFIG = environ.Env.email_url_config(secret("EMAIL_URL", default="consolemail://"))
vars().update(EMAIL_CONFIG)
if EMAIL_CONFIG.get("EMAIL_FILE_PATH"):
    # django-environ removes the first slash: filemail:///var/mail would be relative to the working directory.
    EMAIL_FILE_PATH = "/" + EMAIL_CONFIG["EMAIL_FILE_PATH"].lstrip("/")
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("MAIL_FROM", default="GPU portal <gpu-portal@localhost>")

# ---- logs ------------------------------------------------------------------------------------------------------
LOGGING = logs.logging_config(
    level=env.str("LOG_LEVEL", default="INFO"),
    known=(
        *(SECRET_KEY, *SECRET_KEY_FALLBACKS, NOTEBOOK_TOKEN_KEY, *NOTEBOOK_TOKEN_KEY_FALLBACKS),
        *(SECRETS_PRIVATE_KEY, *SECRETS_PRIVATE_KEY_FALLBACKS, SECOND_FACTOR_KEY, *SECOND_FACTOR_KEY_FALLBACKS),
        OIDC.client_secret if OIDC else "",
        *(PROMETHEUS.secrets if PROMETHEUS else ()),
        EMAIL_CONFIG.get("EMAIL_HOST_PASSWORD") or "",
        DATABASES["default"].get("PASSWORD") or "",
        *redis_server.passwords_of(REDIS_URL),
    ),
)
DJANGO_STRUCTLOG_CELERY_ENABLED = False
DJANGO_STRUCTLOG_TRUST_UPSTREAM_REQUEST_ID = True  # portal.web.request_id has checked it
DJANGO_STRUCTLOG_IP_LOGGING_ENABLED = False  # it would trust any X-Forwarded-For
DJANGO_STRUCTLOG_STATUS_START_LOG_LEVEL = logging.DEBUG  # one line a request, at its end
DJANGO_STRUCTLOG_STATUS_4XX_LOG_LEVEL = logging.INFO
