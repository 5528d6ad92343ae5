"""The program that the runner starts for a notebook. Standard library only; never imported.

    entry.py tie PARENT PROGRAM ARGUMENT…      ties PROGRAM's life to its parent's
    entry.py jupyter NAME ARGUMENT…            stands for `jupyter`, `start-notebook.py` … of a notebook image

The second takes the image's command line and changes what one machine needs: address, directory, and that a server on a
loopback address answers to other host names.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
LAB_VERBS = ("lab", "notebook", "server")
# Set by this program, whatever the image's command contains: each flag with and without its class name.
OURS = ("ip", "allow_root", "allow_remote_access", "open_browser", "root_dir", "notebook_dir", "preferred_dir")
SWITCHES = ("--no-browser", "--allow-root")
ALIASES = ("--ip", "--notebook-dir", "--preferred-dir")


def tie(parent: int, argv: list[str]) -> None:
    end_with_parent()
    if os.getppid() != parent:  # the parent died before the tie was in effect
        sys.exit(1)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        print(f'exec: "{argv[0]}": {error.strerror}', file=sys.stderr)
        sys.exit(127)


def jupyter(name: str, arguments: list[str]) -> None:
    end_with_parent()
    if name == "jupyter":
        if arguments[:1] and arguments[0] not in LAB_VERBS and not arguments[0].startswith("-"):
            os.execv(sys.executable, [sys.executable, "-m", "jupyter", *arguments])
        arguments = arguments[1:] if arguments[:1] and arguments[0] in LAB_VERBS else arguments
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *foreign(arguments), *ours()])


def foreign(arguments: list[str]) -> list[str]:
    """Returns the image's own arguments without those that this program sets. Handles `--flag value` and
    `--flag=value`.
    """
    kept: list[str] = []
    skip = False
    for index, argument in enumerate(arguments):
        flag, given, _ = argument.partition("=")
        if skip:
            skip = False
        elif flag in SWITCHES:
            continue
        elif flag in ALIASES or (flag.startswith("--") and flag.rpartition(".")[2] in OURS and "." in flag):
            skip = not given and index + 1 < len(arguments) and not arguments[index + 1].startswith("-")
        else:
            kept.append(argument)
    return kept


def ours() -> list[str]:
    return [
        f"--ServerApp.ip={os.environ['DEVCLUSTER_ADDRESS']}",
        f"--ServerApp.root_dir={os.environ['HOME']}",
        "--ServerApp.port_retries=0",
        # Automatic in a pod, which listens on 0.0.0.0; on a loopback address, other host names would be refused.
        "--ServerApp.allow_remote_access=True",
        "--ServerApp.open_browser=False",
        "--ServerApp.allow_root=True",
        # Otherwise the server requests news over the network.
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.news_url=None",
    ]


def end_with_parent() -> None:
    """A killed runner takes its notebooks with it. The setting survives exec; kernels watch their own parent."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


if __name__ == "__main__":
    if sys.argv[1] == "tie":
        tie(int(sys.argv[2]), sys.argv[3:])
    else:
        jupyter(sys.argv[2], sys.argv[3:])
