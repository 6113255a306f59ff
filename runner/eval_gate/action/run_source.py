"""Source of the run result: run the cases, or read the result of an earlier step or another run.

Files that a change commits never decide which stored result is this job's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from eval_gate.action.base_commit import build_checkout_error
from eval_gate.action.baseline_lookup import BaselineOrigin
from eval_gate.action.inputs import INPUT_PREFIX
from eval_gate.action.lookups import BASELINE_PENDING, DeferredBaseline, Lookups
from eval_gate.action.relay import check_selection
from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.action.step_plan import BaselineKind, StepMode
from eval_gate.action.trust.pull_request_secrets import build_secret_policy
from eval_gate.action.trust.trusted_config import build_comparison_lookup, drop_untrusted_base_agent
from eval_gate.config.settings import ResultsFormat, RunConfig
from eval_gate.engine.journal import JOURNAL_NAME
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.errors import ExitCode, GateError
from eval_gate.external_results.result_files import parse_results_path
from eval_gate.gate.must_pass import add_idle_pattern_warnings
from eval_gate.gate.verdict_decision import GateInputs
from eval_gate.github.checkout import TrackedFiles, find_head_commit
from eval_gate.github.workflow_environment import WorkflowEnvironment
from eval_gate.model.result import GitFacts, RunResult
from eval_gate.model.reuse import ReuseOff
from eval_gate.process.signals import run_async
from eval_gate.reports.wording.progress import LogProgress
from eval_gate.results.merge import merge_parts, read_merged_run
from eval_gate.results.result_names import LATEST
from eval_gate.results.run_reader import StoredRun, is_run_reference, list_stored_runs
from eval_gate.results.run_writer import make_run_folder
from eval_gate.results.trace_links import link_traces
from eval_gate.session.evaluation import EvaluatedRun, warm_up_run
from eval_gate.session.external_run import make_external_run, read_external_results
from eval_gate.session.run import ExecutedRun, add_base_agent_results, make_run
from eval_gate.session.session import ReuseSources, Session
from eval_gate.struct import replace
from eval_gate.text.quoting import quote_name

RERUN_COMMAND_IGNORED = "ignoring rerunCommand of the configuration file: a pull request can change it"
RERUN_HINT = {
    True: "set it as the input rerun-command",
    False: "run it with `eval-gate check` in an earlier step and set `results: latest`, or use the action in host/",
}
"""What to do instead, on the machine of the job and in our container."""
BASE_COMMAND_IGNORED = (
    "ignoring base-agent-command: the action runs it only without Docker, and only when it is an input"
)
BASE_HINT = {
    True: "set it as the input base-agent-command",
    False: "run it with `eval-gate check` in an earlier step, and set `results: latest` and base-agent-command",
}
REUSING_EVENTS = frozenset({"push", "pull_request", "merge_group"})
"""Events of a change to the repository's files; any other may be about what changed elsewhere."""
_PRIVATE_PREFIXES = (INPUT_PREFIX, "ACTIONS_", "GITHUB_TOKEN")
"""Variables that are the step's own: eval files and their commands have no business with them."""


