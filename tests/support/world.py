"""Whole worlds in a line: what happened on main, run by run, and what happens here; and what a person then sees.

    world.main("PPPP*9 PPPF")        # ten runs of main, the newest last; a letter for each case
    expect(world.here("PPFF"), 1, "1 regression", regression=[2], still_failing=[3])

A letter is what the agent does when it is asked this case: `P` the right answer, `F` a wrong one, `C` HTTP 500, `H`
hangs, `R` breaks the connection off, `L` HTTP 429, a digit an answer that is graded so many tenths. `F(PP)` is a case
that does something else when it is asked again: the last of its letters goes on. Everything is real: processes of the
program, an agent over loopback, files, and for `ActionWorld` the action against the fake GitHub.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.agents import Exchange, agent, unused_port
from tests.support.github import FakeGitHub, PullRequest
from tests.support.github.state import iso
from tests.support.jobs import Ended, Job, pull_request_event, push_event, repository_facts
from tests.support.program import gate

OUTCOMES = {0: "passed", 1: "failed", 3: "inconclusive"}
QUICK = {"--timeout-ms": "5000", "--max-retries": "0", "--concurrency": "4"}
GATE = {"--fail-on": "regressions", "--reruns": "6"}
"""What the action takes where nobody says otherwise; the command line does not."""
ASKED = re.compile(r"ask (\d+)")


@dataclass
class Script:
    """What the agent does, case by case; it counts from anew in every run."""

    url: str = ""
    does: list[str] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    model: str | None = None
    """The model that its answers say they are from."""
    replies: dict[str, Callable[[int], dict[str, Any]]] = field(default_factory=dict)
    """By letter, what is answered to the case of this number instead."""
    running: ExitStack = field(default_factory=ExitStack)
    """Closed, nobody listens at its address any more."""

    def begin(self, letters: str) -> None:
        """Another run."""
        self.does, self.asked = re.findall(r"\w(?:\(\w+\))?", letters), []

    async def __call__(self, exchange: Exchange) -> None:
        found = ASKED.search(exchange.body.decode())
        assert found is not None, exchange.body
        number = int(found[1])
        letters = self.does[number].replace("(", "").replace(")", "")
        letter = letters[min(self.asked.count(number), len(letters) - 1)]
        self.asked.append(number)
        if letter in self.replies:
            exchange.answer(self.replies[letter](number))
            return
        await _do(letter, exchange, {} if self.model is None else {"model": self.model})


async def _do(letter: str, exchange: Exchange, more: dict[str, str]) -> None:
    match letter:
        case "P" | "F":
            exchange.answer({"response": "ok" if letter == "P" else "no", "toolCalls": [], **more})
        case digit if digit.isdigit():
            exchange.answer({"response": f"0.{digit}", "toolCalls": []})
        case "C":
            exchange.answer({"error": "AttributeError: 'NoneType' object"}, "500 Internal Server Error")
        case "H":
            await asyncio.sleep(60)
        case "R":
            exchange.reset()
        case "L":
            exchange.answer({"error": "slow down"}, "429 Too Many Requests")
        case _:
            raise ValueError(letter)


@contextmanager
def scripted() -> Iterator[Script]:
    """An agent that does what it is told."""
    script = Script()
    with script.running:
        script.url = script.running.enter_context(agent(script)).url
        yield script


def words_of(runs: str) -> list[str]:
    """`PP*2 PF` is three runs."""
    parts = [part.partition("*") for part in runs.split()]
    return [letters for letters, _, times in parts for _ in range(int(times or 1))]


def cases_of(count: int) -> list[dict[str, Any]]:
    """Cases that ask `ask 0`, `ask 1`, … and want `ok` in the answer."""
    return [
        {"id": f"gs-{number:03}", "input": {"message": f"ask {number}"}, "expect": {"responseContains": ["ok"]}}
        for number in range(count)
    ]


GRADER = r"""sed 's/.*"candidate_answer": "\([0-9.]*\)".*/{"score": \1}/'"""
"""A script that takes the answer for its grade."""


def graded_suite(count: int) -> str:
    """An eval file whose cases ask `ask 0`, …, and are graded by what is answered."""
    judge = {"name": "grade", "type": "code_judge", "script": GRADER}
    cases = [
        {
            "id": f"gs-{number:03}",
            "expected_outcome": "a good answer",
            "input_messages": [{"role": "user", "content": f"ask {number}"}],
            "execution": {"evaluators": [judge]},
        }
        for number in range(count)
    ]
    return json.dumps({"evalcases": cases}, indent=1)  # JSON is YAML


def as_options(given: dict[str, str]) -> dict[str, str]:
    return {f"--{name.replace('_', '-')}": value for name, value in given.items()}


def words(options: dict[str, str]) -> list[str]:
    return [word for pair in options.items() if pair[1] for word in pair]


def length(letters: str) -> int:
    return len(re.sub(r"\(\w+\)", "", letters))


@dataclass(frozen=True)
class Seen:
    """What a person, and a program, sees of a judged run."""

    code: int
    title: str
    """The heading of the report or comment."""
    head: str
    """Report or comment above everything that is folded, with the heading."""
    gate: str
    """The console's last word."""
    json: dict[str, Any]
    text: str
    """The whole console."""
    report: str = ""
    """The whole report or comment."""
    ended: Ended | None = None
    """Of the action: the step."""
    check: dict[str, Any] = field(default_factory=dict)
    """Of the action: the check run's fields."""

    @property
    def classes(self) -> dict[str, str]:
        """By case id."""
        return {one["caseId"]: one["change"] for one in (self.json["comparison"] or {}).get("changes", ())}

    @property
    def reasons(self) -> list[str]:
        """The codes of the verdict's reasons, the decisive one first."""
        return [one["code"] for one in self.json["verdict"]["reasons"]]

    def change(self, number: int) -> dict[str, Any]:
        """All about one case."""
        return next(one for one in self.json["comparison"]["changes"] if one["caseId"] == name(number))

    @property
    def same(self) -> tuple[object, ...]:
        """All that has to be the same wherever this run is judged: exit code, verdict, classes and their grounds."""
        changes = [(one["caseId"], one["change"], one["grounds"]) for one in self.json["comparison"]["changes"]]
        return (self.code, self.json["verdict"], sorted(changes, key=lambda one: one[0]))


