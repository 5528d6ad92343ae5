"""Images by reference: what one names, and below which allowed prefix it lies. Pure.

Stricter than what nodes accept (github.com/distribution/reference): the registry is always written, in lower case, and
nothing is completed. So a reference means the same to the person who typed it, to the one who allowed the prefix, and
to the node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

REFERENCE_LIMIT = 300


PREFIX_LIMIT = 200
DOCKER_HUB = "docker.io"
# Nodes take them for Docker Hub, and would look for another repository than the one that was written.
_HUB_ALIASES = ("index.docker.io", "registry-1.docker.io")
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_HOST = re.compile(rf"({_LABEL}(?:\.{_LABEL})*)(?::([1-9][0-9]{{0,4}}))?")
_PART = re.compile(r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
EXAMPLE_REFERENCE = "registry.example.org/team/image:tag"


class InvalidReference(ValueError):
    """The text is not what it should be; the message is a sentence for who typed it."""


@dataclass(frozen=True)
class ImageReference:
    """`registry`: host, with its port if one was said. `path`: of the repository there. "" where not said."""

    registry: str
    path: tuple[str, ...]
    tag: str
    digest: str

    @property
    def repository(self) -> str:
        return "/".join((self.registry, *self.path))


def is_reference(text: str) -> bool:
    """Rather than a name of the catalog. Says nothing about its shape."""
    return "/" in text


def parse_reference(text: str) -> ImageReference:
    """Raises Unreadable."""
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
    """A registry's host, as a reference begins with it. Raises Unreadable."""
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
    """As it is kept: with a slash at its end, so that it ends where a part of the path does. Raises Unreadable."""
    if len(text) > PREFIX_LIMIT:
        raise InvalidReference(f"Enter at most {PREFIX_LIMIT} characters; the prefix has {len(text)}.")
    host, slash, rest = text.removesuffix("/").partition("/")
    registry = parse_registry(host)
    return "/".join((registry, *(_parts(rest) if slash else ()), ""))


def prefix_of(reference: ImageReference, prefixes: Iterable[str]) -> str:
    """The first of these, as `parse_prefix` gives them, that the repository lies below; "" for none."""
    return next((prefix for prefix in prefixes if reference.repository.startswith(prefix)), "")


def is_below(text: str, prefixes: Iterable[str]) -> bool:
    try:
        return bool(prefix_of(parse_reference(text), prefixes))
    except InvalidReference:
        return False


def unknown_compatibility(class_name: str, kind: str) -> str:
    """What has to be said of an image that is not in the catalog."""
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
    """What the pod gets: with a digest exactly those bytes, whatever the tag points to by then."""
    return f"{reference}@{digest}" if digest else reference
