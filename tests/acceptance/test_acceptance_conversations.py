"""Conversations from the eval file to the verdict: a turn that got worse, what a kill leaves, sessions apart."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents import Exchange
from tests.support.order_desk import (
    BROKEN,
    SCRIPTS,
    USERS,
    DeskAgent,
    DeskWorld,
    SessionDesk,
    desk_model,
    lines_desk,
    loopback_desk,
    model_desk,
    session_desk,
    with_users,
)
from tests.support.program import CLEAN, PROGRAM, gate
from tests.support.world import ActionWorld, Script, expect, plain, words

ONE = "gs-desk-001"
MESSAGES = {case["id"]: [turn["message"] for turn in case["turns"]] for case in SCRIPTS}


@pytest.fixture
def desk() -> Iterator[SessionDesk]:
    with session_desk() as running:
        yield running


@pytest.fixture
def world(desk, tmp_path) -> DeskWorld:
    return DeskWorld(tmp_path, loopback_desk(desk))


def case(seen_json: dict, case_id: str) -> dict:
    """The result of this case."""
    return next(one for one in seen_json["suites"][0]["cases"] if one["id"] == case_id)


# -- a change that breaks turn 3 --------------------------------------------------------------------------------------


def test_change__turn_3_forgets_the_order_of_turn_1__is_red_and_names_the_turn_everywhere(world) -> None:
    world.main("steady*4")
    seen = world.here("steady+forgets:4711")
    expect(seen, 1, "1 regression", says=["turn 3 of 4"], regression=[ONE])
    assert "turn 3 of 4" in seen.text
    result = case(seen.json, ONE)
    assert (result["failedTurn"], result["error"].startswith("turn 3: ")) == (3, True), result["error"]
    turns = result["details"]["turns"]
    assert [one["status"] for one in turns] == ["passed", "passed", "failed", "not_run"]
    assert turns[2]["response"].endswith("Which order do you mean?")
    assert "Turn 4 was not sent" in plain(seen.report)
    assert "- You get 49.90 euros back for the lamp." in seen.report
    assert "\n+ " in seen.report


def test_change__turn_3_calls_a_tool_twice__is_red_where_the_turn_checks_it(world) -> None:
    world.main("steady*4")
    seen = world.here("steady+calls_twice:4711")
    expect(seen, 1, "1 regression", says=["turn 3 of 4"], regression=[ONE])
    assert "find_order" in seen.head


def test_change__turn_3_calls_a_tool_twice_and_no_turn_checks_it__is_red_for_the_whole(world) -> None:
    world.main("steady*4")
    seen = world.here("steady+calls_twice:4715")
    expect(seen, 1, "1 regression", regression=["gs-desk-005"])
    result = case(seen.json, "gs-desk-005")
    assert (result["failedTurn"], "turn" in result["error"]) == (None, False), result["error"]


def test_change__turn_3_calls_a_tool_twice_and_nothing_checks_it__is_green_and_behaves_differently(world) -> None:
    world.main("steady*4")
    seen = world.here("steady+calls_twice:4716")
    expect(seen, 0, "no regressions")
    assert "gs-desk-006" in seen.report
    assert "turn 3" in plain(seen.report)


def test_change__turn_3_loses_the_session__is_red_and_a_case_that_goes_on_says_every_turn(world) -> None:
    world.main("steady*4")
    seen = world.here("steady+loses_session:4713")
    expect(seen, 1, "2 regressions", regression=["gs-desk-003", "gs-desk-009"])
    goes_on = case(seen.json, "gs-desk-009")
    assert [one["status"] for one in goes_on["details"]["turns"]] == [None, None, "failed", "failed", None]
    assert goes_on["failedTurn"] == 3


def test_change__that_is_none__is_green_where_the_agent_hesitates_once_in_turn_2(desk, world) -> None:
    world.main("steady*4")
    hesitated: list[str] = []

    def hesitate(exchange: Exchange, messages: list[str]) -> bool:
        if hesitated or messages != MESSAGES["gs-desk-010"][:2]:
            return False
        hesitated.append(exchange.json["session"])
        exchange.answer({"response": "One moment.", "toolCalls": []})
        return True

    desk.fault = hesitate
    seen = world.here("steady")
    assert (seen.code, seen.classes["gs-desk-010"]) == (0, "inconclusive"), seen.text
    assert [one["failedTurn"] for one in case(seen.json, "gs-desk-010")["trials"]][:2] == [2, None]
    assert desk.sessions[hesitated[0]] == MESSAGES["gs-desk-010"][:2], "turn 3 was not sent, and the re-run began anew"


def test_change__agent_error_in_turn_2__is_an_agent_error_that_names_the_turn(desk, world) -> None:
    world.main("steady*2")

    def broken(exchange: Exchange, messages: list[str]) -> bool:
        if len(messages) != 2 or "4711" not in messages[0]:
            return False
        exchange.answer({"error": "out of order"}, "500 Internal Server Error")
        return True

    desk.fault = broken
    seen = world.here("steady")
    result = case(seen.json, ONE)
    assert (result["status"], result["errorKind"], result["failedTurn"]) == ("error", "agent_error", 2), result
    assert "turn 2" in result["error"]
    assert [one["status"] for one in result["details"]["turns"]][:2] == ["passed", "error"]
    assert "turn 2 of 4" in seen.head


@pytest.mark.slow
@pytest.mark.parametrize("variant", BROKEN)
@pytest.mark.parametrize("kind", ["lines", "model"])
def test_kinds__whole_desk_broken_in_turn_3__is_red_for_the_same_cases(kind, variant, tmp_path) -> None:
    with desk_model() as url:
        world = DeskWorld(tmp_path, lines_desk() if kind == "lines" else model_desk(url))
        world.main("steady*4")
        seen = world.here(f"steady+{variant}")
    assert seen.code == 1, seen.text
    broken = {one for one, change in seen.classes.items() if change in {"regression", "suspected_regression"}}
    green = {"gs-desk-006"} if variant == "calls_twice" else set()
    assert broken == MESSAGES.keys() - green, seen.text
    turns = {one["id"]: one["failedTurn"] for one in seen.json["suites"][0]["cases"] if one["id"] in broken}
    whole = {"gs-desk-005"} if variant == "calls_twice" else set()
    assert {one for one, turn in turns.items() if turn != 3} == whole, turns


class DeskScript(Script):
    """What a world calls the script of its agent: the word of a run is the desk's variant."""

    def __init__(self, desk: SessionDesk) -> None:
        super().__init__(desk.url)
        self.desk = desk

    def begin(self, letters: str) -> None:
        self.desk.variant = letters


