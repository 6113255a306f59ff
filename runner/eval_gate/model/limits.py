"""Limits for input: bytes, nesting, number of values, size of numbers. docs/limits.md shows this table."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple

from pydantic import Field

from eval_gate.errors import MAX_KNOWN_WORDS, MAX_WORD_LENGTH

DEPTH: Final = 200
"""Maximum nesting of lists and mappings in any input. Parsers recurse and would end the process without this limit."""
NUMBER_DIGITS: Final = 300
"""Maximum digits of a whole number: a longer one is outside every range, and calculations with it fail."""
MAX_ANSWER_BYTES: Final = 10_000_000
"""Maximum size of an uncompressed response; the default for HTTP agents."""
ANSWER_VALUES: Final = 250_000
"""Maximum values in a response. One byte of JSON needs up to 60 bytes of memory."""
DOCUMENT_VALUES: Final = 1_000_000
"""Maximum values in a JSON file."""
YAML_VALUES: Final = 50_000
"""Maximum values in a YAML file, with aliases expanded: a larger file is an alias bomb, or not written by a person.
Split a larger suite into several files, or use JSON."""
SETTING_VALUES: Final = 50_000
"""Maximum values in a JSON file with settings."""
REGISTRY_BYTES: Final = 16_000_000
"""Maximum size of a file of tool definitions."""
REGISTRY_VALUES: Final = 250_000
"""Maximum values in a file of tool definitions."""
CASES: Final = 100_000
"""Maximum cases in an eval file."""
RUBRIC_CHECKS: Final = 10_000
"""Maximum checks in an AgentV rubric."""
MISTAKES: Final = 1_000
"""Maximum reported mistakes in the structure of a file. Further mistakes are only counted."""
FINDINGS: Final = 500
"""Maximum reported problems, or warnings, of a file. Further ones are only counted."""
MAX_COST_USD: Final = 1e9
MAX_TOKENS: Final = 10**15
MAX_DURATION_MS: Final = 1e12
"""Maximum duration of anything, in milliseconds (30 years)."""

# of single readers, each of which has it under a name of its own
CONFIG_BYTES: Final = 1_000_000
TARGETS_BYTES: Final = 1_000_000
EVAL_FILE_BYTES: Final = 64_000_000
FILE_DIGITS: Final = 1_000
ATTACHED_BYTES: Final = 1_000_000
CASE_BYTES: Final = 4_000_000
SUITE_BYTES: Final = 64_000_000
EVALUATORS_DEPTH: Final = 10
SNAPSHOT_BYTES: Final = 16_000_000
SNAPSHOT_S: Final = 60.0
PROGRAM_FILES: Final = 50_000
PROGRAM_BYTES: Final = 8_000_000_000
PROGRAM_ENTRIES: Final = 2_000
IGNORE_RULES_BYTES: Final = 1_000_000
SOURCE_BYTES: Final = 1_000_000
SOURCE_FILES: Final = 2_000
LITERAL_DEPTH: Final = 60
MCP_S: Final = 30.0
MCP_TOOLS: Final = 10_000
MCP_PROGRAM_S: Final = 60.0
MCP_BYTES: Final = 16_000_000
MCP_LINES: Final = 10_000
MCP_FILE_BYTES: Final = 1_000_000
MCP_SERVERS: Final = 20
WAIVERS_BYTES: Final = 200_000
WAIVERS: Final = 500
JUDGES_BYTES: Final = 500_000
JUDGES: Final = 100
COMMANDS: Final = 20
COMMAND_CHARACTERS: Final = 4_000
COMMENT_LINES: Final = 400
RESULT_BYTES: Final = 128_000_000
RESULT_VALUES: Final = 6_000_000
"""Maximum values in a stored result: 100,000 cases without details, compared with a baseline, have 5 million."""
EXTERNAL_BYTES: Final = 256_000_000
EXTERNAL_LINE_BYTES: Final = 4_000_000
EXTERNAL_TEXT: Final = 1_000_000
EXTERNAL_FILES: Final = 1_000
EXTERNAL_DEPTH: Final = 50
EXTERNAL_SCORES: Final = 10_000
EXTERNAL_COLUMNS: Final = 1_000
EXTERNAL_NEAR_KEYS: Final = 20_000
ARCHIVE_ENTRIES: Final = 10_000
RUNS_READ: Final = 50
RUNS_SOUGHT: Final = 1_000
HISTORY_BYTES: Final = 64_000_000
HISTORY_RUNS: Final = 50
HISTORY_LEVELS: Final = 100
HISTORY_EXECUTIONS: Final = 100
HISTORY_BEHAVIOURS: Final = 10
"""Runs of a history whose behaviour is kept for each case: enough to see what varies by itself."""
BEHAVIOUR_EXECUTIONS: Final = 4
"""Executions of a case in one run whose behaviour a history keeps."""
BEHAVIOUR_TOOLS: Final = 20
BEHAVIOUR_PARAMETERS: Final = 60
"""Parameters of all calls of an execution that are compared with the baseline."""
BEHAVIOUR_DEPTH: Final = 8
"""Depth to which the members of a parameter are compared one by one."""
BEHAVIOUR_CHANGES: Final = 200
"""Changes of behaviour that a run result lists."""
METRIC_ROWS: Final = 200
"""Evaluators and tags that a run result compares with the baseline."""
METRIC_NAME: Final = 200
RECORDING_BYTES: Final = 256_000_000
RECORDING_LINE_BYTES: Final = 16_000_000
ANSWER_CALLS: Final = 10_000
CALL_NAME: Final = 1_000
ANSWER_MESSAGES: Final = 10_000
ANSWER_EVENTS: Final = 100_000
PATH_CHARACTERS: Final = 1_000
ERROR_BYTES: Final = 4_096
COMMAND_BYTES: Final = 8_000_000
DRAFT_SOURCE_BYTES: Final = 64_000_000
DRAFT_LINE_BYTES: Final = 16_000_000
DRAFT_RESPONSES_BYTES: Final = 100_000_000
DRAFT_QUESTIONS: Final = 10_000
"""Maximum different questions in one source of drafts."""
DRAFT_QUESTION: Final = 100_000
"""Maximum characters of a question, or of an earlier message of its conversation."""
DRAFT_EARLIER_MESSAGES: Final = 100
DRAFT_EXECUTIONS: Final = 100
"""Maximum executions of a question that are kept. Further ones are counted."""
DRAFT_FACTS: Final = 30
"""Maximum numbers, names and words that a draft expects in a response."""
TRACE_SPANS: Final = 200_000
BATCH_BYTES: Final = 64_000_000
CODEX_BYTES: Final = 32_000_000
VSCODE_BYTES: Final = 4_000_000
PROMPT_BYTES: Final = 1_000_000
SUBAGENT_BYTES: Final = 1_000_000
VERDICT_CHARACTERS: Final = 200_000
GRADER_BYTES: Final = 1_000_000
GRADER_S: Final = 120.0
PATTERN_CHARACTERS: Final = 10_000
MATCHED_CHARACTERS: Final = 2_000_000
PATTERN_S: Final = 2.0
SANDBOX_DEPTH: Final = 32
SANDBOX_FILE_BYTES: Final = 1_000_000
SANDBOX_BYTES: Final = 10_000_000
SANDBOX_ENTRIES: Final = 500
SANDBOX_LISTED: Final = 10_000
HOOK_PREPARATION_S: Final = 60.0
HOOK_CLEANUP_S: Final = 30.0
"""Seconds for a hook of a workspace before, and after, cases, if it sets no limit: as in AgentV."""
HOOK_BYTES: Final = 64_000
WORKSPACE_CHANGES: Final = 1_000_000
"""Maximum characters of the changes in a workspace that graders receive: as in AgentV."""
EVENT_BYTES: Final = 32_000_000
ARCHIVE_BYTES: Final = 256_000_000
ANSWER_S: Final = 60.0
TRANSFER_SILENCE_S: Final = 60.0
TRANSFER_S: Final = 300.0
GITHUB_S: Final = 180.0
GIT_OBJECT_BYTES: Final = 64_000_000
"""Maximum size of a git object: a tree with a million entries has 40 MB."""
ISSUE_PAGES: Final = 3
COMMENT_PAGES: Final = 100
WAIVER_PAGES: Final = 20

# of what the record of a run keeps
STORED_PROMPT: Final = 4_000
STORED_CHECKS: Final = 20
STORED_CHECK: Final = 300
STORED_RESPONSE: Final = 20_000
STORED_MODEL: Final = 200
"""Maximum characters of the model name in a response."""
STORED_CALLS: Final = 100
STORED_CALL: Final = 2_000
"""Maximum characters of the JSON text of a call's arguments, or of its result."""
STORED_MESSAGES: Final = 100
STORED_CONVERSATION: Final = 100_000
"""Maximum characters of all messages of a conversation. The limit of one message is that of a response."""
STORED_GRADER_PROMPT: Final = 20_000
WORKSPACE_FILE: Final = 20_000
WORKSPACE_CASE: Final = 200_000
WORKSPACE_RUN: Final = 20_000_000
"""Maximum characters of workspace artifacts of failing cases: of a file, an execution and a run."""
OTHER_RESPONSE: Final = 5_000
"""Maximum characters of the response of an execution that is not decisive."""
OTHER_CALLS: Final = 20
OTHER_CALL: Final = 500

