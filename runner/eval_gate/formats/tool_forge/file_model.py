"""Pydantic models of a tool-forge eval file, for reading, error messages and the JSON Schema.

Source: tool-forge eval case interfaces; runner contract, "Eval File Format". Fields that only one tier specifies are
accepted in every tier (behaviour A-11).
"""

import re
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from eval_gate.errors import format_suggestion
from eval_gate.formats.document_reader import (
    CaseId,
    FileModel,
    MessageText,
    NumberText,
    Text,
    TrialKeys,
    list_unknown_keys,
)
from eval_gate.model.case import SimulatedUser, WorkspaceHook
from eval_gate.model.limits import CASES, PATH_CHARACTERS, TURN_CHARACTERS, TURNS, USER_MESSAGES
from eval_gate.model.specs.evaluator import ValueOperator
from eval_gate.struct import replace
from eval_gate.text.dotted_path import FIELD_PATTERN
from eval_gate.text.quoting import quote_value
from eval_gate.text.sources.validation_errors import describe_value
from eval_gate.text.urls import find_url_problem

Positive = Annotated[float, Field(gt=0)]

_OPERATORS: Final[tuple[str, ...]] = get_args(ValueOperator)
_FOR_PEOPLE: Final = FileModel.ignored_keys | {"name", "notes", "comment"}
_SOURCES: Final = {"turns": "array", "user": "object", "input": "object"}
"""Keys with the messages of the user, each with its type in JSON. A case has one of them."""
_HOOK_REQUEST: Final = r"^(GET|POST|PUT|PATCH|DELETE) (https?://[\w.-]+(:\d{1,5})?(/\S*)?|/\S*)$"
_HOOK_HEADER: Final = re.compile(
    r"(?!(host|content-length|transfer-encoding)$)[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.IGNORECASE
)
"""Names of headers without those that say where a request goes and ends: it may have the target's credentials."""


class ParamAssertion(FileModel):
    """Expectation about one parameter of the first call of one tool."""

    tool: Text
    param_name: Text
    assertion: ValueOperator
    value: JsonValue = None

    @model_validator(mode="after")
    def _require_value(self) -> Self:
        if self.assertion not in {"exists", "notExists"} and "value" not in self.model_fields_set:
            raise ValueError(f'"{self.assertion}" needs a value')
        return self


def _require_path(path: str) -> str:
    if len(path) > PATH_CHARACTERS or re.fullmatch(FIELD_PATTERN, path) is None:
        raise ValueError("is not a path: write one such as order.status, items[0].id or items.length")
    return path


def _require_value(value: JsonValue) -> JsonValue:
    """Require a literal, or an object with one operator and its value."""
    if not isinstance(value, dict):
        return value
    operator, operand = next(iter(value.items()), ("", None))
    if len(value) != 1 or operator not in _OPERATORS:
        words = ", ".join(_OPERATORS) + (format_suggestion(operator, _OPERATORS) if operator not in _OPERATORS else "")
        raise ValueError(f'expected a value, or one operator of {words}; {{"equals": …}} takes an object')
    match operator, operand:
        case ("equals", _) | ("exists" | "notExists", True) | ("oneOf", [_, *_]):
            return value
        case ("contains" | "matches" | "oneOf", str()):
            return value
    what = {"contains": "a text", "matches": "a text", "oneOf": "a list of values"}.get(operator, "true")
    raise ValueError(f'"{operator}" takes {what}, got {describe_value(operand)}')


def _require_request(text: str) -> str:
    if re.fullmatch(_HOOK_REQUEST, text) is None:
        raise ValueError("is not a method and a path or URL, such as POST /test/reset or POST https://host/reset")
    return text


HookRequest = Annotated[str, Field(json_schema_extra={"pattern": _HOOK_REQUEST}), AfterValidator(_require_request)]
FieldPath = Annotated[str, Field(json_schema_extra={"pattern": f"^{FIELD_PATTERN}$"}), AfterValidator(_require_path)]
FieldValue = Annotated[JsonValue, AfterValidator(_require_value)]


