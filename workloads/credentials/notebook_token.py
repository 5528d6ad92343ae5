"""The token of a notebook's server, which worker and doors compute and which is never stored; and the digest that is
stored instead of tickets and cookies.
"""

from __future__ import annotations

import hashlib
import hmac

from django.conf import settings


def notebook_token(key: str, *, workload_id: int, run_number: int) -> str:
    """The token is per run: after a restart the previous token is invalid. With an empty key, anybody could compute the
    tokens.
    """
    if not key:
        raise ValueError("NOTEBOOK_TOKEN_KEY is not set.")
    message = f"notebook {workload_id} {run_number}".encode()
    return hmac.new(key.encode(), message, hashlib.sha256).hexdigest()


def token_of_run(token_key: str, *, workload_id: int, run_number: int) -> str:
    """`token_key`: of the run, "" for one from before that was recorded, whose key is the oldest. A notebook whose key
    is not among the keys any more refuses the token until it is restarted.
    """
    keys = {key_id(key): key for key in (settings.NOTEBOOK_TOKEN_KEY, *settings.NOTEBOOK_TOKEN_KEY_FALLBACKS)}
    oldest = list(keys.values())[-1]
    key = keys.get(token_key, settings.NOTEBOOK_TOKEN_KEY) if token_key else oldest
    return notebook_token(key, workload_id=workload_id, run_number=run_number)


def key_id(key: str) -> str:
    """Names a key without containing it: 16 hexadecimal digits of a digest, from which a random key cannot be found."""
    return digest(f"id of a notebook token key {key}")[:16]


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
