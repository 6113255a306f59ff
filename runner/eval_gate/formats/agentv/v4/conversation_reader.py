"""Reader for the conversations of an AgentV 4 file (`mode: conversation`): turns, their scoring, and when to stop.

Source: AgentV 4.42.4, its documentation of conversations and what the program does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Final

from eval_gate.formats.agentv.case_messages import MessageTurn, TurnReader, turns_to_json
from eval_gate.formats.agentv.case_reader import EvaluatorSet, to_comparable
from eval_gate.formats.agentv.detection import find_used_name
from eval_gate.formats.agentv.findings import AgentVFindings, Path
from eval_gate.formats.agentv.v4 import file_model
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseTurn, ConversationSpec, EvalCase, TurnAggregation
from eval_gate.model.conversation import Message
from eval_gate.model.limits import TURNS
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.digest import compute_digest, compute_fingerprint
from eval_gate.text.sources.validation_errors import describe_value

_NEED_MODE: Final = ("turns", "aggregation", "on_turn_failure", "window_size")
ONLY_TEXT: Final = "is text in a conversation: AgentV sends the JSON of anything else, and reads no files"
_ONLY_TEXT_IN_TURN: Final = "the input of a turn is text: AgentV sends the JSON of anything else, and reads no files"
DEFAULT_STOP_SCORE: Final = 0.8
"""Score below which a turn fails if the case has no `threshold`; the file's does not count (AgentV)."""


class _TurnRead(FrozenStruct):
    """A turn, with what its fingerprint is made of."""

    turn: CaseTurn
    identity: JsonValue
    expectation: JsonValue


class ConversationRead(FrozenStruct):
    """Conversation of a case, with its parts of the case's fingerprints."""

    spec: ConversationSpec
    prompt: JsonValue
    identity: JsonValue
    expectation: JsonValue


class TurnParts(FrozenStruct):
    """Readers for the parts of a turn, which are read as those of a case."""

    read_assertions: Callable[[Mapping[str, JsonValue], Path, tuple[MessageTurn, ...]], EvaluatorSet | None]
    """Read the assertions of a turn with this expected output; None if it has none."""
    read_expected: Callable[[JsonValue, Path], tuple[MessageTurn, ...]]
    fill: Callable[[JsonValue], JsonValue]
    """Fill in the variables of the case."""
    default: EvaluatorSet
    """The default LLM judge."""


def has_mode(case: Mapping[str, JsonValue], path: Path, findings: AgentVFindings) -> bool:
    """Whether the case is meant as a conversation. Report its keys that miss each other, or exclude it."""
    if "mode" not in case:
        for key in _NEED_MODE:
            if key in case:
                findings.add_problem(f"`{key}` needs `mode: conversation`", (*path, key))
    elif "turns" not in case:
        findings.add_problem("`mode: conversation` needs `turns`", (*path, "mode"))
    if "mode" not in case and "turns" not in case:
        return False
    for key in file_model.OUTPUT:
        if case.get(key) is not None:
            findings.add_problem("set it in a turn, as AgentV asks", (*path, key))
    if case.get("input_files") is not None:
        findings.add_problem(ONLY_TEXT, (*path, "input_files"))
    return True


def check_input_texts(raw: JsonValue, path: Path, findings: AgentVFindings) -> bool:
    """Report parts and objects in messages before the first turn; return whether there are none."""
    if isinstance(raw, dict) and "role" not in raw:
        findings.add_problem(ONLY_TEXT, path)
        return False
    messages: list[tuple[Path, JsonValue]] = [(path, raw)]
    if isinstance(raw, list):
        messages = [((*path, index), one) for index, one in enumerate(raw)]
    wrong = [place for place, one in messages if isinstance(one, dict) and isinstance(one.get("content"), dict | list)]
    for place in wrong:
        findings.add_problem(ONLY_TEXT, (*place, "content"))
    return not wrong


