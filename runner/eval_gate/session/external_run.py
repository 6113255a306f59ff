"""Turn external results into a run, with re-runs and base agent where commands are configured."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from eval_gate import __version__
from eval_gate.config.settings import EXTERNAL_RESULT_KEYS, RunConfig
from eval_gate.engine.case_result import count_reruns_as_new
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.engine.preparation.setup_fingerprints import list_result_settings
from eval_gate.engine.retention import prepare_for_result
from eval_gate.errors import ExitCode, GateError
from eval_gate.external_results.loader import ExternalResults, load_external_results
from eval_gate.external_results.result_files import find_tool_at, parse_results_path
from eval_gate.gate.case_matching import GateCases, find_earlier_keys
from eval_gate.gate.prompt_fields import align_fingerprints
from eval_gate.gate.setup_comparison import DEFAULT_EXTERNAL_COVERAGE
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import Status
from eval_gate.model.policy import EvaluationSetup
from eval_gate.model.result import CaseResult, GitFacts, RerunStopReason, RunResult, SuiteResult, ToolIdentity
from eval_gate.model.run_totals import summarize_cases
from eval_gate.model.setup import TargetIdentity
from eval_gate.reports.wording.numbers import format_percent
from eval_gate.results.baseline import Baseline
from eval_gate.results.history import EMPTY_HISTORY
from eval_gate.results.result_names import LATEST, is_run_id
from eval_gate.results.run_reader import is_run_reference, read_history
from eval_gate.session.external_cases import build_case_result, build_score_rules, redact_rows
from eval_gate.session.run import build_reruns
from eval_gate.session.session import Session
from eval_gate.session.tool_reruns import RerunSpending, ToolBaseAgent, ToolReruns, build_redactor
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.digest import compute_fingerprint
from eval_gate.text.escape import format_count
from eval_gate.text.redaction import Redactor

_FAILING_STATUSES: Final = frozenset({Status.FAILED, Status.ERROR})


class ExternalRun(FrozenStruct):
    """A run made of external results, and notes on how its cases were matched."""

    run: RunResult
    notes: tuple[str, ...]


def read_external_results(config: RunConfig, paths: Sequence[str], context: RunContext) -> ExternalResults:
    """Read the external results in these files, and mask the secrets in this environment. Raises GateError."""
    rules = build_score_rules(config)
    wanted, redact = config.results.format, build_redactor(context)
    found = load_external_results(paths, wanted, rules, redact, config.results.encoding)
    unused = rules.list_unused_rules()
    notes = (f"no result has the score {', '.join(unused)}",) if unused else ()
    if many := rules.off_scale:
        which = format_count(many, "result has a score", "results have scores")
        what = f"{which} outside of 0 to 1: the pass score does not apply to them"
        notes = (*notes, f"{what}, and the verdict of the tool counts")
    return replace(found, notes=(*found.notes, *notes))


async def build_external_run(session: Session, results: ExternalResults) -> RunResult:
    """Build the run of these external results as they are: nothing is run again."""
    rules, max_reruns = session.config.results.scores, session.most_reruns
    rows = await redact_rows(session.config, results.cases)
    cases = {key: build_case_result(found, (), None, rules, max_reruns=max_reruns) for key, found in rows.items()}
    return _build_run(session, results, cases)


async def make_external_run(session: Session, results: ExternalResults) -> ExternalRun:
    """Make the run of these external results, and re-run suspected cases if a command is configured.

    The rows are removed from `results` if nothing is re-run: the rows of many cases are as large as the run.
    Raises GateError.
    """
    config = session.config
    rules, max_reruns = config.results.scores, session.most_reruns
    named_by = ", ".join(dict.fromkeys(row.named_by for row in results.rows))
    unstable = results.describe_unstable_names(_find_baseline_keys(session))
    notes = (*results.notes, *([unstable] if unstable else []), *_describe_unused_base_agent(config))
    results = replace(results, cases=await redact_rows(config, results.cases), notes=notes)
    again_by, base_by = config.results.rerun_command, config.base_agent.command
    rows_of = results.cases.items() if again_by or base_by else results.drain_cases()
    cases = {key: build_case_result(rows, (), None, rules, max_reruns=max_reruns) for key, rows in rows_of}
    run = _build_run(session, results, cases)
    reruns = build_reruns(session)
    check_coverage(run, session)
    run = mark_missing_cases(_check_overlap(run, session, unstable), session)
    doubtful = list(reruns.find_rerun_candidates(run)) if max_reruns else []
    doubtful = [key for key in doubtful if key not in reruns.fixes]  # a tool's command may re-run only what fails
    spending = RerunSpending(config)
    again = ToolReruns(session, results, reruns, doubtful, spending) if doubtful and again_by else None
    base = ToolBaseAgent(session, results, spending) if base_by and max_reruns else None

    async def build_run() -> RunResult:
        """Build the run with the results of the re-runs so far."""
        if again is None:
            impossible = frozenset(doubtful) - reruns.new_cases
            if max_reruns and again_by is None:  # also where re-runs would show nothing that its record does not say
                impossible |= _find_new_failures(run, session)
            return _mark_rerun_impossible(run, impossible) if impossible else run
        said, ends = await redact_rows(config, again.rows), again.ends
        for key in doubtful:
            case = build_case_result(results.cases[key], said.get(key, ()), ends[key], rules, max_reruns=max_reruns)
            cases[key] = count_reruns_as_new(case) if key in reruns.new_cases else case
        made = _build_run(session, replace(results, notes=(*results.notes, *again.notes)), cases)
        return mark_missing_cases(_check_overlap(made, session, unstable), session)

    if again is not None:
        await again.rerun_suspects()
    made = await build_run()
    while base is not None and await base.clear_suspects(made, reruns) and again is not None:
        await again.rerun_suspects()  # what was spared because of what is cleared now
        made = await build_run()
    whole = base.attach_final_results(made) if base else made
    return ExternalRun(whole, tuple(_iter_matching_notes(made, named_by, session)))


def _find_baseline_keys(session: Session) -> Set[CaseKey]:
    """Find the case keys of the baseline; none if the baseline does not hold external results."""
    baseline = session.gate_inputs.baseline
    if not isinstance(baseline, Baseline) or not baseline.result.is_external:
        return frozenset()
    return baseline.result.index_cases().keys()


def _find_new_failures(run: RunResult, session: Session) -> Set[CaseKey]:
    """Find the failing cases that passed in the baseline."""
    baseline = session.gate_inputs.baseline
    if not isinstance(baseline, Baseline):
        return frozenset()
    pairs = GateCases.pair(baseline.result, run).iter_pairs()
    return {key for key, case, before in pairs if case.status is Status.FAILED and before.passed}


def _describe_unused_base_agent(config: RunConfig) -> tuple[str, ...]:
    """Describe a configured base agent that cannot run external results, as a note."""
    named = config.base_agent.display_name
    if named is None or config.base_agent.command is not None:
        return ()
    said = "ignoring baseAgentEndpoint and baseAgentTarget: they do not work with results of another tool. "
    return (f"{said}Set baseAgentCommand, because only that tool can run its cases",)


def _check_overlap(run: RunResult, session: Session, unstable: str | None) -> RunResult:
    """Warn first if the baseline knows few cases, and refuse failing ones that may have passed under another name."""
    before = find_same_tool(run, session)
    if before is None:
        return run
    there = before.index_cases()
    known = {key for key, _ in run.iter_cases() if key in there} | {*find_earlier_keys(before, run)}
    if len(known) * 2 >= min(len(there), run.summary.total_cases):
        return run
    said = f"only {len(known)} of {format_count(run.summary.total_cases, 'case')} are in the baseline"
    failing = [key for key, case in run.iter_cases() if key not in known and case.status in _FAILING_STATUSES]
    if failing and session.config.policy.min_coverage != 0:
        raise GateError(
            "unmatched-results",
            f"{said}, and {failing[0].case_id[:100]} fails: it may have passed under another name",
            f"{unstable or 'give the cases stable names'}; if you renamed them on purpose, set `minCoverage: 0`",
            exit_code=ExitCode.INCOMPLETE,
        )
    what = f"{said}: the others have no baseline and cannot be regressions"
    return replace(run, warnings=(what, *run.warnings))


def _mark_rerun_impossible(run: RunResult, doubtful: Set[CaseKey]) -> RunResult:
    """Mark the suspected cases of a run as impossible to re-run."""
    why, cases = RerunStopReason.NOT_REPEATABLE, run.index_cases()
    return run.replace_cases({key: replace(cases[key], rerun_stop_reason=why) for key in doubtful if key in cases})


def _build_run(session: Session, results: ExternalResults, cases_by_key: Mapping[CaseKey, CaseResult]) -> RunResult:
    ended = datetime.now(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")
    run_id = str(uuid.uuid4())
    by_suite: dict[str, list[CaseResult]] = {}
    for key, case in cases_by_key.items():
        by_suite.setdefault(key.suite, []).append(prepare_for_result(case, session.config.limits.keep_responses))
    suites = tuple(
        SuiteResult(
            run_id=run_id,
            timestamp=ended,
            tier=None,
            tool_name=suite,
            eval_file=suite,
            format=results.format.value,
            matrix_leg=results.legs.get(suite),
            cases=tuple(cases),
            summary=summarize_cases(cases),
        )
        for suite, cases in by_suite.items()
    )
    whole = suites[0].summary if len(suites) == 1 else summarize_cases([case for one in suites for case in one.cases])
    name = results.format.value
    made = RunResult(
        run_id=run_id,
        timestamp=ended,
        complete=True,
        tool=ToolIdentity(version=__version__),
        target=TargetIdentity(name=name, provider=name, identity=results.tool),
        git=session.context.git,
        suites=suites,
        summary=whole,
        warnings=results.notes,
        planned_cases=whole.total_cases - whole.skipped,
        reruns=session.most_reruns,
        setup=EvaluationSetup(
            reruns=session.config.policy.most_reruns,
            scores=tuple(map(str, session.config.results.scores)),
            base_agent=session.config.base_agent.command_name,
            settings=tuple(
                one
                for one in list_result_settings(session.config, build_redactor(session.context))
                if one.name in EXTERNAL_RESULT_KEYS
            ),
        ),
    )
    baseline = session.gate_inputs.baseline
    return align_fingerprints(GateCases.pair(baseline.result, made)) if isinstance(baseline, Baseline) else made


def _iter_matching_notes(run: RunResult, named_by: str, session: Session) -> Iterator[str]:
    """By what cases are known again, and how many of them were: `118 of 120 cases are in the baseline, by name`."""
    baseline = session.gate_inputs.baseline
    total = run.summary.total_cases
    if not isinstance(baseline, Baseline):
        yield f"{format_count(total, 'case')}, named by {named_by}"
        return
    there, moved = baseline.result.index_cases(), find_earlier_keys(baseline.result, run)
    same = sum(key in there for key, _ in run.iter_cases())
    again = f", {len(moved)} more by their prompt under another name" if moved else ""
    yield f"{same} of {format_count(total, 'case is', 'cases are')} in the baseline by {named_by}{again}"


_MAX_NAMED: Final = 3


def check_coverage(run: RunResult, session: Session) -> None:
    """Raise GateError `results-incomplete` for too few of as many cases as the baseline holds of this tool."""
    before, least = find_same_tool(run, session), _get_least_share(session)
    if before is None:
        return
    then, now = before.summary.total_cases, run.summary.total_cases
    if now < then * least:
        raise GateError(
            "results-incomplete",
            f"these results have {format_count(now, 'case')}, less than {format_percent(least)} of the {then} in the "
            "baseline",
            "check whether the tool finished; if you intend so few cases, set `minCoverage: 0`",
            exit_code=ExitCode.INCOMPLETE,
        )


def mark_missing_cases(run: RunResult, session: Session) -> RunResult:
    """Mark a run as incomplete if too few of the baseline's cases ran, and were not skipped, in a leg or in all."""
    before = find_same_tool(run, session)
    missing = [] if before is None else list(_iter_missing_parts(run, before, _get_least_share(session)))
    if not missing:
        return run
    more = [f"{len(missing) - _MAX_NAMED:,} more legs lack cases"] if len(missing) > _MAX_NAMED else []
    return replace(run, complete=False, stop_reason="; ".join([*missing[:_MAX_NAMED], *more]))


