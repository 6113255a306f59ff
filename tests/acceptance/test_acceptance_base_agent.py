"""The base branch's agent is asked only where the gate would be red, and what it fails too is not of the change."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_acceptance_reruns import shards
from tests.support.agents import Exchange, agent, vanishing_agent
from tests.support.world import ASKED, NOBODY, Script, World, expect, plain, scripted

EIGHT = "PPPPPPPP*4"


@pytest.fixture
def base() -> Iterator[Script]:
    """The base branch's agent: does what the letters say, as the other one."""
    with scripted() as script:
        yield script


@pytest.fixture
def branch(world) -> World:
    return world(EIGHT)


@pytest.mark.contract("verdict.control")
def test_base_agent__case_that_died_in_both__is_not_of_the_change_and_said_so(branch, base) -> None:
    base.begin("FPPPPPPP")
    seen = branch.here("FPPPPPPP", base_agent_endpoint=base.url)
    said = "base agent passed 0 of 2 in the same minutes, so this change is not the cause"
    expect(seen, 0, "1 case fails with the base agent too", still_failing=[0])
    assert said in plain(seen.report)
    assert said in " ".join(seen.text.split())
    assert seen.change(0)["grounds"]["kind"] == "base_agent"
    assert seen.change(0)["grounds"]["baseAgent"] == {"passes": 0, "failures": 2, "agentErrors": 0}
    assert branch.compare().same == seen.same


SAME = "gave the same response as the evaluated agent in"


def test_base_agent__answers_as_the_change_s_own_agent_does__is_said(branch, base) -> None:
    """No address shows that it is the same agent behind another port or proxy: what answers tells it."""
    base.begin("FFPPPPPP")
    seen = branch.here("FFPPPPPP", base_agent_endpoint=base.url)
    assert seen.code == 0
    assert f"{SAME} all 2 failing cases, byte for byte: check that {base.url}" in plain(seen.report)
    assert SAME in " ".join(seen.text.split())
    assert branch.compare().same == seen.same


@pytest.mark.parametrize(
    "change",
    [
        ("127.0.0.1", "localhost"),
        ("127.0.0.1", "LOCALHOST."),
        ("127.0.0.1", "127.1"),
        ("127.0.0.1", "[::1]"),
        ("127.0.0.1", "0.0.0.0"),
        ("127.0.0.1", "[::ffff:127.0.0.1]"),
        ("127.0.0.1", "host.docker.internal"),
        ("127.0.0.1", socket.gethostname()),
        ("//127.0.0.1", "//somebody@127.0.0.1"),
        ("/chat", "/./chat/"),
        ("/chat", "/base/chat?who=base"),
    ],
    ids=lambda change: change[1],
)
def test_base_agent__same_port_of_this_machine__is_refused_before_anybody_is_asked(branch, change) -> None:
    other = branch.script.url.replace(*change)
    assert other != branch.script.url
    done = branch.run("FPPPPPPP", "--baseline", "main", "--base-agent-endpoint", other)
    assert (done.returncode, branch.script.asked) == (2, [])
    assert "the base agent is the evaluated agent itself" in done.stderr


def test_base_agent__one_case_is_answered_otherwise_there__nothing_is_said_of_the_agent(branch, base) -> None:
    base.begin("F3PPPPPP")
    seen = branch.here("FFPPPPPP", base_agent_endpoint=base.url)
    assert (seen.code, SAME in seen.report) == (0, False)


def test_base_agent__case_that_died_only_here__stays_red_with_what_was_asked(branch, base) -> None:
    base.begin("PPPPPPPP")
    seen = branch.here("FPPPPPPP", base_agent_endpoint=base.url)
    expect(seen, 1, "1 regression", regression=[0])
    assert "base agent passed 2 of 2 in the same minutes" in " ".join(seen.text.split())
    assert sorted(base.asked) == [0, 0, 1, 2, 3]
    assert branch.compare().same == seen.same


@pytest.mark.contract("verdict.control")
def test_base_agent__green_run__is_never_asked(branch, base) -> None:
    base.begin("PPPPPPPP")
    expect(branch.here("F(P)PPPPPPP", base_agent_endpoint=base.url), 0, "no regressions", inconclusive=[0])
    assert base.asked == []