class ConversationReader:
    """Read the conversations of one eval file, and record what is wrong with them."""

    def __init__(self, findings: AgentVFindings, texts: TurnReader) -> None:
        self._findings = findings
        self._texts = texts

    def read(
        self, case: Mapping[str, JsonValue], path: Path, parts: TurnParts, pass_score: float | None
    ) -> ConversationRead | None:
        """Read the turns of a case and their settings, or return None after reporting a problem.

        `pass_score` is the `threshold` of the case itself.
        """
        entry = self._findings.read_part(
            file_model.AgentV4Conversation, {key: case[key] for key in _SETTINGS if key in case}, path
        )
        raw, where = case.get("turns"), (*path, "turns")
        if not isinstance(raw, list) or not raw:
            if "turns" in case:
                words = "needs at least 1" if raw == [] else "expected a list"
                self._findings.add_problem(f"{words}, got {describe_value(raw)}", where)
            return None
        if len(raw) > TURNS:
            self._findings.add_problem(f"has more than {TURNS}", where)
            return None
        turns = [self._read_turn(one, (*where, index), parts) for index, one in enumerate(raw)]
        complete = [turn for turn in turns if turn is not None]
        if entry is None or len(complete) < len(turns):
            return None
        return _build_conversation(entry, complete, pass_score)

    def _read_turn(self, raw: JsonValue, path: Path, parts: TurnParts) -> _TurnRead | None:
        if not isinstance(raw, dict):
            self._findings.add_problem(f"expected a turn, got {describe_value(raw)}", path)
            return None
        turn = {key: parts.fill(value) if key in _TEMPLATED else value for key, value in raw.items()}
        message = self._read_message(turn, path)
        key = find_used_name(turn, file_model.OUTPUT)
        has_output = key is not None and turn[key] is not None
        expected = parts.read_expected(turn[key], (*path, key)) if key is not None and has_output else ()
        judged = parts.read_assertions(turn, path, expected)
        if judged is None and has_output:
            judged = parts.default
        if message is None:
            return None
        compared: JsonValue = [*to_comparable(expected)]
        return _TurnRead(
            CaseTurn(
                message=message,
                evaluators=judged.specs if judged is not None else (),
                expected_messages=turns_to_json(expected) if expected else None,
            ),
            [compared, judged.fingerprint if judged is not None else None],
            [compared, judged.expectation if judged is not None else None],
        )

    def _read_message(self, turn: dict[str, JsonValue], path: Path) -> str | None:
        """Read the message of a turn, and check the turn's keys."""
        where = (*path, "input")
        is_structured = isinstance(turn.get("input"), dict | list)
        if is_structured:
            self._findings.add_problem(_ONLY_TEXT_IN_TURN, where)
            turn = {**turn, "input": "-"}  # so that the rest of the turn is checked
        entry = self._findings.read_part(file_model.AgentV4Turn, turn, path)
        if entry is None or is_structured:
            return None
        if not entry.input.strip():
            self._findings.add_problem("must not be blank", where)
            return None
        (message,) = self._texts.read(entry.input, where, "user")
        return str(message.content)


_SETTINGS: Final = ("mode", "aggregation", "on_turn_failure", "window_size")
_TEMPLATED: Final = frozenset({"input", *file_model.OUTPUT})
"""Fields of a turn in which variables are filled in."""


def _build_conversation(
    entry: file_model.AgentV4Conversation, turns: Sequence[_TurnRead], pass_score: float | None
) -> ConversationRead:
    aggregation = TurnAggregation(entry.aggregation)
    stop_score = None
    if entry.on_turn_failure == "stop":
        stop_score = DEFAULT_STOP_SCORE if pass_score is None else pass_score
    return ConversationRead(
        ConversationSpec(
            turns=tuple(one.turn for one in turns),
            aggregation=aggregation,
            stop_score=stop_score,
            window=entry.window_size,
            scores_transcript=True,
        ),
        prompt=[[one.turn.message for one in turns], stop_score, entry.window_size],
        identity=[aggregation, [one.identity for one in turns]],
        expectation=[aggregation, [one.expectation for one in turns]],
    )


def add_conversation(case: EvalCase, read: ConversationRead, history: Sequence[MessageTurn]) -> EvalCase:
    """Add a conversation to its case. Each message of `history` keeps its role, because the turns follow it."""
    by_turn = chain.from_iterable(turn.evaluators for turn in read.spec.turns)
    return replace(
        case,
        messages=tuple(Message(role=turn.role, content=str(turn.content)) for turn in history if turn.is_visible),
        conversation=replace(read.spec, all_evaluators=(*by_turn, *case.evaluators)),
        fingerprint=compute_fingerprint([case.fingerprint, read.prompt, read.identity]),
        prompt_fingerprint=compute_digest([case.prompt_fingerprint, read.prompt]),
        expectation_fingerprint=compute_digest([case.expectation_fingerprint, read.expectation]),
    )
