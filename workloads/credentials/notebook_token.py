"""The token of a notebook's server, which worker and doors compute and which is never stored; and the digest that is
stored instead of tickets and cookies. Pure.
"""

from __future__ import annotations

import hashlib
import hmac


def notebook_token(key: str, *, workload_id: int, run_number: int) -> str:
    """Per run: after a restart the former token is invalid. An empty key would make tokens that anybody can compute."""
    if not key:
        raise ValueError("NOTEBOOK_TOKEN_KEY is not set.")
    message = f"notebook {workload_id} {run_number}".encode()
    return hmac.new(key.encode(), message, hashlib.sha256).hexdigest()


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
