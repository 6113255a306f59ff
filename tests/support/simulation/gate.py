"""One gate in one job, by the decisions that the action makes: the plan, the base, the baseline, the verdict."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_gate.action.baseline_lookup import BaselineOrigin, discard_unrelated_baseline, get_baseline
from eval_gate.action.inputs import StepSettings, read_inputs
from eval_gate.action.step import Step, open_step
from eval_gate.action.step_config import load_step_config
from eval_gate.action.step_log import StepLog
from eval_gate.config.policy import Policy
from eval_gate.config.settings import RunConfig
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.github.workflow_commands import DeferredCommands
from eval_gate.github.workflow_environment import read_workflow_environment
from eval_gate.model.result import GitFacts, ResultProducer, RunResult
from eval_gate.results.baseline import Baseline, NoBaseline
from eval_gate.results.history import encode_history
from eval_gate.results.result_names import RUN_NAME
from eval_gate.results.run_writer import iter_full_pieces
from eval_gate.session.history_update import build_next_history
from eval_gate.struct import replace
from tests.support.git import point_head
from tests.support.github import GATE, FakeGitHub
from tests.support.histories import NONE_YET, Asked, Engine
from tests.support.jobs import with_inputs
from tests.support.simulation.repository import Extent, GateRun

if TYPE_CHECKING:
    from tests.support.simulation.story import Story

RERUNS = 6
EVALS = "evals/{gate}.golden.json"


@dataclass(frozen=True)
class Job:
    """A job of a workflow run, as the runner's variables and the workspace tell it."""

    run_id: int
    gate: str
    event_name: str
    event: Mapping[str, Any]
    sha: str
    ref: str
    checkout: str | None
    """What `.git/HEAD` names; None where there is none."""
    baseline_branch: str = ""
    workflow: str = GATE
    baseline_workflow: str = ""
    reruns: bool = False
    """Whether what fails is run again, as it is unless somebody says otherwise."""


@dataclass(frozen=True)
class Said:
    """What a job said, as far as it can be right or wrong."""

    code: int
    baseline: str | None
    """The commit that it compared with; None where it had no baseline."""
    unknown: bool | None
    """Without a baseline: it says that there may be one, so that no failing case passes. None where nobody can see."""
    changes: dict[int, str]
    """What became of each case, by its number."""
    base: str | None = None
    """The commit that it is held against."""
    since: int | None = None
    """How many commits that has and the baseline has not."""
    record: tuple[str, ...] = ()
    """The runs that its record is made of, newest first."""
    lines: tuple[str, ...] = ()


class Runner:
    """The machine of every job: one workspace, in which each of them finds its own checkout."""

    whole = False
    """Whether it runs the whole action, which stores what it finds by itself."""

    def __init__(self, github: FakeGitHub, folder: Path) -> None:
        self.github = github
        self._event = folder / "event.json"
        self._temporary = folder / "temp"
        self._workspace = folder / "workspace"
        for place in (self._temporary, self._workspace / ".git"):
            place.mkdir(parents=True)

    def judge(self, job: Job, here: str, at: str) -> Said:
        """Let the job find its baseline, and judge a run in which each case does what its letter says.

        Raises GateError where the step is refused.
        """
        step, config, origin, lines = self._look(job)
        own = {"run_id": job.run_id, "sha": step.plan.head_sha, "at": at}
        run = made(job.gate, here, Extent.WHOLE, **own)
        found = discard_unrelated_baseline(step, origin, run, StepLog(DeferredCommands())).baseline
        question = GateInputs(found, config.policy)
        judged = decide_verdict(rerun(job.gate, here, question, **own) if job.reruns else run, question)
        assert judged.verdict is not None
        code = int(judged.verdict.exit_code)
        if isinstance(found, NoBaseline):
            return Said(code, None, found.unavailable, {}, lines=(*lines, found.reason))
        assert judged.comparison is not None
        facts, record = judged.comparison.baseline, tuple(one.run_id for one in found.own_history.runs)
        changes = {int(one.case_id[-1]): one.change.value for one in judged.comparison.changes}
        return Said(code, facts.sha, False, changes, facts.base_sha, facts.commits_since, record, lines)

    def begin(self, job: Job, run: GateRun, story: Story) -> Callable[[], None]:
        """Begin a run of a branch; what is given is called when it ends, and stores its result."""
        del job  # what it goes on from is what it would find
        baseline = story.before(run)
        run.passed = story.passes(run)
        return lambda: story.store(run, baseline)

    def _look(self, job: Job) -> tuple[Step, RunConfig, BaselineOrigin, tuple[str, ...]]:
        self._event.write_text(json.dumps(job.event))
        check_out(self._workspace, job.checkout)
        variables = {
            "GITHUB_REPOSITORY": self.github.state.full_name,
            "GITHUB_EVENT_NAME": job.event_name,
            "GITHUB_EVENT_PATH": str(self._event),
            "GITHUB_API_URL": self.github.base,
            "GITHUB_RUN_ID": str(job.run_id),
            "GITHUB_WORKSPACE": str(self._workspace),
            "GITHUB_WORKFLOW_REF": f"{self.github.state.full_name}/{job.workflow}@refs/heads/main",
            "GITHUB_JOB": job.gate,
            "GITHUB_SHA": job.sha,
            "GITHUB_REF": job.ref,
            "RUNNER_TEMP": str(self._temporary),
        }
        inputs = {"baseline-branch": job.baseline_branch, "baseline-workflow": job.baseline_workflow}
        inputs["reruns"] = str(RERUNS if job.reruns else 0)
        settings, config = _read(tuple(inputs.items()), self._workspace)
        step = open_step(read_workflow_environment(variables), settings)
        log = StepLog(DeferredCommands())
        origin = get_baseline(step, config, log)
        return step, config, origin, (*step.plan.reasons, *log.trail)


