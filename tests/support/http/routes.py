"""The URL map, and addresses built from it."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import URLPattern, URLResolver, get_resolver


def routes(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            if not route.startswith("admin/"):
                yield from routes(pattern.url_patterns, route)
        else:
            yield route, pattern


def all_routes() -> list[tuple[str, URLPattern]]:
    return list(routes(get_resolver().url_patterns))


def filled(route: str, values: dict[str, str]) -> str:
    """The path of a route with its parameters filled in: `<slug:tenant>` takes values["tenant"], else "1"."""
    path = ""
    rest = route
    while "<" in rest:
        before, _, tail = rest.partition("<")
        parameter, _, rest = tail.partition(">")
        path += before + values.get(parameter.rpartition(":")[2], "1")
    return "/" + path + rest
