"""The loop on one's own machine: run, change the agent, run again, accept what is known."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate, record, write_suite
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.offered import offered

FILE = ".eval-gate/waivers.yaml"


def run(folder: Path, url: str, *arguments: str):
    return gate(folder, "run", "--agent-endpoint", url, *arguments)


def again(folder: Path, url: str, *arguments: str):
    """The second line of the README's loop."""
    return run(folder, url, "--baseline", "latest", "--fail-on", "regressions", *arguments)


@pytest.fixture
def broken(tmp_path):
    """A run that passed, and then an agent that breaks two cases."""
    write_suite(tmp_path)
    with agent() as running:
        assert run(tmp_path, running.url).returncode == 0
    first = record(tmp_path)["runId"]
    with agent(fails_on(2, 3)) as running:
        yield tmp_path, running.url, first


@pytest.mark.contract("baseline.latest")
def test_latest__run_after_a_red_one__is_red_for_the_same_reason(broken) -> None:
    folder, url, first = broken
    for _ in range(3):
        done = again(folder, url)
        assert done.returncode == 1, done.stdout
        assert "REGRESSIONS (2): gs-002, gs-003" in done.stdout
        assert "GATE FAILED: 2 cases that usually pass failed (limit 0)" in done.stdout
        found = record(folder)
        assert found["baselineRunId"] == first
        assert [change["change"] for change in found["comparison"]["changes"]].count("regression") == 2


@pytest.mark.contract("baseline.latest")
def test_latest__named_red_run__is_what_it_is_compared_with(broken) -> None:
    folder, url, _ = broken
    assert again(folder, url).returncode == 1
    red = record(folder)["runId"]
    assert run(folder, url, "--baseline", red, "--fail-on", "regressions").returncode == 0
    assert record(folder)["baselineRunId"] == red
    # that one passed its gate, and is what the next one is compared with
    assert again(folder, url).returncode == 0


@pytest.mark.contract("baseline.latest")
def test_latest__first_run_was_red__is_not_passed_over_and_says_what_to_do(tmp_path) -> None:
    write_suite(tmp_path)
    with agent(fails_on(2)) as running:
        assert run(tmp_path, running.url).returncode == 1
        red = record(tmp_path)["runId"]
        done = again(tmp_path, running.url)
        assert done.returncode == 3, done.stdout
        assert (
            "no baseline: no run of agent in evals/results passed its gate yet: "
            f"give the id of a run to compare with, such as {red}, or start without a baseline"
        ) in done.stdout
        assert "GATE INCONCLUSIVE" in done.stdout
        assert record(tmp_path)["verdict"]["reasons"][0]["code"] == "no-passing-baseline"
        assert run(tmp_path, running.url, "--fail-on", "regressions").returncode == 0
        assert again(tmp_path, running.url).returncode == 0
    with agent() as running:
        assert again(tmp_path, running.url).returncode == 0