def find_same_tool(run: RunResult, session: Session) -> RunResult | None:
    """Return the baseline's run; None where there is none of the same tool."""
    baseline = session.gate_inputs.baseline
    if not isinstance(baseline, Baseline):
        return None
    before = baseline.result
    return before if before.is_external and before.target.provider == run.target.provider else None


def _get_least_share(session: Session) -> float:
    given = session.config.policy.min_coverage
    return DEFAULT_EXTERNAL_COVERAGE if given is None else given


def _iter_missing_parts(run: RunResult, baseline: RunResult, least: float) -> Iterator[str]:
    """Yield a clause for each leg of which too few cases ran, or else one for all cases."""
    then, here, earlier = _index_legs(baseline), _index_legs(run), find_earlier_keys(baseline, run)
    now = Counter(leg for key, own in here.items() for leg in {own, then.get(earlier.get(key, key))})
    share, is_short = f"less than {format_percent(least)}", False
    for leg, many in Counter(then.values()).items():
        if leg is not None and now[leg] < many * least:
            is_short = True
            yield f"the leg {leg[:100]} has {now[leg]:,} of {format_count(many, 'case')} of the baseline, {share}"
    if not is_short and len(here) < len(then) * least:
        ran = f"{len(here):,} of {format_count(len(then), 'case')} of the baseline ran, {share}"
        yield f"{ran}: the others were skipped"


