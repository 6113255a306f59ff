"""The base side of what is evaluated: which commit the workspace holds, and with which one it is compared.

`actions/checkout` takes the test merge of a pull request unless it is told otherwise: the head and the base branch as
it was then. What the base branch did before is in it, so the base is the first parent of that merge. A head alone has
of the base branch what it had where the change left it. Any other commit is not of this change: a result of it would
be published under a name that is not its own.
"""

from __future__ import annotations

from typing import Final

from eval_gate.errors import GateError
from eval_gate.github.event import branch_of_queue
from eval_gate.struct import FrozenStruct

BASE: Final = "base"
"""The word of `baseline-branch` for the branch that the change is merged into."""
_HEADS: Final = "refs/heads/"


def baseline_branch_of(named: str | None, default: str, base: str | None, ref: str = "") -> str:
    """The branch whose runs make baselines.

    `named` is the setting, `base` the branch that the change is merged into, and `ref` the one that the run is of,
    where there is no change. A branch of a merge queue stands for the branch it is of: the expression
    `github.base_ref || github.ref_name` names it, and nothing was ever run there but what is evaluated.
    """
    if not named:
        return default
    if named == BASE:
        own = branch_of_queue(ref) or (ref.removeprefix(_HEADS) if ref.startswith(_HEADS) else "")
        return base or own or default
    return branch_of_queue(named) or named.removeprefix(_HEADS)


class Workspace(FrozenStruct):
    """What is known of the commit in the workspace."""

    event_sha: str
    """What GitHub has the workflow check out: of a pull request its test merge."""
    checkout: str | None = None
    """The commit that the checkout names; None where none can be read."""
    parents: tuple[str, ...] | None = None
    """Its parents, where somebody had to ask for them; None where GitHub does not know it."""

    @property
    def sha(self) -> str:
        """The commit whose files are evaluated, as far as anybody tells."""
        return self.checkout or self.event_sha

    @property
    def is_believed(self) -> bool:
        """Whether nothing in the workspace names its commit, so that the workflow's word counts."""
        return self.checkout is None


class BaseCommit(FrozenStruct):
    """The commit that a change is compared with, as far as it is known before GitHub is asked: one of the three."""

    commit: str | None = None
    merged_head: str | None = None
    """The head that is merged into `commit`, by the word of that merge alone: anybody may have made it."""
    first_parent_of: str | None = None
    """The commit that this test merge of GitHub's was made with."""
    fork_point_of: str | None = None
    """Where this commit left the branch."""


def base_of_change(workspace: Workspace, head: str, name: str) -> BaseCommit:
    """The base of a pull request with this head, `#7` by name. Raises GateError for the commit of something else."""
    measured, parents = workspace.sha, workspace.parents
    if measured == head:
        return BaseCommit(fork_point_of=head)
    if parents is not None and len(parents) == 2 and parents[1] == head:
        return BaseCommit(commit=parents[0], merged_head=head)
    if measured == workspace.event_sha and parents is None:
        return BaseCommit(first_parent_of=measured)
    wanted = f"{name} is {head[:12]}, and this is neither that nor its test merge"
    raise other_checkout(measured, wanted, f"refs/pull/{name.removeprefix('#')}/head")


def base_of_group(workspace: Workspace, head: str, base: str) -> BaseCommit:
    """The base of a merge group. Raises GateError where the workspace holds something else."""
    if workspace.checkout not in {None, head}:
        raise other_checkout(workspace.sha, f"the merge group is {head[:12]}", head)
    return BaseCommit(commit=base)


def other_checkout(found: str | None, wanted: str, ref: str) -> GateError:
    """What is wrong where the workspace holds a commit of something else."""
    return GateError(
        "other-checkout",
        f"the workspace holds {(found or 'no known commit')[:12]}: {wanted}",
        f"check it out first: actions/checkout with `ref: {ref}`, or without `ref`",
    )
