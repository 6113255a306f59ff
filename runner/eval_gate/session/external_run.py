"""Turn external results into a run, with re-runs and base agent if commands are configured."""

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
from eval_gate.results.trace_links import link_case_traces
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
    format_name, redact = config.results.format, build_redactor(context)
    results = load_external_results(paths, format_name, rules, redact, config.results.encoding)
    unused = rules.list_unused_rules()
    notes = (f"no result has the score {', '.join(unused)}",) if unused else ()
    if many := rules.off_scale:
        which = format_count(many, "result has a score", "results have scores")
        what = f"{which} outside of 0 to 1: the pass score does not apply to them"
        notes = (*notes, f"{what}, and the verdict of the tool counts")
    return replace(results, notes=(*results.notes, *notes))


async def build_external_run(session: Session, results: ExternalResults) -> RunResult:
    """Build the run of these external results as they are, without re-runs."""
    config, max_reruns = session.config, session.max_reruns
    rows = await redact_rows(config, results.cases)
    cases = {key: build_case_result(one, (), None, config, max_reruns=max_reruns) for key, one in rows.items()}
    return _build_run(session, results, cases)


async def make_external_run(session: Session, results: ExternalResults) -> ExternalRun:
    """Make the run of these external results, and re-run suspected cases if a command is configured.

    The rows are removed from `results` if nothing is re-run: the rows of many cases are as large as the run.
    Raises GateError.
    """
    config, max_reruns = session.config, session.max_reruns
    named_by = ", ".join(dict.fromkeys(row.named_by for row in results.rows))
    unstable = results.describe_unstable_names(_find_baseline_keys(session))
    notes = (*results.notes, *([unstable] if unstable else []), *_describe_unused_base_agent(config))
    results = replace(results, cases=await redact_rows(config, results.cases), notes=notes)
    again_by, base_by = config.results.rerun_command, config.base_agent.command
    rows_of = results.cases.items() if again_by or base_by else results.drain_cases()
    cases = {key: build_case_result(rows, (), None, config, max_reruns=max_reruns) for key, rows in rows_of}
    run = _build_run(session, results, cases)
    reruns = build_reruns(session)
    check_coverage(run, session)
    run = mark_missing_cases(_check_overlap(run, session, unstable), session)
    doubtful = list(reruns.find_rerun_candidates(run)) if max_reruns else []
    doubtful = [key for key in doubtful if key not in reruns.fixes]  # a tool's command may re-run only what fails
    spending = RerunSpending(config)
    tool_reruns = ToolReruns(session, results, reruns, doubtful, spending) if doubtful and again_by else None
    base = ToolBaseAgent(session, results, spending) if base_by and max_reruns else None

    async def build_run() -> RunResult:
        """Build the run with the results of the re-runs so far."""
        if tool_reruns is None:
            impossible = frozenset(doubtful) - reruns.new_cases
            if max_reruns and again_by is None:  # also if the history decides without re-runs
                impossible |= _find_new_failures(run, session)
            return _mark_rerun_impossible(run, impossible) if impossible else run
        rows, ends = await redact_rows(config, tool_reruns.rows), tool_reruns.ends
        for key in doubtful:
            case = build_case_result(results.cases[key], rows.get(key, ()), ends[key], config, max_reruns=max_reruns)
            cases[key] = count_reruns_as_new(case) if key in reruns.new_cases else case
        result = _build_run(session, replace(results, notes=(*results.notes, *tool_reruns.notes)), cases)
        return mark_missing_cases(_check_overlap(result, session, unstable), session)

    if tool_reruns is not None:
        await tool_reruns.rerun_suspects()
    result = await build_run()
    while base is not None and await base.clear_suspects(result, reruns) and tool_reruns is not None:
        await tool_reruns.rerun_suspects()  # a cleared suspect may make others due
        result = await build_run()
    whole = base.attach_final_results(result) if base else result
    return ExternalRun(whole, tuple(_iter_matching_notes(result, named_by, session)))


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
    return {key for key, case, earlier_case in pairs if case.status is Status.FAILED and earlier_case.passed}


def _describe_unused_base_agent(config: RunConfig) -> tuple[str, ...]:
    """Describe a configured base agent that cannot run external results, as a note."""
    base_agent = config.base_agent.display_name
    if base_agent is None or config.base_agent.command is not None:
        return ()
    notice = "ignoring baseAgentEndpoint and baseAgentTarget: they do not work with results of another tool. "
    return (f"{notice}Set baseAgentCommand, because only that tool can run its cases",)


