"""Collects what the portal leaves behind, as bytes to search: rows, Redis data, Celery messages, objects, logs, emails.

Encrypted and hashed values are not decoded. A text is also searched in other encodings.
"""

from __future__ import annotations

import base64
import codecs
import html
import json
import quopri
import socket
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, urlsplit

import redis
from django.contrib.sessions.models import Session
from django.core import signing
from django.db import connection

from devcluster.client.kube import Api

Named = tuple[str, str]


def spellings(secret: str) -> set[bytes]:
    """Returns the encodings of a text: plain, in JSON, HTML and URLs, hexadecimal, and in Base64 at any offset of a
    longer text.
    """
    raw, in_json = secret.encode(), json.dumps(secret)[1:-1].encode()
    found = {raw, in_json, json.dumps(secret, ensure_ascii=False)[1:-1].encode(), html.escape(secret).encode()}
    found |= {quote(secret).encode(), quote_plus(secret).encode(), raw.hex().encode(), raw.hex().upper().encode()}
    for text in (raw, in_json):
        for before, cut in ((0, 0), (1, 2), (2, 3)):
            whole = (before + len(text)) // 3 * 4
            for encode in (base64.b64encode, base64.urlsafe_b64encode):
                found.add(encode(b"\0" * before + text)[cut:whole])
    return found


@dataclass
class Haystack:
    """The collected bytes by place. `where` returns the places that contain a text."""

    places: dict[str, list[bytes]] = field(default_factory=dict)

    def add(self, place: str, *texts: bytes) -> None:
        self.places.setdefault(place, []).extend(texts)

    def where(self, secret: str) -> list[str]:
        words = spellings(secret)
        return [place for place, texts in self.places.items() if any(word in text for text in texts for word in words)]


# ---- PostgreSQL --------------------------------------------------------------------------------------------------


def database() -> Iterator[tuple[str, bytes]]:
    """Yields each table as COPY writes it, where binary values are hexadecimal, and the content of each session, which
    is stored compressed.
    """
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            with cursor.copy(f'COPY "{table}" TO STDOUT') as copied:
                yield f"table {table}", b"".join(bytes(part) for part in copied)
    for data in Session.objects.values_list("session_data", flat=True):
        payload = data.partition(":")[0]
        held = signing.b64_decode(payload.lstrip(".").encode())
        yield "what sessions hold", zlib.decompress(held) if payload.startswith(".") else held


# ---- Redis -------------------------------------------------------------------------------------------------------


def kept_in_redis(url: str) -> bytes:
    """Returns every key with its value. DUMP is not used, because it compresses values."""
    client = redis.Redis.from_url(url)
    readers: Mapping[bytes, Any] = {
        b"string": client.get,
        b"list": lambda key: client.lrange(key, 0, -1),
        b"set": client.smembers,
        b"hash": client.hgetall,
        b"zset": lambda key: client.zrange(key, 0, -1),
    }
    found = [key + b" " + _flat(readers[client.type(key)](key)) for key in client.scan_iter()]
    client.close()
    return b"\n".join(found)


def _flat(value: Any) -> bytes:
    if isinstance(value, Mapping):
        value = [part for pair in value.items() for part in pair]
    return b" ".join(value) if isinstance(value, Iterable) and not isinstance(value, bytes) else bytes(value or b"")


class Sniffer:
    """Records with MONITOR all commands that are sent to one Redis database. So it also sees Celery messages before a
    worker takes them.
    """

    def __init__(self, url: str) -> None:
        self.prefix = f" [{urlsplit(url).path.strip('/') or 0} ".encode()
        self.lines: list[bytes] = []
        # No time-out, because there may be no command for a long time.
        self.connection = redis.Redis.from_url(url, socket_timeout=None).connection_pool.get_connection()
        self.connection.send_command("MONITOR")
        assert self.connection.read_response() == b"OK"
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        with suppress(redis.RedisError, OSError, ValueError):
            while line := self.connection.read_response():
                if self.prefix in line[:60]:
                    self.lines.append(codecs.escape_decode(line)[0])  # type: ignore[attr-defined]

    def messages(self) -> list[bytes]:
        """Returns the Celery messages that were sent: each envelope, and its decoded body."""
        found = []
        for line in self.lines:
            at = line.find(b'"LPUSH"')
            if at < 0 or b'{"body"' not in line:
                continue
            envelope = json.loads(line[line.index(b'{"body"') : line.rindex(b'"')])
            found += [json.dumps(envelope).encode(), base64.b64decode(envelope["body"])]
        return found

    def close(self) -> None:
        self.connection._sock.shutdown(socket.SHUT_RDWR)  # this ends the reading thread
        self.thread.join(10)
        self.connection.disconnect()


@contextmanager
def sniffed(url: str) -> Iterator[Sniffer]:
    found = Sniffer(url)
    try:
        yield found
    finally:
        found.close()


# ---- Kubernetes --------------------------------------------------------------------------------------------------


def objects(admin: Api) -> Iterator[tuple[str, bytes]]:
    """Yields every object of every kind that the API server can list, in all namespaces."""
    versions = ["v1", *(group["preferredVersion"]["groupVersion"] for group in admin.request("GET", "/apis")["groups"])]
    for version in versions:
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for kind in admin.request("GET", root)["resources"]:
            if "/" in kind["name"] or "list" not in kind["verbs"]:
                continue
            for item in admin.request("GET", f"{root}/{kind['name']}").get("items") or []:
                metadata = item.get("metadata", {})
                name = f"{kind['kind']} {metadata.get('namespace', '')}/{metadata.get('name', '')}"
                yield name, json.dumps(item).encode()


# ---- emails and logs ---------------------------------------------------------------------------------------------


def mails(folder: Path) -> list[bytes]:
    """Returns the emails as they were sent, and decoded from quoted-printable."""
    raw = [path.read_bytes() for path in folder.glob("*")]
    return [*raw, *(quopri.decodestring(text) for text in raw)]


class Logs:
    """What was written to the log files of a folder after this object was created."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sizes = {path: path.stat().st_size for path in folder.glob("*.log")}

    def since(self) -> Iterator[tuple[str, bytes]]:
        for path in self.folder.glob("*.log"):
            with path.open("rb") as file:
                file.seek(self.sizes.get(path, 0))
                yield f"log of {path.stem}", file.read()
