"""Image references: their parts, and the allowed prefix that contains them. Pure.

Stricter than what nodes accept (github.com/distribution/reference): the registry is always required, in lower case, and
nothing is completed. So a reference means the same to the user who typed it, to the staff who allowed the prefix, and
to the node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

REFERENCE_LIMIT = 300


PREFIX_LIMIT = 200
DOCKER_HUB = "docker.io"
# Nodes treat these as Docker Hub, and would look for another repository than the one that was written.
_HUB_ALIASES = ("index.docker.io", "registry-1.docker.io")
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_HOST = re.compile(rf"({_LABEL}(?:\.{_LABEL})*)(?::([1-9][0-9]{{0,4}}))?")
_PART = re.compile(r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
EXAMPLE_REFERENCE = "registry.example.org/team/image:tag"


class InvalidReference(ValueError):
    """The text is invalid; the message is a sentence for the user who typed it."""


@dataclass(frozen=True)
class ImageReference:
    """`registry`: host, with its port if one is given. `path`: of the repository there. Missing parts are ""."""

    registry: str
    path: tuple[str, ...]
    tag: str
    digest: str

    @property
    def repository(self) -> str:
        return "/".join((self.registry, *self.path))


def is_reference(text: str) -> bool:
    """True for a reference, False for a name of the catalog. The reference may still be invalid."""
    return "/" in text


def parse_reference(text: str) -> ImageReference:
    """Raises InvalidReference."""
    if len(text) > REFERENCE_LIMIT:
        raise InvalidReference(f"Enter at most {REFERENCE_LIMIT} characters; the reference has {len(text)}.")
    name, at, digest = text.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        raise InvalidReference(
            "A digest is sha256: and 64 hexadecimal digits in lower case; copy it from the registry."
        )
    host, _, rest = name.partition("/")
    head, slash, last = rest.rpartition("/")
    last, colon, tag = last.partition(":")
    if colon and not _TAG.fullmatch(tag):
        raise InvalidReference("A tag has at most 128 letters, digits, ., _ and -, and does not start with . or -.")
    registry = parse_registry(host)
    path = _parts(f"{head}{slash}{last}")
    if registry == DOCKER_HUB and len(path) < 2:
        raise InvalidReference(f"Images on Docker Hub need an owner: {DOCKER_HUB}/owner/image.")
    return ImageReference(registry, path, tag, digest)


def parse_registry(text: str) -> str:
    """Parses the registry host at the start of a reference. Raises InvalidReference."""
    found = _HOST.fullmatch(text)
    has_mark = "." in text or ":" in text
    if found is None or not has_mark or len(text) > PREFIX_LIMIT or int(found[2] or 1) > 65_535:
        raise InvalidReference(
            f"A registry is a host name in lower case, with a port if it needs one, as in {EXAMPLE_REFERENCE}; "
            f"'{text[:60]}' is not possible."
        )
    if found[1] in _HUB_ALIASES:
        raise InvalidReference(f"{found[1]} is another name of Docker Hub; enter {DOCKER_HUB}.")
    return text


def parse_prefix(text: str) -> str:
    """Returns the prefix as stored: with a final slash, so that it ends at a path part. Raises InvalidReference."""
    if len(text) > PREFIX_LIMIT:
        raise InvalidReference(f"Enter at most {PREFIX_LIMIT} characters; the prefix has {len(text)}.")
    host, slash, rest = text.removesuffix("/").partition("/")
    registry = parse_registry(host)
    return "/".join((registry, *(_parts(rest) if slash else ()), ""))


def prefix_of(reference: ImageReference, prefixes: Iterable[str]) -> str:
    """Returns the first of these prefixes (from `parse_prefix`) that contains the repository; "" for none."""
    return next((prefix for prefix in prefixes if reference.repository.startswith(prefix)), "")


def is_below(text: str, prefixes: Iterable[str]) -> bool:
    try:
        return bool(prefix_of(parse_reference(text), prefixes))
    except InvalidReference:
        return False


def unknown_compatibility(class_name: str, kind: str) -> str:
    """Returns the warning about an image that is not in the catalog."""
    inside = ", and so is whether it has JupyterLab" if kind == "notebook" else ""
    return f"Not in the catalog: whether it runs on {class_name} is unknown{inside}."


def _parts(text: str) -> tuple[str, ...]:
    parts = tuple(text.split("/"))
    for part in parts:
        if not _PART.fullmatch(part):
            raise InvalidReference(
                "Each part of the path has lower-case letters and digits, with single ., _ or - between them; "
                f"'{part[:60]}' is not possible."
            )
    return parts


def pinned(reference: str, digest: str) -> str:
    """Returns the pod's reference: with a digest it is exactly those bytes, even if the tag has moved."""
    return f"{reference}@{digest}" if digest else reference