def test_pull_request__turn_3_forgets_the_order_of_turn_1__fails_its_check_and_the_comment_names_the_turn(
    desk, github, tmp_path
) -> None:
    action = ActionWorld(tmp_path, github, DeskScript(desk))
    action.suite, action.cases = "desk.golden.json", SCRIPTS
    action.write()
    action.main("steady*4")
    seen = action.here("steady+forgets:4711")
    assert seen.classes[ONE] == "regression", seen.text
    assert (seen.code, seen.check["conclusion"]) == (1, "failure")
    assert "turn 3 of 4" in seen.head
    (annotation,) = [one for run in github.state.check_runs.values() for one in run.annotations]
    assert "Turn 3 of 4: toolsCalled" in annotation["message"], annotation["message"]


# -- sessions ---------------------------------------------------------------------------------------------------------


def check_sessions(desk: SessionDesk) -> None:
    """Every session is the beginning of one script, and no turn came twice in one."""
    scripts = list(MESSAGES.values())
    mixed = {
        session: messages
        for session, messages in desk.sessions.items()
        if not any(script[: len(messages)] == messages for script in scripts)
    }
    assert mixed == {}


def sometimes_broken_off(exchange: Exchange, _messages: list[str]) -> bool:
    """One request in ten gets no response, after the desk took note of it; none lowers the concurrency."""
    drawn = random.random()
    if drawn < 0.05:
        exchange.answer({"error": "bad gateway"}, "502 Bad Gateway")
    elif drawn < 0.1:
        exchange.reset()
    return drawn < 0.1


