"""Collect executions into observations: executions of the same question belong together."""

from __future__ import annotations

from collections import Counter

from eval_gate.drafts.observation import Observation, ObservationSet
from eval_gate.drafts.sources.source_messages import UserPrompt
from eval_gate.model.case import Location
from eval_gate.model.conversation import Response, ToolSpec
from eval_gate.model.limits import DRAFT_EXECUTIONS, DRAFT_PROMPTS
from eval_gate.struct import Struct, field
from eval_gate.text.escape import format_count


class _Executions(Struct):
    location: Location
    responses: list[Response] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class ObservationCollector:
    """Collects executions, and counts omissions by reason; `unit` names what is left out, such as `line`."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._executions: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[UserPrompt, _Executions]] = {}
        self._left_out: Counter[str] = Counter()
        self._first: dict[str, tuple[str, str]] = {}
        self._notes: dict[str, None] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no question was found."""
        return not self._executions

    @property
    def reasons(self) -> tuple[tuple[str, str], ...]:
        """Every reason for an omission, with the place of the first one."""
        return tuple((self._describe_reason(reason), self._first[reason][0]) for reason in self._left_out)

    def add_execution(self, prompt: UserPrompt, response: Response | str, location: Location) -> None:
        """Add one execution of a question: the response, or why there is none."""
        executions = self._get_executions(prompt, location)
        if executions is None:
            return
        if isinstance(response, str):
            executions.errors.append(response)
        else:
            executions.responses.append(response)

    def leave_out(self, reason: str, place: str, detail: str = "") -> None:
        """Count an omission. `reason` is a phrase, such as `not JSON`; `detail` is the structure read instead."""
        self._left_out[reason] += 1
        self._first.setdefault(reason, (place, detail))

    def add_note(self, note: str) -> None:
        """Add a sentence for people."""
        self._notes[note] = None

    def build(self, tools: tuple[ToolSpec, ...] = ()) -> ObservationSet:
        """Build the observations, in the order of the first execution of each."""
        observations = tuple(
            Observation(
                question=prompt.text,
                responses=tuple(executions.responses),
                earlier_messages=prompt.earlier_messages,
                errors=tuple(executions.errors),
                location=executions.location,
            )
            for prompt, executions in self._executions.values()
        )
        return ObservationSet(observations, tools, (*self._notes, *map(self._describe_omission, self._left_out)))

    def _describe_reason(self, reason: str) -> str:
        detail = self._first[reason][1]
        return f"{reason} ({detail})" if detail else reason

    def _describe_omission(self, reason: str) -> str:
        count, (place, _) = self._left_out[reason], self._first[reason]
        first = "" if count == 1 else "the first at "
        return f"Left out {format_count(count, self._unit)} ({first}{place}): {self._describe_reason(reason)}."

    def _get_executions(self, prompt: UserPrompt, location: Location) -> _Executions | None:
        """Return the executions of a question, or None if one more would exceed a limit."""
        key = prompt.text, tuple((one.role, str(one.content)) for one in prompt.earlier_messages)
        place = f"{location.file}:{location.line}"
        if key not in self._executions:
            if len(self._executions) >= DRAFT_PROMPTS:
                self.leave_out(f"the source has more than {DRAFT_PROMPTS:,} different questions", place)
                return None
            self._executions[key] = prompt, _Executions(location)
        executions = self._executions[key][1]
        if len(executions.responses) + len(executions.errors) >= DRAFT_EXECUTIONS:
            self.leave_out(f"its question has {DRAFT_EXECUTIONS:,} executions already", place)
            return None
        return executions
