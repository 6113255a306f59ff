"""New and changed cases, with the installed program: run a few times, and known before they are merged."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate, record
from tests.support.agents import Exchange, agent

OLD = [f"old-{number}" for number in range(4)]
SAID = "NEW AND CHANGED CASES: "


class Moody:
    """An agent that answers a question by the letters of its tape, one for each time it is asked, the last for ever."""

    def __init__(self) -> None:
        self.tapes: dict[str, str] = {}
        self.asked: Counter[str] = Counter()

    async def __call__(self, exchange: Exchange) -> None:
        question = exchange.json["message"]
        tape = self.tapes.get(question, "P")
        letter = tape[min(self.asked[question], len(tape) - 1)]
        self.asked[question] += 1
        if letter == "C":
            exchange.answer({"error": "it broke"}, status=500)
            return
        exchange.answer({"response": "ok" if letter == "P" else "no", "toolCalls": []})


def write(folder: Path, *questions: str, ids: dict[str, str] | None = None) -> None:
    cases = [
        {"id": (ids or {}).get(one, one), "input": {"message": one}, "expect": {"responseContains": ["ok"]}}
        for one in questions
    ]
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "evals/weather.golden.json").write_text(json.dumps(cases))


def run(folder: Path, url: str, *arguments: str, fail_on: str = "regressions", reruns: str = "6"):
    always = ("--baseline", "evals/results", "--max-retries", "0", "--fail-on", fail_on, "--reruns", reruns)
    return gate(folder, "run", "--agent-endpoint", url, *always, *arguments)


@pytest.fixture
def moody(tmp_path):
    write(tmp_path, *OLD)
    behaviour = Moody()
    with agent(behaviour) as running:
        first = gate(tmp_path, "run", "--agent-endpoint", running.url)
        assert first.returncode == 0, first.stdout + first.stderr
        behaviour.asked.clear()
        yield tmp_path, running.url, behaviour


def cases_of(folder: Path) -> dict[str, dict]:
    return {case["id"]: case for suite in record(folder)["suites"] for case in suite["cases"]}


@pytest.mark.contract("verdict.new-cases")
def test_run__new_cases__run_three_times_and_it_is_said_what_they_do(moody) -> None:
    folder, url, behaviour = moody
    write(folder, *OLD, "good", "wavers", "bad")
    behaviour.tapes = {"wavers": "PFP", "bad": "F"}
    done = run(folder, url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert behaviour.asked == Counter({**dict.fromkeys(OLD, 1), "good": 3, "wavers": 3, "bad": 3})
    said = " ".join(done.stdout.split())
    assert f"{SAID}3 new cases ran several times: 1 always passed, 1 is flaky, 1 always failed" in said
    assert "wavers: new: passed 2 of 3 here, flaky: fix it before you merge it" in said
    assert "6 more runs of 3 new cases" in said
    cases = cases_of(folder)
    assert [(cases[one]["newCaseExecutions"], cases[one]["reruns"]) for one in ("good", "old-0")] == [(2, 0), (0, 0)]
    comment = gate(folder, "report", "latest", "--format", "md").stdout
    assert "1 flaky new case" in comment.splitlines()[1]
    assert "**New and changed cases:** 3 new cases ran several times" in comment.partition("<details>")[0]


def test_run__case_asked_otherwise__is_run_as_a_new_one_is(moody) -> None:
    folder, url, behaviour = moody
    write(folder, *OLD[1:], "said otherwise", ids={"said otherwise": "old-0"})
    behaviour.tapes = {"said otherwise": "FPP"}
    done = run(folder, url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert behaviour.asked["said otherwise"] == 3
    said = " ".join(done.stdout.split())
    assert f"{SAID}1 changed case ran several times: 1 is flaky" in said
    assert "old-0: changed: passed 2 of 3 here, flaky: fix it before you merge it" in said


@pytest.mark.parametrize(
    ("options", "reruns", "times"),
    [
        ((), "0", 1),
        (("--trials", "2"), "6", 3),
        (("--trials", "4"), "6", 4),
    ],
)
def test_run__new_case__runs_three_times_unless_trials_are_more_or_re_runs_off(moody, options, reruns, times) -> None:
    folder, url, behaviour = moody
    write(folder, *OLD, "good")
    assert run(folder, url, *options, reruns=reruns).returncode == 0
    assert behaviour.asked["good"] == times


def test_run__nothing_to_compare_with__no_case_is_new(moody) -> None:
    folder, url, behaviour = moody
    done = gate(folder, "run", "--agent-endpoint", url, "--reruns", "6", "--fail-on", "regressions")
    assert done.returncode == 0
    assert behaviour.asked == Counter(OLD)


@pytest.mark.parametrize(
    ("tape", "fail_on", "code"),
    [
        ("F", "regressions,new-failures", 1),
        ("FFP", "regressions,new-failures", 1),
        ("PFF", "regressions,new-failures", 1),
        ("CCP", "regressions,new-failures", 0),  # an agent error is repeated until there is a response
        ("FPP", "regressions,new-failures", 0),
        ("FPP", "regressions,flaky", 1),
        ("PCP", "regressions,flaky", 0),
        ("P", "regressions,new-failures,flaky", 0),
        ("F", "regressions", 0),
    ],
)
def test_run__new_case_by_its_tape__blocks_as_the_policy_says_everywhere(moody, tape, fail_on, code) -> None:
    folder, url, behaviour = moody
    main = record(folder)["runId"]
    write(folder, *OLD, "new")
    behaviour.tapes = {"new": tape}
    done = run(folder, url, fail_on=fail_on)
    assert done.returncode == code, done.stdout + done.stderr
    mine = record(folder)["runId"]
    again = gate(folder, "compare", main, mine, "--fail-on", fail_on)
    assert again.returncode == code, again.stdout + again.stderr
    if code and "new-failures" in fail_on:
        assert "1 new or changed case failed (limit 0)" in done.stdout
        assert "1 new or changed case failed (limit 0)" in again.stdout
    report = gate(folder, "report", mine, "--format", "junit").stdout
    assert (('failures="0"' in report) or ("<failure" not in report)) == (code == 0)


def test_merge__new_cases_of_shards__are_judged_as_in_one_run(moody) -> None:
    folder, url, behaviour = moody
    main = record(folder)["runId"]
    write(folder, *OLD, "good", "bad")
    behaviour.tapes = {"bad": "F"}
    parts = []
    for part in ("1/2", "2/2"):
        # all shards have one baseline, by name: `latest` may be another one in between
        run(folder, url, "--shard", part, "--baseline", main, fail_on="regressions,new-failures")
        parts.append(f"evals/results/{record(folder)['runId']}")
    assert (behaviour.asked["good"], behaviour.asked["bad"]) == (3, 3)
    joined = gate(folder, "merge", *parts, "-o", "joined")
    assert joined.returncode == 0, joined.stderr
    (whole,) = [path.parent for path in (folder / "joined").rglob("run.json")]
    done = gate(folder, "compare", main, str(whole), "--fail-on", "regressions,new-failures")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{SAID}2 new cases ran several times: 1 always passed, 1 always failed" in " ".join(done.stdout.split())


def test_run__on_main_after_the_merge__all_runs_of_a_new_case_go_on_record(moody) -> None:
    folder, url, behaviour = moody
    write(folder, *OLD, "wavers")
    behaviour.tapes = {"wavers": "PFP"}
    assert run(folder, url).returncode == 0
    behaviour.tapes = {}
    assert run(folder, url).returncode == 0
    change = next(one for one in record(folder)["comparison"]["changes"] if one["caseId"] == "wavers")
    counts = change["caseHistory"]["counts"]
    assert (counts["passes"], counts["failures"]) == (2, 1)
    assert behaviour.asked["wavers"] == 3 + 1


def test_run__more_new_cases_than_the_budget_has_room_for__the_others_run_once_and_it_is_said(moody) -> None:
    folder, url, behaviour = moody
    new = [f"new-{number}" for number in range(6)]
    write(folder, *OLD, *new)
    done = run(folder, url, "--rerun-budget", "5", "--concurrency", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(behaviour.asked[one] for one in new) == [1, 1, 1, 2, 3, 3]
    assert "4 new cases ran fewer times than configured: the rerun-budget of 5 re-runs is used up" in " ".join(
        (done.stdout + done.stderr).split()
    )


def test_run__a_suspect_and_a_new_case__the_suspect_has_the_budget_first(moody) -> None:
    folder, url, behaviour = moody
    write(folder, "new", *OLD)
    behaviour.tapes = {"old-2": "F"}
    done = run(folder, url, "--rerun-budget", "2", "--concurrency", "1")
    assert behaviour.asked["old-2"] == 3, done.stdout
    assert behaviour.asked["new"] == 1


def test_judge__new_results_with_a_command_for_re_runs__are_run_again(tmp_path) -> None:
    def rows(path: Path, *cases: tuple[str, str]) -> None:
        path.write_text("".join(json.dumps({"id": name, "status": done}) + "\n" for name, done in cases))

    rows(tmp_path / "main.jsonl", ("a", "passed"), ("b", "passed"))
    first = gate(tmp_path, "check", "main.jsonl")
    assert first.returncode == 0, first.stdout + first.stderr
    rows(tmp_path / "now.jsonl", ("a", "passed"), ("b", "passed"), ("new", "passed"))
    (tmp_path / "again.py").write_text(
        "import json, pathlib, sys\n"
        "count = pathlib.Path('count')\n"
        "number = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(number))\n"
        "names = pathlib.Path(sys.argv[1]).read_text().split()\n"
        "assert names == ['new'], names\n"
        "rows = [json.dumps({'id': name, 'status': 'failed' if number == 1 else 'passed'}) for name in names]\n"
        "pathlib.Path(sys.argv[2]).write_text('\\n'.join(rows) + '\\n')\n"
    )
    always = ("--baseline", "evals/results", "--fail-on", "regressions", "--reruns", "6")
    command = ("--rerun-command", "python3 again.py {ids_file} {output}")
    alone = gate(tmp_path, "check", "now.jsonl", *always, "--output-dir", "alone")
    done = gate(tmp_path, "check", "now.jsonl", *always, *command)
    assert (alone.returncode, done.returncode) == (0, 0), alone.stderr + done.stdout + done.stderr
    assert SAID not in alone.stdout
    assert f"{SAID}1 new case ran several times: 1 is flaky" in " ".join(done.stdout.split())
    assert cases_of(tmp_path)["new"]["newCaseExecutions"] == 2
