"""One random history: pushes, pull requests, attacks and runs, each decision held against what was really executed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from random import Random

from eval_gate.config.policy import Policy
from eval_gate.gate.reuse_decision import EarlierRun, collect_reused
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.model.comparison import Outcome, Verdict
from eval_gate.model.result import GitFacts, ResultProducer, SuiteResult
from eval_gate.model.reuse import EvaluatedState, ReuseOff, ReuseSource, ReuseSummary
from eval_gate.results.baseline import Baseline
from eval_gate.results.history import EMPTY_HISTORY
from eval_gate.session.history_update import build_next_history
from eval_gate.struct import replace
from tests.support.histories import NONE_YET, Asked, Engine
from tests.support.results import make_result, make_run, make_suite_result
from tests.support.reuse_stories.changes import FORGERS, draw_change, fixed
from tests.support.reuse_stories.oracle import SPOILS, Faults, Oracle, build_truth
from tests.support.reuse_stories.repository import Machine, Tree, broken_cases, first_tree
from tests.support.reuse_stories.rules import Decide, Rules
from tests.support.reuse_stories.runs import FIRST_DAY, GATE, FoundRun, Pull, Request, Run, Truth, is_own

PASSED = Verdict(outcome=Outcome.PASSED, exit_code=0)
FOREIGN: dict[str, dict[str, object]] = {
    "event": {"event": "push"},
    "workflow": {"workflow": ".github/workflows/forge.yml"},
    "failed": {"conclusion": "failure"},
    "expired": {"expired": True},
}
"""Facts of runs that are not the pull request's own, or not good enough."""
FLAKY = frozenset({"a2", "b0", "c1"})


@dataclass(frozen=True)
class Commit:
    """A commit, with all before it."""

    tree: Tree
    ancestors: frozenset[str] = frozenset()


