"""Everything a run needs, read and checked, before the first request is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from eval_gate.config.rerun_budget import RerunBudget, parse_rerun_budget
from eval_gate.config.settings import RunLimits
from eval_gate.engine.confirming import Confirming
from eval_gate.engine.judging import Judges, is_rubric
from eval_gate.model.case import CaseKey, EvalCase, EvalSuite
from eval_gate.model.policy import Measuring
from eval_gate.model.result import AskedWords, GitFacts, Shard, ShardCut, Yardstick
from eval_gate.model.selection import ChosenCases
from eval_gate.process.environment import Withheld
from eval_gate.registry.staleness import Staleness
from eval_gate.results.run_setup import RunSetup
from eval_gate.struct import FrozenStruct, field, replace
from eval_gate.targets.base import Target
from eval_gate.targets.model.recording import Recording
from eval_gate.text.redact import Redactor
from eval_gate.text.tokens import TokenData

SUITE_RERUNS: Final = 3
"""How often the usual budget for re-runs reaches for the whole of the longest suite whose cases work on each other's
files: four failures in a row decide most cases."""


class RunPlan(FrozenStruct):
    """One run, decided. `suites` hold only the selected cases; `staleness` is keyed by eval file."""

    run_id: str
    timestamp: str
    suites: tuple[EvalSuite, ...]
    target: Target
    limits: RunLimits
    tokens: TokenData
    concurrency: int | None = None
    """Cases in flight at once; None leaves it to each target."""
    staleness: Mapping[str, Staleness] = field(default_factory=dict)
    git: GitFacts | None = None
    shard: Shard | None = None
    cut: ShardCut | None = None
    """How all cases were cut into shards; None where they were not."""
    selections: tuple[ChosenCases, ...] = ()
    """Which cases were chosen; empty where all were."""
    planned: int | None = None
    """Cases of the whole plan that can be run: of all shards, and those that were not chosen among them."""
    warnings: tuple[str, ...] = ()
    targets: Mapping[tuple[str, str | None], Target] = field(default_factory=dict)
    """By eval file and the target its case wants, where that is not `target`."""
    judges: Judges = field(default_factory=Judges)
    environment: Mapping[str, str] = field(default_factory=dict)
    """What commands of eval files get of the environment."""
    withheld: Withheld = field(default_factory=Withheld)
    """What of it they do not get."""
    redact: Redactor = field(default_factory=Redactor)
    """Knows every secret of the run."""
    patterns: tuple[str, ...] = ()
    """What they find is masked in everything that is stored."""
    asked_words: Mapping[CaseKey, AskedWords] = field(default_factory=dict)
    """Question and expectation of every case, as the result has them."""
    recording: Recording | None = None
    control: Target | None = None
    """The base branch's agent, which is asked where the gate would be red; None for none."""
    confirming: Confirming | None = None
    """Who says which cases are run again; None runs none again."""
    confirm: int = 0
    """How often `confirming` may have one case run again."""
    yardsticks: Mapping[CaseKey, Yardstick] = field(default_factory=dict)
    """What every case is measured with: question, expectation, graders, seeds, snapshot, judge."""
    measuring: Measuring | None = None
    """How all cases are measured: trials, re-runs, recordings, source of the snapshot."""
    resumed: RunSetup | None = None
    """What the run was set up with before it was resumed; None for a new one."""
    keeps_files: bool = False
    """What failing cases leave in folders of agents is kept beside the record: the folders themselves are removed."""
    rubrics_wait: bool = False
    """Rubric cases are run after the others, and only when these pass."""

    def waits(self, case: EvalCase) -> bool:
        """Whether this case is run after the others."""
        return self.rubrics_wait and is_rubric(case)

    def judge_notices(self) -> tuple[str, ...]:
        """What happened while judges were asked."""
        return tuple(notice for judge in self.judges for notice in judge.notices)

    def target_of(self, case: EvalCase) -> Target:
        """Who is asked this case."""
        return self.targets.get((case.suite, case.target), self.target)

    def every_target(self) -> tuple[Target, ...]:
        """All that are asked, each once, the run's own first."""
        return tuple({id(target): target for target in (self.target, *self.targets.values())}.values())

    def concurrency_of(self, target: Target) -> int:
        """How many cases at once: as many as were asked for, else as the target says, else one."""
        return self.concurrency or target.workers or 1

    def confirmed_by(self, confirming: Confirming, confirm: int) -> RunPlan:
        """The same run, with up to `confirm` re-runs of each case that `confirming` finds doubtful."""
        return replace(self, confirming=confirming, confirm=confirm)

    def of_no_case(self) -> RunPlan:
        """All but the cases, for those who hand these over."""
        return replace(self, suites=())

    async def aclose(self) -> None:
        """Give back what targets and judges hold."""
        for holder in (*self.every_target(), *self.judges, *((self.control,) if self.control else ())):
            await holder.aclose()

    def askable(self) -> frozenset[CaseKey]:
        """The cases that the base branch's agent can be asked in place of the run's own target, each by itself."""
        control = self.control
        if control is None:
            return frozenset()
        return frozenset(
            case.key
            for case in self.runnable()
            if self.target_of(case) is self.target
            and not case.dependent
            and case.agent is None
            and (case.stubs is None or control.takes_stubs)
        )

    def rerun_budget(self) -> RerunBudget:
        """What all re-runs together may take, those of the control too."""
        if self.limits.rerun_budget is not None:
            return parse_rerun_budget(self.limits.rerun_budget)
        usual = RerunBudget.usual(len(self.runnable()) * self.limits.trials, control=self.control is not None)
        whole = Counter(case.suite for case in self.runnable() if case.dependent)
        least = SUITE_RERUNS * max(whole.values(), default=0)
        return replace(usual, executions=max(usual.executions or 0, least))

    def runnable(self) -> tuple[EvalCase, ...]:
        """The cases that can be run, in file order."""
        return tuple(case for suite in self.suites for case in suite.cases if case.skip_reason is None)
