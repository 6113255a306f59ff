"""Names and URLs that a report shows in addition to the run."""

from __future__ import annotations

from eval_gate.config.outputs import JunitFailures
from eval_gate.model.setup_change import SetupChange
from eval_gate.struct import FrozenStruct


class BaselineRefresh(FrozenStruct):
    """Offer to make a new baseline: a run of the workflow on the baseline's branch."""

    command: str | None
    """Command that starts the workflow; None if it cannot be started by hand, or if that is unknown."""
    comment_command: str | None = None
    """Comment on the pull request that starts it; None if no workflow carries it out."""


class ReportContext(FrozenStruct):
    """Names and URLs of a report, each None where unknown, so that no broken link is rendered."""

    name: str | None = None
    comment_key: str = "default"
    server_url: str = "https://github.com"
    repository: str | None = None
    """`owner/name`; with `head_sha` it makes a case's name a link to its line."""
    head_sha: str | None = None
    base_branch: str | None = None
    """What the change is merged into."""
    workspace_sha: str | None = None
    """The commit whose files are evaluated, where that is known: the head, or a test merge of it."""
    is_believed: bool = False
    """Whether no checkout names that commit: the workflow does."""
    baseline_branch: str | None = None
    """Branch of the baseline; None for the base branch."""
    run_url: str | None = None
    report_url: str | None = None
    """Where the stored result can be had, as an archive."""
    page_url: str | None = None
    """Where the page opens in a browser by one click; None where it can only be downloaded."""
    evals: tuple[str, ...] = ("evals",)
    """Where eval files are, as the configuration says: no other file gets a remark."""
    other_repositories: tuple[str, ...] = ()
    """Folders of the workspace with eval files of other repositories: submodules, and checkouts of others."""
    checkouts: tuple[str, ...] = ()
    """Folders of the workspace in which the repository is checked out: its own paths begin there."""
    baseline_run_url: str | None = None
    workflow_url: str | None = None
    baseline_refresh: BaselineRefresh | None = None
    """None where a new baseline would tell nothing more."""
    errors_doc_url: str | None = None
    """The page of errors; a code is added as its fragment."""
    no_baseline_reason: str | None = None
    no_baseline_heading: str = "no baseline yet"
    """Why there is no baseline, in the few words of a heading."""
    previous_regressions: frozenset[str] | None = None
    """Digests (`compute_case_digest`) of the regressions before the last push; None where unknown. Decides nothing."""
    previous_regressions_sha: str | None = None
    """The commit of that result, where it is not the last push before this one."""
    can_waive_by_comment: bool = False
    """Whether this is a pull request in which a comment can waive regressions."""
    waive_label: str = "eval-gate:waive"
    """The label that such a comment needs."""
    waive_requires_sha: bool = False
    """Such a comment has to name the commit: the pull request is a fork's."""
    ignored_rules: tuple[SetupChange, ...] = ()
    """What the pull request's own configuration says otherwise, where it is judged by the base branch's rules."""
    rerun_command: str | None = None
    rerun_omitted_count: int = 0
    """Cases to look at that are too many for that command."""
    waive_command: str | None = None
    """Command that waives the regressions, for a run in a terminal."""
    result_path: str | None = None
    junit: JunitFailures = JunitFailures.BLOCKING
    """Which cases are failures in a JUnit report."""
    losses: tuple[str, ...] = ()
    """What could not be published, in sentences."""
    trail: tuple[str, ...] = ()
    """What was decided and done around the run, in order, in sentences."""
    max_baseline_age_days: float = 14
    max_baseline_commits: int = 50

    @property
    def docs_url(self) -> str | None:
        """The folder of the documentation; None where it is not known."""
        return self.errors_doc_url.rpartition("/")[0] if self.errors_doc_url else None

    @property
    def branch(self) -> str | None:
        """The branch whose run the baseline is, where it is known."""
        return self.baseline_branch or self.base_branch
