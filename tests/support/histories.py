"""A branch and a pull request out of tapes of letters, run and judged by the functions that the commands use.

A tape says how the executions of one case in one run end, the first one first: `P` passed, `F` failed, `C` crashed, `T`
too late, `U` unreachable, `O` ours. Who asks for a re-run takes the next letter; the last one is repeated. Where the
case is graded, a pass is a score of 0.85, which passes only a gate that asks for less than 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from eval_gate.config.policy import Policy
from eval_gate.engine.case_result import build_trial, build_unrun_result, count_reruns_as_new, join_trials
from eval_gate.engine.journal import TrialRecord
from eval_gate.gate.evidence.prior import Prior, learn_prior
from eval_gate.gate.reruns import Reruns
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.model.case import Aggregation, CaseKey, EvalCase, Location
from eval_gate.model.comparison import ReasonCode
from eval_gate.model.evidence import Counts
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.model.result import CaseResult, GitFacts, RerunStopReason, RunResult
from eval_gate.results.baseline import Baseline, NoBaseline, has_enough_scores
from eval_gate.results.history import EMPTY_HISTORY, History
from eval_gate.session.history_update import build_next_history
from eval_gate.struct import replace
from tests.support.cases import make_case
from tests.support.results import make_run, make_suite_result
from tests.support.reuse import reuse_suites

GRADED_PASS, GRADED_FAIL = 0.85, 0.3
_BLAME = {
    "C": ErrorKind.AGENT_ERROR,
    "T": ErrorKind.AGENT_ERROR,
    "U": ErrorKind.AGENT_UNREACHABLE,
    "O": ErrorKind.EVALUATION_ERROR,
}
NONE_YET = NoBaseline(ReasonCode.NO_RUN_YET, "there is none yet")


@dataclass(frozen=True)
class Asked:
    """One case of a run: where it stands, what it measures, and its tape."""

    suite: str
    id: str
    tape: str
    measures: str = ""
    graded: bool = False
    dependent: bool = False
    tags: tuple[str, ...] = ()
    line: int = 1

    @property
    def key(self) -> CaseKey:
        return CaseKey(self.suite, self.id)

    def case(self) -> EvalCase:
        return make_case(
            self.id,
            fingerprint=self.measures or f"measures {self.suite} {self.id}",
            aggregation=Aggregation.WEIGHTED_MEAN if self.graded else Aggregation.ALL,
            tags=self.tags,
            location=Location(file=self.suite, line=self.line),
        )

    def record(self, at: int) -> TrialRecord:
        """The execution with this number."""
        letter = self.tape[min(at, len(self.tape) - 1)]
        passed = letter == "P"
        score = (GRADED_PASS if passed else GRADED_FAIL) if self.graded else float(passed)
        status = {"P": Status.FAILED if self.graded else Status.PASSED, "F": Status.FAILED}.get(letter, Status.ERROR)
        return TrialRecord(
            eval_file=self.suite,
            case_id=self.id,
            trial=at,
            fingerprint="",
            status=status,
            score=score if status.is_scored else 0.0,
            error=None if status is Status.PASSED else f"it ended as {letter}",
            error_kind=_BLAME.get(letter),
            timed_out=letter == "T",
        )


@dataclass
class Engine:
    """Runs cases as the engine does: all of them once (or `trials` times), then again what is in doubt."""

    cases: Sequence[Asked]
    reruns: int = 6
    trials: int = 1
    planned: int | None = None
    fields: Mapping[str, object] = field(default_factory=dict)
    reused: frozenset[str] = frozenset()
    """Suites that are not executed: their results are the baseline's."""
    executions: int = 0
    fresh: frozenset[CaseKey] = frozenset()

    def run(self, question: GateInputs) -> RunResult:
        """The run, not judged yet."""
        self.fresh = frozenset()
        baseline = question.baseline
        cases = [one for one in self.cases if one.suite not in self.reused]
        records = {one.key: [one.record(at) for at in range(self.trials)] for one in cases}
        ends: dict[CaseKey, RerunStopReason] = {}
        tapes = {one.key: one for one in self.cases}
        if self.reruns:
            reruns = Reruns(question, self.reruns)
            doubtful = list(reruns.find_rerun_candidates(self._result(records, ends, baseline)))
            more: dict[CaseKey, list[TrialRecord]] = {key: [] for key in doubtful}
            waiting = doubtful
            while waiting and (turn := reruns.select_next(waiting)):
                for key in turn:
                    while reruns.should_rerun(key, [build_trial(one) for one in more[key]]):
                        more[key].append(tapes[key].record(self.trials + len(more[key])))
                waiting = [key for key in waiting if key not in set(turn)]
            for key, mine in more.items():
                records[key] += mine
                ends[key] = reruns.get_rerun_end(key, [build_trial(one) for one in mine])
            self.fresh = frozenset(reruns.new_cases)
        self.executions += sum(map(len, records.values()))
        return self._result(records, ends, baseline)

    def _result(
        self,
        records: Mapping[CaseKey, list[TrialRecord]],
        ends: Mapping[CaseKey, RerunStopReason],
        baseline: Baseline | NoBaseline,
    ) -> RunResult:
        suites: dict[str, list[CaseResult]] = {}
        for one in self.cases:
            if one.suite in self.reused:
                continue
            made = join_trials(
                build_unrun_result(one.case()), records[one.key], first=self.trials, end=ends.get(one.key)
            )
            made = count_reruns_as_new(made) if one.key in self.fresh else made
            suites.setdefault(one.suite, []).append(replace(made, dependent=one.dependent))
        made_suites = [make_suite_result(cases, eval_file=file) for file, cases in suites.items()]
        planned = len(self.cases) if self.planned is None else self.planned
        made_run = make_run(*made_suites, reruns=self.reruns, planned_cases=planned, **self.fields)
        return reuse_suites(made_run, baseline.result, self.reused) if isinstance(baseline, Baseline) else made_run


@dataclass(frozen=True)
class Branch:
    """The newest measured run of the default branch, and the ledger that its artifact carries."""

    newest: RunResult | None = None
    ledger: History = EMPTY_HISTORY

    @property
    def baseline(self) -> Baseline | NoBaseline:
        return NONE_YET if self.newest is None else Baseline(self.newest, "main", history=self.ledger)

    def pushed(self, cases: Sequence[Asked], policy: Policy, number: int, **options) -> Branch:
        """The branch after one more run of it, which is compared with the one before; an outage is no baseline."""
        named = {"run_id": f"main-{number}", "timestamp": f"2026-10-{number + 1:02}T10:00:00Z"}
        named["git"] = GitFacts(sha=f"{number:040x}")
        question = GateInputs(self.baseline, policy)
        judged = decide_verdict(Engine(cases, fields=named, **options).run(question), question)
        return Branch(judged, build_next_history(judged, self.baseline)) if has_enough_scores(judged) else self


def permuted_ledger(ledger: History) -> History:
    """The same ledger with its suites and cases the other way round."""
    suites = {suite: dict(reversed(list(cases.items()))) for suite, cases in reversed(list(ledger.suites.items()))}
    return replace(ledger, suites=suites)


def learned(records: Iterable[Counts]) -> Prior:
    """The prior of a suite whose cases have these records."""
    return learn_prior(Counter((record.passes, record.failures) for record in records))