def check_sessions_apart(desk: SessionDesk, folder: Path, copies: int, trials: int) -> None:
    """Ten scripts, copied, 50 at once, with trials, restarts and re-runs: no session holds two executions."""
    cases = [one | {"id": f"{one['id']}-{copy:02}"} for one in SCRIPTS for copy in range(copies)]
    target = {"provider": "http", "url": desk.url, "initialDelayMs": 20, "maxDelayMs": 100}
    switch = loopback_desk(desk).switch
    world = DeskWorld(folder, DeskAgent({"--target": "desk"}, switch, target, cases=cases))
    world.main("steady", "--concurrency", "50")
    desk.sessions.clear()
    desk.fault = sometimes_broken_off
    seen = world.here("forgets:4712", concurrency="50", trials=str(trials), max_retries="8")
    check_sessions(desk)
    results = seen.json["suites"][0]["cases"]
    made = [len(one["trials"]) for one in results]
    assert sum(made) > len(cases) * trials, "re-runs are part of it"
    assert len(desk.sessions) > sum(made), "some conversations were started again"
    assert {one["id"][:-3] for one in results if one["failedTurn"] == 3} == {"gs-desk-002"}
    assert seen.code == 1, seen.text


def test_sessions__sixty_conversations_with_faults_and_reruns__no_session_holds_two(desk, tmp_path) -> None:
    check_sessions_apart(desk, tmp_path, 6, 1)


@pytest.mark.slow
def test_sessions__a_thousand_executions_with_faults_and_reruns__no_session_holds_two(desk, tmp_path) -> None:
    check_sessions_apart(desk, tmp_path, 50, 2)


