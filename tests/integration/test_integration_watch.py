"""`eval-gate run --failing` and `--watch`, in a process of its own whose files change while it runs."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.test_integration_run import ENVIRONMENT, PROGRAM, fails_on, gate, record, write_suite
from tests.support.agents import Exchange, agent


def asked(running) -> list[str]:
    """What the agent was asked, in any order of a round."""
    return sorted(json.loads(one.body)["message"] for one in running.requests)


def run(folder: Path, running, *arguments: str) -> subprocess.CompletedProcess[str]:
    return gate(folder, "run", "--agent-endpoint", running.url, *arguments)


def records(folder: Path) -> list[dict]:
    """Every run of the results folder."""
    return [json.loads(one.read_text()) for one in (folder / "evals/results").glob("*/run.json")]


# --- failing


def test_failing__after_a_run__asks_only_what_failed_and_forgets_what_was_mended(tmp_path) -> None:
    write_suite(tmp_path, 5)
    with agent(fails_on(1, 3)) as running:
        run(tmp_path, running)
    with agent(fails_on(3)) as running:
        first = run(tmp_path, running, "--failing")
        assert asked(running) == ["ask 1", "ask 3"]
    assert (first.returncode, record(tmp_path)["partial"]) == (1, True)
    with agent() as running:
        second = run(tmp_path, running, "--failing")
        assert asked(running) == ["ask 3"]
        assert second.returncode == 0
        third = run(tmp_path, running, "--failing")
        assert len(running.requests) == 1
    assert third.returncode == 2
    assert "error[nothing-failing]: no case failed when it was last run (evals/results)" in third.stderr


def test_failing__a_case_of_another_file_has_the_same_id__only_the_one_that_failed_is_asked(tmp_path) -> None:
    write_suite(tmp_path, 2, "one.golden.json")
    two = write_suite(tmp_path, 2, "two.golden.json")
    two.write_text(two.read_text().replace("ask ", "say "))

    async def wrong(exchange: Exchange) -> None:
        exchange.answer({"response": "no" if exchange.json["message"] == "say 1" else "ok", "toolCalls": []})

    with agent(wrong) as running:
        run(tmp_path, running)
    with agent() as running:
        run(tmp_path, running, "--failing")
        assert asked(running) == ["say 1"]


@pytest.mark.slow
def test_failing__what_was_chosen_meanwhile__does_not_hide_what_failed_before(tmp_path) -> None:
    write_suite(tmp_path, 3)
    with agent(fails_on(0, 2)) as running:
        run(tmp_path, running)
        run(tmp_path, running, "--case", "gs-001")
        before = len(running.requests)
        done = run(tmp_path, running, "--failing", "--case", "gs-002")
        assert len(running.requests) == before + 1
    assert "1 of 1" in done.stdout or "0/1 passed" in done.stdout


@pytest.mark.slow
def test_failing__is_no_baseline_and_takes_no_result_away(tmp_path) -> None:
    write_suite(tmp_path, 3)
    with agent(fails_on(0)) as running:
        run(tmp_path, running)
    full = record(tmp_path)["runId"]
    stored = (tmp_path / "evals/results" / full / "run.json").read_bytes()
    with agent() as running:
        run(tmp_path, running, "--failing")
        assert record(tmp_path)["verdict"]["outcome"] == "pass"
        done = run(tmp_path, running, "--baseline", "latest")
    assert (tmp_path / "evals/results" / full / "run.json").read_bytes() == stored
    assert record(tmp_path)["baselineRunId"] is None
    assert done.returncode == 0


@pytest.mark.slow
def test_failing__accepted__is_left_to_whoever_accepted_it(tmp_path) -> None:
    write_suite(tmp_path, 2)
    gate(tmp_path, "accept", "gs-000", "--reason", "known", "--until", "14d")
    with agent(fails_on(0, 1)) as running:
        run(tmp_path, running)
    with agent() as running:
        run(tmp_path, running, "--failing")
        assert asked(running) == ["ask 1"]


def test_failing__summary__names_the_cases_to_run_again_and_not_the_option(tmp_path) -> None:
    write_suite(tmp_path, 2)
    with agent(fails_on(1)) as running:
        run(tmp_path, running)
        done = run(tmp_path, running, "--failing")
    (line,) = [one for one in done.stdout.splitlines() if "eval-gate run" in one and "--case" in one]
    assert "--failing" not in line
    assert "gs-001" in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--failing"], "error[no-such-run]: there is no run in evals/results yet"),
        (["--failing", "--resume", "x"], "error[options-conflict]: --failing and --resume do not go together"),
        (["--watch", "--json"], "error[options-conflict]: --watch and --json"),
        (["--watch", "--target", "a", "--target", "b"], "error[options-conflict]: --watch and --target given several"),
        (["--watch", "--baseline", "nowhere"], "error[baseline-not-found]"),
        (["--watch", "--config", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_run__options_that_lead_nowhere__end_at_once(tmp_path, arguments, said) -> None:
    write_suite(tmp_path, 1)
    with agent() as running:
        done = run(tmp_path, running, *arguments)
        assert running.requests == []
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


# --- watch


class Screen:
    """A program that watches, and all that it has said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._more = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._more:
                self.lines.append(line.rstrip("\n"))
                self._more.notify()

    def until(self, text: str, times: int = 1) -> float:
        """Wait until this was said so often; when that was."""
        with self._more:
            self._more.wait_for(lambda: self.said(text) >= times or self.process.poll() is not None, 60)
        assert self.said(text) >= times, "\n".join(self.lines)
        return time.monotonic()

    def said(self, text: str) -> int:
        return sum(text in line for line in self.lines)

    def end(self, number: int = signal.SIGINT) -> int:
        """Ctrl-C; the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(30)
        self._reader.join(30)
        return code


@contextmanager
def watching(folder: Path, running, *arguments: str, rounds: int = 1) -> Iterator[Screen]:
    process = subprocess.Popen(
        [*PROGRAM, "run", "--watch", "--agent-endpoint", running.url, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    screen = Screen(process)
    try:
        screen.until("Ctrl-C ends", rounds)
        yield screen
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_watch__an_eval_file_changes__its_cases_are_run_and_the_exit_code_is_the_last_runs(tmp_path) -> None:
    write_suite(tmp_path, 2, "one.golden.json")
    two = write_suite(tmp_path, 2, "two.golden.json")
    two.write_text(two.read_text().replace("ask ", "say "))
    with agent() as running, watching(tmp_path, running) as screen:
        assert len(running.requests) == 4
        assert screen.lines[-1] == "watching 2 eval files: Ctrl-C ends"
        running.requests.clear()
        two.write_text(two.read_text().replace('["ok"]', '["never said"]'))
        changed_at = time.monotonic()
        assert screen.until(" changed: evals/two.golden.json") - changed_at < 5
        screen.until("Ctrl-C ends", 2)
        assert asked(running) == ["say 0", "say 1"]
        assert screen.said("ran 2 cases: gs-000, gs-001") == 1
        assert re.search("GATE FAILED: .* exit 1", "\n".join(screen.lines))
        assert screen.end() == 1
        assert screen.lines[-1] == "ended  exit 1"
    found = record(tmp_path)
    assert (found["partial"], found["summary"]["totalCases"]) == (True, 2)
    # the first round was green, and is what this one was held against
    assert [found["baselineRunId"]] == [one["runId"] for one in records(tmp_path) if not one["partial"]]


def test_watch__a_change__is_seen_within_a_second_and_bursts_are_one(tmp_path) -> None:
    file = write_suite(tmp_path, 1)
    other = write_suite(tmp_path, 1, "other.golden.json")
    with agent() as running, watching(tmp_path, running) as screen:
        for number in range(5):
            file.write_text(file.read_text() + " ")
            other.write_text(other.read_text() + " ")
            time.sleep(0.05 * (number < 4))
        screen.until("Ctrl-C ends", 2)
        assert screen.said("changed: evals/other.golden.json, evals/weather.golden.json") == 1
        time.sleep(1)
        assert screen.said(" changed: ") == 1


@pytest.mark.slow
def test_watch__changed_while_it_runs__runs_again(tmp_path) -> None:
    file = write_suite(tmp_path, 1)
    begun, go = threading.Event(), threading.Event()

    async def slow(exchange: Exchange) -> None:
        begun.set()
        await asyncio.to_thread(go.wait, 30)
        exchange.answer({"response": "ok", "toolCalls": []})

    with agent(slow) as running:

        def change() -> None:
            begun.wait(30)
            file.write_text(file.read_text().replace("ask 0", "ask 7"))
            go.set()

        changing = threading.Thread(target=change)
        changing.start()
        with watching(tmp_path, running, rounds=2) as screen:
            assert asked(running) == ["ask 0", "ask 7"]
            assert screen.said(" changed: evals/weather.golden.json") == 1
        changing.join()


@pytest.mark.slow
def test_watch__mistake_in_an_eval_file__is_shown_and_watching_goes_on(tmp_path) -> None:
    file = write_suite(tmp_path, 2)
    good = file.read_text()
    with agent() as running, watching(tmp_path, running) as screen:
        file.write_text(good[:-1] + ",]")
        screen.until("Ctrl-C ends", 2)
        assert screen.said("error[invalid-eval-files]") == 1
        assert screen.said("evals/weather.golden.json:") >= 1
        assert len(running.requests) == 2
        file.write_text(good)
        screen.until("Ctrl-C ends", 3)
        assert len(running.requests) == 4
        assert screen.end() == 0


@pytest.mark.slow
def test_watch__mistake_from_the_start__is_shown_and_mending_it_runs_everything(tmp_path) -> None:
    file = write_suite(tmp_path, 2)
    good = file.read_text()
    file.write_text("[")
    with agent() as running, watching(tmp_path, running) as screen:
        assert running.requests == []
        file.write_text(good)
        screen.until("Ctrl-C ends", 2)
        assert len(running.requests) == 2
        file.write_text("[")
        screen.until("Ctrl-C ends", 3)
        assert screen.end() == 2
    assert [one["partial"] for one in records(tmp_path)] == [False]


@pytest.mark.slow
def test_watch__mistake_in_one_file__what_changed_in_another_meanwhile_is_run_once_it_is_mended(tmp_path) -> None:
    one, two = (write_suite(tmp_path, 1, name) for name in ("one.golden.json", "two.golden.json"))
    write_suite(tmp_path, 1, "three.golden.json")
    good = two.read_text()
    with agent() as running, watching(tmp_path, running) as screen:
        two.write_text("[")
        screen.until("Ctrl-C ends", 2)
        one.write_text(one.read_text().replace("ask 0", "ask 1"))
        screen.until("Ctrl-C ends", 3)
        running.requests.clear()
        two.write_text(good)
        screen.until("Ctrl-C ends", 4)
        assert asked(running) == ["ask 0", "ask 1"]


@pytest.mark.slow
def test_watch__configuration_changes__everything_is_run_by_it(tmp_path) -> None:
    write_suite(tmp_path, 2)
    with agent() as running, watching(tmp_path, running) as screen:
        (tmp_path / "eval-gate.yaml").write_text("trials: 2\n")
        screen.until("Ctrl-C ends", 2)
        assert screen.said("changed: eval-gate.yaml") == 1
        assert len(running.requests) == 2 + 4
        (tmp_path / "eval-gate.yaml").write_text("trials: none\n")
        screen.until("Ctrl-C ends", 3)
        assert screen.said("error[invalid-configuration]") == 1
        (tmp_path / "eval-gate.yaml").unlink()
        screen.until("Ctrl-C ends", 4)
        assert len(running.requests) == 2 + 4 + 2
        assert screen.end() == 0
    assert record(tmp_path)["partial"] is False


@pytest.mark.slow
def test_watch__new_file_and_one_that_goes__are_seen(tmp_path) -> None:
    write_suite(tmp_path, 1)
    with agent() as running, watching(tmp_path, running) as screen:
        more = write_suite(tmp_path, 2, "more.golden.json")
        screen.until("watching 2 eval files")
        assert len(running.requests) == 3
        more.unlink()
        screen.until("there is no case in there: nothing is run")
        (tmp_path / "evals" / "notes.json").write_text("{}")
        screen.until("Ctrl-C ends", 4)
        assert screen.said("nothing matches evals/notes.json: nothing is run") == 1
        assert len(running.requests) == 3
        assert screen.end() == 0


@pytest.mark.slow
def test_watch__failing__runs_only_what_still_fails(tmp_path) -> None:
    file = write_suite(tmp_path, 4)
    with agent(fails_on(1, 2)) as running:
        run(tmp_path, running)
    with agent(fails_on(2)) as running, watching(tmp_path, running, "--failing") as screen:
        assert asked(running) == ["ask 1", "ask 2"]
        running.requests.clear()
        file.write_text(file.read_text() + "\n")
        screen.until("Ctrl-C ends", 2)
        assert asked(running) == ["ask 2"]
        assert screen.said("ran 1 case: gs-002") == 1
        file.write_text(file.read_text().replace("ask 2", "ask 9"))
        screen.until("Ctrl-C ends", 3)
        file.write_text(file.read_text() + "\n")
        screen.until("Ctrl-C ends", 4)
        assert screen.said("no case failed when it was last run (evals/results): nothing is run") == 1
        assert screen.end() == 0


@pytest.mark.slow
def test_watch__ctrl_c_in_the_middle_of_a_run__writes_what_is_done_and_ends(tmp_path) -> None:
    write_suite(tmp_path, 3)

    async def hangs(exchange: Exchange) -> None:
        if exchange.json["message"] != "ask 0":
            await asyncio.sleep(30)
        exchange.answer({"response": "ok", "toolCalls": []})

    with agent(hangs) as running:
        process = subprocess.Popen(
            [*PROGRAM, "run", "--watch", "--agent-endpoint", running.url],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        until = time.monotonic() + 30
        while len(running.requests) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Ctrl-C ends" not in said
    assert record(tmp_path)["complete"] is False


@pytest.mark.slow
def test_watch__ended_from_outside_while_it_waits__exits_by_the_signal(tmp_path) -> None:
    write_suite(tmp_path, 1)
    with agent() as running, watching(tmp_path, running) as screen:
        assert screen.end(signal.SIGTERM) == 143
    assert screen.lines[-1] == "ended from outside (SIGTERM)"


@pytest.mark.slow
def test_watch__a_red_run__never_becomes_what_the_next_is_held_against(tmp_path) -> None:
    file = write_suite(tmp_path, 2)
    wrong: list[int] = []

    async def changing(exchange: Exchange) -> None:
        await fails_on(*wrong)(exchange)

    with agent(changing) as running, watching(tmp_path, running, "--fail-on", "regressions") as screen:
        green = record(tmp_path)["runId"]
        wrong.append(1)
        for number in (2, 3):
            file.write_text(file.read_text() + "\n")
            screen.until("Ctrl-C ends", number)
            found = record(tmp_path)
            assert (found["baselineRunId"], found["verdict"]["outcome"]) == (green, "fail")
        assert screen.end() == 1