def _check_overlap(run: RunResult, session: Session, unstable: str | None) -> RunResult:
    """Warn first if the baseline knows few cases, and refuse failing ones that may have passed under another name."""
    baseline = find_same_tool(run, session)
    if baseline is None:
        return run
    baseline_cases = baseline.index_cases()
    matched = {key for key, _ in run.iter_cases() if key in baseline_cases} | {*find_earlier_keys(baseline, run)}
    if len(matched) * 2 >= min(len(baseline_cases), run.summary.total_cases):
        return run
    message = f"only {len(matched)} of {format_count(run.summary.total_cases, 'case')} are in the baseline"
    failing = [key for key, case in run.iter_cases() if key not in matched and case.status in _FAILING_STATUSES]
    if failing and session.config.policy.min_coverage != 0:
        raise GateError(
            "unmatched-results",
            f"{message}, and {failing[0].case_id[:100]} fails: it may have passed under another name",
            f"{unstable or 'give the cases stable names'}; if you renamed them on purpose, set `minCoverage: 0`",
            exit_code=ExitCode.INCOMPLETE,
        )
    what = f"{message}: the others have no baseline and cannot be regressions"
    return replace(run, warnings=(what, *run.warnings))


def _mark_rerun_impossible(run: RunResult, doubtful: Set[CaseKey]) -> RunResult:
    why, cases = RerunStopReason.NOT_REPEATABLE, run.index_cases()
    return run.replace_cases({key: replace(cases[key], rerun_stop_reason=why) for key in doubtful if key in cases})