@pytest.mark.contract("verdict.control")
def test_base_agent__nobody_there__stays_red_and_says_why(branch) -> None:
    seen = branch.here("FPPPPPPP", base_agent_endpoint=NOBODY)
    expect(seen, 1, "1 regression", regression=[0])
    said = plain(seen.report)
    assert "base agent cleared no failing case: it could not be reached: " in said, said
    assert "no connection to " in said, said


def test_base_agent__goes_away__stays_red_and_says_why(branch) -> None:
    with vanishing_agent() as url:
        seen = branch.here("FPPPPPPP", base_agent_endpoint=url)
    expect(seen, 1, "1 regression", regression=[0])
    said = plain(seen.report)
    assert "base agent cleared no failing case: it gave no response: " in said, said
    assert "no connection to " in said, said


@pytest.mark.parametrize("does", ["CCCCCCCC", "RRRRRRRR", "LLLLLLLL"])
def test_base_agent__that_brings_no_answer__clears_nothing(branch, base, does) -> None:
    base.begin(does)
    seen = branch.here("FPPPPPPP", base_agent_endpoint=base.url)
    expect(seen, 1, "1 regression", regression=[0])
    said = "the base agent cleared no failing case: none of its responses has a score: agent error: "
    assert said in " ".join(seen.text.split())


@pytest.mark.contract("verdict.control")
def test_base_agent__that_fails_everything__is_taken_for_no_agent_of_the_base_branch(branch, base) -> None:
    """Whoever points it at something that always says no would clear all they break."""
    base.begin("FFFFFFFF")
    seen = branch.here("FPPPPPPP", base_agent_endpoint=base.url)
    expect(seen, 1, "1 regression", regression=[0])
    assert "it fails 3 of 3 cases that pass in this run and in the history" in " ".join(seen.text.split())
    assert branch.compare().same == seen.same


def test_base_agent__two_died_and_one_only_here__is_red_for_that_one(branch, base) -> None:
    base.begin("FPPPPPPP")
    seen = branch.here("FFPPPPPP", base_agent_endpoint=base.url)
    expect(seen, 1, "1 regression", regression=[1], still_failing=[0])


def test_base_agent__everything_fails_here__says_that_nothing_could_show_that_it_works(branch, base) -> None:
    base.begin("FFFFFFFF")
    seen = branch.here("FFFFFFFF", base_agent_endpoint=base.url)
    assert seen.code == 1
    assert "no case passes both in this run and in the history" in " ".join(seen.text.split())
    assert base.asked == []


def test_base_agent__budget_is_spent__stays_red(branch, base) -> None:
    base.begin("FPPPPPPP")
    seen = branch.here("FPPPPPPP", base_agent_endpoint=base.url, rerun_budget="3")
    expect(seen, 1, "1 regression", regression=[0])
    assert "the rerun-budget of 3 re-runs is too small for" in " ".join(seen.text.split())


def test_base_agent__must_pass__has_to_whoever_else_fails_it(branch, base) -> None:
    base.begin("FPPPPPPP")
    seen = branch.here("FPPPPPPP", base_agent_endpoint=base.url, must_pass="gs-000")
    expect(seen, 1, "1 regression", regression=[0])
    assert base.asked == []


def test_base_agent__is_the_agent_itself__is_refused_before_anybody_is_asked(branch) -> None:
    done = branch.run("FPPPPPPP", "--baseline", "main", "--base-agent-endpoint", branch.script.url)
    assert (done.returncode, branch.script.asked) == (2, [])
    assert "the base agent is the evaluated agent itself" in done.stderr


def test_base_agent__spared_suspects__are_run_again_once_the_cause_is_cleared(branch, base) -> None:
    """Six died: three are confirmed and name the cause. These die there too, and the fourth does not."""
    letters = "FFFFFFPP"
    base.begin("FFFPPPPP")
    seen = branch.here(letters, base_agent_endpoint=base.url, false_alarm_rate="0.5")
    assert seen.code == 1, seen.text
    assert [seen.classes[f"gs-{number:03}"] for number in range(3)] == ["still_failing"] * 3
    assert "regression" in {seen.classes[f"gs-{number:03}"] for number in range(3, 6)}
    assert branch.compare().same == seen.same


