"""What this step judges, and by what: the run it makes, or the result that an earlier step or another run made.

Which stored result is this job's own is never decided by what a change commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from eval_gate.action.base_commit import other_checkout
from eval_gate.action.baseline import Origin
from eval_gate.action.inputs import PREFIX
from eval_gate.action.log import Log
from eval_gate.action.lookups import ON_ITS_WAY, LaterBaseline, Lookups
from eval_gate.action.plan import Mode
from eval_gate.action.relay import as_asked_for
from eval_gate.action.step import Step
from eval_gate.action.trust.control import with_believed_control
from eval_gate.action.trust.policy import comparisons_of
from eval_gate.action.trust.variables import doorkeeper_for
from eval_gate.config.settings import ResultsFormat, RunConfig
from eval_gate.engine.journal import JOURNAL_NAME
from eval_gate.engine.preparing.context import RunContext
from eval_gate.errors import ExitCode, GateError
from eval_gate.gate.judge import GateQuestion
from eval_gate.gate.must_pass import with_idle_patterns
from eval_gate.github.checkout import TrackedFiles, checked_out
from eval_gate.model.result import GitFacts, RunResult
from eval_gate.process.ending import run_async
from eval_gate.reports.words.progress import CalmProgress
from eval_gate.results.names import LATEST
from eval_gate.results.parts import read_whole, whole_of
from eval_gate.results.read import StoredHead, is_run, kept_in
from eval_gate.results.write import run_folder
from eval_gate.session.foreign_results import brought_run, read_brought
from eval_gate.session.run import MadeRun, ask_base_later, make_run
from eval_gate.session.session import Session
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.quoting import quoted_name

FROM_FILE = "rerunCommand of the configuration file is not run by the action: a pull request may have written it"
RERUN_HINT = {
    True: "give it as the input rerun-command",
    False: "have `eval-gate judge` run it in a step before, and give `results: latest`; or use the action in host/",
}
"""What to do instead, on the machine of the job and in our container."""
BASE_FROM_FILE = "controlCommand is not run by the action but without Docker and as its input: it clears what it fails"
BASE_HINT = {
    True: "give it as the input control-command",
    False: "have `eval-gate judge` run it in a step before, and give `results: latest` and the input control-command",
}
_PRIVATE = (PREFIX, "ACTIONS_", "GITHUB_TOKEN")
"""Variables that are the step's own: eval files and their commands have no business with them."""


def session_of(step: Step, config: RunConfig, lookups: Lookups, variables: Mapping[str, str], log: Log) -> Session:
    """The session, with what people have accepted: in the file, and, where it could matter, in comments.

    Raises GateError, as for variables that would be given to a target that must not have them.
    """
    selection = step.settings.selection
    beside = lookups.beside_cases
    origin = Origin(ON_ITS_WAY) if beside else lookups.origin()
    question = GateQuestion(
        origin.baseline,
        config.policy,
        waivers=lookups.waivers.result(),
        more_waivers=lookups.with_comments,
        keeping=config.keeping,
        comparisons=comparisons_of(step),
    )
    environment = step.environment
    around = RunContext(
        environment.workspace,
        {name: value for name, value in variables.items() if not name.startswith(_PRIVATE)},
        GitFacts(
            sha=_evaluated(step),
            ref=environment.ref or None,
            repository=environment.repository,
            workspace_sha=step.plan.workspace_sha,
        ),
        secrets=tuple(token.open() for token in (step.settings.token, environment.runtime_token) if token),
        doorkeeper=doorkeeper_for(step, config, variables, log)
        if _runs(step) or _runs_again(step) or config.control.named
        else None,
        recorded_by_baseline=origin.recorded,
    )
    later = LaterBaseline(lookups, question) if beside else None
    return Session(config, selection, around, question, later)


def get_result(step: Step, session: Session, lookups: Lookups, log: Log) -> MadeRun:
    """The run, not judged yet. Raises GateError."""
    run_id = _asks_later(step, session)
    if run_id is not None:
        log.did(f"went on with run {run_id}, to ask the base branch's agent")
        session = replace(session, context=replace(session.context, resume=run_id))
    if _runs(step) or run_id is not None:
        with log.commands.group("Evals"):
            made = run_async(make_run(session, CalmProgress(log.commands.say)))
    else:
        result = with_believed_control(_stored(step, session, lookups, log), session.config.control)
        made = MadeRun(result if step.plan.mode is Mode.RELAY else _asked_later(session, result, log))
    return replace(made, result=replace(_with_commit(step, made.result), made_by=step.made_by))


def load_engine(step: Step) -> None:
    """What a run is prepared with, where there will be one: 100 ms while GitHub is waited for, and not after that."""
    if _runs(step):
        import_module("eval_gate.engine.preparing.prepare")


def _runs(step: Step) -> bool:
    return step.plan.mode is not Mode.RELAY and not step.settings.results


def makes_whole(step: Step) -> bool:
    """Whether this step makes the run that is judged, or joins it of shards, and does not go on with a step before."""
    reference = (step.settings.results or "").strip()
    return not reference or ("\n" not in reference and reference != LATEST and is_run(reference))


