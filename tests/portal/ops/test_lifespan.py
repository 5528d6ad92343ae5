"""The doors process as its server starts it: what it changes of the interpreter, and only then."""

from __future__ import annotations

import json
import subprocess
import sys

from devcluster.processes.paths import ROOT
from tests.plugin import process_environment

STARTS = """
import asyncio, gc, json, sys

from portal.asgi import application

def state():
    return gc.get_threshold()[0], gc.get_freeze_count() > 10_000, sys.getswitchinterval()

async def main():
    said, messages = [], iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive():
        said.append(state())
        return {"type": next(messages)}

    async def send(message):
        said.append(message["type"])

    await application({"type": "lifespan"}, receive, send)
    print(json.dumps(said))

asyncio.run(main())
"""


def test_it_is_tuned_when_it_starts_and_not_by_importing_it() -> None:
    told = subprocess.run(
        [sys.executable, "-c", STARTS],
        cwd=ROOT,
        env=process_environment() | {"INTERNAL_PORT": "0"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert told.returncode == 0, told.stderr
    before, started, serving, stopped = json.loads(told.stdout.splitlines()[-1])
    assert before == [700, False, 0.005]
    assert (started, serving, stopped) == (
        "lifespan.startup.complete",
        [2_000, True, 0.0005],
        "lifespan.shutdown.complete",
    )
