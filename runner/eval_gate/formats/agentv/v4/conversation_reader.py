"""Reader for the parts that cases and turns of an AgentV 4 file have, and for the conversations that turns make up.

Source: AgentV 4.42.4, its documentation of conversations (`mode: conversation`) and what the program does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from eval_gate.formats.agentv.case_messages import MessageTurn, turns_to_json
from eval_gate.formats.agentv.case_reader import CaseReader, EvaluatorSet, to_comparable
from eval_gate.formats.agentv.detection import find_used_name
from eval_gate.formats.agentv.findings import Path
from eval_gate.formats.agentv.v4 import file_model, unsupported_features
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseTurn, ConversationSpec, EvalCase, TurnAggregation
from eval_gate.model.conversation import Message
from eval_gate.model.limits import TURNS
from eval_gate.struct import replace
from eval_gate.text.digest import compute_digest, compute_fingerprint
from eval_gate.text.sources.validation_errors import describe_value
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json

_NEED_MODE: Final = ("turns", "aggregation", "on_turn_failure", "window_size")
ONLY_TEXT: Final = "is text in a conversation: AgentV sends the JSON of anything else, and reads no files"
DEFAULT_STOP_SCORE: Final = 0.8
"""Score below which a turn fails if the case has no `threshold`; the file's does not count (AgentV)."""


class ReadTurn(NamedTuple):
    """Turn of a case, with its expected output in a form for fingerprints."""

    turn: CaseTurn
    expected: JsonValue
    judged: EvaluatorSet


class PartReader(CaseReader):
    """Read messages, expected outputs and assertions, which a case and each of its turns can have."""

    def _check_mode(self, case: Mapping[str, JsonValue], path: Path) -> bool:
        """Return whether the case is meant as a conversation; report its keys that miss or exclude each other."""
        if "mode" not in case:
            for key in _NEED_MODE:
                if key in case:
                    self._findings.add_problem(f"`{key}` needs `mode: conversation`", (*path, key))
        elif "turns" not in case:
            self._findings.add_problem("`mode: conversation` needs `turns`", (*path, "mode"))
        is_conversation = "mode" in case or "turns" in case
        if is_conversation and case.get(file_model.OUTPUT) is not None:
            self._findings.add_problem("set it in a turn, as AgentV asks", (*path, file_model.OUTPUT))
        return is_conversation

    def _require_texts(self, raw: JsonValue, path: Path) -> None:
        """Report messages before the first turn of a conversation that are not text."""
        if isinstance(raw, dict) and not ("role" in raw and isinstance(raw.get("content"), str)):
            self._findings.add_problem(ONLY_TEXT, path)
        for index, one in enumerate(raw if isinstance(raw, list) else ()):
            if isinstance(one, dict) and isinstance(one.get("content"), dict | list):
                self._findings.add_problem(ONLY_TEXT, (*path, index, "content"))

    def _read_turns(
        self,
        raw: JsonValue,
        path: Path,
        fill: Callable[[dict[str, JsonValue]], dict[str, JsonValue]],
        default: EvaluatorSet,
    ) -> list[ReadTurn]:
        """Read the turns at `path`, without those with a reported problem; `fill` fills in the variables.

        `default` is the LLM judge of a turn that has an expected output and no assertions.
        """
        turns: list[ReadTurn] = []
        if not isinstance(raw, list) or not 1 <= len(raw) <= TURNS:
            self._findings.add_problem(f"expected a list of 1 to {TURNS} turns, got {describe_value(raw)}", path)
            return turns
        for index, one in enumerate(raw):
            if not isinstance(one, dict):
                self._findings.add_problem(f"expected a turn, got {describe_value(one)}", (*path, index))
            elif turn := self._read_turn(fill(one), (*path, index), default):
                turns.append(turn)
        return turns

    def _read_turn(self, raw: dict[str, JsonValue], path: Path, default: EvaluatorSet) -> ReadTurn | None:
        entry = self._findings.read_part(file_model.AgentV4Turn, raw, path)
        output = None if raw.get(file_model.OUTPUT) == "" else raw.get(file_model.OUTPUT)
        expected = self._read_expected(output, (*path, file_model.OUTPUT))
        own, listed = self._find_assertion_list(raw, path)
        if listed is not None:
            judged = self.build_evaluator_set(self._evaluators.read_evaluators(listed, own, of_turn=True), path)
        else:
            judged = default if expected else self.build_evaluator_set((), path)
        if entry is None:
            return None
        (message,) = self._turns.read(entry.input, (*path, "input"), "user")
        turn = CaseTurn(
            message=str(message.content),
            evaluators=judged.specs,
            expected_messages=turns_to_json(expected) if expected else None,
        )
        return ReadTurn(turn, to_comparable(expected), judged)

    def _read_messages(self, raw: JsonValue, path: Path, role: str, files: JsonValue = None) -> tuple[MessageTurn, ...]:
        """Read messages: a list, one message, a text, or an object that is sent as JSON."""
        if isinstance(files, list) and isinstance(raw, str):
            parts: list[JsonValue] = [{"type": "file", "value": one} for one in files]
            raw = [{"role": role, "content": [*parts, {"type": "text", "value": raw}]}]
        elif isinstance(raw, dict):
            raw = [raw if "role" in raw else {"role": role, "content": raw}]
        elif isinstance(raw, list):
            raw = [_wrap_text_parts(one) for one in raw]
            for index, one in enumerate(raw):
                self._check_images(one, (*path, index, "content"))
        return self._turns.read(raw, path, "assistant" if role == "assistant" else "user")

    def _check_images(self, message: JsonValue, path: Path) -> None:
        content = message.get("content") if isinstance(message, dict) else None
        for index, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, dict) and part.get("type") == "image":
                self._findings.add_problem(unsupported_features.IMAGE, (*path, index))

    def _read_expected(self, raw: JsonValue, path: Path) -> tuple[MessageTurn, ...]:
        """Read the expected output; the assertions that are read next compare with it."""
        expected: tuple[MessageTurn, ...] = ()
        if isinstance(raw, list) and not (raw and isinstance(raw[0], dict) and "role" in raw[0]):
            message = "a list must be a list of messages: put other lists under a key of an object"
            self._findings.add_problem(message, path)
        elif raw is not None:
            expected = self._read_messages(raw, path, "assistant")
        self._evaluators.expected = _find_expected_json(expected)
        return expected

    def _find_assertion_list(self, raw: JsonValue, path: Path) -> tuple[Path, JsonValue]:
        """Return the path and value of the assertions in a part of the file, under the first of their names."""
        key = find_used_name(raw, file_model.ASSERTIONS)
        return ((*path, key), raw[key]) if key is not None and isinstance(raw, dict) else ((), None)