def test_base_agent__named_as_a_target__is_asked_as_the_other_kinds_are(branch, base) -> None:
    base.begin("FPPPPPPP")
    file = branch.folder / "targets.yaml"
    rows = [
        {"name": "ours", "provider": "http", "url": branch.script.url},
        {"name": "base", "provider": "http", "url": base.url},
    ]
    file.write_text(json.dumps({"targets": rows}))
    branch.script.begin("FPPPPPPP")
    quick = ("--timeout-ms", "5000", "--max-retries", "0", "--fail-on", "regressions", "--reruns", "6")
    done = branch.gate(
        *("run", "--targets", "targets.yaml", "--target", "ours", "--base-agent-target", "base"),
        *("--baseline", "main", "--report", "md=report.md", *quick),
    )
    seen = branch.seen(done)
    expect(seen, 0, "1 case fails with the base agent too", still_failing=[0])
    assert seen.json["baseAgent"]["target"]["name"] == "base"
    assert seen.json["setup"]["baseAgent"] == f"base (http, {base.url})"


def test_base_agent__another_one_than_the_baseline_had__is_a_loosened_rule(branch, base) -> None:
    base.begin("PPPPPPPP")
    seen = branch.here("PPPPPPPP", base_agent_endpoint=base.url)
    expect(seen, 0, "1 loosened rule")
    assert "base-agent" in seen.head


def test_base_agent__its_answers__are_in_a_journal_of_their_own(branch, base) -> None:
    base.begin("FPPPPPPP")
    branch.here("FPPPPPPP", base_agent_endpoint=base.url)
    lines = [json.loads(line) for line in (Path(branch.record()).parent / "base-agent.jsonl").read_text().splitlines()]
    assert sorted(line["caseId"] for line in lines) == ["gs-000", "gs-000", "gs-001", "gs-002", "gs-003"]


DROP = "F(P)F(P)F(P)F(P)PPPP"


def test_base_agent__all_cases_together_fail_more_in_both__is_no_drop_and_said_so(branch, base) -> None:
    base.begin("FFFFPPPP")
    seen = branch.here(DROP, base_agent_endpoint=base.url)
    expect(seen, 0, "4 cases fail with the base agent too", inconclusive=[0, 1, 2, 3])
    said = "ran them twice in the same minutes and failed 8 of 16: compared with it, this is not a drop"
    assert said in plain(seen.report)
    assert said in " ".join(seen.text.split())
    assert seen.json["comparison"]["suiteFinding"]["baseAgent"] == {"passes": 8, "failures": 8, "agentErrors": 0}
    assert branch.compare().same == seen.same


def test_base_agent__all_cases_together_fail_more_only_here__is_a_drop_against_it_too(branch, base) -> None:
    base.begin("PPPPPPPP")
    seen = branch.here(DROP, base_agent_endpoint=base.url)
    expect(seen, 1, "the whole suite fails more than usual", regression=[0, 1, 2, 3])
    assert "base agent failed 0 of 16 in the same minutes" in plain(seen.report)
    assert sorted(base.asked) == sorted([*range(8), *range(8)])


def test_base_agent__a_drop_and_too_small_a_budget__stays_red_and_is_not_half_asked(branch, base) -> None:
    base.begin("FFFFPPPP")
    seen = branch.here(DROP, base_agent_endpoint=base.url, rerun_budget="19")
    expect(seen, 1, "the whole suite fails more than usual", regression=[0, 1, 2, 3])
    assert "the rerun-budget of 19 re-runs is too small for 16 more executions" in plain(seen.report)
    assert base.asked == []


def test_base_agent__in_shards__the_whole_says_what_its_parts_said(branch, base) -> None:
    letters = "FPPPPPPP"
    base.begin(letters)
    # a case that took as long as all others together would be a shard of its own, without a case that passes
    runs = [*(branch.folder / branch.MAIN).rglob("run.json")]
    assert runs
    for file in runs:
        file.write_text(re.sub(r'"durationMs":\s*[\d.e-]+', '"durationMs": 10', file.read_text()))
    parts = shards(branch, letters, "--base-agent-endpoint", base.url, count=2)
    assert branch.gate("merge", *parts).returncode == 0
    seen = branch.compare()
    expect(seen, 0, "1 case fails with the base agent too", still_failing=[0])