def test_kill__in_the_middle_of_conversations__resumes_them_in_new_sessions_and_no_finished_one(desk, world) -> None:
    desk.variant, desk.fault = "steady", lambda _exchange, _messages: time.sleep(0.03) is not None
    words_of_run = ("run", *words(world.desk.options | {"--concurrency": "3"}))
    process = subprocess.Popen(
        [*PROGRAM, *words_of_run], cwd=world.folder, env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    until = time.monotonic() + 60
    while sum(len(messages) for messages in desk.sessions.values()) < 14 and time.monotonic() < until:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    killed = json.loads(world.record().read_text())
    journal = world.folder / world.HERE / killed["runId"] / "cases.jsonl"
    finished = {json.loads(line)["caseId"] for line in journal.read_text().splitlines()}
    sessions = set(desk.sessions)
    assert (0 < len(finished) < 10, killed["complete"]) == (True, False)

    done = gate(world.folder, *words_of_run, "--resume", killed["runId"])
    assert done.returncode == 0, done.stdout + done.stderr
    resumed = json.loads(world.record().read_text())
    assert (resumed["complete"], resumed["summary"]["passed"]) == (True, 10), done.stdout
    check_sessions(desk)
    again = [messages for session, messages in desk.sessions.items() if session not in sessions]
    assert sorted(again) == sorted(MESSAGES[one] for one in MESSAGES.keys() - finished)


# -- simulated users --------------------------------------------------------------------------------------------------


@pytest.fixture
def users(desk, tmp_path) -> Iterator[DeskWorld]:
    """The three simulated users alone, played by a model over loopback."""
    with desk_model() as url:
        made = with_users(loopback_desk(desk), url)
        made.cases = USERS
        yield DeskWorld(tmp_path, made)


@pytest.mark.parametrize("variant", BROKEN)
def test_users__turn_3_breaks__are_red_for_what_the_whole_checks_and_show_turn_3(users, variant) -> None:
    users.main("steady*4")
    seen = users.here(f"steady+{variant}")
    expect(seen, 1, "3 regressions", regression=[one["id"] for one in USERS])
    assert plain(seen.report).count("**Turn 3, the user:**") == 3, seen.report
    assert "its own claim" in seen.report
    for one in seen.json["suites"][0]["cases"]:
        assert (one["failedTurn"], one["details"]["userEnd"] in {"reached", "max_messages"}) == (None, True), one


def test_users__recorded__are_replayed_without_a_model_until_a_conversation_differs(desk, tmp_path) -> None:
    with desk_model() as url:
        made = with_users(loopback_desk(desk), url)
        made.cases = USERS
        world = DeskWorld(tmp_path, made)
        assert world.run("steady", "--recording", "auto").returncode == 0
    done = world.run("steady", "--recording", "replay")
    assert done.returncode == 0, done.stdout + done.stderr
    done = world.run("steady+forgets:4712", "--recording", "replay")
    assert done.returncode == 3, done.stdout + done.stderr
    results = json.loads(world.record().read_text())["suites"][0]["cases"]
    assert [(one["status"], one["errorKind"]) for one in results] == [
        ("passed", None),
        ("error", "evaluation_error"),
        ("passed", None),
    ]
    assert results[1]["error"].startswith(
        'turn 4: the simulated user "person" gave no response: no response is recorded'
    )
    turns = results[1]["details"]["turns"]
    assert [one["status"] for one in turns] == [None, None, None, "error"], "what was said before is kept"


# -- files with mistakes ----------------------------------------------------------------------------------------------

HI = [{"message": "hi"}]
CHECKED = {"expect": {"responseContains": ["a"]}}
MISTAKES = [
    ({"turns": HI, "input": {"message": "hi"}, **CHECKED}, "exclude each other"),
    ({"turns": [], **CHECKED}, "[0].turns"),
    ({"turns": [{"message": " "}], **CHECKED}, "[0].turns[0].message"),
    ({"turns": [{"message": "hi", "expct": {}}], **CHECKED}, "expct"),
    ({"turns": HI}, "`expect`"),
    ({"turns": [*HI, {"message": "ho", "expect": {"responseMatches": ["("]}}]}, "turns[1].expect.responseMatches[0]"),
    ({"turns": HI, "onTurnFailure": "go", **CHECKED}, "onTurnFailure"),
    ({"turns": HI, "user": {"goal": "a"}, **CHECKED}, "exclude each other"),
    ({"user": {"goal": ""}, **CHECKED}, "[0].user.goal"),
    ({"user": {"goal": "a", "maxMessages": 51}, **CHECKED}, "[0].user.maxMessages"),
]


def test_validate__mistakes_in_conversations__names_file_line_and_field_of_all(tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    for number, (written, _) in enumerate(MISTAKES):
        one = {"id": f"gs-chat-{number:03}"} | written
        (tmp_path / "evals" / f"m{number}.golden.json").write_text(json.dumps([one], indent=1))
    done = gate(tmp_path, "validate", "--strict")
    said = done.stdout + done.stderr
    assert done.returncode == 2, said
    for number, (_, about) in enumerate(MISTAKES):
        lines = [line for line in said.splitlines() if f"m{number}.golden.json:" in line]
        assert any(about in line for line in lines), f"{about!r} is not in {lines} of\n{said}"


# -- AgentV -----------------------------------------------------------------------------------------------------------

AGENTV = """
tests:
  - id: refund
    mode: conversation
    input: [{ role: system, content: Answer in one line. }]
    aggregation: min
    on_turn_failure: stop
    turns:
      - input: Order 4711 arrived broken.
        assertions: [{ type: contains, value: lamp }]
      - input: It has a crack.
      - input: So how much do I get back?
        assertions: [{ type: contains, value: '49.90' }]
    assertions: [{ type: contains, value: 'user: It has a crack.' }]
"""


def test_agentv__conversation_whose_turn_3_forgets__is_red_and_names_the_turn(desk, world) -> None:
    (world.folder / "evals" / "desk.golden.json").unlink()
    (world.folder / "evals" / "desk.eval.yaml").write_text(AGENTV)
    world.main("steady*4")
    seen = world.here("forgets")
    expect(seen, 1, "1 regression", says=["turn 3 of 3:** `1.00 → 0.00"], regression=["refund"])
    assert "**Failed in turn 3" in seen.report
    result = case(seen.json, "refund")
    assert (result["failedTurn"], [one["message"] for one in result["details"]["turns"]]) == (3, MESSAGES[ONE][:3])
    check_sessions(desk)
