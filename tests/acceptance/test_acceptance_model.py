"""Which model answered, as its provider names it: said where it is another one, and never an excuse."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.support.model_server import anthropic_answer, gemini_answer, model_server, openai_answer
from tests.support.program import gate
from tests.support.world import cases_of, expect, plain, words_of

OLD, NEW = "gpt-x-0613", "gpt-x-1106"


def test_pull_request__answered_by_another_model_than_main__is_said_and_no_verdict_is_milder(empty) -> None:
    empty.script.model = OLD
    empty.main("PPPPPPPP*4")
    empty.script.model = NEW
    seen = empty.here("FPPPPPPP")
    expect(seen, 1, "1 regression", regression=[0])
    said = (
        "model behind the agent changed since the baseline: from gpt-x-0613 to "
        "gpt-x-1106 (8 of 8 cases). This does not affect the verdict"
    )
    assert said in plain(seen.report)
    assert said in " ".join(seen.text.split())
    assert seen.json["suites"][0]["cases"][0]["details"]["model"] == NEW


def test_pull_request__answered_by_the_same_model__says_nothing_of_it(empty) -> None:
    empty.script.model = OLD
    empty.main("PPPPPPPP*2")
    assert "model behind the agent" not in empty.here("FPPPPPPP").text


def test_pull_request__one_side_names_no_model__says_nothing_of_it(empty) -> None:
    empty.main("PPPPPPPP*2")
    empty.script.model = NEW
    assert "model behind the agent" not in empty.here("PPPPPPPP").text


def test_pull_request__model_with_a_name_that_is_an_attack__is_text(empty) -> None:
    empty.script.model = OLD
    empty.main("PPPPPPPP*2")
    empty.script.model = "<img src=x onerror=alert(1)> @everyone\n::error::owned\n" + "x" * 5_000
    seen = empty.here("PPPPPPPP")
    assert "<img" not in seen.report
    assert "\n::error::" not in seen.text
    kept = seen.json["suites"][0]["cases"][0]["details"]["model"]
    assert len(kept) <= 200


def test_pull_request__model_named_by_what_is_to_be_hidden__is_masked(empty) -> None:
    empty.script.model = "tenant-4711-gpt"
    (empty.folder / "eval-gate.yaml").write_text('redact: ["tenant-[0-9]+"]\n')
    done = empty.run("PPPPPPPP")
    assert done.returncode == 0, done.stderr
    record = json.loads(empty.record().read_text())
    assert record["suites"][0]["cases"][0]["details"]["model"] == "***-gpt"


def test_main__another_model_answers__its_drift_names_both_and_the_run(action) -> None:
    action.script.model = OLD
    shas = action.main("PPPPP*12")
    action.script.model = NEW
    first = action.main("PPPPP*2")[0]
    (said,) = [line for line in action.ended.summary.splitlines() if "gpt-x" in line]
    assert "The model behind it changed on " in said
    assert "`gpt-x-0613` before, `gpt-x-1106` since (2 runs)" in said
    assert f"{shas[-1][:7]}…{first[:7]}" in said


def on_one_commit(world, model: str, runs: str) -> None:
    """Runs of main one after the other, on the same commit, answered by this model."""
    if not (world.folder / ".git").exists():
        for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "all there is")):
            subprocess.run(
                ("git", "-c", "user.name=a", "-c", "user.email=a@example.com", *words), cwd=world.folder, check=True
            )
    world.script.model = model
    for letters in words_of(runs):
        there = ("--baseline", world.MAIN) if (world.folder / world.MAIN).exists() else ()
        world.main(letters, *there)


@pytest.mark.slow
def test_main__fails_since_another_model_answers_and_nothing_changed__drift_says_that_it_is_the_model(empty) -> None:
    on_one_commit(empty, OLD, "PPPPP*12")
    on_one_commit(empty, NEW, "FPPPP*3")
    done = empty.gate("drift", empty.MAIN)
    assert done.returncode == 1, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "the repository did not change (" in said, said
    assert "the model behind it changed on " in said
    assert ": gpt-x-0613 before, gpt-x-1106 since" in said, said
    data = json.loads(empty.gate("drift", empty.MAIN, "--json").stdout)
    (change,) = data["models"]
    assert (change["before"], change["since"], change["runs"], change["sameCommit"]) == ([OLD], [NEW], 3, True)


def test_main__model_came_and_went__is_said_of_the_newest_change_even_before_drift_is_known(empty) -> None:
    for model, runs in ((OLD, 1), (NEW, 1), (OLD, 2)):
        on_one_commit(empty, model, f"PPPPP*{runs}")
    done = empty.gate("drift", empty.MAIN)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "gpt-x-1106 before, gpt-x-0613 since, 2 runs; the repository did not change" in " ".join(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("provider", "answer", "name"),
    [
        ("openai", openai_answer, "gpt-4o-2024-08-06"),
        ("anthropic", anthropic_answer, "claude-sonnet-5-20260217"),
        ("gemini", gemini_answer, "gemini-2.5-flash"),
    ],
)
def test_run__of_a_model__records_what_its_provider_calls_it(empty, provider, answer, name) -> None:
    empty.cases = cases_of(2)
    empty.write()
    with model_server(answer("ok")) as server:
        rows = [{"name": "m", "provider": provider, "baseUrl": server.url, "apiKey": "${{ A_KEY }}", "model": "alias"}]
        (empty.folder / "targets.yaml").write_text(json.dumps({"targets": rows}))
        done = gate(empty.folder, "run", "--targets", "targets.yaml", "--target", "m", A_KEY="sk-very-secret")
    assert done.returncode == 0, done.stdout + done.stderr
    cases = json.loads(empty.record().read_text())["suites"][0]["cases"]
    assert [case["details"]["model"] for case in cases] == [name, name]


@pytest.mark.parametrize(
    ("settings", "printed"),
    [
        ({}, {"text": "ok", "model": NEW}),
        (
            {"agentProtocol": "claude-code"},
            {"type": "result", "subtype": "success", "result": "ok", "modelUsage": {NEW: {"outputTokens": 1}}},
        ),
        ({"agentProtocol": "gemini-cli"}, {"response": "ok", "stats": {"models": {NEW: {"tokens": {"prompt": 1}}}}}),
    ],
    ids=["own", "claude-code", "gemini-cli"],
)
def test_run__of_a_command__records_the_model_that_its_output_names(empty, settings, printed) -> None:
    empty.cases = cases_of(1)
    empty.write()
    (empty.folder / "said.json").write_text(json.dumps(printed))
    rows = [{"name": "c", "provider": "cli", "command_template": f"cat {empty.folder}/said.json", **settings}]
    (empty.folder / "targets.yaml").write_text(json.dumps({"targets": rows}))
    done = empty.gate("run", "--targets", "targets.yaml", "--target", "c")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(empty.record().read_text())["suites"][0]["cases"][0]["details"]["model"] == NEW
