"""The program that the runner starts for a container. It uses only the standard library; the runner never imports it.

    entry.py tie PARENT PROGRAM ARGUMENT…      runs PROGRAM, which is killed when its parent ends
    entry.py jupyter NAME ARGUMENT…            replaces `jupyter`, `start-notebook.py` … of a notebook image

The second form starts JupyterLab with the arguments of the image's command, and changes what this machine requires: the
address, the directory, and that a server on a loopback address accepts other host names.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
LAB_VERBS = ("lab", "notebook", "server")
# Options that this program sets, so they are removed from the image's command. OURS: options with a class name, for
# example --ServerApp.ip. SWITCHES and ALIASES: options without one.
OURS = ("ip", "allow_root", "allow_remote_access", "open_browser", "root_dir", "notebook_dir", "preferred_dir")
SWITCHES = ("--no-browser", "--allow-root")
ALIASES = ("--ip", "--notebook-dir", "--preferred-dir")


def tie(parent: int, argv: list[str]) -> None:
    end_with_parent()
    if os.getppid() != parent:  # the parent ended before prctl took effect
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
    """Returns the image's arguments without the options that this program sets. Handles `--flag value` and
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
        # Jupyter does this by itself on 0.0.0.0, as in a pod. On a loopback address it would refuse requests for other
        # host names.
        "--ServerApp.allow_remote_access=True",
        "--ServerApp.open_browser=False",
        "--ServerApp.allow_root=True",
        # Otherwise the server would fetch news from the Internet.
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.news_url=None",
    ]


def end_with_parent() -> None:
    """Makes the kernel kill this process when its parent ends, so a killed runner leaves no notebooks. The setting
    survives exec. Jupyter's kernels themselves watch for the end of their parent.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


if __name__ == "__main__":
    if sys.argv[1] == "tie":
        tie(int(sys.argv[2]), sys.argv[3:])
    else:
        jupyter(sys.argv[2], sys.argv[3:])