def build_session(
    step: Step, config: RunConfig, lookups: Lookups, variables: Mapping[str, str], log: StepLog
) -> Session:
    """Build the session of the run, with the known waivers.

    Waivers come from the file and, if they could matter, from comments. Raises GateError, for example if variables
    would be given to a target that must not have them.
    """
    if config.store is not None:
        log.record("ignoring store: the action keeps its baselines as artifacts")
    selection = step.settings.selection
    is_deferred = lookups.is_deferred
    origin = BaselineOrigin(BASELINE_PENDING) if is_deferred else lookups.get_origin()
    gate_inputs = GateInputs(
        origin.baseline,
        config.policy,
        waivers=lookups.waivers.get_result(),
        waiver_lookup=lookups.add_comment_waivers,
        retention=config.retention,
        judge_lookup=build_comparison_lookup(step),
    )
    environment = step.environment
    run_context = RunContext(
        environment.workspace,
        {name: value for name, value in variables.items() if not name.startswith(_PRIVATE_PREFIXES)},
        GitFacts(
            # of a pull request its head, even if its test merge is checked out
            sha=(step.plan.workspace_sha if step.plan.rules_branch is None else None) or step.plan.head_sha or None,
            ref=environment.ref or None,
            repository=environment.repository,
            workspace_sha=step.plan.workspace_sha,
        ),
        secrets=tuple(token.open() for token in (step.settings.token, environment.runtime_token) if token),
        measured_files=_list_workflow_files(environment),
        secret_policy=build_secret_policy(step, config, variables, log)
        if _should_run_cases(step) or _can_run(step, "rerunCommand") or config.base_agent.display_name
        else None,
        baseline_recording_digest=origin.recording_digest,
    )
    deferred = DeferredBaseline(lookups, gate_inputs) if is_deferred else None
    is_next_baseline = step.plan.is_on_baseline_branch and step.plan.baseline.kind is BaselineKind.ARTIFACT
    makes_history = is_next_baseline and _should_run_cases(step) and not selection.chosen_cases
    reuse = ReuseSources(_find_reuse_off(step, config), lookups.load_own_runs)
    return Session(config, selection, run_context, gate_inputs, makes_history, deferred, reuse)


def _list_workflow_files(environment: WorkflowEnvironment) -> tuple[str, ...]:
    """List where the workflow's own file is or may be: in the workspace, or in checkouts that are folders of it."""
    path, workspace = environment.workflow_path, environment.workspace
    inside = (str((git.parent / path).relative_to(workspace)) for git in sorted(workspace.glob("*/.git")))
    return (path, *(file for file in inside if (workspace / file).is_file())) if path else ()


def _find_reuse_off(step: Step, config: RunConfig) -> ReuseOff | None:
    """Find out why this step executes every suite, whatever its configuration measures; None if it may reuse some."""
    environment = step.environment
    if not config.reuse:
        return ReuseOff.TURNED_OFF
    if environment.run_attempt > 1:
        return ReuseOff.RERUN_ATTEMPT
    if environment.event_name not in REUSING_EVENTS:
        return ReuseOff.OTHER_EVENT
    # a pull request can commit a result, or name a run of its own
    return None if step.plan.baseline.kind is BaselineKind.ARTIFACT else ReuseOff.NO_BASELINE


def get_run(step: Step, session: Session, lookups: Lookups, log: StepLog) -> ExecutedRun:
    """Run the cases, or load their stored results, without a gate verdict yet. Raises GateError."""
    run_id = _find_resumable_run(step, session)
    if run_id is not None:
        log.record(f"continued run {run_id} with the base agent")
        session = replace(session, context=replace(session.context, resume=run_id))
    if _should_run_cases(step) or run_id is not None:
        with log.commands.open_group("Evals"):
            executed_run = run_async(make_run(session, LogProgress(log.commands.print_line)))
    else:
        stored = link_traces(_load_stored_run(step, session, lookups, log), session.config.trace_url)
        result = drop_untrusted_base_agent(stored, session.config.base_agent)
        executed_run = ExecutedRun(
            result if step.plan.mode is StepMode.RELAY else _add_base_agent_results(session, result, log)
        )
    return replace(executed_run, result=replace(_set_workspace_commit(step, executed_run.result), producer=step.maker))


def warm_up_history(session: Session, run: EvaluatedRun, log: StepLog) -> EvaluatedRun:
    """Make the warm-up rounds that the history of a stored run lacks, in a run of the branch that asks for them."""
    if not session.is_run_of_branch or session.config.warm_up is None:
        return run
    with log.commands.open_group("Warm-up"):
        return run_async(warm_up_run(session, run, LogProgress(log.commands.print_line)))


def preload_engine(step: Step) -> None:
    """Import the engine, if this step runs cases, during the wait for GitHub: it takes 100 ms."""
    if _should_run_cases(step):
        import_module("eval_gate.engine.preparation.plan_builder")


def _should_run_cases(step: Step) -> bool:
    return step.plan.mode is not StepMode.RELAY and not step.settings.results


