"""A random history: pushes, forks, merges, queues, retargets, and the runs of two gates over all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from eval_gate.errors import GateError
from eval_gate.model.comparison import Outcome, Verdict
from eval_gate.results.baseline import Baseline, NoBaseline
from eval_gate.results.history import EMPTY_HISTORY
from eval_gate.struct import replace
from tests.support.github import GATE, FakeGitHub, PullRequest, State
from tests.support.histories import NONE_YET
from tests.support.jobs import pull_request_event, repository_facts
from tests.support.simulation import oracle
from tests.support.simulation.gate import Job, Runner, Said, key_of, made, name_of, stored
from tests.support.simulation.oracle import Answer, Question
from tests.support.simulation.repository import CASES, FORK, GATES, MAIN, RELEASE, Extent, GateRun, Repository

HEADS = "refs/heads/"
NIGHTLY = ".github/workflows/nightly.yml"
PLAIN = "eval-gate-results"


@dataclass
class Wrong:
    """What a run says that is not right."""

    what: str
    story: tuple[str, ...]

    def __str__(self) -> str:
        return "\n  ".join((self.what, *self.story))


@dataclass(frozen=True)
class TestMerge:
    """What a run of a pull request was given, which a later attempt of it is given again."""

    __test__ = False

    pull: PullRequest
    """As it was then."""
    sha: str
    base: str


@dataclass
class Story:
    """One history. `wrong` is what was found so far."""

    runner: Runner
    seed: int
    wrong: list[Wrong] = field(default_factory=list)
    judged: int = 0
    """Runs that were held against the oracle."""
    older: int = 0
    """Commits with a result before the baseline's, as often as somebody might have known of one."""
    lost: int = 0
    """Those that a record does not know of: runs that overlapped."""
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.draw = Random(self.seed)
        self.github: FakeGitHub = self.runner.github
        self.github.state = self.github.views.state = State()
        self.github.rest.used = 0
        self.repository = Repository(self.github.state)
        self.results: dict[tuple[int, str], Baseline] = {}
        self.merges: list[TestMerge] = []
        self.waiting: list[tuple[int, Callable[[], None]]] = []
        self.baseline_branch = self.draw.choices(["", "base"], [7, 3])[0]
        self.reruns = self.draw.random() < 0.3
        # main's results may be made by a workflow of their own
        self.workflow = self.draw.choices([GATE, NIGHTLY], [85, 15])[0]
        self.asked: dict[str, Any] = {
            "reruns": self.reruns,
            "baseline_workflow": "" if self.workflow == GATE else NIGHTLY.rpartition("/")[2],
        }
        self.state.workflow_id(self.workflow)  # its file is there before its first run
        self.runs = 0
        self.say(f"results of branches by {self.workflow.rpartition('/')[2]}")
        self.outages, self.crowds = False, 0
        self.say(f"seed {self.seed}, baseline-branch: {self.baseline_branch or 'unset'}, reruns: {self.reruns}")

    @property
    def state(self) -> State:
        return self.github.state

    def say(self, what: str) -> None:
        self.lines.append(f"{self.repository.minute:>4} {what}")

    def tell(self) -> None:
        """The whole history."""
        self.push(MAIN)
        steps = {
            self.push_somewhere: 5,
            self.open_pull: 3,
            self.push_to_pull: 2,
            self.update_pull: 1,
            self.check_pull: 5,
            self.check_again: 1,
            self.merge_pull: 2,
            self.queue: 1,
            self.release: 1,
            self.retarget: 1,
            self.promote: 1,
            self.at_night: 1,
            self.forge: 1,
            self.expire: 1,
            self.force: 0.5,
            self.crowd: 0.3,
        }
        for _ in range(self.draw.randint(8, 18)):
            self.pass_time(self.draw.choice([1, 1, 2, 5]))
            self.draw.choices(list(steps), list(steps.values()))[0]()
        self.pass_time(1)
        if self.a_pull() is None:
            self.open_pull()
        self.check_pull()

    def pass_time(self, minutes: int) -> None:
        """Let what is under way come to its end meanwhile."""
        self.repository.minute += minutes
        self.waiting.sort(key=lambda one: one[0])
        while self.waiting and self.waiting[0][0] <= self.repository.minute:
            self.waiting.pop(0)[1]()

    def changes(self) -> dict[int, str]:
        """What a commit does to cases: mostly nothing."""
        if self.draw.random() < 0.45:
            return {}
        at = self.draw.sample(range(len(GATES) * CASES), self.draw.choice([1, 1, 2]))
        return {one: self.draw.choice("PFF") for one in at}

    def tip(self, branch: str) -> str:
        return self.state.branches[branch]

    # what people do

    def push_somewhere(self) -> None:
        branch = RELEASE if RELEASE in self.state.branches and self.draw.random() < 0.2 else MAIN
        self.push(branch)

    def push(self, branch: str) -> None:
        made_of = self.repository.commit(f"push to {branch}", self.tip(branch), changes=self.changes())
        self.land(branch, made_of)

    def land(self, branch: str, sha: str, *, runs: bool = True) -> None:
        """The branch moves there, and its workflow runs, unless its paths are filtered."""
        self.move(branch, sha)
        filtered = not runs or self.draw.random() < 0.15
        self.say(f"{branch} is {sha[:7]} {self.repository.values[sha]}{', no run' if filtered else ''}")
        if not filtered:
            self.run_branch(branch, "push")

    def move(self, branch: str, sha: str) -> None:
        """A branch, and the pull request that promotes it, move on."""
        self.repository.move(branch, sha)
        for pull in self.state.pulls.values():
            if branch == MAIN and pull.state == "open" and self.promotes(pull):
                pull.head_sha = sha

    def open_pull(self) -> None:
        base = RELEASE if RELEASE in self.state.branches and self.draw.random() < 0.2 else MAIN
        line = self.repository.main_line[base]
        forked = self.draw.choice(line[-4:])
        number = len(self.state.pulls) + 1
        head = self.repository.commit(f"head of {number}", forked, changes=self.changes())
        of_fork = self.draw.random() < 0.2
        name = MAIN if of_fork and self.draw.random() < 0.5 else f"feature-{number}"
        self.state.add_pull(
            number, head_sha=head, head_ref=name, base_ref=base, base_sha=forked, head_repo=FORK if of_fork else ""
        )
        pull = self.state.pulls[number]
        self.repository.values.setdefault(pull.merge_sha, self.repository.merged(forked, head))
        self.say(f"#{number} into {base} leaves {forked[:7]}: {head[:7]} {self.repository.values[head]}")

    def a_pull(self, *, of_branch: bool = True) -> PullRequest | None:
        """An open one; one that promotes main only where it may be `of_branch`."""
        found = [one for one in self.state.pulls.values() if one.state == "open"]
        found = found if of_branch else [one for one in found if not self.promotes(one)]
        return self.draw.choice(found) if found else None

    def promotes(self, pull: PullRequest) -> bool:
        """Whether it is main itself that is merged."""
        return pull.head_ref == MAIN and pull.head_repo == self.state.full_name

    def push_to_pull(self) -> None:
        if pull := self.a_pull(of_branch=False):
            more = self.repository.commit(f"more of {pull.number}", pull.head_sha, changes=self.changes())
            self.move_head(pull, more)

    def update_pull(self) -> None:
        """The button that merges the base branch into the change."""
        if pull := self.a_pull(of_branch=False):
            tip = self.tip(pull.base_ref)
            if tip not in self.repository.ancestors(pull.head_sha):
                self.move_head(pull, self.repository.commit(f"update of {pull.number}", pull.head_sha, tip))

    def move_head(self, pull: PullRequest, sha: str) -> None:
        pull.head_sha = sha
        if pull.head_repo == self.state.full_name:
            self.state.branches[pull.head_ref] = sha
        self.say(f"#{pull.number} is {sha[:7]} {self.repository.values[sha]}")

    def merge_pull(self) -> None:
        pull = self.a_pull()
        if pull is None:
            return
        tip, way = self.tip(pull.base_ref), self.draw.choice(["merge", "squash", "rebase"])
        if self.promotes(pull):
            way = "merge"
        if way == "merge":
            sha = self.repository.commit(f"merge of #{pull.number}", tip, pull.head_sha)
        else:
            after = dict(enumerate(self.repository.merged(tip, pull.head_sha)))
            if way == "rebase":
                tip = self.repository.commit(f"first of #{pull.number}", tip)
            sha = self.repository.commit(f"{way} of #{pull.number}", tip, changes=after)
        self.close(pull, sha)
        self.say(f"#{pull.number}: {way}")
        self.land(pull.base_ref, sha)

    def close(self, pull: PullRequest, sha: str) -> None:
        pull.state, pull.merge_commit_sha = "closed", sha

    def retarget(self) -> None:
        pull = self.a_pull()
        if pull is None or RELEASE not in self.state.branches or self.promotes(pull):
            return
        pull.base_ref = RELEASE if pull.base_ref == MAIN else MAIN
        pull.base_sha = self.tip(pull.base_ref)
        self.say(f"#{pull.number} now goes into {pull.base_ref}")

    def release(self) -> None:
        """The branch of releases begins, or takes what main has."""
        tip = self.tip(MAIN)
        if RELEASE not in self.state.branches:
            self.state.branches[RELEASE] = tip
            self.repository.main_line[RELEASE] = list(self.repository.main_line[MAIN])
            self.say(f"{RELEASE} begins at {tip[:7]}")
            self.run_branch(RELEASE, "push")
        elif tip not in self.repository.ancestors(self.tip(RELEASE)):
            promoted = self.repository.commit("promotion", self.tip(RELEASE), tip)
            for pull in self.state.pulls.values():
                if pull.state == "open" and self.promotes(pull):
                    self.close(pull, promoted)
            self.land(RELEASE, promoted)

    def promote(self) -> None:
        """A pull request that brings main into the branch of releases."""
        if RELEASE not in self.state.branches or self.tip(MAIN) in self.repository.ancestors(self.tip(RELEASE)):
            return
        found = (one for one in self.state.pulls.values() if one.state == "open" and self.promotes(one))
        pull = next(found, None)
        if pull is None:
            number, tip = len(self.state.pulls) + 1, self.tip(RELEASE)
            pull = self.state.add_pull(
                number, head_sha=self.tip(MAIN), head_ref=MAIN, base_ref=RELEASE, base_sha=tip, head_repo=""
            )
            self.repository.values.setdefault(pull.merge_sha, self.repository.merged(tip, pull.head_sha))
            self.say(f"#{number} brings {MAIN} into {RELEASE}")
        self.check_merge(pull)

    def force(self) -> None:
        """A force push takes main's newest commit away."""
        before = self.state.commits[self.tip(MAIN)].parents
        if before and before[0] in self.repository.main_line[MAIN]:
            self.move(MAIN, before[0])
            self.say(f"{MAIN} is back at {before[0][:7]}")
            self.push(MAIN)

    def crowd(self) -> None:
        """A dozen of newer results that cannot serve one of the gates, or hundreds of pull requests' results."""
        self.crowds += 1
        gate, kind = self.draw.choice(GATES), self.draw.choice(["another gate", "some", "outage", "pull requests"])
        self.say(f"a crowd: {kind}, {gate}")
        if kind == "pull requests":
            for _ in range(310):
                run = self.state.add_run(self.next_run(), event="pull_request", head_branch="busy", head_sha="busy")
                self.state.add_artifact(run, b"PK", created_at=self.repository.now)
            return
        self.outages = self.outages or kind == "outage"
        for _ in range(12):
            sha = self.repository.commit("more", self.tip(MAIN))
            self.move(MAIN, sha)
            run = self.state.add_run(self.next_run(), head_branch=MAIN, head_sha=sha, path=self.workflow)
            run.created_at = self.repository.now
            extent = Extent.WHOLE if kind == "another gate" else Extent(kind)
            self.begin(run.id, gate, MAIN, sha, "push", extent)
        self.pass_time(9)

    def expire(self) -> None:
        found = [one for one in self.repository.runs if one.ended <= self.repository.minute]
        if found and (run := self.draw.choice(found)):
            for one in self.repository.runs:
                one.expired = one.expired or one.run_id == run.run_id
            for artifact in self.state.artifacts.values():
                artifact.expired = artifact.expired or artifact.run_id == run.run_id
            self.say(f"the results of run {run.run_id} expire")

    # what runs

    def run_branch(self, branch: str, event: str) -> None:
        """A run of both gates on the tip of a branch; some are cancelled, or judge some cases, or none."""
        sha = self.tip(branch)
        run = self.state.add_run(self.next_run(), event=event, head_branch=branch, head_sha=sha, path=self.workflow)
        run.created_at = self.repository.now
        for gate in self.draw.sample(GATES, len(GATES)):
            extent = Extent.WHOLE
            if event == "push":
                extent = self.draw.choices(list(Extent), [75, 10, 5, 10])[0]
            self.begin(run.id, gate, branch, sha, event, extent)

    def begin(self, run_id: int, gate: str, branch: str, sha: str, event: str, extent: Extent) -> None:
        """One gate in such a run, which stores its result when it ends."""
        now = self.repository.minute
        values = self.repository.of_gate(gate, sha)
        run = GateRun(run_id, gate, branch, sha, values, extent, now, now + self.draw.choice([0, 0, 1, 4, 9]), event)
        ref = f"{HEADS}{branch}"
        facts = {"ref": ref, "after": sha, "repository": repository_facts(self.github)}
        job = Job(run_id, gate, event, facts, sha, ref, sha, self.baseline_branch, self.workflow, **self.asked)
        self.say(f"run {run_id} of {gate} on {branch} {sha[:7]}: {extent}, until {run.ended}")
        if extent is Extent.WHOLE and self.draw.random() < 0.12 and not self.runner.whole:
            self.check(job, self.question_of_branch(run))
        self.waiting.append((run.ended, self.runner.begin(job, run, self)))
        self.repository.runs.append(run)
        self.pass_time(0)

    def store(self, run: GateRun, baseline: Baseline | NoBaseline, *, values: str = "") -> None:
        """The artifact of a run of a gate; `values` where it says something else than it has seen."""
        if run.extent is Extent.NOTHING:
            return
        at = self.repository.at(run.begun)
        workflow = self.state.runs[run.run_id].path
        own = {"run_id": run.run_id, "sha": run.sha, "at": at, "workflow": workflow}
        result = replace(made(run.gate, values or run.values, run.extent, **own), verdict=said(run))
        taken = {one.name for one in self.state.artifacts.values() if one.run_id == run.run_id}
        name = f"{PLAIN}.{key_of(run.gate, workflow)}" if PLAIN in taken else PLAIN
        ended = self.repository.at(run.ended)
        self.state.add_artifact(run.run_id, stored(result, baseline), name, created_at=ended, expired=run.expired)
        ledger = baseline.own_history if isinstance(baseline, Baseline) else EMPTY_HISTORY
        self.results[run.run_id, run.gate] = Baseline(result, "main", history=ledger.with_run(result))

    def before(self, run: GateRun) -> Baseline | NoBaseline:
        """What such a run goes on from: the newest result of its branch at or before its commit."""
        right = oracle.answer(self.repository, Question(run.run_id, run.gate, run.sha, run.sha, run.branch))
        found = [one for one in self.repository.runs if one.sha in right.baselines and one.run_id != run.run_id]
        found = [one for one in found if one.passed or one.sha != run.sha]
        found.sort(key=lambda one: one.ended, reverse=True)
        known = (self.results.get((one.run_id, run.gate)) for one in found if one.makes_baselines)
        return next((one for one in known if one is not None), NONE_YET)

    def passes(self, run: GateRun) -> bool:
        """Whether the gate of such a run passes, by what is right for it."""
        question = self.question_of_branch(run)
        right = oracle.answer(self.repository, question)
        then = [self.repository.of_gate(run.gate, sha) for sha in right.baselines] or [None]
        return all(oracle.passes(one, run.values, unknown=right.unknown) for one in then)

    def question_of_branch(self, run: GateRun) -> Question:
        """What is right for a push to a long-lived branch."""
        branch = run.branch if self.baseline_branch else MAIN
        base = run.sha
        if branch != run.branch:
            base = self.fork_point(branch, run.sha)
        return Question(run.run_id, run.gate, run.sha, base, branch)

    def fork_point(self, branch: str, sha: str) -> str:
        """Where a commit left a branch: the newest commit that both have."""
        both = self.repository.ancestors(sha) & self.repository.ancestors(self.tip(branch))
        (newest,) = oracle.newest(self.repository, both)
        return newest

    def next_run(self) -> int:
        self.runs += 1
        return 100 + self.runs

    def at_night(self) -> None:
        self.run_branch(MAIN, "schedule")

    def check_pull(self) -> None:
        """A run of a pull request: of its test merge, its head, without any `.git`, or of something else."""
        pull = self.a_pull()
        if pull is None:
            return
        way = self.draw.choices(["merge", "head", "archive", "another commit", "by hand"], [50, 25, 10, 5, 10])[0]
        match way:
            case "head":
                self.check_head(pull)
            case "another commit":
                self.check_another(pull)
            case "by hand":
                self.check_by_hand(pull)
            case _:
                self.check_merge(pull, archive=way == "archive")

    def check_again(self) -> None:
        """A run of a pull request once more: it is given what it was given, however far main has gone."""
        if self.merges:
            given = self.draw.choice(self.merges)
            self.say(f"the run of #{given.pull.number} with {given.base[:7]} again")
            self.check_given(given, given.sha)

    def check_merge(self, pull: PullRequest, *, archive: bool = False) -> None:
        base = self.tip(pull.base_ref)
        given = TestMerge(replace(pull), self.repository.test_merge(pull), base)
        self.merges.append(given)
        self.check_given(given, None if archive else given.sha)

    def check_head(self, pull: PullRequest) -> None:
        base = self.fork_point(pull.base_ref, pull.head_sha)
        merge = self.repository.test_merge(pull)
        self.check_given(TestMerge(replace(pull), merge, base), pull.head_sha)

    def check_by_hand(self, pull: PullRequest) -> None:
        """A manual start that names a pull request, on the default branch, with the change checked out."""
        merge = self.repository.test_merge(pull)
        measured = self.draw.choice([merge, pull.head_sha])
        base = self.tip(pull.base_ref) if measured == merge else self.fork_point(pull.base_ref, pull.head_sha)
        run = self.state.add_run(self.next_run(), event="workflow_dispatch", head_branch=MAIN)
        run.created_at = self.repository.now
        gate, event = self.draw.choice(GATES), {"inputs": {"pr-number": str(pull.number)}}
        event |= {"repository": repository_facts(self.github)}
        ref, sha = f"{HEADS}{MAIN}", self.tip(MAIN)
        job = Job(run.id, gate, "workflow_dispatch", event, sha, ref, measured, self.baseline_branch, **self.asked)
        self.say(f"run {run.id} of {gate} by hand for #{pull.number} with {measured[:7]}, base {base[:7]}")
        self.check(job, self.question_of_pull(run.id, gate, pull, measured, base))

    def question_of_pull(self, run_id: int, gate: str, pull: PullRequest, measured: str, base: str) -> Question:
        branch = pull.base_ref if self.baseline_branch else MAIN
        own = (pull.base_ref, pull.head_ref) if self.promotes(pull) else ()
        return Question(run_id, gate, measured, base, branch, own)

    def check_another(self, pull: PullRequest) -> None:
        """A workspace that holds the base branch, or what somebody else proposes."""
        others = [one.head_sha for one in self.state.pulls.values() if one.head_sha != pull.head_sha]
        another = self.draw.choice([self.tip(pull.base_ref), *others])
        given = TestMerge(replace(pull), self.repository.test_merge(pull), "")
        self.check_given(given, another, refused=True)

    def check_given(self, given: TestMerge, checkout: str | None, *, refused: bool = False) -> None:
        """One gate's run of a pull request."""
        pull, gate = given.pull, self.draw.choice(GATES)
        run = self.state.add_run(
            self.next_run(),
            event="pull_request",
            head_branch=pull.head_ref,
            head_sha=pull.head_sha,
            head_repo=pull.head_repo,
        )
        run.created_at = self.repository.now
        ref = f"refs/pull/{pull.number}/merge"
        event = pull_request_event(self.github, pull)
        job = Job(run.id, gate, "pull_request", event, given.sha, ref, checkout, self.baseline_branch, **self.asked)
        self.say(
            f"run {run.id} of {gate} for #{pull.number} with {(checkout or 'no checkout')[:11]}, base {given.base[:7]}"
        )
        if refused:
            self.expect_refusal(job)
            return
        measured = checkout or given.sha
        self.check(job, self.question_of_pull(run.id, gate, pull, measured, given.base))
        if self.draw.random() < 0.5:  # what a change stores is there under the same name
            self.store_for(run.id, gate, pull.head_ref, pull.head_sha, measured, "pull_request")

    def store_for(
        self, run_id: int, gate: str, branch: str, sha: str, measured: str, event: str, *, passed: bool = False
    ) -> None:
        now = self.repository.minute
        letters = self.repository.of_gate(gate, measured)
        of_fork = self.state.runs[run_id].head_repository_full_name != self.state.full_name
        run = GateRun(run_id, gate, branch, sha, letters, Extent.WHOLE, now, now, event, of_fork, passed=passed)
        self.repository.runs.append(run)
        if not self.runner.whole:
            self.store(run, NONE_YET)

    def queue(self) -> None:
        """A merge queue of one group, or of two, the second on top of the first; most of them are merged."""
        found = [one for one in self.state.pulls.values() if one.state == "open" and one.base_ref == MAIN]
        pulls = self.draw.sample(found, min(len(found), self.draw.choice([1, 2])))
        base, groups = self.tip(MAIN), []
        for pull in pulls:
            group = self.repository.commit(f"group of #{pull.number}", base, pull.head_sha)
            groups.append((pull, group))
            self.check_group(pull, group, base)
            base = group
            self.pass_time(1)
        for pull, group in groups:
            if self.tip(MAIN) not in self.repository.ancestors(group) or self.draw.random() < 0.3:
                return
            self.close(pull, group)
            self.land(MAIN, group, runs=self.draw.random() < 0.6)

    def check_group(self, pull: PullRequest, group: str, base: str) -> None:
        branch, gate = f"gh-readonly-queue/{MAIN}/pr-{pull.number}-{base}", self.draw.choice(GATES)
        run = self.state.add_run(self.next_run(), event="merge_group", head_branch=branch, head_sha=group)
        run.created_at = self.repository.now
        facts = {
            "head_sha": group,
            "head_ref": f"{HEADS}{branch}",
            "base_sha": base,
            "base_ref": f"{HEADS}{MAIN}",
        }
        event = {"action": "checks_requested", "merge_group": facts, "repository": repository_facts(self.github)}
        ref = f"{HEADS}{branch}"
        job = Job(run.id, gate, "merge_group", event, group, ref, group, self.baseline_branch, **self.asked)
        self.say(f"run {run.id} of {gate} for the group of #{pull.number} {group[:7]}, base {base[:7]}")
        passed = self.check(job, Question(run.id, gate, group, base, MAIN))
        if self.draw.random() < 0.8:
            self.store_for(run.id, gate, branch, group, group, "merge_group", passed=passed)

    def forge(self) -> None:
        """Somebody has a tag, or a fork's branch, called like main, and a result in which all is well, or nothing."""
        gate, of_fork = self.draw.choice(GATES), self.draw.random() < 0.5
        line = self.repository.main_line[MAIN]  # what runs there is what main has, and true
        found = [one.head_sha for one in self.state.pulls.values() if one.state == "open" and one.head_sha not in line]
        sha = self.draw.choice([*found, self.repository.commit("aside", self.tip(MAIN), changes=self.changes())])
        run = self.state.add_run(
            self.next_run(),
            event="pull_request" if of_fork else "push",
            head_branch=MAIN,
            head_sha=sha,
            head_repo=FORK if of_fork else self.state.full_name,
        )
        run.created_at = self.repository.now
        if not of_fork:
            self.state.tags[MAIN] = sha
        now = self.repository.minute
        made_up = GateRun(run.id, gate, MAIN, sha, "", Extent.WHOLE, now, now, run.event, of_fork, not of_fork)
        self.repository.runs.append(made_up)
        self.store(made_up, NONE_YET, values=self.draw.choice("PF") * CASES)
        self.say(f"run {run.id} of {gate} on {sha[:7]} is of a {'fork' if of_fork else 'tag'} called {MAIN}")

    # what is held against the oracle

    def expect_refusal(self, job: Job) -> None:
        self.judged += 1
        try:
            said = self.runner.judge(job, "P" * CASES, self.repository.now)
        except GateError:
            return
        self.blame(f"run {job.run_id}: another commit in the workspace is not refused", said)

    def check(self, job: Job, question: Question) -> bool:
        """Let the job look for its baseline and judge what it has measured; whatever is not right is noted.

        Whether its gate passes.
        """
        self.judged += 1
        here = self.repository.of_gate(question.gate, question.measured)
        right = oracle.answer(self.repository, question)
        try:
            said = self.runner.judge(job, here, self.repository.now)
        except GateError as error:
            self.wrong.append(Wrong(f"run {job.run_id}: refused ({error})", tuple(self.lines)))
            return False
        for what in self.mistakes(said, here, question, right):
            self.blame(f"run {job.run_id}: {what}", said)
        return said.code == 0

    def mistakes(self, said: Said, here: str, question: Question, right: Answer) -> Iterator[str]:
        """What is not right about what a run says."""
        if said.baseline is None:
            yield from self.mistaken_absence(said, here, right)
        elif said.baseline not in right.baselines:
            yield f"compared with {said.baseline[:7]}, {shown(right.baselines)} is right"
        else:
            yield from self.mistaken_blame(said, here, question, said.baseline)

    def mistaken_absence(self, said: Said, here: str, right: Answer) -> Iterator[str]:
        """The same where it compared with nothing."""
        # what is behind more than a dozen, or behind an outage of a dozen, need not be found
        hidden = (self.outages or self.crowds > 1) and said.unknown is not False
        if right.needed and not hidden:
            yield f"no baseline, {shown(right.baselines)} is right"
        if right.unknown and said.unknown is False:
            yield "no baseline, as if there never had been one"
        if said.unknown and not (right.may_be_unknown or hidden):
            yield "it is not known whether there is a baseline, and there is none"
        if said.code != (3 if said.unknown and "F" in here else 0):
            yield f"exit {said.code} for {here} without a baseline"

    def mistaken_blame(self, said: Said, here: str, question: Question, baseline: str) -> Iterator[str]:
        """The same where it compared with the right commit.

        With re-runs the record has a say in what else became of a case, and none in what this change broke.
        """
        then = self.repository.of_gate(question.gate, baseline)
        expected = oracle.blamed(then, here)
        if self.reruns:
            found, expected = regressions(said.changes), regressions(expected)
        else:
            found = said.changes
        if found != expected:
            yield f"{said.changes} for {then} → {here}"
        if said.code != ("regression" in expected.values()):
            yield f"exit {said.code} for {then} → {here}"
        since = oracle.between(self.repository, baseline, question.base)
        if (said.base, said.since) != (question.base, since):
            yield f"{said.since} commits since {(said.base or '?')[:7]}: {since} since {question.base[:7]} is right"
        yield from self.mistaken_record(said, question, baseline)

    def mistaken_record(self, said: Said, question: Question, baseline: str) -> Iterator[str]:
        """The same of the record of earlier runs; what it lacks is counted."""
        runs = {name_of(one.run_id, one.gate): one for one in self.repository.runs if one.gate == question.gate}
        before = self.repository.ancestors(baseline)
        if strange := {name for name in said.record if name not in runs or runs[name].sha not in before}:
            yield f"the record has runs of other gates or commits: {strange}"
        if not self.crowds:
            there = [one for one in runs.values() if one.makes_baselines and one.branch == question.branch]
            older = (before - {baseline}) & {one.sha for one in there if one.ended <= self.repository.minute}
            self.older += len(older)
            self.lost += len(older - {runs[name].sha for name in said.record if name in runs})

    def blame(self, what: str, said: Said) -> None:
        self.wrong.append(Wrong(what, (*self.lines, *(f"     said: {one}" for one in said.lines))))


def said(run: GateRun) -> Verdict:
    """What its gate said."""
    outcome, code = (Outcome.PASSED, 0) if run.passed else (Outcome.FAILED, 1)
    return Verdict(outcome=outcome, exit_code=code)


def regressions(changes: dict[int, str]) -> dict[int, str]:
    return {case: change for case, change in changes.items() if change == "regression"}


def shown(commits: tuple[str, ...]) -> str:
    return " or ".join(one[:7] for one in commits) or "none"
