"""Factories for conversations that were had: what the user said in each turn, what was answered, and how it ended.

A turn is `(message, answer, calls)`. A conversation has a letter for each turn: `P` passed, `F` failed, `E` an
error, `N` not sent, `-` nobody says how.
"""

from __future__ import annotations

from collections.abc import Sequence

from eval_gate.model.comparison import CaseClass
from eval_gate.model.execution import BaselineResult, CaseDetails, ErrorCause, Status, StoredCall, TurnResult
from eval_gate.model.result import CaseFingerprints, CaseResult, CaseText, RunResult
from eval_gate.results.baseline import Baseline
from eval_gate.struct import replace
from tests.support.results import make_baseline_run, make_run, make_suite_result
from tests.support.sides import Call
from tests.support.verdicts import STEADY, judge_against, make_executed, make_judged

Turn = tuple[str, str | None, Sequence[Call]]
STATUSES = {"P": Status.PASSED, "F": Status.FAILED, "E": Status.ERROR, "N": Status.NOT_RUN}
FIND: Call = ("find_order", {"order": "4711"})
REFUND: Call = ("refund", {"order": "4711", "amount": 49.9})
BEFORE: tuple[Turn, ...] = (
    ("I want my money back for order 4711.", "I have found order 4711. What is wrong with it?", [FIND]),
    ("It arrived broken.", "I am sorry to hear that. You can have your money back.", []),
    ("So how much do I get?", "You get 49.90 euros back.", []),
    ("Please send it.", "It is on its way to your card.", [REFUND]),
    ("Thank you!", "You are welcome.", []),
)
FORGOT: Turn = ("So how much do I get?", "Which order do you mean?", [FIND, FIND])
NOT_SENT: tuple[Turn, ...] = tuple((message, None, []) for message, _, _ in BEFORE[3:])
ASKED = CaseText(
    prompt="\n".join(f"turn {number}: {message}" for number, (message, _, _) in enumerate(BEFORE, 1)),
    expectation=(
        "turn 1:",
        "  calls find_order",
        "turn 3:",
        '  response contains the number "49.90"',
        "calls find_order, refund",
    ),
)
FAILED = 'turn 3: responseContainsNumber: "49.90" not in the response'
NO_MESSAGE = "the simulated user person wrote no valid message in 2 replies"
BROKE_OFF = "turn 2: agent error: HTTP 500 (Internal Server Error)"


def make_conversation(script: Sequence[Turn], letters: str, **fields) -> CaseDetails:
    """What is kept of a conversation."""
    calls = [StoredCall(name=name, arguments=arguments) for _, _, made in script for name, arguments in made]
    kept = tuple(
        TurnResult(
            message=message,
            response=answer,
            response_length=len(answer or ""),
            calls=len(made),
            status=STATUSES.get(letter),
            score={"P": 1.0, "F": 0.0}.get(letter),
            duration_ms=40.0 if answer is not None else 0.0,
        )
        for (message, answer, made), letter in zip(script, letters, strict=True)
    )
    last = next((one.response for one in reversed(kept) if one.response is not None), None)
    values = {
        "tools_called": tuple(call.name for call in calls),
        "tool_calls": tuple(calls),
        "response": last,
        "response_length": len(last or ""),
        "turns": kept,
    }
    return CaseDetails(**(values | fields))


def make_chat(case_id: str, letters: str, details: CaseDetails, turns: Sequence[int], **fields) -> CaseResult:
    """A case whose executions ended in these turns, which count from 1; 0 is an execution that no turn failed."""
    values = {"text": ASKED, "line": 3, "failed_turn": turns[0] or None}
    case = make_executed(case_id, letters, details=details, **(values | fields))
    trials = tuple(
        replace(trial, failed_turn=turn or None, decisive=not place)
        for place, (trial, turn) in enumerate(zip(case.trials, turns, strict=True))
    )
    return replace(case, trials=trials)


def with_baseline(run: RunResult, details: CaseDetails) -> RunResult:
    """The judged run, whose baseline passed every case with this conversation."""
    assert run.comparison is not None
    side = BaselineResult(status=Status.PASSED, score=1.0, duration_ms=200.0, details=details)
    changes = tuple(
        one if one.change is CaseClass.STILL_PASSING else replace(one, baseline_result=side)
        for one in run.comparison.changes
    )
    return replace(run, comparison=replace(run.comparison, changes=changes))


