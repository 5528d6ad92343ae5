"""`manage.py mig …`: which MIG layouts a GPU can have, and which of them serve a demand. Reads no cluster.

`layouts` prints one layout a line, `check` exits with 1 if instances do not fit on one GPU together, `plan` proposes
layouts for the GPUs of one node, also as a configuration for mig-parted.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from catalog.discovery.mig_placement import MigLayout
from catalog.discovery.mig_profiles import MigCard, MigProfile, card_of, from_resource, has_mig
from catalog.mig.layouts import arrangements, full_layouts, layouts, misfit, profiles_of
from catalog.mig.parted import parted_text, shares_of
from catalog.mig.planning import MigPlan, mixed_plan, single_plan
from catalog.mig.profile_names import profile_names
from portal.ui.text import plural

GPUS_LIMIT = 64
DEMAND_LIMIT = 10_000


class Command(BaseCommand):
    help = "Show the MIG layouts of a GPU, check a combination of profiles, and plan layouts for a demand."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        shows = _of_product(verbs.add_parser("layouts", help="every combination of profiles that one GPU can hold"))
        shows.add_argument("--full", action="store_true", help="only those beside which no other instance fits")
        shows.add_argument("--single", action="store_true", help="only one profile at a time (MIG strategy single)")
        shows.add_argument("--arrangements", action="store_true", help="every placement of each combination")
        shows.add_argument("--json", action="store_true", help="one JSON list of instances with placements a line")
        checks = _of_product(verbs.add_parser("check", help="whether instances fit on one GPU together"))
        _with_counts(checks)
        plans = _of_product(verbs.add_parser("plan", help="layouts for the GPUs of one node that serve a demand"))
        _with_counts(plans)
        plans.add_argument("--gpus", type=int, required=True, metavar="N", help=f"GPUs of the node, 1 to {GPUS_LIMIT}")
        plans.add_argument("--single", action="store_true", help="the same profile on all GPUs (MIG strategy single)")
        form = plans.add_mutually_exclusive_group()
        form.add_argument("--json", action="store_true", help="the plan as JSON")
        form.add_argument("--parted", metavar="NAME", help="the plan as configuration NAME for mig-parted (YAML)")

    def handle(self, *args: Any, **options: Any) -> None:
        card, profiles = _card(options["product"], options["memory_gb"])
        if card.is_assumed:
            self.stderr.write(
                f"NVIDIA publishes no placements for {options['product']}: these are assumed from its predecessors. "
                "`nvidia-smi mig -lgipp` on a node says which it has."
            )
        if options["verb"] == "layouts":
            self._show(card, profiles, options)
        elif options["verb"] == "check":
            self._check(card, profiles, _counts(options["counts"], profiles))
        else:
            self._plan(card, profiles, options)

    def _show(self, card: MigCard, profiles: Mapping[str, MigProfile], options: Mapping[str, Any]) -> None:
        if options["arrangements"]:
            found: Sequence[MigLayout] = sorted(
                arrangements(card, profiles), key=lambda one: (profiles_of(one), [box.start for box in one])
            )
        else:
            found = layouts(card, profiles)
        if options["full"]:
            full = {profiles_of(one) for one in full_layouts(card, profiles)}
            found = [one for one in found if profiles_of(one) in full]
        if options["single"]:
            found = [one for one in found if len(set(profiles_of(one))) == 1]
        for one in found:
            self.stdout.write(json.dumps(_as_json(one)) if options["json"] else _as_text(one))

    def _check(self, card: MigCard, profiles: Mapping[str, MigProfile], counts: Mapping[str, int]) -> None:
        reason = misfit(card, profiles, counts)
        if reason:
            self.stderr.write(reason)
            sys.exit(1)
        self.stdout.write("These instances fit on one GPU together.")

    def _plan(self, card: MigCard, profiles: Mapping[str, MigProfile], options: Mapping[str, Any]) -> None:
        if not 1 <= options["gpus"] <= GPUS_LIMIT:
            raise CommandError(f"--gpus is {options['gpus']}: a node has 1 to {GPUS_LIMIT} GPUs.")
        demand = _counts(options["counts"], profiles)
        plan = (single_plan if options["single"] else mixed_plan)(card, profiles, demand, options["gpus"])
        if options["parted"]:
            self.stdout.write(parted_text(options["parted"], shares_of(plan.layouts)), ending="")
        elif options["json"]:
            self.stdout.write(json.dumps(_plan_as_json(plan)))
        else:
            self._tell(plan, options["gpus"])

    def _tell(self, plan: MigPlan, gpus: int) -> None:
        used = 0
        for layout, number in plan.layouts:
            used += number
            self.stdout.write(f"{plural(number, 'GPU')}: {_as_text(layout)}")
        if used < gpus:
            self.stdout.write(f"{plural(gpus - used, 'GPU')}: not needed for this demand, unchanged")
        self.stdout.write(f"Serves: {_listed(plan.served)}")
        self.stdout.write(f"Not served: {_listed(plan.unserved)}")
        self.stdout.write(f"Beyond the demand: {_listed(plan.spare)}")
        self.stdout.write(f"Without an instance: {plural(plan.stranded, 'memory slice')}")
        self.stdout.write(
            "No other layouts of these GPUs serve more instances."
            if plan.is_best
            else "The search was cut short: other layouts may serve more instances."
        )


def _of_product(parser: CommandParser) -> CommandParser:
    parser.add_argument("product", help="name as in the node label nvidia.com/gpu.product, NVIDIA-A100-SXM4-80GB")
    parser.add_argument("--memory-gb", type=float, metavar="GB", help="if the product is sold with several sizes")
    return parser


def _with_counts(parser: CommandParser) -> None:
    parser.add_argument("counts", nargs="+", metavar="PROFILE=N", help="number of instances, 1g.10gb=3 for example")


def _card(product: str, memory_gb: float | None) -> tuple[MigCard, dict[str, MigProfile]]:
    card = card_of(product)
    if card is None:
        known = "has no MIG" if has_mig(product) is False else "is unknown, and so are its layouts"
        raise CommandError(f"{product} {known}.")
    sizes = " or ".join(f"{size:g}" for size in card.sizes)
    if memory_gb is not None:
        if memory_gb not in card.sizes:
            raise CommandError(f"--memory-gb is {memory_gb:g}: {product} has {sizes} GB.")
        card = replace(card, sizes=(memory_gb,))
    elif len(card.sizes) > 1:
        raise CommandError(f"{product} is sold with {sizes} GB, and its profiles differ: say which with --memory-gb.")
    names = profile_names(card)
    if names is None:
        raise CommandError(f"The names of the profiles of {product} with {sizes} GB are unknown.")
    return card, names


def _counts(words: Sequence[str], profiles: Mapping[str, MigProfile]) -> dict[str, int]:
    """Raises CommandError with the word that is wrong. Names of resources, `1g.10gb.me`, are accepted as well."""
    found: Counter[str] = Counter()
    for word in words:
        written, equals, number = word.rpartition("=")
        name = from_resource(written.removeprefix("nvidia.com/mig-"))
        if not equals or not (number.isascii() and number.isdigit()) or int(number) > DEMAND_LIMIT:
            raise CommandError(f"{word}: write PROFILE=N with N from 0 to {DEMAND_LIMIT}, 1g.10gb=3 for example.")
        if name not in profiles:
            raise CommandError(f"{word}: this GPU has no such profile. It has {', '.join(sorted(profiles))}.")
        found[name] += int(number)
    return dict(found)


def _as_json(layout: MigLayout) -> list[dict[str, str | int]]:
    return [{"profile": box.profile, "start": box.start, "size": box.memory} for box in layout]


def _as_text(layout: MigLayout) -> str:
    return ", ".join(
        f"{box.profile} at {box.start}" + (f"–{box.start + box.memory - 1}" if box.memory > 1 else "") for box in layout
    )


def _plan_as_json(plan: MigPlan) -> dict[str, Any]:
    return {
        "layouts": [{"gpus": number, "instances": _as_json(layout)} for layout, number in plan.layouts],
        "served": plan.served,
        "unserved": plan.unserved,
        "spare": plan.spare,
        "stranded_memory_slices": plan.stranded,
        "is_best": plan.is_best,
    }


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} × {name}" for name, count in sorted(counts.items()) if count) or "nothing"