def is_first_step(step: Step) -> bool:
    """Whether this step makes the run that is judged, or joins it of shards, and does not go on with a step before."""
    reference = (step.settings.results or "").strip()
    return not reference or ("\n" not in reference and reference != LATEST and _is_run(reference))


def _is_run(reference: str) -> bool:
    """Whether results are a run of Eval Gate. Results of other tools have globs, and prefixes for their suites."""
    path = parse_results_path(reference)
    return not path.prefix and not path.is_glob and is_run_reference(reference)


def _find_resumable_run(step: Step, session: Session) -> str | None:
    """Find the id of the stored run that gets base agent results now: one that Eval Gate ran on this machine."""
    reference = (step.settings.results or "").strip()
    if not reference or step.plan.mode is StepMode.RELAY or session.config.base_agent.display_name is None:
        return None
    if "\n" in reference or session.config.results.format is not ResultsFormat.AUTO or not _is_run(reference):
        return None
    run = _read_run(step, [reference], session)
    if any(suite.reused for suite in run.suites):  # it would execute them
        return None
    return run.run_id if (make_run_folder(session.folder, run.run_id) / JOURNAL_NAME).is_file() else None


def _add_base_agent_results(session: Session, result: RunResult, log: StepLog) -> RunResult:
    """Add the base agent's results to the run, if one is named and could clear failures."""
    updated = run_async(add_base_agent_results(session, result))
    if updated is not result:
        log.record(f"ran the base agent for run {result.run_id}")
    return updated


def _can_run(step: Step, command: str) -> bool:
    """Whether the command of this setting may run: by the word of the workflow, where its program is."""
    return step.settings.on_host and command in step.settings.flags and step.plan.mode is not StepMode.RELAY


def _load_stored_run(step: Step, session: Session, lookups: Lookups, log: StepLog) -> RunResult:
    config, reference = session.config, step.settings.results
    if lookups.relayed is not None:
        # one shard of a fork's run says nothing about the others, unless this step is about that one
        selection = step.settings.selection
        relayed = check_selection(merge_parts([lookups.relayed.get_result()], selection.shard), selection)
        return add_idle_pattern_warnings(relayed, config.policy.must_pass)
    assert reference is not None
    paths = [line.strip() for line in reference.splitlines() if line.strip()]
    if config.results.format is not ResultsFormat.AUTO or not _is_run(paths[0]):
        return add_idle_pattern_warnings(
            _load_external_run(step, session, paths, log), config.policy.must_pass, strict=config.strict
        )
    result = _drop_history(_read_run(step, paths, session, log))
    if not result.suites:
        raise GateError("result-not-found", f"results: {', '.join(paths)} contains no case", "name a finished run")
    log.record(f"read the result of run {result.run_id} from {', '.join(paths)}")
    return add_idle_pattern_warnings(result, config.policy.must_pass, strict=config.strict)


def _read_run(step: Step, paths: Sequence[str], session: Session, log: StepLog | None = None) -> RunResult:
    """Read the run that the paths lead to, merged from its shards; `latest` stands for a run of this job."""
    files = TrackedFiles(step.environment.workspace)

    def is_untracked(file: Path) -> bool:
        return not files.is_tracked(file)

    if list(paths) == [LATEST]:
        paths = [str(_find_stored_run(step, session.folder, log).folder)]
    return read_merged_run(paths, session.folder, session.selection.shard, is_untracked)


def _drop_history(result: RunResult) -> RunResult:
    """Drop what the run says of earlier runs: a step of the pull request wrote it, and GitHub is the better source."""
    if result.comparison is None:
        return result
    return replace(result, comparison=replace(result.comparison, evidence=None))