Cost = Annotated[float, Field(ge=0, le=MAX_COST_USD)]
Tokens = Annotated[int, Field(ge=0, le=MAX_TOKENS)]


class LimitRow(NamedTuple):
    """One row of the table in docs/limits.md."""

    what: str
    limit: float
    unit: str


TABLE: Final[Mapping[str, tuple[LimitRow, ...]]] = MappingProxyType(
    {
        "Files that you write": (
            LimitRow("configuration file", CONFIG_BYTES, "bytes"),
            LimitRow("targets file", TARGETS_BYTES, "bytes"),
            LimitRow("eval file", EVAL_FILE_BYTES, "bytes"),
            LimitRow("cases in an eval file", CASES, "cases"),
            LimitRow("nesting of lists and mappings in any file", DEPTH, "levels"),
            LimitRow("values in a JSON file", DOCUMENT_VALUES, "values"),
            LimitRow("values in a YAML file, with aliases expanded", YAML_VALUES, "values"),
            LimitRow("values in a JSON file with settings", SETTING_VALUES, "values"),
            LimitRow("a number", FILE_DIGITS, "digits"),
            LimitRow("a regular expression", PATTERN_CHARACTERS, "characters"),
            LimitRow("text that a regular expression searches", MATCHED_CHARACTERS, "characters"),
            LimitRow("time for a regular expression", PATTERN_S, "seconds"),
            LimitRow("checks in an AgentV rubric", RUBRIC_CHECKS, "checks"),
            LimitRow("nesting of evaluators", EVALUATORS_DEPTH, "levels"),
            LimitRow("file that an AgentV case attaches", ATTACHED_BYTES, "bytes"),
            LimitRow("AgentV case with its attachments", CASE_BYTES, "bytes"),
            LimitRow("AgentV file with all attachments", SUITE_BYTES, "bytes"),
            LimitRow("system prompt", PROMPT_BYTES, "bytes"),
            LimitRow("subagent template of an editor's agent", SUBAGENT_BYTES, "bytes"),
            LimitRow("snapshot", SNAPSHOT_BYTES, "bytes"),
            LimitRow("time for the snapshot command or address", SNAPSHOT_S, "seconds"),
            LimitRow("waiver file", WAIVERS_BYTES, "bytes"),
            LimitRow("entries in each of its lists", WAIVERS, "entries"),
            LimitRow("calibration file (`.eval-gate/judges.json`)", JUDGES_BYTES, "bytes"),
            LimitRow("judges in it", JUDGES, "entries"),
            LimitRow("reported mistakes in the structure of a file", MISTAKES, "mistakes"),
            LimitRow("reported problems, and warnings, of a file", FINDINGS, "problems"),
            LimitRow("unknown word for which a similar one is suggested", MAX_WORD_LENGTH, "characters"),
            LimitRow("known words that are compared with it", MAX_KNOWN_WORDS, "words"),
        ),
        "Tool definitions": (
            LimitRow("file of tool definitions", REGISTRY_BYTES, "bytes"),
            LimitRow("values in it", REGISTRY_VALUES, "values"),
            LimitRow("source file", SOURCE_BYTES, "bytes"),
            LimitRow("source files", SOURCE_FILES, "files"),
            LimitRow("nesting of values in source", LITERAL_DEPTH, "levels"),
            LimitRow("file that describes MCP servers", MCP_FILE_BYTES, "bytes"),
            LimitRow("MCP servers in it", MCP_SERVERS, "servers"),
            LimitRow("time for an MCP server to list its tools", MCP_S, "seconds"),
            LimitRow("the same for a server that is started first", MCP_PROGRAM_S, "seconds"),
            LimitRow("tools of an MCP server", MCP_TOOLS, "tools"),
            LimitRow("output of an MCP server that is started", MCP_BYTES, "bytes"),
            LimitRow("lines in this output", MCP_LINES, "lines"),
        ),
        "Responses": (
            LimitRow("response, uncompressed", MAX_ANSWER_BYTES, "bytes"),
            LimitRow("values in a response", ANSWER_VALUES, "values"),
            LimitRow("whole number in a response", NUMBER_DIGITS, "digits"),
            LimitRow("cost of a response", MAX_COST_USD, "USD"),
            LimitRow("tokens of a response", MAX_TOKENS, "tokens"),
            LimitRow("duration of a call", MAX_DURATION_MS, "milliseconds"),
            LimitRow("tool calls in a response", ANSWER_CALLS, "calls"),
            LimitRow("name of a tool", CALL_NAME, "characters"),
            LimitRow("messages in a response", ANSWER_MESSAGES, "messages"),
            LimitRow("events in a trace", ANSWER_EVENTS, "events"),
            LimitRow("path into a response (`responsePath`)", PATH_CHARACTERS, "characters"),
            LimitRow("body of an HTTP error", ERROR_BYTES, "bytes"),
            LimitRow("output of a command", COMMAND_BYTES, "bytes"),
            LimitRow("output of a command for a batch", BATCH_BYTES, "bytes"),
            LimitRow("output of Codex, or of a command with an `agentProtocol` or `events`", CODEX_BYTES, "bytes"),
            LimitRow("response file of an editor's agent", VSCODE_BYTES, "bytes"),
            LimitRow("recording", RECORDING_BYTES, "bytes"),
            LimitRow("recorded response", RECORDING_LINE_BYTES, "bytes"),
        ),
        "Sources of drafts": (
            LimitRow("log or file of traces", DRAFT_SOURCE_BYTES, "bytes"),
            LimitRow("line of it", DRAFT_LINE_BYTES, "bytes"),
            LimitRow("responses of drafts that are kept for the review", DRAFT_RESPONSES_BYTES, "bytes"),
            LimitRow("values in a line, or in a file that is one document", DOCUMENT_VALUES, "values"),
            LimitRow("spans and log records in traces", TRACE_SPANS, "spans"),
            LimitRow("different questions in a source", DRAFT_QUESTIONS, "questions"),
            LimitRow("executions of a question that are kept", DRAFT_EXECUTIONS, "executions"),
            LimitRow("question, or message of a conversation before it", DRAFT_QUESTION, "characters"),
            LimitRow("numbers, names and words that a draft expects in a response", DRAFT_FACTS, "facts"),
            LimitRow("messages of a conversation before a question", DRAFT_EARLIER_MESSAGES, "messages"),
        ),
        "LLM judges and graders": (
            LimitRow("reply of an LLM judge", VERDICT_CHARACTERS, "characters"),
            LimitRow("output of a grader", GRADER_BYTES, "bytes"),
            LimitRow("default time for a grader", GRADER_S, "seconds"),
            LimitRow("files of all graders and hooks that are compared", PROGRAM_FILES, "files"),
            LimitRow("bytes of these files", PROGRAM_BYTES, "bytes"),
            LimitRow("such files that a run result lists one by one", PROGRAM_ENTRIES, "files"),
            LimitRow("file of git's ignore rules", IGNORE_RULES_BYTES, "bytes"),
        ),
        "Workspaces of Agent Evals and AgentV": (
            LimitRow("depth of folders in a workspace", SANDBOX_DEPTH, "levels"),
            LimitRow("file in a workspace", SANDBOX_FILE_BYTES, "bytes"),
            LimitRow("all files in it; in a kept `tmp/`, all that the agent wrote", SANDBOX_BYTES, "bytes"),
            LimitRow("files and folders in it", SANDBOX_ENTRIES, "entries"),
            LimitRow("entries of a folder in a kept `tmp/`", SANDBOX_LISTED, "entries"),
            LimitRow("default time for a hook before AgentV cases", HOOK_PREPARATION_S, "seconds"),
            LimitRow("default time for a hook after them", HOOK_CLEANUP_S, "seconds"),
            LimitRow("kept output of a hook", HOOK_BYTES, "bytes"),
            LimitRow("changes in the workspace of an AgentV case, for graders", WORKSPACE_CHANGES, "characters"),
        ),
        "External results": (
            LimitRow("results that are read as a whole", EXTERNAL_BYTES, "bytes"),
            LimitRow("line or case", EXTERNAL_LINE_BYTES, "bytes"),
            LimitRow("prompt, response or error", EXTERNAL_TEXT, "characters"),
            LimitRow("files", EXTERNAL_FILES, "files"),
            LimitRow("cases", CASES, "cases"),
            LimitRow("executions", 10 * CASES, "executions"),
            LimitRow("scores, tool calls or tags of an execution", EXTERNAL_SCORES, "scores"),
            LimitRow("columns of a table", EXTERNAL_COLUMNS, "columns"),
            LimitRow("nesting of JUnit XML", EXTERNAL_DEPTH, "levels"),
            LimitRow("unknown keys in own results that are compared with known ones", EXTERNAL_NEAR_KEYS, "keys"),
        ),
        "Stored results": (
            LimitRow("run result", RESULT_BYTES, "bytes"),
            LimitRow("values in it", RESULT_VALUES, "values"),
            LimitRow("runs in a folder of runs", RUNS_READ, "runs"),
            LimitRow("runs that are searched for one that passed", RUNS_SOUGHT, "runs"),
            LimitRow("history", HISTORY_BYTES, "bytes"),
            LimitRow("runs in a history", HISTORY_RUNS, "runs"),
            LimitRow("runs whose levels are kept for drift", HISTORY_LEVELS, "runs"),
            LimitRow("executions of a case in one run of a history", HISTORY_EXECUTIONS, "executions"),
            LimitRow("runs in a history whose behaviour is kept", HISTORY_BEHAVIOURS, "runs"),
            LimitRow("executions of a case in one of these runs", BEHAVIOUR_EXECUTIONS, "executions"),
            LimitRow("different tools of an execution whose behaviour is compared", BEHAVIOUR_TOOLS, "tools"),
            LimitRow("parameters of its calls that are compared", BEHAVIOUR_PARAMETERS, "parameters"),
            LimitRow("nesting of parameters that are compared one by one", BEHAVIOUR_DEPTH, "levels"),
            LimitRow("changed behaviours that a run result lists", BEHAVIOUR_CHANGES, "changes"),
            LimitRow("evaluators and tags that a run result compares", METRIC_ROWS, "rows"),
            LimitRow("name of one of them", METRIC_NAME, "characters"),
            LimitRow("entries of an archive", ARCHIVE_ENTRIES, "entries"),
        ),
        "What a run result keeps of a case": (
            LimitRow("prompt", STORED_PROMPT, "characters"),
            LimitRow("lines of expectation", STORED_CHECKS, "lines"),
            LimitRow("one such line", STORED_CHECK, "characters"),
            LimitRow("response, or message of a conversation", STORED_RESPONSE, "characters"),
            LimitRow("name of the model", STORED_MODEL, "characters"),
            LimitRow("tool calls of an execution", STORED_CALLS, "calls"),
            LimitRow("arguments, or result, of a tool call, as JSON", STORED_CALL, "characters"),
            LimitRow("messages of a conversation", STORED_MESSAGES, "messages"),
            LimitRow("all messages together", STORED_CONVERSATION, "characters"),
            LimitRow("prompt of an LLM judge", STORED_GRADER_PROMPT, "characters"),
            LimitRow("workspace artifact of a failing case", WORKSPACE_FILE, "characters"),
            LimitRow("workspace artifacts of an execution", WORKSPACE_CASE, "characters"),
            LimitRow("workspace artifacts of a run", WORKSPACE_RUN, "characters"),
            LimitRow("response of an execution that did not decide", OTHER_RESPONSE, "characters"),
            LimitRow("tool calls of such an execution", OTHER_CALLS, "calls"),
            LimitRow("arguments, or result, of one of these calls", OTHER_CALL, "characters"),
        ),
        "GitHub": (
            LimitRow("event of a workflow", EVENT_BYTES, "bytes"),
            LimitRow("artifact", ARCHIVE_BYTES, "bytes"),
            LimitRow("response of GitHub", ANSWER_S, "seconds"),
            LimitRow("call of GitHub with all retries", GITHUB_S, "seconds"),
            LimitRow("transfer of an artifact without a byte", TRANSFER_SILENCE_S, "seconds"),
            LimitRow("transfer of an artifact, or of a block of it", TRANSFER_S, "seconds"),
            LimitRow("tree or file as git stores it", GIT_OBJECT_BYTES, "bytes"),
            LimitRow("pages of issues that are searched", ISSUE_PAGES, "pages"),
            LimitRow("pages of comments that are searched for the gate's own", COMMENT_PAGES, "pages"),
            LimitRow("pages of comments that are searched for waivers", WAIVER_PAGES, "pages"),
            LimitRow("commands in a comment", COMMANDS, "commands"),
            LimitRow("command in a comment", COMMAND_CHARACTERS, "characters"),
            LimitRow("lines of a comment that are read", COMMENT_LINES, "lines"),
        ),
    }
)
"""Rows of the table in docs/limits.md, by section."""


def in_range(value: object, most: float) -> float | None:
    """Return a number from 0 to `most`, or None for any other value, including true and false."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value <= most else None