def _index_legs(run: RunResult) -> Mapping[CaseKey, str | None]:
    """Map the cases that ran to the leg of a matrix that each is of."""
    return {
        CaseKey(suite.eval_file, case.id): suite.matrix_leg
        for suite in run.suites
        for case in suite.cases
        if case.status is not Status.SKIPPED
    }


def is_external_reference(reference: str | None) -> bool:
    """Whether a baseline is results of another tool, and not a run that is stored."""
    if reference is None or reference == LATEST:
        return False
    given = parse_results_path(reference)
    if not (given.exists or given.is_glob):
        return False
    return not is_run_reference(reference) and find_tool_at(reference) is not None


async def read_external_baseline(session: Session, current: ExternalResults) -> Baseline | None:
    """Read the baseline of a session as external results, by the rules of the current ones.

    Return None if the baseline is none of another tool. Raises GateError for what is wrong in it, for results of
    another tool than the current ones, and for a file that is read on both sides. The history of its cases is the
    configured one, with these results as its newest run.
    """
    reference = session.config.baseline
    if reference is None or not is_external_reference(reference):
        return None
    before = read_external_results(session.config, [reference], session.context)
    if before.format is not current.format:
        raise GateError(
            "baseline-of-other-tool",
            f"{reference} has results of {before.format}, and {current.files[0]} of {current.format}",
            "compare two results of one tool",
        )
    if both := before.sources & current.sources:
        raise GateError(
            "baseline-is-checked",
            f"the baseline {reference} is the result that is checked: {min(both).name}",
            "keep the result of the baseline in a file of its own",
        )
    redact = build_redactor(session.context)
    run = _name_run(await build_external_run(session, before), before, redact)
    run = replace(run, policy=session.config.policy.to_run_policy(run))
    history = session.config.history
    ledger = EMPTY_HISTORY if history is None else read_history(history)
    return Baseline(run, redact(reference), history=ledger.with_run(run), notes=before.notes)


def _name_run(run: RunResult, results: ExternalResults, redact: Redactor) -> RunResult:
    """Name a run after its file, so that the same results give the same name, unless that contains a secret."""
    content: list[JsonValue] = [[row.suite, row.id, str(row.status), row.response, row.error] for row in results.rows]
    name = f"{redact(Path(results.files[0]).resolve().name)[:60]}-{compute_fingerprint(content)[:8]}"
    run_id, timestamp = name if is_run_id(name) else run.run_id, _find_write_time(results.files) or run.timestamp
    suites = tuple(replace(suite, run_id=run_id, timestamp=timestamp) for suite in run.suites)
    # nothing in the file tells the commit that it is of
    return replace(run, run_id=run_id, timestamp=timestamp, git=GitFacts(), suites=suites)


def _find_write_time(files: Sequence[str]) -> str | None:
    """Return when the newest of these files and folders was written; None where that is not known."""
    times = [path.stat().st_mtime for path in map(Path, files) if path.exists()]
    return datetime.fromtimestamp(max(times), UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if times else None
