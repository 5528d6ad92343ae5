"""Which code made the records of the mirror."""

from __future__ import annotations

import hashlib
from pathlib import Path

from cluster.client import managed_fields
from cluster.mirror.records import kinds, namespaces
from cluster.mirror.records import types as record_types


def record_format() -> str:
    """Digest of the code that makes records: rows of another version of it are not mixed with ours."""
    digest = hashlib.blake2b(digest_size=8)
    for module in (record_types, namespaces, managed_fields, kinds):
        digest.update(Path(str(module.__file__)).read_bytes())
    return digest.hexdigest()
