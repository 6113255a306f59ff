"""Settings of every target that reads JSON: the paths of text, tool calls and the rest in a response."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, GetCoreSchemaHandler, JsonValue
from pydantic_core import CoreSchema

from eval_gate.targets.response.field_paths import MISSING, FieldPath, MissingValue, PathCondition
from eval_gate.targets.settings import (
    SHOWN_RESPONSE_PLACE,
    DescribedSettings,
    NoEffect,
    TargetSettings,
    Text,
    expand_text,
)

_OWN_RESPONSE_PATH: Final = "response"
"""Path of the text in Eval Gate's own response, which also has the name of the model at `model`."""


def to_list(value: object) -> object:
    """One path is a list of one."""
    return [value] if isinstance(value, str) else value


def _parse_paths(texts: tuple[str, ...]) -> tuple[FieldPath, ...]:
    if not all(texts):
        raise ValueError("must not be empty")
    return tuple(map(FieldPath, texts))


class _WholeList:
    """Mark of a list of paths whose mistakes are at the list as a whole, because one path may be written without it."""

    @staticmethod
    def __get_pydantic_core_schema__(source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        input_type = Text | list[Text]
        return handler.generate_schema(
            Annotated[
                tuple[str, ...],
                Field(min_length=1),
                AfterValidator(_parse_paths),
                BeforeValidator(to_list, json_schema_input_type=input_type),
            ]
        )


PathText = Annotated[FieldPath, SHOWN_RESPONSE_PLACE]
PathTexts = Annotated[tuple[FieldPath, ...], _WholeList, SHOWN_RESPONSE_PLACE]
Condition = Annotated[PathCondition, SHOWN_RESPONSE_PLACE]


class ToolResults(DescribedSettings):
    """Field paths of tool results that are listed separately from the calls."""

    path: PathText = Field(description="Path of the list of results, such as messages[?type=tool].")
    id_field: PathText = Field(description="Path of the call's id in a result, which equals the call's idField.")
    result_field: PathText | None = Field(default=None, description="Path of the result itself.")
    success_field: PathText | None = Field(
        default=None, description="Path of the success status: true, false or a word for either."
    )
    error_field: PathText | None = Field(
        default=None, description="Path of an error: the call failed if its value exists and is not null."
    )


class EventRule(DescribedSettings):
    """Rule that selects events of a stream, or responses, and a value in them."""

    event: Annotated[str, SHOWN_RESPONSE_PLACE] | None = Field(default=None, description="Name of a server-sent event.")
    where: Condition | None = Field(default=None, description="Condition as in a path: type=error.")
    path: PathText | None = Field(
        default=None, description="Path of the value; by default the whole event or response."
    )
    id: PathText | None = Field(
        default=None, description="For text: path of the message's id. Messages are separated by a blank line."
    )

    def matches(self, value: JsonValue | MissingValue, name: str = "") -> bool:
        """Whether a response, or its event `name`, is one that this rule selects."""
        if self.event is not None and self.event != name:
            return False
        return self.where is None or (not isinstance(value, MissingValue) and self.where(value))

    def select_value(self, value: JsonValue) -> JsonValue | MissingValue:
        """Select the value at the path of a matching response or event, all of it without a path; else MISSING."""
        if self.path is None:
            return value
        if self.path.is_gathering:
            return self.path.find_all(value).values or MISSING
        return self.path.find_first(value)


def find_value(rules: tuple[EventRule, ...], value: JsonValue, name: str, otherwise: JsonValue) -> JsonValue:
    """Find the value of the first rule that selects one which is not null, else return `otherwise`."""
    selected = (rule.select_value(value) for rule in rules if rule.matches(value, name))
    return next((one for one in selected if not isinstance(one, MissingValue) and one is not None), otherwise)


def _expand_rules(value: object) -> object:
    """Expand a plain path to a rule, and a single rule to a list."""
    return list(map(expand_text("path"), value if isinstance(value, list) else [value]))


Rules = Annotated[
    tuple[EventRule, ...],
    BeforeValidator(_expand_rules, json_schema_input_type=Text | EventRule | list[Text | EventRule]),
]


class ResponseFormat(StrEnum):
    """Format of a response."""

    JSON = "json"
    TEXT = "text"
    SSE = "sse"
    NDJSON = "ndjson"

    @property
    def streams(self) -> bool:
        """Whether it comes in events."""
        return self in {ResponseFormat.SSE, ResponseFormat.NDJSON}


class Events(DescribedSettings):
    """Rules for the events of a streamed response."""

    text: Rules = Field(
        default=(), description="Events with a piece of text; by default those with a value at responsePath."
    )
    tool_call: Rules = Field(
        default=(), description="Events with parts of a call (name, arguments, result), joined by idField."
    )
    full_response: Rules = Field(
        default=(), description="Events with the whole response; the last one is read like a JSON response."
    )
    done: Rules = Field(default=(), description="Events that end the response. A response without them is incomplete.")


class ResponseSettings(TargetSettings):
    """Settings of a target whose responses are read as described; the defaults are Eval Gate's own response."""

    failure: Rules = Field(
        default=(),
        description="Rules for responses, or events, that mean a failure of the agent, with the path of its message.",
    )
    response_path: PathTexts = Field(
        default=(FieldPath("response"),),
        description="Path of the response text, such as data.reply or messages[-1].content.",
    )
    tool_calls_path: PathText = Field(default=FieldPath("toolCalls"), description="Path of the list of tool calls.")
    no_tool_calls_path: PathText | None = Field(
        default=None,
        description="If this path has a value, a response without a list of calls means that no tool was called.",
    )
    model_path: Annotated[PathText | None, NoEffect("it names the model of a response and does not change it")] = Field(
        default=None, description="Path of the model's name."
    )
    trace_path: Annotated[Rules, NoEffect("it only finds the trace of a response")] = Field(
        default=(), description="Path of the id or address of the response's trace, which `traceUrl` makes a link."
    )
    name_field: PathText = Field(default=FieldPath("name"), description="Path of the tool's name in a call.")
    args_field: PathText = Field(default=FieldPath("params"), description="Path of the arguments in a call.")
    success_field: PathText = Field(default=FieldPath("success"), description="Path of the success status in a call.")
    error_field: PathText | None = Field(
        default=None, description="Path of an error in a call: it failed if the value exists and is not null."
    )
    duration_field: PathText = Field(
        default=FieldPath("durationMs"), description="Path of the duration in a call, in milliseconds."
    )
    result_field: PathText = Field(default=FieldPath("result"), description="Path of the tool's result in a call.")
    id_field: PathTexts = Field(
        default=(FieldPath("id"),), description="Path of the id in a call, which results and events refer to."
    )
    tool_results: ToolResults | None = Field(
        default=None, description="Paths of tool results that are listed separately from the calls."
    )

    @classmethod
    def complete_values(cls, values: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Complete the settings with the place of the model's name, which only Eval Gate's own response has.

        In responses of another shape, `model` may be a car's.
        """
        own = values.get("responsePath", _OWN_RESPONSE_PATH) in (_OWN_RESPONSE_PATH, [_OWN_RESPONSE_PATH])
        return {"modelPath": "model", **values} if own else values


class StreamSettings(ResponseSettings):
    """Settings of a target whose responses are JSON, plain text, or events."""

    response_format: ResponseFormat = Field(
        default=ResponseFormat.JSON,
        description="Response format: json, text, sse (server-sent events) or ndjson (one JSON value for each line).",
    )
    events: Events = Field(default_factory=Events, description="Rules for the events of a streamed response.")

    @classmethod
    def list_own_settings(cls) -> frozenset[str]:
        """List the settings that describe a response, in camelCase."""
        return frozenset(StreamSettings.list_names()) - frozenset(TargetSettings.list_names())

    @property
    def given_response_settings(self) -> tuple[str, ...]:
        """The settings that were given and describe a response, in camelCase."""
        own, fields = self.list_own_settings(), type(self).model_fields
        names = (fields[name].alias or name for name in sorted(self.model_fields_set))
        return tuple(name for name in names if name in own)