def _load_external_run(step: Step, session: Session, paths: Sequence[str], log: StepLog) -> RunResult:
    """Load external results as a run, with re-runs and the base agent only where they are allowed."""
    choice = session.config.results
    # the container does not have the tool, and the pull request controls a command in the configuration file
    if session.config.base_agent.command is not None and not _can_run(step, "baseAgentCommand"):
        log.commands.write_warning(f"{BASE_COMMAND_IGNORED}; {BASE_HINT[step.settings.on_host]}")
        no_base_agent = replace(session.config.base_agent, command=None)
        session = replace(session, config=replace(session.config, base_agent=no_base_agent))
    if choice.rerun_command is not None and not _can_run(step, "rerunCommand"):
        log.commands.write_warning(f"{RERUN_COMMAND_IGNORED}; {RERUN_HINT[step.settings.on_host]}")
        results = replace(choice, rerun_command=None)
        session = replace(session, config=replace(session.config, results=results))
    external = run_async(make_external_run(session, read_external_results(session.config, paths, session.context)))
    for words in external.notes:
        log.record(words)
    return external.run


def _set_workspace_commit(step: Step, result: RunResult) -> RunResult:
    """Set the commit to that in the workspace; a relay keeps the result's, by which the baseline was looked up."""
    workspace_sha, result_sha = step.plan.workspace_sha, result.git.workspace_sha if result.git else None
    if workspace_sha is None or step.plan.mode is StepMode.RELAY:
        return result
    if result_sha is not None and result_sha != workspace_sha and step.plan.rules_branch is not None:
        raise build_checkout_error(workspace_sha, f"the result is for {result_sha[:12]}", result_sha)
    return replace(result, git=replace(result.git or GitFacts(), workspace_sha=workspace_sha))


def _find_job_mismatch(head: RunResult, step: Step, commits: frozenset[str]) -> str | None:
    """Return why a run is not of this job, as half a sentence, or None if it may be.

    The commits tell this job's own results: no commit holds its own id, so no committed result fits.
    """
    git, maker, environment = head.git or GitFacts(), head.producer, step.environment
    for run_id, attempt in ((git.run_id, git.attempt), (maker and maker.run_id, maker and maker.attempt)):
        if run_id is not None and run_id != environment.run_id:
            return f"workflow run {run_id} made it"
        if attempt is not None and attempt != environment.run_attempt:
            return f"attempt {attempt} of this workflow run made it"
    if git.job and environment.job and git.job != environment.job:
        return f"the job {quote_name(git.job)} made it"
    if maker is not None and maker.gate != step.key:
        return f"the gate {quote_name(maker.gate)} published it"
    if head.sha and head.sha not in commits:
        return f"it is for commit {head.sha[:7]}"
    return None


def _find_stored_run(step: Step, folder: Path, log: StepLog | None) -> StoredRun:
    """Find the newest run of this job in the folder of runs: one that names it, else one that names nothing else.

    Raises GateError `results-incomplete` if there is none.
    """
    workspace = step.environment.workspace
    commits = frozenset(filter(None, (step.plan.head_sha, step.environment.sha, find_head_commit(workspace))))
    files, doubtful, refusal = TrackedFiles(workspace), list[tuple[StoredRun, str]](), ""
    for stored in list_stored_runs(folder):
        head, is_tracked = stored.head, files.is_tracked(stored.file)
        git = head.git or GitFacts()
        why = f"it is committed in {stored.folder}" if is_tracked else _find_job_mismatch(head, step, commits)
        if why is not None:
            refusal = refusal or f"; run {head.run_id[:36]} is not from this job: {why}"
        elif head.producer or git.run_id is not None:
            return stored
        elif git.sha:
            doubtful.append((stored, "names no workflow run"))
        elif is_tracked is None:
            doubtful.append((stored, "names no commit, and the workspace has no checkout"))
        else:
            doubtful.append((stored, "names neither a workflow run nor a commit"))
    if not doubtful:
        raise GateError(
            "results-incomplete",
            f"`results: latest` found no result of an earlier step{refusal}",
            "see the log of the step with `eval-gate check` or `eval-gate run`",
            exit_code=ExitCode.INCOMPLETE,
        )
    stored, doubt = next((one for one in doubtful if one[0].head.sha), doubtful[0])
    if log is not None:
        log.record(f"run {stored.head.run_id} {doubt}: assuming that this job made it")
    return stored
