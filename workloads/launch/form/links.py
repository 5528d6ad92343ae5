"""Launch links: which values a URL may set in the launch form, and how such a URL is written. Pure.

Anybody can publish a link: it only fills in the form of the user who opens it, and only with values that this user sees
before the button. A link cannot set variables, commands, files or sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from cluster.manifests import names
from cluster.manifests.run_spec import JOB, NOTEBOOK
from workloads.launch import options
from workloads.launch.jobs.policy import WORKERS_LIMIT
from workloads.launch.options import OptionBounds, Options
from workloads.launch.policy import NAME_LIMIT

# Short names that are used in URLs, besides the names of the form.
WORDS = {
    "class": "gpu_class",
    "image": "image",
    "units": "units",
    "workers": "workers",
    "name": "name",
    "repo": "repository",
    "ref": "reference",
    "kind": "kind",
}
FIELDS = frozenset(WORDS.values())
# These fields decide only where a workload runs; they bring no code.
PLACES = frozenset({"kind", "gpu_class", "units", "workers"})
# The pages that read URLs know these parameters; they do not fill in a field.
OTHER = frozenset({"team", "like", "fresh"})
# A value of 1 is omitted from a link.
MOST = {"units": 10_000, "workers": WORKERS_LIMIT}
SHOWN = 60


@dataclass(frozen=True)
class LaunchLink:
    """`values`: by field of the form; `said`: sentences about values that were not used. `volume`: name of a volume to
    attach, never together with code that another user chose.
    """

    values: Mapping[str, str]
    said: tuple[str, ...] = ()
    volume: str = ""


def size_values(query: Mapping[str, str]) -> dict[str, str]:
    """Reads the sizes for the form that changes an existing workload. They are shown before the button, and never come
    from a link.
    """
    found = {field: query.get(field, "") for field in ("cpu", "memory_gib")}
    return {field: value for field, value in found.items() if value.isascii() and value.isdigit() and len(value) < 6}


def read_link(query: Mapping[str, str]) -> LaunchLink:
    """Checks what can be checked without the catalog: the view of the form looks up classes and images."""
    values = {WORDS.get(key, key): value.strip() for key, value in query.items() if WORDS.get(key, key) in FIELDS}
    values = {key: value for key, value in values.items() if value}
    volume = "" if values.keys() - PLACES else query.get("volume", "").strip()
    taken = FIELDS | OTHER | ({"volume"} if volume else set())
    said = [_unknown(sorted(key for key in query if WORDS.get(key, key) not in taken))]
    if volume and not names.is_dns_label(volume, limit=NAME_LIMIT):
        said.append(f"There is no volume '{volume[:SHOWN]}'.")
        volume = ""
    said += [*(_drop_number(values, name) for name in MOST), _drop_kind(values), _drop_workers(values)]
    said += [_drop_name(values), _drop_repository(values)]
    return LaunchLink(values, tuple(filter(None, said)), volume)


def write_link(values: Mapping[str, object]) -> str:
    """Returns the query string of a link that fills in these fields. Empty values, and a value of one unit or worker,
    are omitted.
    """
    short = {field: word for word, field in WORDS.items()}
    chosen = {short[key]: str(values[key]) for key in short if values.get(key)}
    return urlencode({word: value for word, value in chosen.items() if word not in MOST or value != "1"})


def _unknown(keys: list[str]) -> str:
    if not keys:
        return ""
    told = ", ".join(f"'{key[:SHOWN]}'" for key in keys[:5]) + (" and more" if len(keys) > 5 else "")
    return (
        f"The link also sets {told}, which was ignored. A link can set class, image, units, workers, name, repository "
        "and branch."
    )


def _drop_number(values: dict[str, str], name: str) -> str:
    number, most = values.get(name, "1"), MOST[name]
    if number.isascii() and number.isdigit() and len(number) < 6 and 1 <= int(number) <= most:
        return ""
    del values[name]
    return f"The link sets {name} to '{number[:SHOWN]}', which is not a number from 1 to {most:,}; 1 is filled in."


def _drop_kind(values: dict[str, str]) -> str:
    kind = values.get("kind", NOTEBOOK)
    if kind in (NOTEBOOK, JOB):
        return ""
    del values["kind"]
    return f"The link sets kind to '{kind[:SHOWN]}', which was ignored. The kind is notebook or job."


def _drop_workers(values: dict[str, str]) -> str:
    """Several workers make the workload a job, unless the link sets the kind. Returns a sentence if they were
    ignored.
    """
    if values.get("workers", "1") == "1":
        values.pop("workers", None)
        return ""
    if values.setdefault("kind", JOB) == JOB:
        return ""
    return f"The link sets {values.pop('workers')} workers, which was ignored. A notebook has 1 worker."


def _drop_name(values: dict[str, str]) -> str:
    name = values.get("name", "")
    if not name or names.is_dns_label(name, limit=NAME_LIMIT):
        return ""
    del values["name"]
    return (
        f"The link's name '{name[:SHOWN]}' is not valid. Enter lower-case letters, digits and hyphens, up to "
        f"{NAME_LIMIT} characters."
    )


def _drop_repository(values: dict[str, str]) -> str:
    said = Options(repository=values.get("repository", ""), reference=values.get("reference", ""))
    wrong = options.options_refusal(said, OptionBounds("", 1, 1, 1), has_volume=False)
    if wrong is None:
        return ""
    values.pop("reference", None)
    if wrong.field == "reference":
        return f"The link's branch or tag was ignored. {wrong.message}"
    values.pop("repository", None)
    return f"The link's repository was ignored. {wrong.message}"
