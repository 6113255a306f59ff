"""Which stored result is this job's own: what a change commits never decides it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from eval_gate.action.step import Step
from eval_gate.errors import ExitCode, GateError
from eval_gate.github.checkout import TrackedFiles, checked_out
from eval_gate.model.result import GitFacts, RunResult
from eval_gate.results.read import StoredHead, kept_in
from eval_gate.struct import FrozenStruct
from eval_gate.text.quoting import quoted_name


class JobFacts(FrozenStruct):
    """What a result of this job says of itself: one of these commits, and no other run, attempt, job or gate."""

    commits: frozenset[str]
    run_id: int
    attempt: int
    job: str
    gate: str
    """The key of the gate that looks for its result."""


class FoundRun(FrozenStruct):
    """A stored run of this job."""

    kept: StoredHead
    doubt: str = ""
    """Why it is only believed to be of this job, as a predicate; empty where it says so itself."""


def job_facts(step: Step) -> JobFacts:
    """What this job's own results say. No commit holds its own name, so no committed result can say the same."""
    environment = step.environment
    told = {step.plan.head_sha, environment.sha, checked_out(environment.workspace)}
    commits = frozenset(one for one in told if one)
    return JobFacts(commits, environment.run_id, environment.run_attempt, environment.job, step.key)


def why_of_another_job(head: RunResult, facts: JobFacts) -> str | None:
    """Why a run is not of this job, as half a sentence; None where it does not say so."""
    git, maker = head.git or GitFacts(), head.made_by
    for run_id, attempt in ((git.run_id, git.attempt), (maker and maker.run_id, maker and maker.attempt)):
        if run_id is not None and run_id != facts.run_id:
            return f"workflow run {run_id} made it"
        if attempt is not None and attempt != facts.attempt:
            return f"attempt {attempt} of this workflow run made it"
    if git.job and facts.job and git.job != facts.job:
        return f"the job {quoted_name(git.job)} made it"
    if maker is not None and maker.gate != facts.gate:
        return f"the gate {quoted_name(maker.gate)} has published it"
    if head.sha and head.sha not in facts.commits:
        return f"it is of commit {head.sha[:7]}"
    return None


def choose_run(stored: Iterable[tuple[StoredHead, bool | None]], facts: JobFacts) -> FoundRun | str:
    """The run of this job among these, newest first, each with whether git tracks it; else why there is none.

    One that names this job's workflow run or commit counts before one that names none.
    """
    silent: list[FoundRun] = []
    refused = ""
    for kept, tracked in stored:
        git = kept.head.git or GitFacts()
        why = f"it is committed in {kept.folder}" if tracked else why_of_another_job(kept.head, facts)
        if why is not None:
            refused = refused or f"run {kept.head.run_id[:36]} is not of this job: {why}"
        elif kept.head.made_by or git.run_id is not None:
            return FoundRun(kept)
        elif git.sha or tracked is None:
            silent.append(
                FoundRun(kept, "names no workflow run" if git.sha else "names no commit, and no checkout does")
            )
        else:
            silent.append(FoundRun(kept, "names neither a workflow run nor a commit"))
    return next((one for one in silent if one.kept.head.sha), silent[0]) if silent else refused


def find_stored_run(step: Step, folder: Path) -> FoundRun:
    """The newest run of this job in the folder of runs. Raises GateError `results-incomplete` where there is none."""
    files = TrackedFiles(step.environment.workspace)
    found = choose_run(((kept, files.has(kept.file)) for kept in kept_in(folder)), job_facts(step))
    if isinstance(found, FoundRun):
        return found
    raise GateError(
        "results-incomplete",
        "no step before this one has stored a result, which `results: latest` is about" + (found and f"; {found}"),
        "the log of the step with `eval-gate judge` or `eval-gate run` says what went wrong",
        exit_code=ExitCode.INCOMPLETE,
    )
