"""The verdict on agents that are not always right: real processes, from a first run to the exit code."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from eval_gate.config.policy import DEFAULT_RERUNS
from tests.integration.test_integration_run import gate, record, write_suite
from tests.support.agents import Exchange, agent


class Moody:
    """An agent that fails some cases: `dead` always, `flaky` the first time they are asked in a run."""

    def __init__(self) -> None:
        self.dead: set[int] = set()
        self.flaky: set[int] = set()
        self.asked: list[int] = []

    async def __call__(self, exchange: Exchange) -> None:
        number = int(exchange.json["message"].split()[1])
        first = number not in self.asked
        self.asked.append(number)
        fails = number in self.dead or (first and number in self.flaky)
        exchange.answer({"response": "no" if fails else "ok", "toolCalls": []})


def run(folder: Path, url: str, *arguments: str):
    return gate(folder, "run", "--agent-endpoint", url, "--fail-on", "regressions", *arguments)


@pytest.fixture
def moody(tmp_path):
    yield from _moody(tmp_path, 12)


@pytest.fixture
def moody_with_many_cases(tmp_path):
    yield from _moody(tmp_path, 16)


def _moody(folder: Path, cases: int):
    write_suite(folder, cases)
    behaviour = Moody()
    with agent(behaviour) as running:
        for _ in range(5):
            assert run(folder, running.url).returncode == 0
        behaviour.asked.clear()
        yield folder, running.url, behaviour


def changes(folder: Path) -> dict[str, str]:
    return {change["caseId"]: change["change"] for change in record(folder)["comparison"]["changes"]}


@pytest.mark.contract("verdict.reruns")
@pytest.mark.parametrize("said", [(), ("--reruns", "6")])
def test_reruns__case_that_fails_once__is_run_again_and_does_not_block(moody, said) -> None:
    folder, url, behaviour = moody
    behaviour.flaky = {3}
    done = run(folder, url, "--baseline", "evals/results", *said)
    assert done.returncode == 0, done.stdout + done.stderr
    assert changes(folder)["gs-003"] == "inconclusive"
    assert changes(folder)["gs-004"] == "still_passing"
    again = behaviour.asked[12:]
    assert again
    assert set(again) == {3}
    case = record(folder)["suites"][0]["cases"][3]
    assert (case["reruns"], case["flaky"]) == (len(again), True)


def test_reruns__plain_rule__takes_the_same_for_a_regression(moody) -> None:
    folder, url, behaviour = moody
    behaviour.flaky = {3}
    done = run(folder, url, "--baseline", "evals/results", "--reruns", "0")
    assert done.returncode == 1
    assert changes(folder)["gs-003"] == "regression"
    assert len(behaviour.asked) == 12


def test_reruns__nobody_said_and_no_baseline__runs_nothing_again(moody) -> None:
    folder, url, behaviour = moody
    behaviour.dead = {3}
    run(folder, url)
    assert len(behaviour.asked) == 12
    assert (record(folder)["reruns"], record(folder)["policy"]["reruns"]) == (0, DEFAULT_RERUNS)
    first_line = gate(folder, "power").stdout.splitlines()[0]
    assert f"up to {DEFAULT_RERUNS} re-runs" in first_line, "what the next run will do"
    behaviour.asked.clear()
    run(folder, url, "--reruns", "2")
    assert len(behaviour.asked) == 12 + 2


def test_reruns__nobody_said__a_new_case_is_run_three_times(moody) -> None:
    folder, url, behaviour = moody
    write_suite(folder, 13)
    assert run(folder, url, "--baseline", "latest").returncode == 0
    assert {number: times for number, times in Counter(behaviour.asked).items() if times > 1} == {12: 3}


def test_reruns__nobody_said__a_resumed_run_goes_on_with_its_re_runs(moody) -> None:
    folder, url, behaviour = moody
    behaviour.dead = {5}
    run(folder, url, "--baseline", "latest")
    asked, made = len(behaviour.asked), record(folder)
    journal = folder / "evals" / "results" / made["runId"] / "cases.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-1]))
    done = run(folder, url, "--baseline", "latest", "--resume", made["runId"])
    assert (done.returncode, len(behaviour.asked)) == (1, asked + 1), done.stderr
    assert changes(folder)["gs-005"] == "regression"
    here, there = (one["suites"][0]["cases"][5]["reruns"] for one in (record(folder), made))
    assert here == there > 0


def test_reruns__dead_case__is_a_regression_after_a_few_more(moody) -> None:
    folder, url, behaviour = moody
    behaviour.dead = {5}
    done = run(folder, url, "--baseline", "evals/results", "--reruns", "6")
    assert done.returncode == 1, done.stdout + done.stderr
    assert changes(folder)["gs-005"] == "regression"
    assert 1 <= len(behaviour.asked) - 12 <= 6
    change = next(change for change in record(folder)["comparison"]["changes"] if change["caseId"] == "gs-005")
    assert change["grounds"]["history"] == {"passes": 5, "failures": 0, "agentErrors": 0}
    assert change["grounds"]["current"]["passes"] == 0


@pytest.mark.contract("verdict.certain")
@pytest.mark.parametrize("concurrency", ["1", "4"])
def test_reruns__all_is_dead__confirms_a_dozen_and_lists_the_others_as_suspected(
    moody_with_many_cases, concurrency
) -> None:
    folder, url, behaviour = moody_with_many_cases
    behaviour.dead = set(range(16))
    at_once = ("--concurrency", concurrency)
    done = run(folder, url, "--baseline", "evals/results", "--reruns", "6", "--junit-failures", "all", *at_once)
    assert done.returncode == 1, done.stdout + done.stderr
    again = behaviour.asked[16:]
    assert len(set(again)) == 12
    assert len(again) <= 36
    found = changes(folder)
    assert Counter(found.values()) == {"regression": 12, "suspected_regression": 4}
    assert {int(name[-3:]) for name, change in found.items() if change == "regression"} == set(again)
    spared = [case for case in record(folder)["suites"][0]["cases"] if case["rerunStopReason"] == "gate_failed"]
    assert {case["status"] for case in spared} == {"failed"}
    assert len(spared) == 4
    said = " ".join(done.stdout.split())
    assert "16 do not pass (12 regressions, 4 suspected)" in said
    assert "SUSPECTED REGRESSIONS, NOT RE-RUN (4): gs-012" in said
    compared = gate(folder, "compare", record(folder)["baselineRunId"], record(folder)["runId"])
    assert compared.returncode == 1, compared.stdout + compared.stderr


@pytest.mark.contract("verdict.rerun-budget")
@pytest.mark.parametrize(("dead", "code"), [({4}, 3), ({0, 4}, 1)])
def test_rerun_budget__is_spent__the_gate_does_not_pass_and_says_of_whom_nobody_knows(moody, dead, code) -> None:
    """The first suspect flaked and takes the budget, so that nothing is known; or it is dead, and that is known."""
    folder, url, behaviour = moody
    behaviour.flaky, behaviour.dead = ({0} if code == 3 else set()), dead
    budget = 1 if code == 3 else 2
    done = run(folder, url, "--baseline", "evals/results", "--reruns", "6", "--rerun-budget", str(budget))
    assert done.returncode == code, done.stdout + done.stderr
    assert len(behaviour.asked) == 12 + budget
    found = {change["caseId"]: change for change in record(folder)["comparison"]["changes"]}
    assert (found["gs-004"]["change"], found["gs-004"]["grounds"]["kind"]) == ("suspected_regression", "budget_used")
    assert "the re-run budget is used up" in " ".join(done.stdout.split())
    assert any(f"the rerun-budget of {budget} re-run" in line for line in record(folder)["warnings"])


def test_rerun_budget__of_another_form__is_refused_before_anything_is_asked(moody) -> None:
    folder, url, behaviour = moody
    done = run(folder, url, "--rerun-budget", "soon")
    assert (done.returncode, behaviour.asked) == (2, [])
    assert "a number of re-runs such as 50, a time such as 5m" in done.stderr


@pytest.mark.slow
def test_reruns__two_dead_cases__their_re_runs_come_by_turns(moody) -> None:
    folder, url, behaviour = moody
    behaviour.dead = {3, 8}
    strict = ("--false-alarm-rate", "0.0001", "--concurrency", "1")
    done = run(folder, url, "--baseline", "evals/results", "--reruns", "6", *strict)
    assert done.returncode == 1, done.stdout + done.stderr
    again = behaviour.asked[12:]
    assert len(again) >= 4
    assert again == [3, 8] * (len(again) // 2)


@pytest.mark.slow
def test_rerun_interval__dead_case__waits_says_so_and_decides_the_same(moody) -> None:
    folder, url, behaviour = moody
    behaviour.dead = {3}
    done = run(folder, url, "--baseline", "evals/results", "--reruns", "6", "--rerun-interval", "0.5s")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "rerun-interval 0.5s: a re-run waits 0." in done.stderr
    assert changes(folder)["gs-003"] == "regression"


def test_rerun_interval__of_another_form__is_refused_before_anything_is_asked(moody) -> None:
    folder, url, behaviour = moody
    done = run(folder, url, "--rerun-interval", "soon")
    assert (done.returncode, behaviour.asked) == (2, [])
    assert "is not a time such as 30s or 5m" in done.stderr


def test_reruns__green_run__asks_every_case_once(moody) -> None:
    folder, url, behaviour = moody
    assert run(folder, url, "--baseline", "evals/results", "--reruns", "6").returncode == 0
    assert len(behaviour.asked) == 12


def test_waived__regression_in_the_file__passes_and_is_shown(moody) -> None:
    folder, url, behaviour = moody
    behaviour.dead = {5}
    file = folder / ".eval-gate" / "waivers.yaml"
    file.parent.mkdir()
    file.write_text('waivers:\n- case: gs-005\n  reason: "the tool moves next week"\n  until: "2099-01-01"\n')
    done = run(folder, url, "--baseline", "evals/results", "--reruns", "2")
    assert (done.returncode, "at most 90" in done.stderr) == (2, True), done.stderr
    from datetime import UTC, datetime, timedelta

    until = (datetime.now(UTC) + timedelta(days=5)).date().isoformat()
    file.write_text(f'waivers:\n- case: gs-005\n  reason: "the tool moves next week"\n  until: "{until}"\n')
    done = run(folder, url, "--baseline", "evals/results", "--reruns", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the tool moves next week" in done.stdout
    waived = record(folder)["waivers"]["waived"]
    assert [one["caseId"] for one in waived] == ["gs-005"]


def test_must_pass__case_that_was_failing_all_along__blocks(tmp_path) -> None:
    write_suite(tmp_path, 4)
    behaviour = Moody()
    behaviour.dead = {1}
    with agent(behaviour) as running:
        assert run(tmp_path, running.url).returncode == 0
        assert run(tmp_path, running.url, "--baseline", "latest").returncode == 0
        done = run(tmp_path, running.url, "--baseline", "latest", "--must-pass", "gs-001")
    assert done.returncode == 1
    assert "must pass" in done.stdout.lower()
    assert json.loads(json.dumps(record(tmp_path)))["verdict"]["outcome"] == "failed"


@pytest.mark.contract("verdict.outcome")
def test_judge__failed_passed_and_fails_again__is_not_known_to_fail_and_not_decided(tmp_path) -> None:
    """Half of its record failed, but the newest run passed it: nobody may say that it still fails, or pass it."""
    done = None
    for status in ("failed", "passed", "failed"):
        (tmp_path / "out.jsonl").write_text(json.dumps({"id": "a", "status": status}) + "\n", encoding="utf-8")
        done = gate(tmp_path, "check", "out.jsonl", "--baseline", "latest", "--fail-on", "regressions")
    assert done is not None
    assert done.returncode == 3, done.stdout + done.stderr
    assert "still failing" not in done.stdout
