"""Read observations from a log of JSON lines, each with a question and the response to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from eval_gate.drafts.observation import ObservationSet
from eval_gate.drafts.sources.collection import ObservationCollector
from eval_gate.drafts.sources.source_file import SourceFile, SourceLine, build_source_error, read_source
from eval_gate.drafts.sources.source_messages import PromptError, SessionMessages, UserPrompt, parse_prompt
from eval_gate.errors import GateError, Problem, format_suggestion
from eval_gate.model.base import JsonValue
from eval_gate.model.case import Location
from eval_gate.model.conversation import Response
from eval_gate.model.limits import DOCUMENT_VALUES
from eval_gate.struct import FrozenStruct
from eval_gate.targets.base import TargetError
from eval_gate.targets.response.field_paths import FieldPath, MissingValue
from eval_gate.targets.response.reader import ResponseReader, ResponseShapeError
from eval_gate.targets.response.settings import ResponseSettings
from eval_gate.text.quoting import quote_value
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json

PROMPT_FIELD: Final = "question"
SESSION_FIELD: Final = "session"
DEFAULT_PROMPT_PATH: Final = "message"
DEFAULT_SESSION_PATH: Final = "session"
PATH_SETTINGS: Final[Mapping[str, str]] = {
    "response": "response_path",
    "toolCalls": "tool_calls_path",
    "name": "name_field",
    "args": "args_field",
    "result": "result_field",
    "success": "success_field",
    "error": "error_field",
    "id": "id_field",
    "duration": "duration_field",
}
"""Settings of a target that say where a part of a response stands, by the name of the part."""
_LIST_SETTINGS: Final = frozenset({"response_path", "id_field"})
_MAX_PROBLEMS: Final = 10


class LogMapping(FrozenStruct):
    """Places of the prompt, the session, and the parts of the response in a log entry."""

    prompt: FieldPath
    settings: ResponseSettings
    session: FieldPath
    """Place of the id of the session, for a log whose entries do not have the messages before the prompt."""
    requires_session: bool
    """Whether that place was named, so that a log without a session there is refused."""


def build_log_mapping(fields: Mapping[str, str]) -> LogMapping:
    """Build the mapping of a log from paths by their part, such as `question` or `response`, or `responsePath`.

    The other paths are the defaults of a target. Raises GateError `unknown-value` with all problems.
    """
    own_paths = {PROMPT_FIELD: FieldPath(DEFAULT_PROMPT_PATH), SESSION_FIELD: FieldPath(DEFAULT_SESSION_PATH)}
    changes, problems = dict[str, object](), list[Problem]()
    known_names = (PROMPT_FIELD, SESSION_FIELD, *PATH_SETTINGS)
    for field, text in fields.items():
        name = field.removesuffix("Path").removesuffix("Field")
        if name not in known_names:
            what = f"{quote_value(field)} is not known{format_suggestion(field, known_names)}"
            problems.append(Problem(f"{what}; known: {', '.join(known_names)}", field="--field"))
            continue
        try:
            path = FieldPath(text)
        except ValueError as error:
            problems.append(Problem(str(error), field=f"--field {name}"))
            continue
        if name in own_paths:
            own_paths[name] = path
        else:
            key = PATH_SETTINGS[name]
            changes[key] = (path,) if key in _LIST_SETTINGS else path
    if problems:
        what = "--field does not say where the parts of a log entry are"
        raise GateError(
            "unknown-value", what, "--field question=request.text --field response=reply", problems=problems
        )
    settings = ResponseSettings(name="log", provider="log").model_copy(update=changes)
    requires_session = any(field.startswith(SESSION_FIELD) for field in fields)
    return LogMapping(own_paths[PROMPT_FIELD], settings, own_paths[SESSION_FIELD], requires_session)


def read_log(path: Path, fields: Mapping[str, str] | None = None) -> ObservationSet:
    """Read a log of JSON lines, each with a question (a text or messages) and a response, at the paths in `fields`.

    Lines without a question are left out, and a note counts them. Raises GateError `unknown-value` for wrong paths, and
    `invalid-draft-source` for a file that cannot be read, or has no line with both or with the session in `fields`.
    """
    return _LogReader(read_source(path), build_log_mapping(fields or {})).build_or_refuse()


def read_journal(path: Path) -> ObservationSet:
    """Read the journal of a recording, which may be empty or hold errors only. Raises GateError."""
    return _LogReader(read_source(path), build_log_mapping({})).build()


class _LogReader:
    def __init__(self, source: SourceFile, mapping: LogMapping) -> None:
        self._source = source
        self._prompt, self._session = mapping.prompt, mapping.session
        self._session_problem: Problem | None = None
        self._sessions = SessionMessages()
        self._responses = ResponseReader(mapping.settings)
        self._collector = ObservationCollector("line")
        self._has_response = self._has_session = False
        self._problems: list[Problem] = []
        for line in source.iter_lines():
            self._read_line(line)
        if mapping.requires_session and not self._has_session and self._session_problem is not None:
            raise build_source_error([self._session_problem], "name the place of the session's id, or leave it out")

    def _read_line(self, line: SourceLine) -> None:
        """Read one line, or count it as left out."""
        try:
            entry = parse_untrusted_json(line.data, values=DOCUMENT_VALUES)
        except UntrustedJsonError as error:
            self._leave_out(line, "not JSON" if not error.too_much else f"the JSON {error}")
            return
        value = self._prompt.find_first(entry)
        if isinstance(value, MissingValue) or value is None:
            self._leave_out(line, f"no question at {self._prompt}", self._prompt.describe_nearest_keys(entry))
            return
        try:
            session = self._find_session(line, entry)
            prompt = self._sessions.complete_prompt(session, parse_prompt(value))
        except PromptError as error:
            self._leave_out(line, str(error), error.detail)
            return
        response = self._read_response(line, entry, prompt)
        self._sessions.add_exchange(session, prompt, prompt.text, None if response is None else response.text)

    def _find_session(self, line: SourceLine, entry: JsonValue) -> str | None:
        """Find the id of the session, a text or a whole number; None if the entry has none."""
        value = self._session.find_first(entry)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            self._has_session = True
            return str(value)
        if self._session_problem is None:
            what = f"no line has a session at {self._session}; {self._session.describe_nearest_keys(entry)}"
            self._session_problem = Problem(what, self._source.shown_as, line.number)
        return None

    def build(self) -> ObservationSet:
        return self._collector.build()

    def build_or_refuse(self) -> ObservationSet:
        """Build the observations of all lines. Raises GateError if no line has both a question and a response."""
        if self._has_response:
            return self.build()
        problems = self._problems[:_MAX_PROBLEMS] or [Problem("has no lines", self._source.shown_as)]
        raise build_source_error(
            problems, "say where the parts are: --field question=request.text --field response=reply"
        )

    def _read_response(self, line: SourceLine, entry: JsonValue, prompt: UserPrompt) -> Response | None:
        """Read the response to a prompt and collect it, or why there is none."""
        response: Response | str
        try:
            response = self._responses.read_document(entry, 0.0, escaped=True)
            self._has_response = True
        except (ResponseShapeError, TargetError) as error:
            self._add_problem(line, str(error))
            own = entry.get("error") if isinstance(entry, dict) else None
            response = own if isinstance(own, str) and own.strip() else str(error)
        self._collector.add_execution(prompt, response, Location(file=self._source.shown_as, line=line.number))
        return None if isinstance(response, str) else response

    def _leave_out(self, line: SourceLine, reason: str, detail: str = "") -> None:
        self._collector.leave_out(reason, f"{self._source.shown_as}:{line.number}", detail)
        self._add_problem(line, f"{reason}; {detail}" if detail else reason)

    def _add_problem(self, line: SourceLine, what: str) -> None:
        if len(self._problems) < _MAX_PROBLEMS:
            self._problems.append(Problem(what, self._source.shown_as, line.number))
