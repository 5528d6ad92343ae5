"""Log configuration: JSON on standard error. The last processor removes secrets."""

from __future__ import annotations

from typing import Any

import structlog

from portal.ops.redaction import SecretRedactor


def logging_config(*, level: str, known: tuple[str, ...]) -> dict[str, Any]:
    """Django's LOGGING, with structlog set up to write the same lines. `known`: this process's own secrets."""
    processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.ExtraAdder(),
        structlog.processors.format_exc_info,
        SecretRedactor(known=known),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *processors,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": processors,
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.JSONRenderer(),
        ],
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": formatter},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django.server": {"handlers": [], "propagate": True},
            # The log line of the request already has the traceback.
            "django.request": {"level": "CRITICAL"},
            # A wrong Host header comes from a scanner and is no error of the portal.
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            # It writes two lines for every hint while a user waits. Rows, Events and metrics already show the work.
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
        },
    }