class Expect(FileModel):
    """Expectations about the response. An absent key checks nothing; `toolsCalled: []` means no tool is called."""

    tools_called: list[Text] | None = Field(default=None, description="Exactly these tools are called, in this order.")
    tools_called_any_order: list[Text] | None = Field(
        default=None,
        description="Exactly these tools are called, each as often as listed, in any order (for parallel calls).",
    )
    tools_acceptable: list[list[Text]] | None = Field(
        default=None, min_length=1, description='Any of these sets of tools; ["__none__"] means none at all.'
    )
    tools_not_called: list[Text] | None = Field(default=None, description="None of these tools is called.")
    tool_params: list[ParamAssertion] | None = Field(default=None, description="Expectations about parameters.")
    no_tool_errors: bool | None = Field(default=None, description="Every tool call succeeded.")
    response_non_empty: bool | None = Field(default=None, description="The response is not blank.")
    response_contains: list[str] | None = Field(
        default=None, description="The response contains all of these, case-sensitive."
    )
    response_contains_any: list[list[str]] | None = Field(
        default=None, description="The response contains at least one of each group."
    )
    response_contains_number: list[NumberText] | None = Field(
        default=None,
        description="The response contains all of these numbers, dates and codes, in whichever way they are written.",
    )
    response_not_contains: list[str] | None = Field(
        default=None, description="The response contains none of these, case-sensitive."
    )
    response_matches: list[Text] | None = Field(
        default=None, description="All of these ECMAScript patterns match somewhere in the response."
    )
    fields: dict[FieldPath, FieldValue] | None = Field(
        default=None,
        min_length=1,
        description="Fields of the agent's JSON by path: a value, or an object with one operator of `toolParams`.",
    )
    max_latency_ms: Positive | None = Field(
        default=None, description="Maximum milliseconds from sending the message to the complete response."
    )
    max_tokens: Annotated[int, Field(gt=0)] | None = Field(default=None, description="Maximum tokens of the response.")
    regex_pattern: Text | None = Field(default=None, description="Same as responseMatches with one pattern.")

    @property
    def patterns(self) -> tuple[str, ...] | None:
        """Patterns of all keys that must match; None without one."""
        return (*(self.response_matches or ()), *([self.regex_pattern] if self.regex_pattern else [])) or None

    @model_validator(mode="after")
    def _require_one_routing(self) -> Self:
        kinds = {
            "toolsCalled": self.tools_called,
            "toolsCalledAnyOrder": self.tools_called_any_order,
            "toolsAcceptable": self.tools_acceptable,
        }
        *first_keys, last = [key for key, value in kinds.items() if value is not None] or [""]
        if first_keys:
            raise ValueError(f"{', '.join(first_keys)} and {last} exclude each other: keep one")
        for names in self.tools_acceptable or ():
            if "__none__" in names and len(names) > 1:
                raise ValueError('"__none__" must be alone: a set cannot hold both no tool and a tool')
        return self


class CaseInput(FileModel):
    """Message that is sent to the agent unchanged."""

    message: Text


class ToolForgeRubricDimension(FileModel):
    """One dimension that a judge scores."""

    dimension: Text
    max_score: Annotated[int, Field(gt=0)]
    criteria: Text


class ToolForgeTurn(FileModel):
    """One message of the user in a conversation, and what is expected of the response to it."""

    ignored_keys = _FOR_PEOPLE

    message: MessageText = Field(description="Sent after the response to the turn before.")
    expect: Expect | None = Field(
        default=None, description="About this turn: its calls, response, duration and tokens. Without it, nothing is."
    )


