"""Base commit of a change: which commit the workspace holds, and which commit it is compared with.

By default, `actions/checkout` takes the test merge of a pull request: the head merged into the base branch. The base is
then the first parent of that merge. Of a checked-out head, the base is its fork point. Any other commit does not belong
to the change, and is refused: its result would be published under a wrong name.
"""

from __future__ import annotations

from typing import Final

from eval_gate.errors import GateError
from eval_gate.github.commits import BaseCommit
from eval_gate.github.event import find_queue_target
from eval_gate.struct import FrozenStruct

BASE: Final = "base"
"""The word of `baseline-branch` for the branch that the change is merged into."""
_HEADS: Final = "refs/heads/"


def choose_baseline_branch(setting: str | None, default: str, base: str | None, ref: str = "") -> str:
    """Return the branch whose runs make baselines.

    `setting` is `baseline-branch`, `base` the branch that the change is merged into, and `ref` the ref of the run if
    there is no change. The branch of a merge queue stands for its target branch: the expression `github.base_ref ||
    github.ref_name` yields the queue branch, which never has earlier runs.
    """
    if not setting:
        return default
    if setting == BASE:
        own = find_queue_target(ref) or (ref.removeprefix(_HEADS) if ref.startswith(_HEADS) else "")
        return base or own or default
    return find_queue_target(setting) or setting.removeprefix(_HEADS)


class WorkspaceCommit(FrozenStruct):
    """Commit in the workspace, as far as it is known."""

    event_sha: str
    """What GitHub has the workflow check out: of a pull request its test merge."""
    checkout: str | None = None
    """The commit that the checkout names; None where none can be read."""
    parents: tuple[str, ...] | None = None
    """Its parents, if they were requested; None if GitHub does not know the commit."""

    @property
    def sha(self) -> str:
        """The commit whose files are evaluated: of the checkout, else of the event."""
        return self.checkout or self.event_sha

    @property
    def is_unverified(self) -> bool:
        """Whether nothing in the workspace names its commit, so that the workflow's word counts."""
        return self.checkout is None


def find_pull_base(workspace: WorkspaceCommit, head: str, name: str) -> BaseCommit:
    """Find the base of the pull request with head `head`.

    `name` is the pull request's name, such as `#7`. Raises GateError if the workspace holds neither the head nor
    its test merge.
    """
    measured, parents = workspace.sha, workspace.parents
    if measured == head:
        return BaseCommit(fork_point_of=head)
    if parents is not None and len(parents) == 2 and parents[1] == head:
        return BaseCommit(commit=parents[0], merged_head=head)
    if measured == workspace.event_sha and parents is None:
        return BaseCommit(first_parent_of=measured)
    reason = f"it is neither {name}, {head[:12]}, nor its test merge"
    raise build_checkout_error(measured, reason, f"refs/pull/{name.removeprefix('#')}/head")


def find_group_base(workspace: WorkspaceCommit, head: str, base: str) -> BaseCommit:
    """Find the base of a merge group. Raises GateError if the workspace holds another commit."""
    if workspace.checkout not in {None, head}:
        raise build_checkout_error(workspace.sha, f"the merge group is at {head[:12]}", head)
    return BaseCommit(commit=base)


def build_checkout_error(commit: str | None, reason: str, ref: str) -> GateError:
    """Build the error for a workspace that holds a commit of something else."""
    return GateError(
        "checkout-mismatch",
        f"the workspace is at {commit[:12] if commit else 'an unknown commit'}: {reason}",
        f"check out the right commit first: actions/checkout with `ref: {ref}`, or without `ref`",
    )