@pytest.mark.contract("baseline.latest")
def test_compare__latest__is_the_newest_that_passed_as_baseline_and_the_newest_as_what_is_judged(broken) -> None:
    folder, url, first = broken
    assert again(folder, url).returncode == 1
    done = gate(folder, "compare", "latest", "latest", "--fail-on", "regressions", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert (found["baselineRunId"], found["runId"]) == (first, record(folder)["runId"])
    assert "REGRESSIONS (2)" in gate(folder, "report", "latest", "--format", "console").stdout


@pytest.mark.contract("baseline.latest")
def test_latest__run_that_is_resumed__is_not_its_own_baseline(broken) -> None:
    folder, url, first = broken
    assert again(folder, url).returncode == 1
    red = record(folder)["runId"]
    assert run(folder, url, "--baseline", red, "--fail-on", "regressions").returncode == 0
    green = record(folder)["runId"]
    assert again(folder, url, "--resume", green).returncode == 1
    assert record(folder)["baselineRunId"] == first


@pytest.fixture
def green_again(broken):
    """The run that passed, and one of the broken agent that passed its gate, because it was compared with a red run."""
    folder, url, first = broken
    assert again(folder, url).returncode == 1
    red = record(folder)["runId"]
    shutil.rmtree(folder / "evals/results" / first)
    shutil.copytree(folder / "evals/results" / red, folder / "red")
    shutil.rmtree(folder / "evals/results" / red)
    with agent() as running:
        assert run(folder, running.url).returncode == 0
    before = record(folder)["runId"]
    assert run(folder, url, "--baseline", "red", "--fail-on", "regressions").returncode == 0
    return folder, url, before, record(folder)["runId"]


@pytest.mark.slow
def test_baseline__folder_with_the_run_that_is_resumed__is_the_run_before_it(green_again) -> None:
    folder, url, before, green = green_again
    done = run(folder, url, "--baseline", "evals/results", "--fail-on", "regressions", "--resume", green)
    assert (done.returncode, record(folder)["baselineRunId"]) == (1, before), done.stdout + done.stderr
    shutil.rmtree(folder / "evals/results" / before)
    done = run(folder, url, "--baseline", "evals/results", "--fail-on", "regressions", "--resume", green)
    assert done.returncode == 2
    assert "error[baseline-not-found]: evals/results contains no run other than the one under evaluation" in done.stderr


@pytest.mark.slow
def test_baseline__the_run_that_is_resumed__is_refused(green_again) -> None:
    folder, url, _, green = green_again
    for reference in (green, f"evals/results/{green}", f"evals/results/{green}/run.json"):
        done = run(folder, url, "--baseline", reference, "--fail-on", "regressions", "--resume", green)
        assert done.returncode == 2, done.stdout
        assert f"error[baseline-not-found]: run {green} cannot be its own baseline" in done.stderr


@pytest.mark.slow
def test_compare__folder_with_the_run_itself__is_the_run_before_it(green_again) -> None:
    folder, _, before, green = green_again
    done = gate(folder, "compare", "evals/results", green, "--fail-on", "regressions", "--json")
    found = json.loads(done.stdout)
    # nothing was run again, because both cases failed in the baseline that the run was made with
    assert (done.returncode, found["baselineRunId"]) == (3, before), done.stderr
    assert [one["code"] for one in found["verdict"]["reasons"]] == ["unconfirmed-regressions"]


@pytest.mark.parametrize("reference", ["latest", "evals/results"])
def test_rerun__baseline_that_may_move__is_named_and_the_line_works(broken, reference) -> None:
    folder, url, first = broken
    (folder / "eval-gate.yaml").write_text(f"baseline: {reference}\nfailOn: [regressions]\n")
    done = run(folder, url, "--shard", "1/1")
    assert done.returncode == 1, done.stdout + done.stderr
    command = offered("rerun:", done.stdout)
    assert command[:3] == ["run", "--agent-endpoint", url]
    assert "--shard" not in command
    with agent() as running:
        assert run(folder, running.url).returncode == 0  # what `latest` and the folder lead to now
    later = gate(folder, *command)
    assert (later.returncode, record(folder)["baselineRunId"]) == (1, first), later.stdout + later.stderr
    assert [case["id"] for suite in record(folder)["suites"] for case in suite["cases"]] == ["gs-002", "gs-003"]


def test_rerun__hostile_ids__run_exactly_these_cases(tmp_path) -> None:
    ids = ["a[1]*", "b, c", "##[error]d", "it's", "plain"]
    cases = [{"id": one, "input": {"message": "ask 1"}, "expect": {"responseContains": ["ok"]}} for one in ids]
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "odd.golden.json").write_text(json.dumps(cases))
    with agent(fails_on(1)) as running:
        done = run(tmp_path, running.url)
        assert "##[" not in done.stdout.partition("rerun:")[2]
        assert gate(tmp_path, *offered("rerun:", done.stdout)).returncode == 1
    assert [case["id"] for case in record(tmp_path)["suites"][0]["cases"]] == ids


def test_waive__line_of_the_red_summary__turns_the_gate_green_and_shows_why(broken) -> None:
    folder, url, _ = broken
    command = offered("waive:", again(folder, url).stdout)
    assert command == ["waive", "gs-002", "gs-003", "--reason", "…", "--until", "14d"]
    refused = gate(folder, *command)
    assert (refused.returncode, "--reason: must contain a letter or digit" in refused.stderr) == (2, True)
    assert not (folder / FILE).exists()
    done = gate(folder, *("the tool moves, #481" if part == "…" else part for part in command), "--owner", "Kim")
    assert done.returncode == 0, done.stderr
    until = (datetime.now(UTC) + timedelta(days=14)).date()
    assert (folder / FILE).read_text() == "waivers:\n" + "".join(
        f'  - case: gs-00{number}\n    reason: "the tool moves, #481"\n    until: {until}\n    owner: Kim\n'
        for number in (2, 3)
    )
    assert f"gs-003: waived until {until} by Kim ({FILE}:6): the tool moves, #481" in done.stdout
    assert "regressed: gs-002, gs-003" in done.stdout
    green = again(folder, url)
    assert green.returncode == 0, green.stdout
    assert "WAIVED OR QUARANTINED (2)" in green.stdout
    assert "waive:" not in green.stdout
    assert record(folder)["verdict"]["outcome"] == "passed"


