"""A stateful GitHub over loopback whose every exchange is judged by GitHub's own description.

with fake_github() as github:
    pull = github.state.add_pull(7)
    github.faults.add("POST", "/comments", Fault.status(502))
    ...  # a client that was told `github.base` and `github.token`
    assert not github.violations
"""

from tests.support.github.faults import Fault, Faults
from tests.support.github.graph import Commit
from tests.support.github.loopback import Exchange
from tests.support.github.records import Artifact, CheckRun, Comment, PullRequest, Status, WorkflowRun
from tests.support.github.server import ALL_PERMISSIONS, FakeGitHub, fake_github
from tests.support.github.state import GATE, State, sha, zipped

__all__ = [
    "ALL_PERMISSIONS",
    "GATE",
    "Artifact",
    "CheckRun",
    "Comment",
    "Commit",
    "Exchange",
    "FakeGitHub",
    "Fault",
    "Faults",
    "PullRequest",
    "State",
    "Status",
    "WorkflowRun",
    "fake_github",
    "sha",
    "zipped",
]
