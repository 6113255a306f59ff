"""Results that another tool made, as a run of ours: the same record, evidence and verdict as for own evals."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from typing import Final

from eval_gate import __version__
from eval_gate.config.settings import OF_OTHER_TOOLS, RunConfig
from eval_gate.engine.preparing.context import RunContext
from eval_gate.engine.preparing.yardstick import run_settings
from eval_gate.engine.retention import for_record
from eval_gate.engine.settling import known_anew
from eval_gate.errors import ExitCode, GateError
from eval_gate.gate.moved_cases import earlier_keys
from eval_gate.gate.yardstick import LEAST_OF_ANOTHER_TOOL
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import Status
from eval_gate.model.policy import Measuring
from eval_gate.model.result import CaseResult, RerunEnd, RunResult, SuiteResult, ToolIdentity
from eval_gate.model.setup import TargetIdentity
from eval_gate.model.totals import summarise
from eval_gate.reports.words.numbers import count, percent
from eval_gate.result_formats.load import BroughtResults, load_results
from eval_gate.results.baseline import Baseline
from eval_gate.session.rows import case_of, rules_of, storable
from eval_gate.session.run import reruns_of
from eval_gate.session.session import Session
from eval_gate.session.tool_reruns import BaseAgent, RerunSpending, ToolReruns, redactor_of
from eval_gate.struct import FrozenStruct, replace

_NO_PASS: Final = frozenset({Status.FAILED, Status.ERROR})


class BroughtRun(FrozenStruct):
    """The run, and what is to be said of how its cases were known again."""

    run: RunResult
    words: tuple[str, ...]


def read_brought(config: RunConfig, paths: Sequence[str], context: RunContext) -> BroughtResults:
    """The results in these files, without the secrets that are set here. Raises GateError."""
    rules = rules_of(config)
    found = load_results(paths, config.results.format, rules, redactor_of(context))
    unused = rules.unused()
    notes = (f"no result has the score of {', '.join(unused)}",) if unused else ()
    if many := rules.off_scale:
        has = "has a score" if many == 1 else "have scores"
        what = f"{count(many, 'result')} {has} outside of 0 to 1: the pass score says nothing about them"
        notes = (*notes, f"{what}, and the tool's verdict counts")
    return replace(found, notes=(*found.notes, *notes))


async def brought_run(session: Session, brought: BroughtResults) -> BroughtRun:
    """The run that these results are, with the cases in doubt run again where a command says how. Raises GateError.

    The rows are taken out of `brought` where nothing is run again: those of many cases are as large as the run.
    """
    config = session.config
    rules, confirm = config.results.scores, session.most_reruns
    named_by = ", ".join(dict.fromkeys(row.named_by for row in brought.rows))
    unstable = brought.unstable_words(_names_before(session))
    notes = (*brought.notes, *([unstable] if unstable else []), *_unasked(config))
    brought = replace(brought, cases=await storable(config, brought.cases), notes=notes)
    again_by, base_by = config.results.rerun_command, config.control.command
    rows_of = brought.cases.items() if again_by or base_by else brought.let_go()
    cases = {key: case_of(rows, (), None, rules, confirm=confirm) for key, rows in rows_of}
    run = _run(session, brought, cases)
    reruns = reruns_of(session)
    _refuse_a_rest(run, session)
    run = _with_overlap(run, session, unstable)
    doubtful = list(reruns.doubtful(run)) if confirm else []
    spending = RerunSpending(config)
    again = ToolReruns(session, brought, reruns, doubtful, spending) if doubtful and again_by else None
    base = BaseAgent(session, brought, spending) if base_by and confirm else None

    async def now() -> RunResult:
        """The run, with what the re-runs have brought so far."""
        if again is None:
            impossible = frozenset(doubtful) - reruns.fresh
            if confirm and again_by is None:  # also where re-runs would show nothing that its record does not say
                impossible |= _broken_here(run, session)
            return _not_again(run, impossible) if impossible else run
        said, ends = await storable(config, again.rows), again.ends
        for key in doubtful:
            case = case_of(brought.cases[key], said.get(key, ()), ends[key], rules, confirm=confirm)
            cases[key] = known_anew(case) if key in reruns.fresh else case
        made = _run(session, replace(brought, notes=(*brought.notes, *again.notes)), cases)
        return _with_overlap(made, session, unstable)

    if again is not None:
        await again.go_on()
    made = await now()
    while base is not None and await base.ask(made, reruns) and again is not None:
        await again.go_on()  # what was spared because of what is cleared now
        made = await now()
    return BroughtRun(base.ended(made) if base else made, tuple(_known_again(made, named_by, session)))


def _names_before(session: Session) -> Set[CaseKey]:
    """The names in the baseline, where there is one of another tool's results."""
    baseline = session.question.baseline
    if not isinstance(baseline, Baseline) or not baseline.result.by_another_tool:
        return frozenset()
    return baseline.result.by_key().keys()


def _broken_here(run: RunResult, session: Session) -> Set[CaseKey]:
    """The failing cases that passed in the baseline."""
    baseline = session.question.baseline
    if not isinstance(baseline, Baseline):
        return frozenset()
    there, earlier = baseline.result.by_key(), earlier_keys(baseline.result, run)
    failing = (key for key, case in run.cases() if case.status is Status.FAILED)
    return {key for key in failing if (then := there.get(earlier.get(key, key))) is not None and then.passed}


