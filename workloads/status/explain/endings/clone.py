"""Why the repository was not cloned. Pure."""

from __future__ import annotations

import re

from cluster.manifests.run import CLONE_CONTAINER
from workloads.status.explain.endings.pod_termination import CHANGE, ENDED, PodTermination, limit, with_memory
from workloads.status.explain.types import Explanation

_NO_REPOSITORY = re.compile(r"fatal: repository '([^']+)' (?:not found|does not exist)")
_SIGN_IN = re.compile(
    r"could not read (?:Username|Password) for '([^']+)'|Authentication failed for '([^']+)'"
    r"|unable to access '([^']+)': The requested URL returned error: 40[13]"
)
_UNREACHABLE = re.compile(r"fatal: unable to (?:access|connect to|look up) [^\n]*?'?: ([^\n]+)")
_BRANCH = "Check the name of the branch or tag, then start it again."
_NO_BRANCH = re.compile(r"Remote branch (\S+) not found")


def clone_failed(ended: PodTermination) -> Explanation:
    facts = {"exit_code": ended.exit_code, "container": CLONE_CONTAINER}
    if ended.state_reason == "OOMKilled":
        return Explanation(
            "clone_out_of_memory",
            f"Cloning the repository exceeded {limit(ended)} and was killed (OOMKilled).",
            "Clone less, or request more memory.",
            actions=CHANGE,
            facts=with_memory(facts, ended),
        )
    reason, sentence, remedy = _clone_by_text(ended)
    is_known = reason != "clone_failed"
    actions = CHANGE if is_known else ENDED
    return Explanation(reason, sentence, remedy, actions=actions, facts=facts, is_known=is_known)


def _clone_by_text(ended: PodTermination) -> tuple[str, str, str]:
    text = ended.message
    if found := _NO_BRANCH.search(text):
        return "reference_not_found", f"The repository has no branch or tag {found[1]}.", _BRANCH
    if found := _NO_REPOSITORY.search(text):
        said = f"The repository {_bare(found[1]).rstrip('/')} does not exist."
        return "repository_not_found", said, "Check the address of the repository, then start it again."
    if found := _SIGN_IN.search(text):
        where = _bare(found[1] or found[2] or found[3])
        said = f"The repository requires authentication at {where}, or does not exist there."
        return "repository_private", said, "Make it public, or clone it in the workload with your own credentials."
    if found := _UNREACHABLE.search(text):
        said = f"The repository is not reachable: {found[1].strip().rstrip('.')}."
        return "repository_unreachable", said, "Check its address, and whether the cluster can reach it."
    if ended.exit_code == 127 or "git: not found" in text or "git: command not found" in text:
        said = "The image has no git to clone the repository."
        return "no_git", said, "Choose another image, or clone the repository in the workload."
    said = f"The repository could not be cloned (git exit code {ended.exit_code})."
    return "clone_failed", said, "See the log of the clone."


def _bare(address: str) -> str:
    """Removes credentials before an @."""
    return re.sub(r"//[^/@]*@", "//", address)
