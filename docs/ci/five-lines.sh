#!/usr/bin/env bash
# Declare, run, wait, read the exit code of the container. Set GPU_PORTAL, GPU_TOKEN and GPU_TEAM.
gpu run "$JOB" --declare-only --class "$GPU_CLASS" --units "$UNITS" --image "$IMAGE" -- python train.py || exit
number=$(gpu run "$JOB" --detach) || exit
gpu wait "$JOB" --run "$number" --until finished --timeout "$TIMEOUT"; code=$?
gpu status "$JOB" --json | python3 -c 'import json, sys; print("exit code", json.load(sys.stdin)["run"]["exit_code"])'
exit "$code"