def _unasked(config: RunConfig) -> tuple[str, ...]:
    """What is worth a line where somebody named the base branch's agent in a way that these results cannot use."""
    named = config.control.named
    if named is None or config.control.command is not None:
        return ()
    return (
        (
            "the base branch's agent is not asked about results of another tool by controlEndpoint or controlTarget: "
            "only that tool can run its cases, and controlCommand says how"
        ),
    )


def _refuse_a_rest(run: RunResult, session: Session) -> None:
    """Raise GateError `results-incomplete` for too few of as many cases as the baseline holds of this tool.

    Most formats do not say how many cases there were to be, and a tool that dies leaves what it had done: all of that
    may well pass.
    """
    baseline, said = session.question.baseline, session.config.policy.min_coverage
    if not isinstance(baseline, Baseline):
        return
    least = LEAST_OF_ANOTHER_TOOL if said is None else said
    before = baseline.result
    then, now = before.summary.total_cases, run.summary.total_cases
    if before.by_another_tool and before.target.provider == run.target.provider and now < then * least:
        raise GateError(
            "results-incomplete",
            f"these results hold {count(now, 'case')}, and the baseline holds {then}: less than {percent(least)}",
            "see whether the tool came to its end; where so few are meant, say `minCoverage: 0`",
            exit_code=ExitCode.INCOMPLETE,
        )


def _with_overlap(run: RunResult, session: Session, unstable: str | None) -> RunResult:
    """The run, which says before all else where fewer than half of its cases are known in the baseline.

    Raises GateError `results-other-names` where one of the others fails: it may have passed under its other name.
    """
    known = _Known.of(run, session)
    if known is None or known.count * 2 >= known.possible:
        return run
    said = f"only {known.count} of {count(run.summary.total_cases, 'case')} are in the baseline"
    failing = [key for key, case in run.cases() if key not in known.keys and case.status in _NO_PASS]
    if failing and session.config.policy.min_coverage != 0:
        raise GateError(
            "results-other-names",
            f"{said}, and {failing[0].case_id[:100]} fails: nobody knows whether it passed under another name",
            f"{unstable or 'give the cases names that stay'}; where they were renamed on purpose, say `minCoverage: 0`",
            exit_code=ExitCode.INCOMPLETE,
        )
    what = f"{said}: what the others did before is not known, and none of them can be a regression"
    return replace(run, warnings=(what, *run.warnings))


class _Known(FrozenStruct):
    """The cases of a run that are in its baseline, by their names or by what is asked."""

    keys: Set[CaseKey]
    possible: int
    """As many as could be: of the smaller side all."""

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self.keys)

    @classmethod
    def of(cls, run: RunResult, session: Session) -> _Known | None:
        """None where there is no baseline of the same tool with cases."""
        baseline = session.question.baseline
        if not isinstance(baseline, Baseline):
            return None
        before = baseline.result
        if not before.by_another_tool or before.target.provider != run.target.provider:
            return None
        there = before.by_key()
        keys = {key for key, _ in run.cases() if key in there} | {*earlier_keys(before, run)}
        return cls(keys, min(len(there), run.summary.total_cases))


def _not_again(run: RunResult, doubtful: Set[CaseKey]) -> RunResult:
    """The run in which nobody could run the cases in doubt again."""
    return run.with_cases(
        {key: replace(case, rerun_end=RerunEnd.IMPOSSIBLE) for key, case in run.cases() if key in doubtful}
    )


def _run(session: Session, brought: BroughtResults, cases_by_key: Mapping[CaseKey, CaseResult]) -> RunResult:
    made = datetime.now(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")
    run_id = str(uuid.uuid4())
    by_suite: dict[str, list[CaseResult]] = {}
    for key, case in cases_by_key.items():
        by_suite.setdefault(key.suite, []).append(for_record(case, session.config.limits.store))
    suites = tuple(
        SuiteResult(
            run_id=run_id,
            timestamp=made,
            tier=None,
            tool_name=suite,
            eval_file=suite,
            format=brought.format.value,
            cases=tuple(cases),
            summary=summarise(cases),
        )
        for suite, cases in by_suite.items()
    )
    whole = suites[0].summary if len(suites) == 1 else summarise([case for one in suites for case in one.cases])
    name = brought.format.value
    return RunResult(
        run_id=run_id,
        timestamp=made,
        complete=True,
        tool=ToolIdentity(version=__version__),
        target=TargetIdentity(name=name, provider=name, identity=brought.tool),
        git=session.context.git,
        suites=suites,
        summary=whole,
        warnings=brought.notes,
        planned=whole.total_cases - whole.skipped,
        confirm=session.most_reruns,
        measuring=Measuring(
            confirm=session.config.policy.most_reruns,
            scores=tuple(map(str, session.config.results.scores)),
            control=session.config.control.named_command,
            settings=tuple(
                one for one in run_settings(session.config, redactor_of(session.context)) if one.name in OF_OTHER_TOOLS
            ),
        ),
    )


def _known_again(run: RunResult, named_by: str, session: Session) -> Iterator[str]:
    """By what cases are known again, and how many of them were: `118 of 120 cases are in the baseline, by name`."""
    baseline = session.question.baseline
    total = run.summary.total_cases
    if not isinstance(baseline, Baseline):
        yield f"{count(total, 'case')}, named by {named_by}"
        return
    there, moved = baseline.result.by_key(), earlier_keys(baseline.result, run)
    same = sum(key in there for key, _ in run.cases())
    again = f", {len(moved)} more under another name by what is asked" if moved else ""
    verb = "is" if total == 1 else "are"
    yield f"{same} of {count(total, 'case')} {verb} in the baseline by {named_by}{again}"