def test_waive__some_of_them__says_what_is_left(broken) -> None:
    folder, url, _ = broken
    again(folder, url)
    done = gate(folder, "waive", "gs-002", "--reason", "known", "--until", "1d")
    assert done.returncode == 0
    assert "1 regression not waived: gs-003" in done.stdout
    text = (folder / FILE).read_text()
    twice = gate(folder, "waive", "gs-002", "--reason", "known", "--until", "2d")
    assert (twice.returncode, f'{FILE}:2: "gs-002" is already waived until' in twice.stderr) == (2, True)
    passing = gate(folder, "waive", "gs-001", "--reason", "known", "--until", "2d", "--quarantine", "-q")
    assert (passing.returncode, passing.stderr) == (0, "")
    assert (folder / FILE).read_text().startswith(text)
    assert gate(folder, "waive", "gs-004", "--reason", "r", "--until", "99d").returncode == 2


def test_waive__configuration_names_the_file__is_where_it_is_written(broken) -> None:
    folder, url, _ = broken
    (folder / "eval-gate.yaml").write_text("waiversPath: ops/known.yaml\noutputDir: out\n")
    done = gate(folder, "waive", "gs-002", "--reason", "known", "--until", "1d")
    assert done.returncode == 0, done.stderr
    assert "case: gs-002" in (folder / "ops/known.yaml").read_text()
    other = gate(folder, "waive", "gs-002", "--reason", "known", "--until", "1d", "--file", "other.yaml")
    assert "add --waivers other.yaml to `eval-gate run`, which reads ops/known.yaml" in other.stderr
    command = offered("waive:", again(folder, url, "--output-dir", "evals/results").stdout)
    assert command[-2:] == ["--file", "ops/known.yaml"]


def test_waive__file_that_cannot_be_written__is_said_and_leaves_nothing(broken) -> None:
    folder, _, _ = broken
    (folder / ".eval-gate").write_text("")
    done = gate(folder, "waive", "gs-002", "--reason", "known", "--until", "1d")
    assert (done.returncode, f"{FILE} cannot be" in done.stderr) == (2, True), done.stderr


def test_must_pass__pattern_that_names_nothing__is_a_warning_in_record_and_summary(broken) -> None:
    folder, url, first = broken
    patterns = ("--must-pass", "gs-02", "--must-pass", "tag:safety", "--must-pass", "gs-00*")
    said = 'must-pass: "gs-02" matches no case (did you mean "gs-002"?): this entry has no effect'
    # of all cases, also where only some are chosen
    for chosen in ((), ("--case", "gs-001"), ("--shard", "1/3")):
        done = run(folder, url, *patterns, *chosen)
        assert f"⚠ {said}" in done.stdout
        assert record(folder)["warnings"] == [
            said,
            'must-pass: "tag:safety" matches no case: this entry has no effect',
        ]
        assert 'matches no case (did you mean "gs-002"?)' in gate(folder, "report", "latest").stdout
    # of cases that are there, although they are not chosen, nothing is said
    assert "matches no case" not in run(folder, url, "--must-pass", "gs-005", "--case", "gs-001").stdout
    stored = gate(folder, "compare", record(folder)["runId"], first, "--must-pass", "gs-9")
    assert '⚠ must-pass: "gs-9" matches no case' in stored.stdout


def test_must_pass__pattern_that_names_nothing_under_strict__is_refused_before_anything_is_asked(tmp_path) -> None:
    write_suite(tmp_path)
    with agent() as running:
        done = run(tmp_path, running.url, "--strict", "--must-pass", "gs-02", "--must-pass", "tag:safety")
        assert running.requests == []
    assert done.returncode == 2
    assert "error[unmatched-must-pass]" in done.stderr
    assert 'must-pass: "gs-02" matches no case (did you mean "gs-002"?)' in done.stderr
    (tmp_path / "eval-gate.yaml").write_text("mustPass: [gs-02]\nstrict: true\n")
    validated = gate(tmp_path, "validate")
    assert (validated.returncode, '"gs-02" matches no case' in validated.stderr) == (2, True)
