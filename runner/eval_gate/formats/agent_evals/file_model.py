"""Pydantic models of an Agent Evals suite, for reading, error messages and the JSON Schema.

Source: Agent Evals, "Creating Evaluation Suites", "Assertion Types", "File Assertions"; agent-evals behaviour 3.1.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args

from pydantic import BeforeValidator, Field, JsonValue
from pydantic.json_schema import SkipJsonSchema

from eval_gate.formats.document_reader import CaseId, FileModel, Text, TrialKeys
from eval_gate.model.agent import MAX_TURNS, SUITE_MODEL, FileTool
from eval_gate.model.limits import CASES

Milliseconds = Annotated[float, Field(gt=0, le=86_400_000, allow_inf_nan=False)]


class _BaseAssertion(FileModel):
    """Fields of all assertions."""

    description: str | None = None


class ContainsAssertion(_BaseAssertion):
    """The response contains a text."""

    type: Literal["contains"]
    value: str
    case_sensitive: bool = True


class MatchesRegexAssertion(_BaseAssertion):
    """The response matches an ECMAScript regular expression."""

    type: Literal["matchesRegex"]
    pattern: str
    flags: str = Field(default="", description="Flags out of dgimsuvy, each at most once, and not u with v.")


class EqualsAssertion(_BaseAssertion):
    """The response equals this text. Any other value is compared with the response parsed as JSON."""

    type: Literal["equals"]
    expected: JsonValue


class JsonPathAssertion(_BaseAssertion):
    """The response, parsed as JSON, has this value at a path."""

    type: Literal["jsonPath"]
    path: Text = Field(description="Dotted path of keys and indexes, such as $.response.items.0.status.")
    expected: JsonValue


class FileExistsAssertion(_BaseAssertion):
    """The file or folder exists."""

    type: Literal["fileExists"]
    path: Text


class FileNotExistsAssertion(_BaseAssertion):
    """Neither a file nor a folder exists at this path."""

    type: Literal["fileNotExists"]
    path: Text


class FileContainsAssertion(_BaseAssertion):
    """The file contains a text."""

    type: Literal["fileContains"]
    path: Text
    value: str
    case_sensitive: bool = True


class FileJsonPathAssertion(_BaseAssertion):
    """The JSON file has this value at a path."""

    type: Literal["fileJsonPath"]
    path: Text
    json_path: Text
    expected: JsonValue


FileAssertion = FileExistsAssertion | FileNotExistsAssertion | FileContainsAssertion | FileJsonPathAssertion
AnyAssertion = ContainsAssertion | MatchesRegexAssertion | EqualsAssertion | JsonPathAssertion | FileAssertion
ASSERTIONS: Final = {get_args(kind.model_fields["type"].annotation)[0]: kind for kind in get_args(AnyAssertion)}
"""Every assertion by its `type`."""


def _refuse_turns(_: JsonValue) -> JsonValue:
    raise ValueError("`turns` are not read: each case is a conversation of its own in Agent Evals")


class AgentEvalsCase(TrialKeys):
    """One prompt with its assertions."""

    id: CaseId
    name: Text
    description: str | None = None
    prompt: Text
    assertions: list[Annotated[AnyAssertion, Field(discriminator="type")]] = Field(default_factory=list)
    timeout: Milliseconds | None = Field(
        default=None, description="Time limit in milliseconds; by default defaults.timeout, or else 30000."
    )
    tags: list[Text] = Field(default_factory=list)
    turns: SkipJsonSchema[Annotated[JsonValue, BeforeValidator(_refuse_turns)]] = None
    draft: bool = Field(default=False, description="Not reviewed yet: a run leaves the case out and names it.")


class AgentEvalsAgent(FileModel):
    """Agent that runs all cases of the suite."""

    name: Text
    model: Text = Field(description=f"Must be {SUITE_MODEL}, unless another model is chosen for the run.")
    instructions: str
    tools: list[FileTool] = Field(default_factory=list)
    max_turns: Annotated[int, Field(gt=0)] = MAX_TURNS


class AgentEvalsDefaults(TrialKeys):
    """Defaults of the cases."""

    timeout: Milliseconds | None = None


class AgentEvalsSuite(FileModel):
    """An Agent Evals suite file."""

    name: Text
    description: str | None = None
    version: str = "1.0.0"
    agent: AgentEvalsAgent
    defaults: AgentEvalsDefaults = AgentEvalsDefaults()
    cases: Annotated[list[AgentEvalsCase], Field(min_length=1, max_length=CASES)]
