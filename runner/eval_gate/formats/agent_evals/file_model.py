"""Pydantic models of an Agent Evals suite, for reading, error messages and the JSON Schema.

Source: Agent Evals, "Creating Evaluation Suites", "Assertion Types", "File Assertions"; agent-evals behaviour 3.1.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args

from pydantic import Field, JsonValue

from eval_gate.formats.document_reader import CaseId, FileModel, Text
from eval_gate.model.agent import MAX_TURNS, SUITE_MODEL, FileTool
from eval_gate.model.limits import CASES

Milliseconds = Annotated[float, Field(gt=0, le=86_400_000, allow_inf_nan=False)]


class _BaseAssertion(FileModel):
    """What all assertions may have."""

    description: str | None = None


class ContainsAssertion(_BaseAssertion):
    """The answer contains a text."""

    type: Literal["contains"]
    value: str
    case_sensitive: bool = True


class MatchesRegexAssertion(_BaseAssertion):
    """The answer matches an ECMAScript regular expression."""

    type: Literal["matchesRegex"]
    pattern: str
    flags: str = Field(default="", description="Of dgimsuvy each at most once, and not u with v.")


class EqualsAssertion(_BaseAssertion):
    """The answer is this text; anything but a text is compared with the answer read as JSON."""

    type: Literal["equals"]
    expected: JsonValue


class JsonPathAssertion(_BaseAssertion):
    """A value within the answer, which is read as JSON, is this one."""

    type: Literal["jsonPath"]
    path: Text = Field(description="Keys and indexes between dots, such as $.response.items.0.status.")
    expected: JsonValue


class FileExistsAssertion(_BaseAssertion):
    """There is this file, or folder."""

    type: Literal["fileExists"]
    path: Text


class FileNotExistsAssertion(_BaseAssertion):
    """There is neither this file nor this folder."""

    type: Literal["fileNotExists"]
    path: Text


class FileContainsAssertion(_BaseAssertion):
    """The file contains a text."""

    type: Literal["fileContains"]
    path: Text
    value: str
    case_sensitive: bool = True


class FileJsonPathAssertion(_BaseAssertion):
    """A value within the JSON file is this one."""

    type: Literal["fileJsonPath"]
    path: Text
    json_path: Text
    expected: JsonValue


AnyAssertion = (
    ContainsAssertion
    | MatchesRegexAssertion
    | EqualsAssertion
    | JsonPathAssertion
    | FileExistsAssertion
    | FileNotExistsAssertion
    | FileContainsAssertion
    | FileJsonPathAssertion
)
ASSERTIONS: Final = {get_args(kind.model_fields["type"].annotation)[0]: kind for kind in get_args(AnyAssertion)}
"""Every assertion by its `type`."""


class AgentEvalsCase(FileModel):
    """One prompt, and what must be true when the agent is done."""

    id: CaseId
    name: Text
    description: str | None = None
    prompt: Text
    assertions: list[Annotated[AnyAssertion, Field(discriminator="type")]] = Field(default_factory=list)
    timeout: Milliseconds | None = Field(default=None, description="Milliseconds; else defaults.timeout, else 30000.")
    tags: list[Text] = Field(default_factory=list)


class AgentEvalsAgent(FileModel):
    """Who answers all cases of the suite."""

    name: Text
    model: Text = Field(description=f"Fixed to {SUITE_MODEL}, unless another is chosen for the run.")
    instructions: str
    tools: list[FileTool] = Field(default_factory=list)
    max_turns: Annotated[int, Field(gt=0)] = MAX_TURNS


class AgentEvalsDefaults(FileModel):
    """What holds for cases that do not say."""

    timeout: Milliseconds | None = None


class AgentEvalsSuite(FileModel):
    """A suite file."""

    name: Text
    description: str | None = None
    version: str = "1.0.0"
    agent: AgentEvalsAgent
    defaults: AgentEvalsDefaults = AgentEvalsDefaults()
    cases: Annotated[list[AgentEvalsCase], Field(min_length=1, max_length=CASES)]