def add_conversation(
    case: EvalCase,
    entry: file_model.AgentV4Case,
    read: Sequence[ReadTurn],
    history: Sequence[MessageTurn],
    pass_score: float | None,
) -> EvalCase:
    """Add a conversation to its case. Each message of `history` keeps its role, because the turns follow it.

    `pass_score` is the `threshold` of the case itself.
    """
    turns = tuple(one.turn for one in read)
    stop_score = (DEFAULT_STOP_SCORE if pass_score is None else pass_score) if entry.on_turn_failure == "stop" else None
    prompt: JsonValue = [[turn.message for turn in turns], stop_score, entry.window_size]
    return replace(
        case,
        messages=tuple(Message(role=turn.role, content=str(turn.content)) for turn in history if turn.is_visible),
        conversation=ConversationSpec(
            turns=turns,
            aggregation=TurnAggregation(entry.aggregation),
            stop_score=stop_score,
            window=entry.window_size,
            scores_transcript=True,
            all_evaluators=(*chain.from_iterable(turn.evaluators for turn in turns), *case.evaluators),
        ),
        fingerprint=compute_fingerprint(
            [case.fingerprint, prompt, entry.aggregation, [[one.expected, one.judged.fingerprint] for one in read]]
        ),
        prompt_fingerprint=compute_digest([case.prompt_fingerprint, prompt]),
        expectation_fingerprint=compute_digest(
            [
                case.expectation_fingerprint,
                entry.aggregation,
                [[one.expected, one.judged.expectation] for one in read],
            ]
        ),
    )


def _wrap_text_parts(message: JsonValue) -> JsonValue:
    """Return the message with each plain text in its content as a text part."""
    if not isinstance(message, dict) or not isinstance(message.get("content"), list):
        return message
    content = message["content"]
    assert isinstance(content, list)
    parts: list[JsonValue] = [{"type": "text", "value": one} if isinstance(one, str) else one for one in content]
    return {**message, "content": parts}


def _find_expected_json(expected: tuple[MessageTurn, ...]) -> JsonValue:
    """Return the last expected response that is an object or a text containing one, or None."""
    for turn in reversed(expected):
        if turn.role != "assistant" or turn.content is None:
            continue
        if not isinstance(turn.content, str | tuple):
            return dict(turn.content)
        text = "".join(part.text for part in turn.parts)
        try:
            value = parse_untrusted_json(text[text.find("{") : text.rfind("}") + 1])
        except UntrustedJsonError:
            continue
        if isinstance(value, dict):
            return value
    return None
