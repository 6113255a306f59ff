"""Finding 6: one answer ended the whole run with a traceback. Whatever it holds, it is about its own case only.

Through the whole program, against a real agent: the second of three cases is answered so, the others well.
"""

import asyncio
import json

import pytest

from eval_gate.engine import trials
from eval_gate.engine.case_workspaces import CaseWorkspaces
from eval_gate.engine.run_plan import ExecutionFingerprints
from eval_gate.errors import GateError
from eval_gate.model.execution import Status
from eval_gate.text.javascript.regex import PatternMatcher
from tests.support.agents import Exchange, agent
from tests.support.cases import make_case, make_plan, make_suite
from tests.support.measured import measured

DEEP = "[" * 100_000 + "]" * 100_000
HUGE = "1" + "0" * 400
CRASHED, PASSED = ("error", "agent_error"), ("passed", None)


def text(rest: str) -> bytes:
    return f'{{"response": "ok", "toolCalls": [], {rest}}}'.encode()


def calls(rest: str) -> bytes:
    return f'{{"response": "ok", "toolCalls": [{{"name": "a", {rest}}}]}}'.encode()


def openai(arguments: str) -> bytes:
    call = {"function": {"name": "a", "arguments": arguments}}
    return json.dumps({"choices": [{"message": {"content": "ok", "tool_calls": [call]}}]}).encode()


HOSTILE = {
    "costUsd 1e400": (text('"costUsd": 1e400'), CRASHED),
    "costUsd Infinity": (text('"costUsd": Infinity'), CRASHED),
    "costUsd 10**400": (text(f'"costUsd": {HUGE}'), CRASHED),
    "costUsd 1e308": (text('"costUsd": 1e308'), PASSED),
    "tokens": (text(f'"usage": {{"inputTokens": {"9" * 290}, "outputTokens": 1}}'), PASSED),
    "durationMs 10**400": (calls(f'"durationMs": {HUGE}'), CRASHED),
    "durationMs 1e308": (calls('"durationMs": 1e308'), PASSED),
    "params as deep text": (calls(f'"params": {json.dumps(DEEP)}'), CRASHED),
    "params deep": (calls('"params": {"a": ' + "[" * 5_000 + "]" * 5_000 + "}"), CRASHED),
}


def outcomes(folder, odd, *arguments: str, good: bytes = text('"a": 1')) -> tuple[int, str, list[tuple]]:
    """Exit code, standard error, and status and error_kind of every case in the record."""
    (folder / "evals").mkdir()
    cases = [
        {"id": f"gs-{number}", "input": {"message": f"ask {number}"}, "expect": {"responseContains": ["ok"]}}
        for number in range(3)
    ]
    (folder / "evals" / "weather.golden.json").write_text(json.dumps(cases))

    async def handler(exchange: Exchange) -> None:
        exchange.answer(next(odd(number) for number in range(3) if b"ask %d" % number in exchange.body) or good)

    with agent(handler) as running:
        target = {"name": "it", "provider": "http", "url": running.url}
        if arguments:
            target["agentProtocol"] = arguments[0]
        (folder / "targets.yaml").write_text(json.dumps([target]))
        done = measured(folder, "run", "--targets", "targets.yaml", "--target", "it", "--max-retries", "0")
    assert "Traceback" not in done.stderr, done.stderr
    results = folder / "evals" / "results"
    record = json.loads((results / json.loads((results / "latest.json").read_text())["path"]).read_text())
    return done.code, done.stderr, [(one["status"], one.get("errorKind")) for one in record["suites"][0]["cases"]]


@pytest.mark.parametrize("kind", HOSTILE)
def test_finding_6__one_answer__is_about_its_case_only(tmp_path, kind) -> None:
    body, expected = HOSTILE[kind]
    code, said, found = outcomes(tmp_path, lambda number: body if number == 1 else None)
    assert found == [PASSED, expected, PASSED], said
    assert (code == 0) is (expected == PASSED)


@pytest.mark.slow
def test_finding_6__openai_arguments_as_deep_text__are_about_their_case_only(tmp_path) -> None:
    odd = lambda number: openai(DEEP) if number == 1 else None  # noqa: E731
    _, said, found = outcomes(tmp_path, odd, "openai-chat", good=openai("{}"))
    assert found == [PASSED, CRASHED, PASSED], said


@pytest.mark.slow
def test_finding_6__every_cost_near_the_largest_float__has_a_sum(tmp_path) -> None:
    code, said, found = outcomes(tmp_path, lambda _: text('"costUsd": 1e308'))
    assert (code, found) == (0, [PASSED] * 3), said


@pytest.mark.parametrize(
    "error", [RecursionError("too deep"), OverflowError("too large"), KeyError("x"), MemoryError()]
)
def test_finding_6__a_defect_over_one_case__is_an_error_of_ours_and_no_more(error) -> None:
    record = trials.TrialRecord(eval_file="a", case_id="b", trial=0, fingerprint="f", status=Status.PASSED, score=1.0)
    found = trials.build_defect_record(record, error)
    assert (found.status.value, found.error_kind.value, found.score) == ("error", "evaluation_error", 0.0)
    assert type(error).__name__ in found.error
    assert found.key == record.key


def run_one(error: Exception):
    """The trial of a case whose target breaks so."""

    class Breaking:
        timeout_ms = None

        async def respond(self, request):
            raise error

    case = make_case()
    plan = make_plan(make_suite(case))
    fingerprints = ExecutionFingerprints.from_plan(plan)
    shared = trials.TrialServices(plan, PatternMatcher(), CaseWorkspaces(), fingerprints)
    return asyncio.run(trials.TrialRunner(Breaking(), shared).run(trials.TrialJob(case, 0)))


def test_finding_6__whatever_breaks_within_a_trial__is_caught_there() -> None:
    found = run_one(OverflowError("int too large to convert to float"))
    assert (found.status.value, found.error_kind.value) == ("error", "evaluation_error")
    assert found.error.startswith("eval-gate failed on this case: OverflowError: int too large")


def test_finding_6__what_is_meant_for_the_run__still_ends_it() -> None:
    with pytest.raises(GateError):
        run_one(GateError("output-not-writable", "the disk is full"))