@dataclass
class Story:
    """One history. `wrong` is what was reused and must not be."""

    seed: int
    read_state: Callable[[Tree, Machine], EvaluatedState]
    rules: Rules = field(default_factory=Rules)
    attacks: float = 2
    """How often somebody forges a result; other steps weigh from 0.5 to 5."""
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    """Suites that were executed although their result could have been reused."""
    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.draw = Random(self.seed)
        self.at = FIRST_DAY
        self.machine, self.world = Machine(), frozenset[str]()
        self.commits = {"c0": Commit(first_tree(), frozenset({"c0"}))}
        self.main = ["c0"]
        self.pulls: list[Pull] = []
        self.runs: list[Run] = []
        self.requests: list[Request] = []

    # the repository

    def commit(self, tree: Tree, *parents: str) -> str:
        sha = f"c{len(self.commits)}"
        before = frozenset[str]().union(*(self.commits[one].ancestors for one in parents))
        self.commits[sha] = Commit(tree, before | {sha})
        return sha

    def tree(self, sha: str) -> Tree:
        return self.commits[sha].tree

    def test_merge(self, pull: Pull) -> Tree:
        """What GitHub checks out for a pull request: its changes on the tip of main."""
        changes = self.tree(pull.base).differences(self.tree(pull.head))
        return self.tree(self.main[-1]).replaced(changes)

    def compare(self, run: Run, head: str) -> FoundRun:
        """Compare two commits as GitHub does: by their merge base, with renames, and no more than 300 files."""
        earlier, known = self.commits[run.sha].ancestors, self.commits[head].ancestors
        base = max(earlier & known, key=lambda sha: len(self.commits[sha].ancestors))
        before, after = self.tree(base), self.tree(head)
        changes = before.differences(after)
        gone = {before.files[path]: path for path, file in changes.items() if file is None}
        files = []
        for path, file in changes.items():
            if file is None and path not in {gone.get(one) for one in changes.values() if one is not None}:
                files.append((path, None))
            elif file is not None:
                files.append((path, gone.get(file) if path not in before.files else None))
        return FoundRun(run, base, len(known - earlier), tuple(files[:300]))

    # what happens

    def tell(self) -> Story:
        """The whole history."""
        self.run(self.on_main("push"))
        steps: dict[Callable[[], object], float] = {
            self.open_pull: 3,
            self.push_to_pull: 7.5,
            self.force_push: 1,
            self.merge_pull: 3,
            self.push_to_main: 3,
            self.run_again: 1.5,
            self.run_without_change: 1,
            self.drift: 1.5,
            self.attack: self.attacks,
            self.wait: 1,
        }
        for _ in range(self.draw.randint(8, 18)):
            self.at += timedelta(hours=self.draw.choice([0.2, 1, 5, 24, 50]))
            self.draw.choices(list(steps), list(steps.values()))[0]()
        self.push_to_main()
        return self

    def say(self, what: str) -> None:
        self.lines.append(f"{self.at:%m-%d %H:%M} {what}")

    def wait(self) -> None:
        self.at += timedelta(days=self.draw.choice([3, 8, 20]))

    def drift(self) -> None:
        """Let the world outside of the repository change."""
        case = self.draw.choice([f"{letter}{number}" for letter in "abc" for number in range(3)])
        image = self.draw.choice([None, "1", "2", f"3 breaks {case}"])
        machines = [
            replace(self.machine, image=image),
            Machine(self.machine.image, self.draw.choice(["1.0.0", "1.1.0"])),
        ]
        if self.draw.random() < 0.5:
            self.machine = self.draw.choice(machines)
        else:
            self.world = self.draw.choice([frozenset(), frozenset({case})])
        self.say(f"outside: {self.machine}, {sorted(self.world)}")

    def changed_tree(self, tree: Tree) -> Tree:
        what, changes = draw_change(self.draw, tree)
        self.say(f"change: {what}")
        return tree.replaced(changes)

    def an_open_pull(self) -> Pull | None:
        found = [one for one in self.pulls if one.open]
        return self.draw.choice(found) if found else None

    def open_pull(self) -> None:
        base = self.main[-1]
        fork = self.draw.random() < 0.2
        head = self.commit(self.changed_tree(self.tree(base)), base)
        pull = Pull(
            len(self.pulls) + 1, base, head, fork, self.draw.choice(["topic", *[f"topic-{len(self.pulls)}"] * 4])
        )
        pull.opened = self.at
        self.pulls.append(pull)
        self.check_pull(pull)

    def push_to_pull(self) -> None:
        if pull := self.an_open_pull():
            before = self.tree(pull.head)
            document = {"README.md": f"Read me {self.draw.random()}"}
            after = before.replaced(document) if self.draw.random() < 0.4 else self.changed_tree(before)
            pull.head = self.commit(after, pull.head)
            self.check_pull(pull)

    def force_push(self) -> None:
        if pull := self.an_open_pull():
            again = self.draw.random() < 0.5
            tree = self.tree(pull.head) if again else self.changed_tree(self.tree(pull.base))
            pull.head, pull.moves = self.commit(tree, pull.base), (*pull.moves, self.at)
            self.check_pull(pull)

    def merge_pull(self) -> None:
        pull = self.an_open_pull()
        if pull is None or self.test_merge(pull).forges:
            return
        newest = next((one for one in reversed(self.runs) if one.pull is pull), None)
        if newest is None or (newest.conclusion != "success" and self.draw.random() < 0.8):
            return
        self.main.append(self.commit(self.test_merge(pull), self.main[-1], pull.head))
        pull.open = False
        self.run(self.on_main("push"))

    def push_to_main(self) -> None:
        tree = self.tree(self.main[-1])
        broken = fixed(tree)
        tree = tree.replaced(broken) if broken and self.draw.random() < 0.7 else self.changed_tree(tree)
        self.main.append(self.commit(tree, self.main[-1]))
        self.run(self.on_main("push"))

    def run_again(self) -> None:
        """A later attempt of a workflow run."""
        if self.requests:
            again = self.draw.choice(self.requests[-6:])
            self.run(replace(again, attempt=again.attempt + 1, at=self.at, world=self.world, machine=self.machine))

    def run_without_change(self) -> None:
        event = self.draw.choice(["workflow_dispatch", "schedule"])
        self.run(replace(self.on_main(event), selected=self.draw.random() < 0.25))

    def on_main(self, event: str) -> Request:
        sha = self.main[-1]
        return Request(event, sha, self.tree(sha), self.machine, self.world, self.at, number=len(self.runs) + 1)

    def on_pull(self, pull: Pull) -> Request:
        tree = self.test_merge(pull)
        number = len(self.runs) + 1
        return Request("pull_request", pull.head, tree, self.machine, self.world, self.at, pull, number=number)

    def check_pull(self, pull: Pull) -> None:
        if self.draw.random() < 0.9:
            self.run(self.on_pull(pull))

    def attack(self) -> None:
        """Break an agent, and store a forged pass of it under this pull request."""
        pull = self.an_open_pull()
        if pull is None:
            return
        letter = self.draw.choice("abc")
        evil = self.tree(pull.head).replaced({f"agents/{letter}/agent.py": f"agent breaks {letter}0"})
        self.draw.choice([self.hide_forger, self.hide_forger, self.push_forger_away, self.forge_elsewhere])(pull, evil)
        self.check_pull(pull)

    def hide_forger(self, pull: Pull, evil: Tree) -> None:
        """Forge by one commit, and hide the forger by the next one."""
        name, (forger, hidden) = self.draw.choice(list(FORGERS.items()))
        start, clean = pull.head, evil.replaced(hidden)
        pull.head = self.commit(clean, start)
        claimed = self.on_pull(pull)
        pull.head = self.commit(evil.replaced(forger), start)
        self.store_forged(self.on_pull(pull), claimed)
        forced = self.draw.random() < 0.3
        pull.head = self.commit(clean, pull.base if forced else pull.head)
        pull.moves += (self.at + timedelta(minutes=5),) if forced else ()
        self.say(f"attack: a forger {name}")

    def push_forger_away(self, pull: Pull, evil: Tree) -> None:
        """Forge by a commit that a force push removes, so that the comparison with it names only a document."""
        start = self.commit(evil, pull.head)
        pull.head = self.commit(evil.replaced({"NEWS.adoc": "pushed away"}), start)
        clean, claimed = pull.head, self.on_pull(pull)
        pull.head = self.commit(evil.replaced({"tools/hook.py": "forge a result"}), start)
        self.store_forged(self.on_pull(pull), claimed)
        pull.head = clean
        pull.moves += (self.at + timedelta(minutes=5),)
        self.say("attack: a forger is pushed away")

    def forge_elsewhere(self, pull: Pull, evil: Tree) -> None:
        """Forge by a run of the same commit that is none of this gate in this pull request, or that failed."""
        pull.head = self.commit(evil, pull.head)
        kind = self.draw.choice([*FOREIGN, "gate", "fork", "second pull"])
        self.store_forged(self.on_pull(pull), self.on_pull(pull), kind)
        self.say(f"attack: forged elsewhere ({kind})")

    def store_forged(self, request: Request, claimed: Request, kind: str = "") -> None:
        """Store a result that says that the tree of `claimed` passes, and was evaluated."""
        number = len(self.runs) + 1
        self.counts["attacks"] += 1
        suites = [
            make_suite_result([make_result(one["id"]) for one in cases], eval_file=suite)
            for suite, cases in claimed.tree.suites.items()
        ]
        state = self.read_state(claimed.tree, claimed.machine)
        result = make_run(*suites, **self.facts(request, number), evaluated_state=state, verdict=PASSED)
        truths = {suite: Truth(None, {}, request.at, forged=True) for suite in claimed.tree.suites}
        run = Run(number, request.event, request.sha, request.tree, request.machine, request.at, result, truths)
        run.pull, run.flaw = request.pull, "forged"
        for name, value in FOREIGN.get(kind, {}).items():
            setattr(run, name, value)
        if kind == "gate":
            run.gate, run.result = "another", replace(result, producer=ResultProducer(gate="another", run_id=number))
        elif kind == "fork" and request.pull is not None:
            run.pull = replace(request.pull, number=0, fork=True)
        elif kind == "second pull" and request.pull is not None:  # of the same branch into one that has the forger
            run.pull = replace(request.pull, number=len(self.pulls) + 1, open=False)
            self.pulls.append(run.pull)
        self.runs.append(run)

    # runs

    def facts(self, request: Request, number: int) -> dict[str, object]:
        return {
            "run_id": f"run-{number}",
            "timestamp": request.at.isoformat(),
            "git": GitFacts(sha=request.sha, run_id=number, attempt=request.attempt),
            "producer": ResultProducer(gate=GATE, run_id=number, attempt=request.attempt),
        }

    def run(self, request: Request) -> None:
        """Decide, execute what is left, judge and store."""
        self.requests.append(request)
        state = self.read_state(request.tree, request.machine)
        baseline = self.find_baseline(request)
        found = self.find_own(request)
        own = self.rules.find_own(found, request, state, self.pulls)
        sources = [EarlierRun(baseline.result, ReuseSource.BASELINE)] if baseline else []
        sources += [EarlierRun(one, ReuseSource.OWN_RUN) for one in own]
        at = {"is_run_of_branch": request.is_run_of_branch, "decided_at": request.at}
        decide = partial(self.rules.decide, state, **at)
        summary = decide(sources, off=request.off)
        oracle = Oracle(request, self.runs, {one.run.number for one in found if is_own(one, request)})
        self.note(oracle.check(sources, summary))
        self.probe(oracle, decide, sources)
        if self.wrong:
            return  # there may be no such result
        reused = collect_reused(summary, sources)
        if set(reused) != {one.suite for one in summary.reused_suites}:
            self.wrong.append(f"seed {self.seed}: reused {sorted(reused)}, and says {summary.reused_suites}")
        self.count(request, summary)
        number = len(self.runs) + 1
        given = Baseline(baseline.result, "main", history=baseline.history) if baseline else NONE_YET
        question = GateInputs(given, Policy())
        executed = self.execute(request, question, [one for one in request.tree.suites if one not in reused], number)
        suites = [reused.get(one) or executed[one] for one in request.tree.suites]
        cut = self.draw.random() < 0.05
        result = make_run(
            *suites,
            **self.facts(request, number),
            evaluated_state=state,
            reuse=summary,
            partial=request.selected,
            **({"complete": False, "stop_reason": "the budget was used up"} if cut else {}),
        )
        result = decide_verdict(result, question)
        flaw = "failed" if not result.has_passed else "incomplete" if cut else "partial" if request.selected else ""
        truths = {suite: build_truth(request, suite) for suite in executed}
        self.say(f"run {number}: {request.event} {request.sha} reused {sorted(reused)}: {flaw or 'passed'}")
        run = Run(number, request.event, request.sha, request.tree, request.machine, request.at, result, truths)
        run.pull, run.attempt, run.flaw = request.pull, request.attempt, flaw
        run.history = build_next_history(result, given) if request.pull is None else EMPTY_HISTORY
        run.conclusion = "success" if result.has_passed else "failure"
        self.runs.append(run)

    def find_baseline(self, request: Request) -> Run | None:
        """The newest run of main that passed, by what its commit knows; sometimes a run that somebody named."""
        named = self.draw.random() < 0.05
        runs = [
            one for one in self.runs if not (one.flaw or one.expired or one.tree.forges) and (named or one.pull is None)
        ]
        known = set(self.main) if request.pull else self.commits[request.sha].ancestors
        runs = runs if named else [one for one in runs if one.pull is None and one.sha in known]
        return (self.draw.choice(runs) if named else runs[-1]) if runs else None

    def find_own(self, request: Request) -> list[FoundRun]:
        """What GitHub lists of earlier runs, the newest first: also those of others."""
        if request.pull is None:
            return []
        listed = [one for one in reversed(self.runs) if one.pull is not None or self.draw.random() < 0.1][:12]
        return [self.compare(one, request.sha) for one in listed]

    def execute(
        self, request: Request, question: GateInputs, suites: Sequence[str], number: int
    ) -> dict[str, SuiteResult]:
        """Execute these suites; what fails is run again, as the gate wants it."""
        asked, skipped = [], {}
        for suite in suites:
            broken = broken_cases(request.tree, request.machine, request.world, suite)
            for case in request.tree.suites[suite]:
                tape = "F" if case["id"] in broken else self.tape(case["id"])
                text = json.dumps(case)
                asked.append(Asked(suite, case["id"], tape, text, tags=()))
                skipped |= {(suite, case["id"]): True} if "skip" in case else {}
        engine = Engine(
            [one for one in asked if (one.suite, one.id) not in skipped], fields={"run_id": f"run-{number}"}
        )
        made = {suite.eval_file: suite for suite in engine.run(question).suites}
        self.counts["executions"] += engine.executions
        results = {}
        for suite in suites:
            cases = {case.id: case for case in made[suite].cases} if suite in made else {}
            own = [one.id for one in asked if one.suite == suite]
            whole = [cases.get(one) or make_result(one, "skipped", location=None) for one in own]
            results[suite] = make_suite_result(whole, eval_file=suite, run_id=f"run-{number}")
        return results

    def tape(self, case: str) -> str:
        if case in FLAKY:
            return "".join(self.draw.choices("PF", [7, 3], k=8))
        return self.draw.choices(["P", "C"], [99, 1])[0]

    def count(self, request: Request, summary: ReuseSummary) -> None:
        self.counts["runs"] += 1
        self.counts["suites"] += len(request.tree.suites)
        for one in summary.reused_suites:
            self.counts["reused"] += 1
            self.counts[f"reused from {one.reused.source}" if one.reused else ""] += 1
        self.counts["saved executions"] += summary.saved_executions
        self.counts["rechecked"] += len(summary.rechecked_suites)

    def note(self, faults: Faults) -> None:
        """Keep what the oracle found, with the story up to here."""
        for name, lines in faults.items():
            getattr(self, name).extend(f"seed {self.seed}, {self.at:%m-%d %H:%M}: {line}" for line in lines)

    def probe(self, oracle: Oracle, decide: Decide, sources: Sequence[EarlierRun]) -> None:
        """Ask for further decisions about the same state: with sources that must not count, and other reasons."""
        request = oracle.request
        newest = [one for one in self.runs[-4:] if not one.tree.forges and one.flaw != "forged"]
        spoilt = [self.draw.choice(list(SPOILS.values()))(one.result) for one in newest[-1:]]
        others = [EarlierRun(one.result, ReuseSource.BASELINE) for one in newest]
        others += [EarlierRun(one, ReuseSource.BASELINE) for one in spoilt]
        for one in others:
            self.counts["probes"] += 1
            self.note(oracle.check([one], decide([one], off=None), probe=True))
        if sources and request.off is None:
            off = self.draw.choice(list(ReuseOff))
            other = Oracle(request, self.runs, oracle.own, off)
            self.note(other.check(sources, decide(sources, off=off), probe=True))
