"""Cases that have to pass some of their trials, from the eval file to the words of console, comment, page and JUnit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate, record
from tests.support.agents import Exchange, agent

STEADY = [
    {"id": f"gs-{number:03}", "input": {"message": f"steady {number}"}, "expect": {"responseContains": ["ok"]}}
    for number in range(5)
]
RATED = {
    "id": "gs-rated",
    "input": {"message": "rated"},
    "expect": {"responseContains": ["ok"]},
    "trials": 10,
    "passes": 8,
}


class Agent:
    """An agent that passes all cases but "rated", which fails in the executions with these numbers."""

    def __init__(self) -> None:
        self.failing: frozenset[int] = frozenset()
        self.broken: frozenset[int] = frozenset()
        self.asked = Counter[str]()

    async def __call__(self, exchange: Exchange) -> None:
        message = exchange.json["message"]
        at = self.asked[message]
        self.asked[message] += 1
        if message == "rated" and at in self.broken:
            exchange.answer({"error": "boom"}, status="500 Oops")
        else:
            exchange.answer({"response": "no" if message == "rated" and at in self.failing else "ok", "toolCalls": []})

    def restart(self, failing: Iterator[int] | range = range(0), broken: range = range(0)) -> None:
        self.failing, self.broken = frozenset(failing), frozenset(broken)
        self.asked.clear()


def write(folder: Path, **keys) -> None:
    (folder / "evals").mkdir(exist_ok=True)
    cases = [*STEADY, RATED | keys]
    (folder / "evals" / "desk.golden.json").write_text(json.dumps({"metadata": None, "cases": cases}))


def run(folder: Path, url: str, *arguments: str):
    always = ("--baseline", "evals/results", "--fail-on", "regressions", "--max-errors", "0")
    return gate(folder, "run", "--agent-endpoint", url, *always, *arguments)


def get_rated(folder: Path) -> dict:
    return next(case for suite in record(folder)["suites"] for case in suite["cases"] if case["id"] == "gs-rated")


def get_change(folder: Path) -> dict:
    return next(change for change in record(folder)["comparison"]["changes"] if change["caseId"] == "gs-rated")


@pytest.fixture
def history(tmp_path):
    """A gate whose main passed the rated case 10 of 10 times in each of three runs."""
    write(tmp_path)
    behaviour = Agent()
    with agent(behaviour) as running:
        for _ in range(3):
            behaviour.restart()
            assert gate(tmp_path, "run", "--agent-endpoint", running.url).returncode == 0
        yield tmp_path, running.url, behaviour


def test_run__rate_is_met__passes_and_is_not_flaky_however_many_trials_failed(history) -> None:
    folder, url, behaviour = history
    behaviour.restart(range(2))
    done = run(folder, url, "--fail-on", "regressions,flaky,failures")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "flaky" not in done.stdout
    assert "  15/15" in done.stderr
    assert [trial["status"] for trial in get_rated(folder)["trials"]] == ["failed"] * 2 + ["passed"] * 8
    assert get_change(folder)["change"] == "still_passing"
    assert get_change(folder)["current"]["meetsRule"] is True


def test_run__rate_is_missed_beyond_chance__is_a_regression_and_every_report_says_what_was_needed(history) -> None:
    folder, url, behaviour = history
    behaviour.restart(range(1, 100, 2))
    done = run(folder, url, "--report", "md=c.md", "--report", "junit=j.xml", "--report", "html=p.html")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "confirmed: failed 5 of 10 here, 0 of 30 in the history; 5 of 10 passed, 8 needed" in done.stdout
    comment = (folder / "c.md").read_text()
    assert "| 30 of 30 pass | 5 of 10 passed, 8 needed |" in comment
    assert "failures in a row" not in comment
    assert "flaky" not in comment + done.stdout
    for report in ("j.xml", "p.html"):
        assert "5 of 10 passed, 8 needed" in (folder / report).read_text()
    newest, main = record(folder)["runId"], record(folder)["comparison"]["baseline"]["runId"]
    compared = gate(folder, "compare", main, newest, "--fail-on", "regressions")
    assert (compared.returncode, "5 of 10 passed, 8 needed" in compared.stdout) == (1, True)


def test_run__passes_are_lowered_in_the_same_change__keep_the_history_and_are_named(history) -> None:
    folder, url, behaviour = history
    write(folder, passes=5)
    behaviour.restart(range(1, 100, 2))
    done = run(folder, url, "--report", "md=c.md", "--fail-on", "regressions,changed")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "`passes` loosened: 8 of 10 → 5 of 10 in 1 case: `gs-rated`" in (folder / "c.md").read_text()
    change = get_change(folder)
    assert change["caseHistory"]["counts"]["passes"] == 30
    assert change["change"] == "flaky", "it fails more often than on main"


def test_run__must_pass_case_misses_its_rate__fails_although_most_trials_passed(history) -> None:
    folder, url, behaviour = history
    behaviour.restart(range(3))
    done = run(folder, url, "--must-pass", "gs-rated")
    assert done.returncode == 1, done.stdout + done.stderr
    assert get_rated(folder)["reruns"] == 0


def test_run__graded_case_misses_its_rate__every_report_says_once_what_was_needed(tmp_path) -> None:
    test = "- {id: rated, input: rated, assertions: [{type: contains, value: ok}]}"
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/desk.eval.yaml").write_text(f"execution: {{trials: {{count: 4, passes: 3}}}}\ntests:\n{test}\n")
    behaviour = Agent()
    behaviour.restart(range(2))
    with agent(behaviour) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, "--report", "md=c.md", "--report", "junit=j.xml")
    for report in (done.stdout, (tmp_path / "c.md").read_text(), (tmp_path / "j.xml").read_text()):
        assert report.count("0.50, 2 of 4 passed, 3 needed") == report.count("2 of 4 pass") == 1, report


@pytest.mark.parametrize(
    ("broken", "code", "change"), [(range(7, 10), 0, "still_passing"), (range(7, 99), 3, "errored")]
)
def test_run__trials_end_in_agent_errors__decide_once_they_are_repeated(history, broken, code, change) -> None:
    folder, url, behaviour = history
    behaviour.restart(broken=broken)
    done = run(folder, url)
    assert (done.returncode, get_change(folder)["change"]) == (code, change), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("keys", "setting", "problem"),
    [
        ({"passes": 11}, "", "evals/desk.golden.json:1: cases[5].passes: needs `trials` of at least 11"),
        ({"trials": None}, "", "evals/desk.golden.json:1: cases[5].passes: needs `trials` of at least 8"),
        ({}, "passes: 2\n", "eval-gate.yaml:1: passes: needs `trials` of at least 2"),
    ],
)
def test_run__more_passes_than_trials__names_the_field(tmp_path, keys, setting, problem) -> None:
    write(tmp_path, **keys)
    (tmp_path / "eval-gate.yaml").write_text(setting)
    done = gate(tmp_path, "run", "--agent-endpoint", "http://127.0.0.1:9/chat")
    assert (done.returncode, problem in done.stderr) == (2, True), done.stderr


def test_check__repeats_of_promptfoo__are_trials_of_one_case_with_the_run_s_rule(tmp_path) -> None:
    (tmp_path / "eval-gate.yaml").write_text("trials: 4\npasses: 3\n")
    for name, failing in (("main.json", ()), ("met.json", (0,)), ("missed.json", (0, 1)), ("short.json", (0,))):
        write_promptfoo(tmp_path / name, failing, 2 if name == "short.json" else 4)
    codes = {}
    for name in ("met", "missed", "short"):
        done = gate(tmp_path, "check", f"{name}.json", "--baseline", "main.json", "--fail-on", "failures")
        codes[name] = done.returncode
        assert ("2 of 4 passed, 3 needed" in done.stdout) is (name == "missed")
    assert codes == {"met": 0, "missed": 1, "short": 3}
    assert "2 of its trials have a score, and 3 of 4 must pass" in done.stdout + done.stderr


def write_promptfoo(file: Path, failing: tuple[int, ...], repeats: int) -> None:
    """Write what `promptfoo eval --repeat N -o FILE` writes for two tests, of which the first fails now and then."""
    results = [
        {
            "testIdx": 2 * repeat + at,
            "promptIdx": 0,
            "provider": {"id": "agent"},
            "vars": {"question": question},
            "success": not (at == 0 and repeat in failing),
            "score": float(not (at == 0 and repeat in failing)),
            "failureReason": int(at == 0 and repeat in failing),
            "response": {"output": f"{question} {repeat}"},
            "testCase": {"description": question, "vars": {"question": question}},
        }
        for repeat in range(repeats)
        for at, question in enumerate(("refund", "hours"))
    ]
    document = {"evalId": "e", "results": {"version": 3, "results": results}, "runtimeOptions": {"repeat": repeats}}
    file.write_text(json.dumps(document))
