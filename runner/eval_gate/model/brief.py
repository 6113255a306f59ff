"""What a case says beside the messages to send: for graders, and for targets that take a prompt and files."""

from __future__ import annotations

from eval_gate.model.base import Frozen, JsonValue


class Brief(Frozen):
    """The parts of an AgentV case (agentv behaviour 1.4). Files are absolute paths that were readable at load.

    `question` has attached files written into it; `linked_question` only names them, for agents that read files
    themselves. Neither holds guidelines. `reference_answer` None means the case has none. The messages are as the file
    has them, for graders that are shown them as JSON.
    """

    question: str
    linked_question: str
    expected_outcome: str = ""
    reference_answer: str | None = None
    input_messages: JsonValue = None
    expected_messages: JsonValue = None
    guidelines: str = ""
    guideline_files: tuple[str, ...] = ()
    input_files: tuple[str, ...] = ()
