"""Which stored result is this job's own: what a change commits never decides it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from eval_gate.action.step import Step
from eval_gate.errors import ExitCode, GateError
from eval_gate.github.checkout import checked_out
from eval_gate.github.tracked import TrackedFiles
from eval_gate.model.result import RunResult
from eval_gate.results.read import StoredHead, kept_in
from eval_gate.struct import FrozenStruct


class JobFacts(FrozenStruct):
    """What a result of this job says of itself: one of these commits, and no other workflow run."""

    commits: frozenset[str]
    run_id: int


class FoundRun(FrozenStruct):
    """A stored run of this job; `believed` where neither the run nor git says that it is."""

    kept: StoredHead
    believed: bool = False


def job_facts(step: Step) -> JobFacts:
    """What this job's own results say. No commit holds its own name, so no committed result can say the same."""
    environment = step.environment
    told = {step.plan.head_sha, environment.sha, checked_out(environment.workspace)}
    return JobFacts(frozenset(one for one in told if one), environment.run_id)


def why_of_another_job(head: RunResult, facts: JobFacts) -> str | None:
    """Why a run is not of this job, as half a sentence; None where it does not say so."""
    if head.made_by is not None and head.made_by.run_id != facts.run_id:
        return f"workflow run {head.made_by.run_id} made it"
    if head.sha and head.sha not in facts.commits:
        return f"it is of commit {head.sha[:7]}"
    return None


def choose_run(stored: Iterable[tuple[StoredHead, bool | None]], facts: JobFacts) -> FoundRun | str:
    """The run of this job among these, newest first, each with whether git tracks it; else why there is none.

    One that names this job's commit or workflow run counts before one that names none.
    """
    silent: FoundRun | None = None
    refused = ""
    for kept, tracked in stored:
        why = f"it is committed in {kept.folder}" if tracked else why_of_another_job(kept.head, facts)
        if why is not None:
            refused = refused or f"run {kept.head.run_id[:36]} is not of this job: {why}"
        elif kept.head.sha or kept.head.made_by:
            return FoundRun(kept)
        elif silent is None:
            silent = FoundRun(kept, believed=tracked is None)
    return silent or refused


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
