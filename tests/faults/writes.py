"""Makes each write of one provisioning fail in turn, in each way that networks and API servers fail.

The number of writes is measured, not hard-coded. A fault occurs once or lasts from that write on. While it lasts, the
row shows the error in words and the API server is not flooded; afterwards the end state equals the undisturbed one.
"""

from __future__ import annotations

from collections.abc import Callable

from django.utils import timezone

from cluster.apply.reconcile import PARALLEL_REQUESTS
from cluster.models import AppliedObject
from devcluster.faults.rules import WRITES, Rule
from portal.core.due import owner_label
from tests.faults.scenes import Scene, Stage

FAULTS: dict[str, Callable[[Rule], Rule]] = {
    "403": lambda rule: rule.status(403),
    "409": lambda rule: rule.status(409),
    "422": lambda rule: rule.status(422),
    "429": lambda rule: rule.status(429),
    "500": lambda rule: rule.status(500),
    "dropped before": Rule.drop_before,
    "answer dropped": Rule.drop_answer,
}
REFUSED = {"403", "422"}


def undisturbed(stage: Stage, sort: str) -> tuple[int, dict[str, object]]:
    """Returns the number of writes without faults, and the resulting objects."""
    scene = stage.scene(sort, "calm")
    before = len(stage.writes())
    stage.look(scene)
    count = len(stage.writes()) - before
    stage.settle(scene)
    return count, dict(stage.state(scene))


def problems(stage: Stage, scene: Scene, fault: str, rule: Rule, wanted: dict[str, object]) -> list[str]:
    """Returns the problems in words; [] if there are none."""
    found = []
    row = stage.look(scene)
    try:
        rule.wait(5)
    except TimeoutError as error:
        return [str(error)]
    if row.error_code:
        expected = {"refused"} if fault in REFUSED else {"cluster_unavailable"}
        if row.error_code not in expected:
            found.append(f"the row says {row.error_code}: {row.error_text}")
        if row.due_at is None or (row.due_at - timezone.now()).total_seconds() < 3:
            found.append("it is tried again at once")
        if fault in REFUSED and not shown_as_refused(scene):
            found.append("no object says that it was refused, and why")
    elif rule.times is None and fault != "409":
        found.append("a fault that lasts is not told")
    if foreign := AppliedObject.objects.filter(owner=owner_label(row), result="foreign").first():
        found.append(f"our own is called foreign: {foreign}")
    if rule.times is None:
        found += hammering(stage, scene, fault)
    stage.proxy.forget()
    try:
        stage.settle(scene)
    except AssertionError as error:
        found.append(str(error))
    found += differences(stage, scene, wanted)
    return found


def shown_as_refused(scene: Scene) -> bool:
    rows = AppliedObject.objects.filter(owner=owner_label(scene.row), result="refused")
    return any(row.text for row in rows)


def hammering(stage: Stage, scene: Scene, fault: str) -> list[str]:
    """The next reconcile, some seconds later, tries at most as many objects as are sent in parallel.

    A refused object waits for minutes before its retry; but a queue that may not open is sent on hold, as another
    manifest.
    """
    before = len(stage.writes())
    type(scene.row)._base_manager.filter(pk=scene.row.pk).update(due_at=timezone.now())
    stage.look(scene)
    tried = [call for call in stage.writes()[before:] if call.verb != "patch"]
    at_most = 1 if fault in REFUSED else PARALLEL_REQUESTS
    return [f"sent again while it lasted: {tried}"] if len(tried) > at_most else []


def differences(stage: Stage, scene: Scene, wanted: dict[str, object]) -> list[str]:
    state = stage.state(scene)
    return [
        f"{name}: {state.get(name)} is not {wanted.get(name)}"
        for name in sorted(state.keys() | wanted.keys())
        if state.get(name) != wanted.get(name)
    ]


def each_write_in_turn(stage: Stage, sort: str, fault: str, *, lasting: bool, every: int = 1) -> int:
    """`every`: one write in so many, a different one for each fault. Returns the number of cases."""
    writes, wanted = undisturbed(stage, sort)
    assert writes >= 2
    told: dict[int, list[str]] = {}
    chosen = range(1 + list(FAULTS).index(fault) % every, writes + 1, every)
    for nth in chosen:
        scene = stage.scene(sort, f"w{nth}")
        rule = FAULTS[fault](stage.proxy.when(WRITES, nth=nth, times=None if lasting else 1))
        if found := problems(stage, scene, fault, rule, wanted):
            told[nth] = found
    assert not told, "\n".join(f"write {nth}: {line}" for nth, lines in told.items() for line in lines)
    return len(chosen)