def _build_run(session: Session, results: ExternalResults, cases_by_key: Mapping[CaseKey, CaseResult]) -> RunResult:
    timestamp = datetime.now(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")
    run_id = str(uuid.uuid4())
    by_suite: dict[str, list[CaseResult]] = {}
    for key, case in cases_by_key.items():
        linked = link_case_traces(case, session.config.trace_url)
        by_suite.setdefault(key.suite, []).append(prepare_for_result(linked, session.config.limits.keep_responses))
    suites = tuple(
        SuiteResult(
            run_id=run_id,
            timestamp=timestamp,
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
    unfinished = [case for case in cases_by_key.values() if case.status is Status.NOT_RUN]
    run = RunResult(
        run_id=run_id,
        timestamp=timestamp,
        complete=not unfinished,
        stop_reason=f"{unfinished[0].id[:100]}: {unfinished[0].error}" if unfinished else None,
        tool=ToolIdentity(version=__version__),
        target=TargetIdentity(name=name, provider=name, identity=results.tool),
        git=session.context.git,
        suites=suites,
        summary=whole,
        warnings=results.notes,
        planned_cases=whole.total_cases - whole.skipped,
        reruns=session.max_reruns,
        setup=EvaluationSetup(
            passes=session.config.limits.passes,
            reruns=session.config.policy.max_reruns,
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
    return align_fingerprints(GateCases.pair(baseline.result, run)) if isinstance(baseline, Baseline) else run


def _iter_matching_notes(run: RunResult, named_by: str, session: Session) -> Iterator[str]:
    """Describe how cases are matched, and how many: `118 of 120 cases are in the baseline by name`."""
    baseline = session.gate_inputs.baseline
    total = run.summary.total_cases
    if not isinstance(baseline, Baseline):
        yield f"{format_count(total, 'case')}, named by {named_by}"
        return
    baseline_cases, moved = baseline.result.index_cases(), find_earlier_keys(baseline.result, run)
    same = sum(key in baseline_cases for key, _ in run.iter_cases())
    renamed = f", {len(moved)} more by their prompt under another name" if moved else ""
    yield f"{same} of {format_count(total, 'case is', 'cases are')} in the baseline by {named_by}{renamed}"


_MAX_NAMED: Final = 3


def check_coverage(run: RunResult, session: Session) -> None:
    """Raise GateError `results-incomplete` if the results have too few cases, compared with the baseline."""
    baseline, least = find_same_tool(run, session), _get_least_share(session)
    if baseline is None:
        return
    total, count = baseline.summary.total_cases, run.summary.total_cases
    if count < total * least:
        raise GateError(
            "results-incomplete",
            f"these results have {format_count(count, 'case')}, less than {format_percent(least)} of the {total} in "
            "the baseline",
            "check whether the tool finished; if you intend so few cases, set `minCoverage: 0`",
            exit_code=ExitCode.INCOMPLETE,
        )


def mark_missing_cases(run: RunResult, session: Session) -> RunResult:
    """Mark a run as incomplete if too few of the baseline's cases ran, and were not skipped, in a leg or in all."""
    baseline = find_same_tool(run, session)
    clauses = [] if baseline is None else list(_iter_missing_parts(run, baseline, _get_least_share(session)))
    if not clauses:
        return run
    more = [f"{len(clauses) - _MAX_NAMED:,} more legs lack cases"] if len(clauses) > _MAX_NAMED else []
    return replace(run, complete=False, stop_reason="; ".join([*clauses[:_MAX_NAMED], *more]))


def find_same_tool(run: RunResult, session: Session) -> RunResult | None:
    """Return the baseline's run; None if it is not of the same tool."""
    baseline = session.gate_inputs.baseline
    if not isinstance(baseline, Baseline):
        return None
    result = baseline.result
    return result if result.is_external and result.target.provider == run.target.provider else None


def _get_least_share(session: Session) -> float:
    share = session.config.policy.min_coverage
    return DEFAULT_EXTERNAL_COVERAGE if share is None else share


def _iter_missing_parts(run: RunResult, baseline: RunResult, least: float) -> Iterator[str]:
    """Yield a clause for each leg with too few executed cases, or else one for all cases."""
    old_legs, legs, earlier = _index_legs(baseline), _index_legs(run), find_earlier_keys(baseline, run)
    counts = Counter(leg for key, own in legs.items() for leg in {own, old_legs.get(earlier.get(key, key))})
    share, is_short = f"less than {format_percent(least)}", False
    for leg, many in Counter(old_legs.values()).items():
        if leg is not None and counts[leg] < many * least:
            is_short = True
            yield f"the leg {leg[:100]} has {counts[leg]:,} of {format_count(many, 'case')} of the baseline, {share}"
    if not is_short and len(legs) < len(old_legs) * least:
        ran = f"{len(legs):,} of {format_count(len(old_legs), 'case')} of the baseline ran, {share}"
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
    results_path = parse_results_path(reference)
    if not (results_path.exists or results_path.is_glob):
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
    results = read_external_results(session.config, [reference], session.context)
    if results.format is not current.format:
        raise GateError(
            "baseline-of-other-tool",
            f"{reference} has results of {results.format}, and {current.files[0]} of {current.format}",
            "compare two results of one tool",
        )
    if both := results.sources & current.sources:
        raise GateError(
            "baseline-is-checked",
            f"the baseline {reference} is the result that is checked: {min(both).name}",
            "keep the result of the baseline in a file of its own",
        )
    redact = build_redactor(session.context)
    run = _name_run(await build_external_run(session, results), results, redact)
    run = replace(run, policy=session.config.policy.to_run_policy(run))
    history = session.config.history
    case_history = EMPTY_HISTORY if history is None else read_history(history)
    return Baseline(run, redact(reference), history=case_history.with_run(run), notes=results.notes)


def _name_run(run: RunResult, results: ExternalResults, redact: Redactor) -> RunResult:
    """Name a run after its file, so that the same results give the same name, unless that contains a secret."""
    content: list[JsonValue] = [[row.suite, row.id, str(row.status), row.response, row.error] for row in results.rows]
    name = f"{redact(Path(results.files[0]).resolve().name)[:60]}-{compute_fingerprint(content)[:8]}"
    run_id, timestamp = name if is_run_id(name) else run.run_id, _find_write_time(results.files) or run.timestamp
    suites = tuple(replace(suite, run_id=run_id, timestamp=timestamp) for suite in run.suites)
    # nothing in the file tells the commit that it is of
    return replace(run, run_id=run_id, timestamp=timestamp, git=GitFacts(), suites=suites)


def _find_write_time(files: Sequence[str]) -> str | None:
    """Return when the newest of these files and folders was written; None if unknown."""
    times = [path.stat().st_mtime for path in map(Path, files) if path.exists()]
    return datetime.fromtimestamp(max(times), UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if times else None