def judge_chats(*cases: CaseResult, baseline: CaseDetails | None = None) -> RunResult:
    """The run of these cases, each of which passed twenty times on main, as the last case does here."""
    run = make_judged([*cases, make_executed("gs-hours", "P")], {case.id: STEADY for case in cases} | {"gs-hours": "P"})
    return with_baseline(run, baseline or make_conversation(BEFORE, "PPPPP"))


def forgetful() -> RunResult:
    """A regression: 20 of 20 pass on main, 0 of 4 here, failed in turn 3 in 3 executions and in turn 2 in 1."""
    here = make_conversation((*BEFORE[:2], FORGOT, *NOT_SENT), "PPFNN")
    return judge_chats(make_chat("gs-refund-chat-001", "FFFF", here, (3, 3, 2, 3), error=FAILED))


def broken_off() -> RunResult:
    """A conversation that ends with an agent error in turn 2, each time."""
    here = make_conversation((BEFORE[0], *((message, None, []) for message, _, _ in BEFORE[1:])), "PENNN")
    case = make_chat("gs-refund-chat-002", "CC", here, (2, 2))
    trials = tuple(replace(trial, error=BROKE_OFF) for trial in case.trials)
    return judge_chats(replace(case, error=BROKE_OFF, trials=trials))


def other_tool() -> RunResult:
    """A conversation that passes on both sides, and calls another tool in turn 1."""
    here = ((BEFORE[0][0], BEFORE[0][1], [("search_orders", {"text": "4711"})]), *BEFORE[1:])
    sides = [
        make_suite_result([make_executed("gs-refund-chat-003", "P", details=make_conversation(turns, "PPPPP"))])
        for turns in (here, BEFORE)
    ]
    return judge_against(make_run(sides[0]), Baseline(make_baseline_run(sides[1]), "main", 2, 4))


USER_BEFORE: tuple[Turn, ...] = (
    ("hi, my lamp is broken", "I am sorry. What is your order number?", []),
    ("4711", "Thank you. Your refund is on its way.", [FIND, REFUND]),
)
USER_HERE: tuple[Turn, ...] = (
    ("hi, my lamp is broken", "Do you want a new one?", []),
    ("no, my money back. order 4711", "A colleague will write to you.", [FIND]),
    ("ok, thanks", "Have a nice day.", []),
)


def talkative() -> RunResult:
    """A conversation that a simulated user led, whose whole failed although the user says that it reached its goal."""
    here = make_conversation(USER_HERE, "---", user_end="reached")
    wanted = "toolsCalled: expected [find_order, refund], called [find_order]"
    asked = CaseText(prompt="goal: get a refund for a broken lamp", expectation=("calls find_order, refund",))
    case = make_chat("gs-refund-user-001", "FFF", here, (0, 0, 0), error=wanted, text=asked)
    return judge_chats(case, baseline=make_conversation(USER_BEFORE, "--", user_end="reached"))


def speechless() -> RunResult:
    """A conversation whose simulated user wrote no second message, each time."""
    here = make_conversation((USER_HERE[0], (None, None, [])), "-E")
    here = replace(here, turns=(here.turns[0], replace(here.turns[1], error=NO_MESSAGE)))
    asked = CaseText(prompt="goal of the simulated user: get a refund\nfact: order 4711")
    case = make_chat("gs-refund-user-002", "OO", here, (2, 2), text=asked, fingerprints=CaseFingerprints(user="a"))
    error = f"turn 2: {NO_MESSAGE}"
    cause = ErrorCause.USER_FAILED
    trials = tuple(replace(trial, error=error, error_cause=cause) for trial in case.trials)
    baseline = make_conversation(USER_BEFORE, "--", user_end="reached")
    return judge_chats(replace(case, error=error, error_cause=cause, trials=trials), baseline=baseline)


STATES = {
    "turn-3": forgetful,
    "agent-error": broken_off,
    "behaviour": other_tool,
    "simulated-user": talkative,
    "simulated-user-error": speechless,
}
