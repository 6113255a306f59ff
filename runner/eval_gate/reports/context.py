"""Context of a report: names, URLs, commands and limits that are not in the run result."""

from __future__ import annotations

from eval_gate.config.outputs import JunitFailures
from eval_gate.model.setup_change import SetupChange
from eval_gate.struct import FrozenStruct


class BaselineRefresh(FrozenStruct):
    """Offer to make a new baseline: a run of the workflow on the baseline's branch."""

    command: str | None
    """Command that starts the workflow; None if people cannot start it, or if that is unknown."""
    comment_command: str | None = None
    """Comment on the pull request that starts it; None if no workflow reacts to it."""


class ReportContext(FrozenStruct):
    """Context of a report; a name or URL is None if it is unknown, so that no broken link is rendered."""

    name: str | None = None
    comment_key: str = "default"
    server_url: str = "https://github.com"
    repository: str | None = None
    """`owner/name`; with `head_sha` it makes a case's name a link to its line."""
    head_sha: str | None = None
    base_branch: str | None = None
    workspace_sha: str | None = None
    """The commit whose files are evaluated, if it is known: the head, or a test merge of it."""
    is_believed: bool = False
    """Whether only the workflow names that commit, and no checkout confirms it."""
    baseline_branch: str | None = None
    """Branch of the baseline; None for the base branch."""
    run_url: str | None = None
    report_url: str | None = None
    """URL of the stored result, an archive."""
    page_url: str | None = None
    """URL of the page in a browser; None if it can only be downloaded."""
    evals: tuple[str, ...] = ("evals",)
    """Paths of eval files in the configuration: no other file gets an annotation."""
    other_repositories: tuple[str, ...] = ()
    """Folders of the workspace that are submodules or checkouts of other repositories."""
    checkouts: tuple[str, ...] = ()
    """Folders of the workspace in which the repository is checked out."""
    baseline_run_url: str | None = None
    workflow_url: str | None = None
    baseline_refresh: BaselineRefresh | None = None
    """None if a new baseline would not help."""
    errors_doc_url: str | None = None
    """The page of errors; the code is the fragment."""
    no_baseline_reason: str | None = None
    no_baseline_heading: str = "no baseline yet"
    """Why there is no baseline, as words of a heading."""
    previous_regressions: frozenset[str] | None = None
    """Digests (`compute_case_digest`) of the regressions before the last push; None where unknown. Decides nothing."""
    previous_regressions_sha: str | None = None
    """The commit of that result, if it is not the push before this one."""
    can_waive_by_comment: bool = False
    """Whether this is a pull request in which a comment can waive regressions."""
    waive_label: str = "eval-gate:waive"
    """The label that such a comment needs."""
    waive_requires_sha: bool = False
    """Whether such a comment must name the commit, because the pull request is from a fork."""
    ignored_rules: tuple[SetupChange, ...] = ()
    """Rules of the pull request's configuration that are ignored, because those of the base branch apply."""
    rerun_command: str | None = None
    rerun_omitted_count: int = 0
    """Cases that did not fit into that command."""
    waive_command: str | None = None
    """Command that waives the regressions, for a run in a terminal."""
    result_path: str | None = None
    junit: JunitFailures = JunitFailures.BLOCKING
    """Which cases are failures in a JUnit report."""
    losses: tuple[str, ...] = ()
    """Results that could not be published, in sentences."""
    trail: tuple[str, ...] = ()
    """Decisions and actions of the job, in order, in sentences."""
    max_baseline_age_days: float = 14
    max_baseline_commits: int = 50

    @property
    def docs_url(self) -> str | None:
        """The folder of the documentation; None if it is unknown."""
        return self.errors_doc_url.rpartition("/")[0] if self.errors_doc_url else None

    @property
    def branch(self) -> str | None:
        """The branch of the baseline; None if it is unknown."""
        return self.baseline_branch or self.base_branch