def check_out(workspace: Path, commit: str | None) -> None:
    """The workspace as a checkout of this commit leaves it; None is one that nothing names."""
    if commit is None:
        (workspace / ".git" / "HEAD").unlink(missing_ok=True)
    else:
        point_head(workspace / ".git", commit)


@cache
def _read(inputs: tuple[tuple[str, str], ...], workspace: Path) -> tuple[StepSettings, RunConfig]:
    given = {"github-token": "t", "agent-endpoint": "http://agent.invalid", **dict(inputs)}
    variables = with_inputs(given)
    settings = read_inputs(variables)
    return settings, load_step_config(settings, variables, workspace)


def key_of(gate: str, workflow: str = GATE) -> str:
    """What a gate of a workflow is known by."""
    return f"{workflow.rpartition('/')[2]}.{gate}"


def name_of(run_id: int, gate: str) -> str:
    """The id of the result that this gate has in this run."""
    return f"run-{run_id}-{gate}"


def _asked(gate: str, letters: str) -> list[Asked]:
    """The cases of a gate, each with what its agent does whenever it is asked."""
    return [Asked(EVALS.format(gate=gate), f"{gate}-{at}", letter) for at, letter in enumerate(letters)]


@cache
def _made(gate: str, letters: str, extent: Extent) -> RunResult:
    """A result in which each case does what its letter says."""
    some = letters[:1] if extent is Extent.SOME else letters
    asked = _asked(gate, "U" * len(some) if extent is Extent.OUTAGE else some)
    return Engine(asked, reruns=0, fields={"partial": extent is Extent.SOME}).run(GateInputs(NONE_YET, Policy()))


def made(gate: str, letters: str, extent: Extent, *, run_id: int, sha: str, at: str, workflow: str = GATE) -> RunResult:
    """The result of one gate's run of this commit, not judged yet."""
    return replace(_made(gate, letters, extent), **_own(gate, run_id, sha, at, workflow))


def rerun(gate: str, letters: str, question: GateInputs, *, run_id: int, sha: str, at: str) -> RunResult:
    """The same of all cases, where what fails and should not is run again."""
    run = Engine(_asked(gate, letters), reruns=RERUNS).run(question)
    return replace(run, **_own(gate, run_id, sha, at))


def _own(gate: str, run_id: int, sha: str, at: str, workflow: str = GATE) -> dict[str, object]:
    """What is one run's own."""
    producer = ResultProducer(gate=key_of(gate, workflow), run_id=run_id)
    return {"run_id": name_of(run_id, gate), "timestamp": at, "git": GitFacts(sha=sha), "producer": producer}


def stored(run: RunResult, baseline: Baseline | NoBaseline) -> dict[str, bytes]:
    """What such a run leaves in its artifact, where that was its baseline."""
    record = b"".join(piece.run_result for piece in iter_full_pieces(run))
    return {RUN_NAME: record, "history.json": encode_history(build_next_history(run, baseline))}
