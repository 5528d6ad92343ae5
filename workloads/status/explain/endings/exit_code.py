"""What an exit code, or the message of a container that could not start, tells. Pure."""

from __future__ import annotations

import re

from workloads.status.explain.endings.pod_termination import CHANGE, ENDED, LOG, NEVER_RAN, PodTermination, Told

# Reasons of a container that was created and not started.
NEVER_STARTED = ("StartError", "ContainerCannotRun")
_SIGNALS = {
    4: "an illegal instruction",
    6: "an abort",
    8: "an arithmetic error",
    11: "a segmentation fault",
}
_EXECUTABLE = re.compile(r"exec:? \"?([^\s\":]+)\"?: (?:executable file not found|stat |no such file)")
_NOT_EXECUTABLE = re.compile(r"exec:? \"?([^\s\":]+)\"?: permission denied")
_WORK_DIR = re.compile(r"chdir to cwd \(\"([^\"]+)\"\)|mkdir (/\S+): (?:permission denied|read-only)")


def by_code(ended: PodTermination) -> Told:
    code, check = ended.exit_code, "Check the command and the image."
    if "exec format error" in ended.message:
        said = f"The image or its command is not built for the CPU architecture of node {ended.node}."
        return "image_wrong_platform", said, "Choose another image.", NEVER_RAN
    if found := _EXECUTABLE.search(ended.message):
        return "command_not_found", f"The command {found[1]} was not found in the image.", check, NEVER_RAN
    if found := _NOT_EXECUTABLE.search(ended.message):
        return "command_not_executable", f"The command {found[1]} is not executable.", check, NEVER_RAN
    if found := _WORK_DIR.search(ended.message):
        said = f"The image's working directory {found[1] or found[2]} cannot be used."
        return (
            "working_directory",
            said,
            "Choose another image, or build it with a directory that it may use.",
            NEVER_RAN,
        )
    if ended.state_reason in NEVER_STARTED:
        return "command_not_found", "The command could not be started in this image.", check, NEVER_RAN
    if code == 127:
        return "command_not_found", "The command was not found in the image (exit code 127).", check, CHANGE
    if code == 126:
        said = "The command is not executable (exit code 126)."
        return "command_not_executable", said, check, CHANGE
    if code == 137:
        said = "It was killed (signal 9, exit code 137); the cluster reports no cause."
        return "killed", said, LOG, ENDED
    if code == 143:
        return "terminated", "It was terminated (signal 15, exit code 143).", LOG, ENDED
    if code == 130:
        return "terminated", "It was interrupted (signal 2, exit code 130).", LOG, ENDED
    if code == 135:
        said = "It crashed with a bus error (signal 7, exit code 135)."
        return "bus_error", said, "Too little shared memory (/dev/shm) is a common cause: request more.", CHANGE
    if code is not None and code - 128 in _SIGNALS:
        said = f"It crashed with {_SIGNALS[code - 128]} (signal {code - 128}, exit code {code})."
        return "crashed", said, LOG, ENDED
    if code is not None:
        return "crashed", f"It ended with exit code {code}.", LOG, ENDED
    return "failed", "It failed.", LOG, ENDED
