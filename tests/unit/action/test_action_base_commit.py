"""The base side of what is evaluated, as a table: nobody is asked."""

from __future__ import annotations

import pytest

from eval_gate.action.base_commit import (
    WorkspaceCommit,
    choose_baseline_branch,
    find_group_base,
    find_pull_base,
)
from eval_gate.errors import GateError
from eval_gate.github.commits import BaseCommit

HEAD, MAIN, MERGE, OLDER, OTHER = ("1" * 40, "2" * 40, "3" * 40, "4" * 40, "5" * 40)

CHANGES = {
    # the event's commit, the checkout, its parents: the base
    "test merge": (MERGE, MERGE, None, BaseCommit(first_parent_of=MERGE)),
    "no checkout": (MERGE, None, None, BaseCommit(first_parent_of=MERGE)),
    "head": (MERGE, HEAD, None, BaseCommit(fork_point_of=HEAD)),
    "no checkout, and the event's is the head": (HEAD, None, None, BaseCommit(fork_point_of=HEAD)),
    "another merge of the same head": (MERGE, OLDER, (MAIN, HEAD), BaseCommit(commit=MAIN, merged_head=HEAD)),
    "test merge, its parents known": (MERGE, MERGE, (MAIN, HEAD), BaseCommit(commit=MAIN, merged_head=HEAD)),
    "merge of an earlier head": (MERGE, OLDER, (MAIN, OTHER), None),
    "test merge that is of an earlier head": (MERGE, MERGE, (MAIN, OTHER), None),
    "main merged into the head": (MERGE, OTHER, (HEAD, MAIN), None),
    "merge of three": (MERGE, OTHER, (MAIN, HEAD, OLDER), None),
    "main": (MERGE, MAIN, (OLDER,), None),
    "a commit on top of the head": (MERGE, OTHER, (HEAD,), None),
    "a first commit": (MERGE, OTHER, (), None),
    "unknown to GitHub": (MERGE, OTHER, None, None),
    "unknown, and no commit of the event": ("", OTHER, None, None),
}


@pytest.mark.parametrize(("event", "checkout", "parents", "base"), CHANGES.values(), ids=CHANGES)
def test_base_of_change__workspace__is_this(event, checkout, parents, base) -> None:
    workspace = WorkspaceCommit(event, checkout, parents)
    if base is not None:
        assert find_pull_base(workspace, HEAD, "#7") == base
        return
    with pytest.raises(GateError) as caught:
        find_pull_base(workspace, HEAD, "#7")
    assert (caught.value.code, int(caught.value.exit_code)) == ("checkout-mismatch", 2)
    assert workspace.sha[:12] in caught.value.message


@pytest.mark.parametrize(("checkout", "refused"), [(HEAD, False), (None, False), (MAIN, True)])
def test_base_of_group__workspace__has_to_be_the_group(checkout, refused) -> None:
    workspace = WorkspaceCommit(HEAD, checkout)
    if not refused:
        assert find_group_base(workspace, HEAD, MAIN) == BaseCommit(commit=MAIN)
        return
    with pytest.raises(GateError, match="the merge group is at 1111"):
        find_group_base(workspace, HEAD, MAIN)


QUEUE = f"gh-readonly-queue/release/1.x/pr-7-{MAIN}"


@pytest.mark.parametrize(
    ("named", "base", "ref", "branch"),
    [
        (None, "release", "refs/heads/x", "main"),
        ("", "release", "", "main"),
        ("release", None, "", "release"),
        ("refs/heads/base", "release", "", "base"),  # a branch of that name
        ("base", "release", "refs/pull/7/merge", "release"),
        ("base", None, "refs/heads/release", "release"),
        ("base", "", "refs/tags/v1", "main"),
        ("base", None, "", "main"),
        ("base", None, f"refs/heads/{QUEUE}", "release/1.x"),
        (QUEUE, "release/1.x", f"refs/heads/{QUEUE}", "release/1.x"),
        ("gh-readonly-queue/mine", None, "", "gh-readonly-queue/mine"),
    ],
)
def test_baseline_branch__setting_and_event__is_this(named, base, ref, branch) -> None:
    assert choose_baseline_branch(named, "main", base, ref) == branch