class ToolForgeUser(FileModel):
    """User whom a model plays in a conversation, instead of written turns."""

    goal: MessageText = Field(description="What the user wants to reach.")
    persona: str = Field(default="", max_length=TURN_CHARACTERS, description="How the user writes.")
    facts: list[MessageText] = Field(default_factory=list, description="All that the user knows.")
    max_messages: Annotated[int, Field(ge=1, le=USER_MESSAGES)] = Field(
        default=10, description="The conversation ends after this many messages of the user."
    )
    first_message: MessageText | None = Field(
        default=None, description="First message; by default, the model writes it."
    )

    def to_simulated_user(self) -> SimulatedUser:
        """Convert the user to the one that the engine plays."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return SimulatedUser(**fields | {"facts": tuple(self.facts)})


class ToolForgeHook(FileModel):
    """Command or request that prepares the agent, or cleans up after it."""

    model_config = ConfigDict(extra="forbid")

    command: Annotated[
        list[Text] | None,
        BeforeValidator(lambda value: value.split() if isinstance(value, str) else value, Text | list[Text]),
    ] = Field(default=None, min_length=1, description="Program with its arguments. A text is split at blanks.")
    request: HookRequest | None = Field(
        default=None, description="Method, and a URL or a path at the target's host, such as POST /test/reset."
    )
    headers: dict[str, Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$")]] = Field(
        default_factory=dict, description="Headers of the request."
    )
    body: JsonValue = Field(default=None, description="JSON body of the request.")
    timeout_seconds: Annotated[float, Field(gt=0, le=3600)] | None = None

    @model_validator(mode="after")
    def _require_one_kind(self) -> Self:
        if (self.command is None) is (self.request is None):
            raise ValueError("needs either `command` or `request`")
        if re.fullmatch(_HOOK_REQUEST, text := " ".join(self.command or ())):
            raise ValueError(f'is a request: write {{"request": {quote_value(text)}}}')
        if self.request and "://" in self.request and (problem := find_url_problem(self.request.partition(" ")[2])):
            raise ValueError(problem)
        if name := next((one for one in self.headers if not _HOOK_HEADER.fullmatch(one)), None):
            raise ValueError(f"the header {quote_value(name)} is none that a request can set")
        if self.command is not None and {"headers", "body"} & self.model_fields_set:
            raise ValueError("`headers` and `body` are those of a `request`")
        return self

    def build(self, folder: str, place: str) -> WorkspaceHook:
        """Build the hook, whose command runs in `folder`."""
        timeout_ms = self.timeout_seconds and self.timeout_seconds * 1000
        hook = WorkspaceHook(command=tuple(self.command or ()), cwd=folder, timeout_ms=timeout_ms, place=place)
        return replace(hook, request=self.request or "", headers=self.headers, body=self.body)


def _open_command(value: object) -> object:
    """Convert a hook that is written as a text, or as a list of texts, to one with a command."""
    words = value if isinstance(value, list) else [value]
    return {"command": value} if words and all(isinstance(word, str) for word in words) else value


_SomeHooks = Annotated[list[ToolForgeHook], Field(min_length=1), Tag("list[hook]")]
Hooks = Annotated[
    Annotated[ToolForgeHook, Tag("dict[hook]")] | _SomeHooks,
    Discriminator(lambda value: "list[hook]" if isinstance(value, list) else "dict[hook]"),
    BeforeValidator(_open_command, Text | list[Text] | ToolForgeHook | list[ToolForgeHook]),
]
"""One hook or a list of hooks, with tags that are removed from paths as those that pydantic gives."""


def _require_key(key: str, schema: dict[str, JsonValue]) -> JsonValue:
    """Build the JSON Schema of an object that has this key with such a value."""
    return {"required": [key], "properties": {key: schema}}


class ToolForgeCase(TrialKeys):
    """A case of any tier."""

    ignored_keys = _FOR_PEOPLE | {"requiresPreamble"}

    id: CaseId
    description: str = ""
    difficulty: str | None = None
    created_at: str | None = None
    bug_ref: str | None = None
    tags: list[Text] | None = None
    draft: bool = Field(default=False, description="Not reviewed yet: a run leaves the case out and names it.")
    turns: Annotated[list[ToolForgeTurn], Field(min_length=1, max_length=TURNS)] | None = Field(
        default=None, description="Messages of a conversation, each sent after the response to the one before."
    )
    user: ToolForgeUser | None = None
    input: CaseInput | None = Field(default=None, validate_default=True)
    on_turn_failure: Literal["stop", "continue"] = Field(
        default="stop", description="Whether further turns are sent after one that fails."
    )
    expect: Expect | None = None
    stubs: dict[str, JsonValue] | None = Field(
        default=None, description="Stubbed tool results; their presence enables stub mode."
    )
    hooks_before: Hooks | None = Field(
        default=None, alias="before", description="Prepares the agent before each execution of the case."
    )
    hooks_after: Hooks | None = Field(
        default=None, alias="after", description="Cleans up after each execution of the case."
    )
    max_turns: Annotated[int, Field(ge=1)] | None = None
    rubric: Annotated[list[ToolForgeRubricDimension], Field(min_length=1)] | None = None
    reference_data: dict[str, JsonValue] | None = None

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [_require_key(key, {"type": kind}) for key, kind in _SOURCES.items()],
            "anyOf": [
                _require_key("expect", {"type": "object"}),
                _require_key("rubric", {"type": "array"}),
                _require_key("turns", {"contains": _require_key("expect", {"type": "object"})}),
            ],
            "dependentRequired": {"onTurnFailure": ["turns"]},
        }
    )

    @field_validator("user", "input")
    @classmethod
    def _require_one_source(cls, value: BaseModel | None, info: ValidationInfo) -> BaseModel | None:
        """Require one of the keys in `_SOURCES`; `input` is the last one of them, and the one that is missing."""
        earlier = [key for key in _SOURCES if key != info.field_name and info.data.get(key) is not None]
        if value is not None and earlier:
            raise ValueError(f"`{earlier[0]}` and `{info.field_name}` exclude each other: keep one")
        if info.field_name == "input" and value is None and not earlier and {"turns", "user"} <= info.data.keys():
            raise PydanticCustomError("missing", "Field required", {"missing": [*_SOURCES]})
        return value

    @model_validator(mode="after")
    def _require_evaluation(self) -> Self:
        if self.turns is None and "on_turn_failure" in self.model_fields_set:
            raise ValueError("`onTurnFailure` needs `turns`")
        if self.expect is None and self.rubric is None and not any(turn.expect for turn in self.turns or ()):
            what = f"needs `expect`{' in a turn or in the case' if self.turns else ''} (or `rubric`)"
            unknown = [key for part in (self, *(self.turns or ())) for key in list_unknown_keys(part)]
            context = {"error": what, "unknown": unknown, "missing": ["expect", "rubric"]}
            raise PydanticCustomError("value_error", "{error}", context)
        return self

    @property
    def messages(self) -> tuple[str, ...]:
        """Written messages of the user, in order."""
        return (self.input.message,) if self.input is not None else tuple(turn.message for turn in self.turns or ())

    @property
    def question(self) -> str:
        """What the user asks for: all messages, or the goal of a simulated user."""
        return self.user.goal if self.user is not None else "\n\n".join(self.messages)


class ToolForgeMetadata(FileModel):
    """Tool facts at the time the evals were generated, for the staleness checks."""

    ignored_keys = FileModel.ignored_keys.union(
        {
            *("skillVersion", "generatedAt", "generatedBy", "createdAt", "updatedAt", "overlapMapVersion", "caseCount"),
            *("description", "version", "counts", "distribution", "seedManifest", "notes"),
        }
    )
    """Keys that tool-forge's generators write."""
    tier: str | None = None
    tool_name: Text | None = None
    tool_version: str | None = None
    description_hash: str | None = None
    registry_size: Annotated[int, Field(ge=0)] | None = None


class Envelope(TrialKeys):
    """An eval file with metadata. A plain list of cases is the same with `metadata: null`."""

    metadata: ToolForgeMetadata | None = None
    hooks_before: Hooks | None = Field(
        default=None, alias="before", description="Prepares the agent once, before the first case."
    )
    hooks_after: Hooks | None = Field(default=None, alias="after", description="Cleans up once, at the end of the run.")
    cases: Annotated[list[ToolForgeCase], Field(min_length=1, max_length=CASES)]