def test_base_agent__in_shards_with_two_agents__are_no_parts_of_one_run(branch, base) -> None:
    base.begin("FPPPPPPP")
    with scripted() as other:
        other.begin("FFPPPPPP")
        first = shards(branch, "FFPPPPPP", "--base-agent-endpoint", base.url, count=2, leave_out=2)
        second = shards(branch, "FFPPPPPP", "--base-agent-endpoint", other.url, count=2, leave_out=1)
    refused = branch.gate("merge", *first, *second)
    assert refused.returncode == 2
    assert "conflicting-results" in refused.stderr


def test_base_agent__run_that_went_on_later__asks_it_then_and_nobody_else(branch, base) -> None:
    """Two steps on the command line: the first one is red, the second has the base branch's agent."""
    base.begin("FPPPPPPP")
    first = branch.here("FPPPPPPP")
    expect(first, 1, "1 regression", regression=[0])
    before = list(branch.script.asked)
    again = (
        "run",
        "--resume",
        first.json["runId"],
        "--agent-endpoint",
        branch.script.url,
        "--base-agent-endpoint",
        base.url,
        "--timeout-ms",
        "5000",
    )
    options = ("--baseline", "main", "--fail-on", "regressions", "--reruns", "6", "--report", "md=report.md")
    seen = branch.seen(branch.gate(*again, *options))
    expect(seen, 0, "1 case fails with the base agent too", still_failing=[0])
    assert branch.script.asked == before


@pytest.mark.parametrize("kept", ["redact", "keepResponses"])
def test_base_agent__what_it_says__is_kept_as_little_as_what_the_agent_says(branch, base, kept) -> None:
    """Its errors quote it: a pattern masks that, and where nothing is to be stored none of it is."""
    base.begin("CCCCCCCC")
    (branch.folder / "eval-gate.yaml").write_text(
        "redact: [NoneType]\n" if kept == "redact" else "keepResponses: none\n"
    )
    branch.here("FPPPPPPP", base_agent_endpoint=base.url)
    folder = Path(branch.record()).parent
    written = [file for file in folder.rglob("*") if file.is_file()]
    assert {"base-agent.jsonl", "run.json"} <= {file.name for file in written}
    for file in written:
        assert b"NoneType" not in file.read_bytes(), file


def test_attack__answers_of_it_left_in_its_journal__are_not_taken_for_its_own(branch, base) -> None:
    """The change's own agent may write into the results folder before a second step asks the base branch's."""
    base.begin("PPPPPPPP")
    first = branch.here("FPPPPPPP")
    folder = Path(branch.record()).parent
    lines = [json.loads(line) for line in (folder / "cases.jsonl").read_text().splitlines()]
    forged = [line | {"trial": at} for at in range(3) for line in lines if line["caseId"] == "gs-000"]
    forged += [line for line in lines if line["caseId"] in {"gs-001", "gs-002", "gs-003"}]
    (folder / "base-agent.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in forged))
    again = ("run", "--resume", first.json["runId"], "--agent-endpoint", branch.script.url)
    options = ("--baseline", "main", "--fail-on", "regressions", "--reruns", "6", "--report", "md=report.md")
    seen = branch.seen(branch.gate(*again, "--base-agent-endpoint", base.url, *options))
    expect(seen, 1, "1 regression", regression=[0])
    assert base.asked


def test_base_agent__second_failure_came_from_a_cache__is_one_answer_and_clears_nothing(branch) -> None:
    """The first failure took its time; whatever is asked again comes back at once, byte for byte."""
    first: set[int] = set()

    async def cached(exchange: Exchange) -> None:
        number = int(ASKED.search(exchange.body.decode())[1])
        if number == 0 and number not in first:
            first.add(number)
            await asyncio.sleep(0.4)
        exchange.answer({"response": "no" if number == 0 else "ok", "toolCalls": []})

    with agent(cached) as running:
        seen = branch.here("FPPPPPPP", base_agent_endpoint=running.url)
    expect(seen, 1, "1 regression", regression=[0])
    assert seen.change(0)["grounds"]["baseAgent"] == {"passes": 0, "failures": 1, "agentErrors": 0}
    assert branch.compare().same == seen.same
