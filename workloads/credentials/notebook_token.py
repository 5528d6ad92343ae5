"""The token of a notebook's server, which worker and doors compute and which is never stored; and the digest that is
stored instead of tickets and cookies. Pure.
"""

from __future__ import annotations

import hashlib
import hmac


def notebook_token(key: str, *, workload_id: int, run_number: int) -> str:
    """The token is per run: after a restart the previous token is invalid. With an empty key, anybody could compute the
    tokens.
    """
    if not key:
        raise ValueError("NOTEBOOK_TOKEN_KEY is not set.")
    message = f"notebook {workload_id} {run_number}".encode()
    return hmac.new(key.encode(), message, hashlib.sha256).hexdigest()


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
