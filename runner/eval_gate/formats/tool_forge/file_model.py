"""Pydantic models of a tool-forge eval file, for reading, error messages and the JSON Schema.

Source: tool-forge eval case interfaces; runner contract, "Eval File Format". Fields that only one tier names are
taken in every tier (behaviour A-11).
"""

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from eval_gate.formats.document_reader import CaseId, FileModel, Text
from eval_gate.model.limits import CASES

Positive = Annotated[float, Field(gt=0)]


class ParamAssertion(FileModel):
    """One expectation about one parameter of the first call of one tool."""

    tool: Text
    param_name: Text
    assertion: Literal["equals", "contains", "oneOf", "exists", "notExists", "matches"]
    value: JsonValue = None

    @model_validator(mode="after")
    def _require_value(self) -> Self:
        if self.assertion not in {"exists", "notExists"} and "value" not in self.model_fields_set:
            raise ValueError(f'"{self.assertion}" needs a value')
        return self


class Expect(FileModel):
    """What must be true of the answer. Absent keys assert nothing; `toolsCalled: []` asserts that no tool is called."""

    tools_called: list[Text] | None = Field(default=None, description="Exactly these tools in this order.")
    tools_called_any_order: list[Text] | None = Field(
        default=None,
        description="Exactly these tools, each as often as named, in any order: for models that call in parallel.",
    )
    tools_acceptable: list[list[Text]] | None = Field(
        default=None, min_length=1, description='Any of these sets of tools; ["__none__"] means none at all.'
    )
    tools_not_called: list[Text] | None = Field(default=None, description="None of these tools.")
    tool_params: list[ParamAssertion] | None = Field(default=None, description="Expectations about parameters.")
    no_tool_errors: bool | None = Field(default=None, description="Every tool call succeeded.")
    response_non_empty: bool | None = Field(default=None, description="The answer is not blank.")
    response_contains: list[str] | None = Field(default=None, description="All of these appear, case-sensitive.")
    response_contains_any: list[list[str]] | None = Field(
        default=None, description="At least one of each group appears."
    )
    response_not_contains: list[str] | None = Field(default=None, description="None of these appears, case-sensitive.")
    response_matches: list[Text] | None = Field(
        default=None, description="All of these ECMAScript patterns find something."
    )
    max_latency_ms: Positive | None = Field(
        default=None, description="Milliseconds from sending to the complete answer."
    )
    max_tokens: Annotated[int, Field(gt=0)] | None = Field(default=None, description="Tokens of the answer at most.")
    regex_pattern: Text | None = Field(default=None, description="The same as responseMatches with one pattern.")

    @model_validator(mode="after")
    def _require_one_routing(self) -> Self:
        kinds = {
            "toolsCalled": self.tools_called,
            "toolsCalledAnyOrder": self.tools_called_any_order,
            "toolsAcceptable": self.tools_acceptable,
        }
        *others, last = [key for key, given in kinds.items() if given is not None] or [""]
        if others:
            raise ValueError(f"{', '.join(others)} and {last} exclude each other: keep one")
        for names in self.tools_acceptable or ():
            if "__none__" in names and len(names) > 1:
                raise ValueError('"__none__" stands alone: a set cannot ask for no tool and for a tool')
        return self


class CaseInput(FileModel):
    """What is sent to the agent, word for word."""

    message: Text


class ToolForgeRubricDimension(FileModel):
    """One dimension a judge scores."""

    dimension: Text
    max_score: Annotated[int, Field(gt=0)]
    criteria: Text


class ToolForgeCase(FileModel):
    """A case of any tier."""

    id: CaseId
    description: str = ""
    difficulty: str | None = None
    created_at: str | None = None
    bug_ref: str | None = None
    tags: list[Text] | None = None
    input: CaseInput
    expect: Expect | None = None
    stubs: dict[str, JsonValue] | None = Field(
        default=None, description="Stubbed tool results; presence means stub mode."
    )
    max_turns: Annotated[int, Field(ge=1)] | None = None
    rubric: Annotated[list[ToolForgeRubricDimension], Field(min_length=1)] | None = None
    reference_data: dict[str, JsonValue] | None = None

    @model_validator(mode="after")
    def _require_evaluation(self) -> Self:
        if self.expect is None and self.rubric is None:
            raise ValueError("needs `expect` (or `rubric`)")
        return self


class ToolForgeMetadata(FileModel):
    """What the evals were generated for: the other side of the staleness checks."""

    tier: str | None = None
    tool_name: Text | None = None
    tool_version: str | None = None
    description_hash: str | None = None
    registry_size: Annotated[int, Field(ge=0)] | None = None


class Envelope(FileModel):
    """An eval file with metadata. A bare list of cases is the same with `metadata: null`."""

    metadata: ToolForgeMetadata | None = None
    cases: Annotated[list[ToolForgeCase], Field(min_length=1, max_length=CASES)]
