"""Which code made the records of the mirror."""

from __future__ import annotations

import hashlib
from pathlib import Path

from cluster import kinds, object_records, ownership, records


def record_format() -> str:
    """Digest of the code that makes records: rows of another version of it are not mixed with ours."""
    digest = hashlib.blake2b(digest_size=8)
    for module in (records, object_records, ownership, kinds):
        digest.update(Path(str(module.__file__)).read_bytes())
    return digest.hexdigest()