def _asks_later(step: Step, session: Session) -> str | None:
    """Id of the stored run that the base branch's agent is asked about now: one that was made here, by our engine."""
    reference = (step.settings.results or "").strip()
    if not reference or step.plan.mode is Mode.RELAY or session.config.control.named is None:
        return None
    if "\n" in reference or session.config.results.format is not ResultsFormat.AUTO or not is_run(reference):
        return None
    run = _judged(step, [reference], session)
    return run.run_id if (run_folder(session.folder, run.run_id) / JOURNAL_NAME).is_file() else None


def _asked_later(session: Session, result: RunResult, log: Log) -> RunResult:
    """The result with what the base branch's agent says of it, where it is named and may turn what is red."""
    told = run_async(ask_base_later(session, result))
    if told is not result:
        log.did(f"asked the base branch's agent about run {result.run_id}")
    return told


def _runs_again(step: Step) -> bool:
    """Whether another tool may be asked again: by the word of the workflow, where that tool is."""
    return step.settings.on_host and "rerunCommand" in step.settings.flags and step.plan.mode is not Mode.RELAY


def _asks_by_command(step: Step) -> bool:
    """The same of the command for the base branch's agent, which may clear what it fails."""
    return step.settings.on_host and "controlCommand" in step.settings.flags and step.plan.mode is not Mode.RELAY


def _stored(step: Step, session: Session, lookups: Lookups, log: Log) -> RunResult:
    config, reference = session.config, step.settings.results
    if lookups.relayed is not None:
        # one shard of a fork's run says nothing about the others, unless this step is about that one
        selection = step.settings.selection
        relayed = as_asked_for(whole_of([lookups.relayed.result()], selection.shard), selection)
        return with_idle_patterns(relayed, config.policy.must_pass)
    assert reference is not None
    paths = [line.strip() for line in reference.splitlines() if line.strip()]
    if config.results.format is not ResultsFormat.AUTO or not is_run(paths[0]):
        return with_idle_patterns(_brought(step, session, paths, log), config.policy.must_pass, strict=config.strict)
    result = _without_its_past(_judged(step, paths, session, log))
    if not result.suites:
        raise GateError("no-result", f"results: {', '.join(paths)} holds no case", "name a finished run")
    log.did(f"read the result of run {result.run_id} from {', '.join(paths)}")
    return with_idle_patterns(result, config.policy.must_pass, strict=config.strict)


def _judged(step: Step, paths: Sequence[str], session: Session, log: Log | None = None) -> RunResult:
    """The run that these lead to, of shards all. Raises GateError; `latest` is a run of this job or none."""
    files = TrackedFiles(step.environment.workspace)

    def taken(file: Path) -> bool:
        return not files.has(file)

    if list(paths) == [LATEST]:
        found = find_stored_run(step, session.folder)
        if found.doubt and log is not None:
            log.did(f"run {found.kept.head.run_id} {found.doubt}: that this job made it is believed")
        paths = [str(found.kept.folder)]
    return read_whole(paths, session.folder, session.selection.shard, taken)


def _without_its_past(result: RunResult) -> RunResult:
    """The run without what it says of earlier ones: a step of the pull request wrote that, and GitHub knows better."""
    if result.comparison is None:
        return result
    return replace(result, comparison=replace(result.comparison, evidence=None))


def _brought(step: Step, session: Session, paths: Sequence[str], log: Log) -> RunResult:
    """What another tool found. It is asked again only by a command of the workflow, and only where the tool is.

    In the container it is not; and a command of the configuration file is the pull request's own.
    """
    choice = session.config.results
    if session.config.control.command is not None and not _asks_by_command(step):
        log.commands.warning(f"{BASE_FROM_FILE}; {BASE_HINT[step.settings.on_host]}")
        nobody = replace(session.config.control, command=None)
        session = replace(session, config=replace(session.config, control=nobody))
    if choice.rerun_command is not None and not _runs_again(step):
        log.commands.warning(f"{FROM_FILE}; {RERUN_HINT[step.settings.on_host]}")
        results = replace(choice, rerun_command=None)
        session = replace(session, config=replace(session.config, results=results))
    brought = run_async(brought_run(session, read_brought(session.config, paths, session.context)))
    for words in brought.words:
        log.did(words)
    return brought.run


def _with_commit(step: Step, result: RunResult) -> RunResult:
    """The result with the commit of the workspace. Raises GateError where a step before made it of another one.

    What a relay publishes keeps what it says: the baseline was sought by that.
    """
    here, there = step.plan.workspace_sha, result.git.workspace_sha if result.git else None
    if here is None or step.plan.mode is Mode.RELAY:
        return result
    if there is not None and there != here and step.plan.rules_branch is not None:
        raise other_checkout(here, f"the result is of {there[:12]}", there)
    return replace(result, git=replace(result.git or GitFacts(), workspace_sha=here))


def _evaluated(step: Step) -> str | None:
    """The commit in the workspace; of a pull request its head, although its test merge is what is checked out."""
    return (step.plan.workspace_sha if step.plan.rules_branch is None else None) or step.plan.head_sha or None


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