def name(case: int | str) -> str:
    return f"gs-{case:03}" if isinstance(case, int) else case


def expect(
    seen: Seen,
    code: int,
    title: str,
    *,
    says: Iterable[str] = (),
    first: str | None = None,
    **classes: Sequence[int | str],
) -> None:
    """Exit code, heading, first lines and JSON agree on this. Cases that no class is named for are still passing.

    `says` are words above the fold, `first` the code of the decisive reason.
    """
    shown = f"{seen.text}\n{seen.report}"
    assert seen.code == code, shown
    assert (seen.json["verdict"]["exitCode"], seen.json["verdict"]["outcome"]) == (code, OUTCOMES[code]), shown
    assert title in seen.title, shown
    assert _mark(seen.title) in {0: ("✅", "⚠️"), 1: ("❌",), 3: ("🛠️",)}[code], shown
    for words in says:
        assert words in seen.head, f"{words!r} is not in\n{seen.head}\n{seen.text}"
    if first is not None:
        assert seen.reasons[0] == first, shown
    assert {0: "GATE PASSED", 1: "GATE FAILED", 3: "GATE INCONCLUSIVE"}[code] in seen.gate, shown
    assert f"exit {code}" in seen.gate, shown
    if seen.json["comparison"] is not None:
        wanted = {name(case): change for change, cases in classes.items() for case in cases}
        assert {case: change for case, change in seen.classes.items() if change != "still_passing"} == wanted, shown
    else:
        assert not classes, shown
    if seen.ended is not None:
        outputs = seen.ended.outputs
        assert (outputs["exit-code"], outputs["verdict"]) == (str(code), OUTCOMES[code]), shown
        assert seen.check["conclusion"] == ("success" if code == 0 else "failure"), shown
        if seen.json["comparison"] is not None:
            assert outputs["regressions"] == str(len(classes.get("regression", ()))), shown


def _mark(title: str) -> str:
    found = re.search(r"[✅❌⚠🛠]\ufe0f?", title)
    return found[0] if found else ""


