"""Wording for the turns of a conversation: which one failed, and how a simulated user ended it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from eval_gate.gate.reason_wording import ERROR_KIND_WORDS
from eval_gate.model.execution import NO_DETAILS, BaselineResult, CaseDetails, ErrorKind, Status, Trial, UserEnd
from eval_gate.text.escape import format_count, format_spans

MAX_TURNS_NAMED: Final = 4
"""Turns in which executions failed that are named."""
_TURN: Final = re.compile(r"(?P<turn>turn \d+):? (?P<kind>agent error(?=: ))?(?:: )?")
_USER_ENDS: Final = {
    "reached": "reached (its own claim)",
    "given_up": "given up (its own claim)",
    "max_messages": "no message left (maxMessages)",
}

_USER_VERBS: Final = {
    "reached": "reached its goal",
    "given_up": "gave up",
    "max_messages": "had no message left (maxMessages)",
}


def split_turn(error: str, total: int | None, kind: ErrorKind | None = None) -> tuple[str | None, str]:
    """Split an error into the turn that it names and the rest: `turn 3 of 5`, `agent error in turn 2 of 5`, or None.

    The `kind` is that of the error, if no text before it names it.
    """
    match = _TURN.match(error)
    if match is None:
        return None, error
    label = f"{match['turn']} of {total}" if total else match["turn"]
    word = ERROR_KIND_WORDS[kind][0] if kind else match["kind"]
    return f"{word} in {label}" if word else label, error[match.end() :]


def format_turns(numbers: Sequence[int]) -> str:
    """`turn 2`, `turns 1 and 2`, `turns 1 to 98`, `turns 1, 3 to 5 and 9`."""
    return f"turn{'s' if len(numbers) > 1 else ''} {_join_texts(format_spans(numbers))}"


def _join_texts(texts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def describe_failed_turns(trials: Iterable[Trial]) -> tuple[str, ...]:
    """`failed in turn 3 each time`, `failed in turn 3 (3 executions) and turn 2 (1)`, `agent error in turn 2 (…)`.

    Nothing for a single execution, and for a case with one request.
    """
    counts: dict[str, Counter[int | None]] = defaultdict(Counter)
    for trial in trials:
        if trial.status in {Status.FAILED, Status.ERROR}:
            error = ERROR_KIND_WORDS[trial.error_kind][0] if trial.error_kind else "error"
            counts[error if trial.status is Status.ERROR else "failed"][trial.failed_turn] += 1
    places = [(kind, turn) for kind, turns in counts.items() for turn in turns.elements()]
    if len(places) < 2 or not any(turn for _, turn in places):
        return ()
    if len(set(places)) == 1:
        return (f"{places[0][0]} in turn {places[0][1]} each time",)
    return tuple(f"{kind} in {_format_turn_counts(turns)}" for kind, turns in counts.items())


def _format_turn_counts(counts: Counter[int | None]) -> str:
    texts: list[str] = []
    for turn, number in counts.most_common(MAX_TURNS_NAMED):
        times = str(number) if texts else format_count(number, "execution")
        texts.append(f"{f'turn {turn}' if turn else 'no single turn'} ({times})")
    texts += [format_count(rest, "other turn")] if (rest := len(counts) - len(texts)) > 0 else []
    return _join_texts(texts)


def describe_user_change(current: CaseDetails, baseline: BaselineResult | None) -> str | None:
    """Describe it: `the simulated user wrote other messages and gave up (baseline: reached its goal)`, else None."""
    earlier = baseline.details if baseline else NO_DETAILS
    if current.user_end is None or earlier.user_end is None:
        return None
    messages = [[turn.message for turn in side.turns] for side in (current, earlier)]
    parts = ["wrote other messages"] if messages[0] != messages[1] else []
    if current.user_end != earlier.user_end:
        parts.append(f"{_USER_VERBS[current.user_end]} (baseline: {_USER_VERBS[earlier.user_end]})")
    return f"the simulated user {' and '.join(parts)}" if parts else None


def describe_user_end(current: UserEnd | None, baseline: UserEnd | None) -> str | None:
    """Describe how the simulated user ended the conversation; None without one."""
    if current is None:
        return None
    words = f"the simulated user ended: {_USER_ENDS[current]}"
    return words if baseline in {None, current} else f"{words}; in the baseline: {_USER_ENDS[baseline]}"