class World:
    """One repository on one machine: main's runs are in a folder, what happens here in another."""

    MAIN, HERE = "main", "evals/results"

    def __init__(self, folder: Path, script: Script) -> None:
        self.folder, self.script = folder, script
        self.cases: list[dict[str, Any]] = []
        self.suite = "weather.golden.json"

    def write(self) -> None:
        """The eval file, as `cases` are now."""
        file = self.folder / "evals" / self.suite
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(self.cases, indent=1))

    def main(self, runs: str, *options: str) -> None:
        """Runs of main, the newest last."""
        for letters in words_of(runs):
            self.of_length(letters)
            done = self.run(letters, *words(GATE | {"--output-dir": self.MAIN}), *options)
            assert (self.folder / self.MAIN / "latest.json").is_file(), done.stderr

    def here(self, letters: str, *arguments: str, url: str | None = None, **options: str) -> Seen:
        """A run of a change, judged against main. Options as words of Python: `timeout_ms="300"`."""
        given = GATE | {"--baseline": self.MAIN, "--report": "md=report.md"} | as_options(options)
        return self.seen(self.run(letters, *words(given), *arguments, url=url))

    def run(self, letters: str, *options: str, url: str | None = None) -> subprocess.CompletedProcess[str]:
        """One run of the program against the agent that does this, with these options only."""
        self.script.begin(letters)
        self.of_length(letters)
        quick = {name: value for name, value in QUICK.items() if name not in options}
        return self.gate("run", "--agent-endpoint", url or self.script.url, *words(quick), *options)

    def gate(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The program, in this world's folder: as in CI, since these are runs of main and of a pull request."""
        return gate(self.folder, *arguments, CI="true")

    def compare(self, current: str = "latest", *options: str, baseline: str = MAIN) -> Seen:
        """A stored run judged again, by the command line's own `compare`; without any rule unless told."""
        written = ("--report", "md=report.md", "--report", "json=again.json")
        done = self.gate("compare", baseline, current, *written, *options)
        return self.seen(done, self.folder / "again.json")

    def seen(self, done: subprocess.CompletedProcess[str], file: Path | None = None) -> Seen:
        """What that left. The record is the newest of this world unless a file is named."""
        report = self.folder / "report.md"
        assert report.is_file(), done.stdout + done.stderr
        shown = report.read_text()
        report.unlink()
        return Seen(
            done.returncode,
            title_of(shown),
            head_of(shown),
            gate_of(done.stdout),
            json.loads((file or self.record()).read_text()),
            done.stdout + done.stderr,
            shown,
        )

    def record(self) -> Path:
        """The file of the newest run here."""
        results = self.folder / self.HERE
        return results / json.loads((results / "latest.json").read_text())["path"]

    def accept(self, *cases: int | str, days: int = 5, kind: str = "waivers", reason: str = "known, #12") -> None:
        """An entry of the waiver file for each of these."""
        until = (datetime.now(UTC) + timedelta(days=days)).date().isoformat()
        rows = (f'- case: {name(case)}\n  reason: "{reason}"\n  until: "{until}"\n' for case in cases)
        file = self.folder / ".eval-gate" / "waivers.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{kind}:\n{''.join(rows)}")

    def write_graded(self, count: int) -> None:
        """Graded cases instead."""
        (self.folder / "evals").mkdir(exist_ok=True)
        (self.folder / "evals" / "desk.eval.yaml").write_text(graded_suite(count))
        self.cases = [{}] * count

    def of_length(self, letters: str) -> None:
        if not self.cases:
            self.cases = cases_of(length(letters))
            self.write()

    def copied_to(self, folder: Path) -> World:
        """The same world elsewhere, so that a prepared branch can be used again."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)  # with the files' times, by which runs are told apart
        made = World(folder, self.script)
        made.cases, made.suite = json.loads(json.dumps(self.cases)), self.suite
        return made


def title_of(report: str) -> str:
    return next(line for line in report.splitlines() if line.startswith("#"))


def head_of(report: str) -> str:
    """Above everything that is folded but the answers of cases, with characters as a person reads them."""
    folds = r"<details><summary>(?:Evidence of [^<]*|[^<]*: (?:evidence|responses?|evidence and responses?))</summary>"
    shown = re.sub(folds + r".*?</details>", "", report, flags=re.DOTALL)
    return plain(shown.partition("<details>")[0])


def plain(text: str) -> str:
    """Without the entities that keep text from being Markdown."""
    return re.sub(r"&#8203;", "", re.sub(r"&#(\d+);", lambda found: chr(int(found[1])), text.replace("&#8203;", "")))


def gate_of(console: str) -> str:
    """The verdict with its first reason, which the exit code ends: on as many lines as that takes."""
    lines = console.splitlines()
    begins = [at for at, line in enumerate(lines) if re.match(r"\s*(GATE (PASSED|FAILED|INCONCLUSIVE))", line)]
    if not begins:
        return ""
    said = lines[begins[-1] :]
    ends = next((at for at, line in enumerate(said) if re.search(r"exit \d+$", line.rstrip())), 0)
    return "\n".join(said[: ends + 1])


class ActionWorld:
    """One repository on GitHub: pushes to main, pull requests, the action in its jobs."""

    def __init__(self, folder: Path, github: FakeGitHub, script: Script) -> None:
        self.github, self.script = github, script
        self.job = Job(folder, github)
        self.cases: list[dict[str, Any]] = []
        self.suite = "weather.golden.json"
        self._commits = 0
        self.ended: Ended | None = None
        """Main's newest run."""

    def write(self) -> None:
        (self.job.workspace / "evals" / self.suite).write_text(json.dumps(self.cases, indent=1))

    def main(self, runs: str, **inputs: str) -> list[str]:
        """Commits on main, each with its run; their names."""
        made = []
        for letters in words_of(runs):
            self.of_length(letters)
            self._commits += 1
            made.append(self.github.state.add_commit(f"main {self._commits}", branch="main").sha)
            if (self.job.workspace / ".git").is_dir():
                self.job.check_out(made[-1])
            self.script.begin(letters)
            ended = self.job.push(self.script.url, self._given(inputs))
            assert ended.outputs.get("artifact-id"), ended.log
            self.ended = ended
        for artifact in self.github.state.artifacts.values():
            artifact.created_at = iso(datetime.now(UTC) - timedelta(days=2))  # the fake's clock stands in January
        return made

    def main_again(self, letters: str, **inputs: str) -> Ended:
        """Another step of main's newest run: another job, or another attempt of the same."""
        self.script.begin(letters)
        given = {"agent-endpoint": self.script.url} | self._given(inputs)
        return self.job.step("push", push_event(self.github), given)

    def pull(self, **facts: Any) -> PullRequest:
        """A pull request that leaves main where it is now."""
        number = len(self.github.state.pulls) + 7
        return self.github.state.add_pull(number, head_sha=f"head of {number}", head_ref=f"feature-{number}", **facts)

    def merged(self, pull: PullRequest) -> PullRequest:
        """The same pull request at its next event, where actions/checkout has taken what it takes by itself.

        That is the test merge of the head and of main as it is now.
        """
        self.job.check_out(self.github.state.merge_again(pull))
        return pull

    def here(self, letters: str, pull: PullRequest | None = None, url: str | None = None, **inputs: str) -> Seen:
        """The run of a pull request."""
        pull = pull or self.pull()
        self.of_length(letters)
        self.script.begin(letters)
        ended = self.job.pull_request(pull, url or self.script.url, self._given(inputs))
        return self.seen(ended, pull)

    def in_queue(self, letters: str, base: str | None = None, branch: str = "main", **inputs: str) -> Ended:
        """The run of a merge group of #7 on top of this commit, checked out."""
        base = base or self.github.state.branches[branch]
        ref = f"gh-readonly-queue/{branch}/pr-7-{base}"
        head = self.github.state.add_commit(f"group on {base}", base, branch=ref).sha
        group = {
            "head_sha": head,
            "head_ref": f"refs/heads/{ref}",
            "base_sha": base,
            "base_ref": f"refs/heads/{branch}",
        }
        event = {"action": "checks_requested", "merge_group": group, "repository": repository_facts(self.github)}
        self.job.begin_run(event="merge_group", head_branch=ref, head_sha=head)
        self.script.begin(letters)
        given = {"agent-endpoint": self.script.url} | self._given(inputs)
        return self.job.step("merge_group", event, given, GITHUB_SHA=head, GITHUB_REF=f"refs/heads/{ref}")

    def seen_step(self, pull: PullRequest, **inputs: str) -> Seen:
        """Another step of the same run, such as one that publishes what an earlier one made."""
        given = {"agent-endpoint": self.script.url} | self._given(inputs)
        event = pull_request_event(self.github, pull)
        return self.seen(self.job.step("pull_request", event, given), pull)

    def seen(self, ended: Ended, pull: PullRequest) -> Seen:
        """What the step left on the pull request."""
        assert ended.summary, ended.log
        comments = [one for one in self.github.state.comments.values() if one.issue == pull.number]
        checks = [one for one in self.github.state.check_runs.values() if one.fields["head_sha"] == pull.head_sha]
        comment = comments[-1].body if comments else ended.summary
        path = ended.outputs.get("result-path")
        record = json.loads((self.job.workspace / path).read_text()) if path else {}
        return Seen(
            ended.code,
            title_of(comment),
            head_of(comment),
            gate_of(ended.log),
            record,
            ended.log,
            comment,
            ended,
            checks[-1].fields if checks else {},
        )

    def artifact(self, run_id: int | None = None) -> bytes:
        """The archive that a run stored, the newest unless told."""
        found = [one for one in self.github.state.archives if run_id in (None, one.run_id)]
        return found[-1].zip_bytes

    def _given(self, inputs: dict[str, str]) -> dict[str, str]:
        quick = {"timeout-ms": "5000", "max-retries": "0", "concurrency": "4"}
        return quick | {key.replace("_", "-"): value for key, value in inputs.items()}

    def of_length(self, letters: str) -> None:
        if not self.cases:
            self.cases = cases_of(length(letters))
            self.write()


NOBODY = f"http://127.0.0.1:{unused_port()}/chat"
"""An address where nobody listens."""
