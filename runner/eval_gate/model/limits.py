"""Limits for input: bytes, nesting, number of values, size of numbers. docs/limits.md shows this table."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

from eval_gate.errors import MAX_KNOWN_WORDS, MAX_WORD_LENGTH

_Number = TypeVar("_Number", int, float)


class LimitRow(NamedTuple):
    """One row of the table in docs/limits.md."""

    what: str
    limit: float
    unit: str


TABLE: Final[dict[str, list[LimitRow]]] = {}
"""Rows of the table in docs/limits.md, by section."""


class _Section:
    """Section of the table, to which each limit of it adds its row."""

    def __init__(self, title: str) -> None:
        self._rows = TABLE.setdefault(title, [])

    def add(self, what: str, limit: _Number, unit: str) -> _Number:
        """Add a row, and return its limit."""
        self._rows.append(LimitRow(what, limit, unit))
        return limit


_FILES: Final = _Section("Files that you write")
CONFIG_BYTES: Final = _FILES.add("configuration file", 1_000_000, "bytes")
TARGETS_BYTES: Final = _FILES.add("targets file", 1_000_000, "bytes")
EVAL_FILE_BYTES: Final = _FILES.add("eval file", 64_000_000, "bytes")
CASES: Final = _FILES.add("cases in an eval file", 100_000, "cases")
TURNS: Final = _FILES.add("turns of a conversation", 100, "turns")
TURN_CHARACTERS: Final = _FILES.add("message of a turn, or text about a simulated user", 100_000, "characters")
USER_MESSAGES: Final = _FILES.add("messages of a simulated user", 50, "messages")
DEPTH: Final = _FILES.add("nesting of lists and mappings in any file", 200, "levels")
"""Maximum nesting of lists and mappings in any input. Parsers recurse and would end the process without this limit."""
DOCUMENT_VALUES: Final = _FILES.add("values in a JSON file", 1_000_000, "values")
YAML_VALUES: Final = _FILES.add("values in a YAML file, with aliases expanded", 50_000, "values")
"""Maximum values in a YAML file, with aliases expanded: a larger file is an alias bomb, or not written by a person.
Split a larger suite into several files, or use JSON."""
SETTING_VALUES: Final = _FILES.add("values in a JSON file with settings", 50_000, "values")
FILE_DIGITS: Final = _FILES.add("a number", 1_000, "digits")
PATTERN_CHARACTERS: Final = _FILES.add("a regular expression", 10_000, "characters")
MATCHED_CHARACTERS: Final = _FILES.add("text that a regular expression searches", 2_000_000, "characters")
PATTERN_S: Final = _FILES.add("time for a regular expression", 2.0, "seconds")
RUBRIC_CHECKS: Final = _FILES.add("checks in an AgentV rubric", 10_000, "checks")
EVALUATORS_DEPTH: Final = _FILES.add("nesting of evaluators", 10, "levels")
ATTACHED_BYTES: Final = _FILES.add("file that an AgentV case attaches", 1_000_000, "bytes")
CASE_BYTES: Final = _FILES.add("AgentV case with its attachments", 4_000_000, "bytes")
SUITE_BYTES: Final = _FILES.add("AgentV file with all attachments", 64_000_000, "bytes")
PROMPT_BYTES: Final = _FILES.add("system prompt", 1_000_000, "bytes")
SUBAGENT_BYTES: Final = _FILES.add("subagent template of an editor's agent", 1_000_000, "bytes")
SNAPSHOT_BYTES: Final = _FILES.add("snapshot", 16_000_000, "bytes")
SNAPSHOT_S: Final = _FILES.add("time for the snapshot command or address", 60.0, "seconds")
WAIVERS_BYTES: Final = _FILES.add("waiver file", 200_000, "bytes")
WAIVERS: Final = _FILES.add("entries in each of its lists", 500, "entries")
JUDGES_BYTES: Final = _FILES.add("calibration file (`.eval-gate/judges.json`)", 500_000, "bytes")
JUDGES: Final = _FILES.add("judges in it", 100, "entries")
MISTAKES: Final = _FILES.add("reported mistakes in the structure of a file", 1_000, "mistakes")
"""Maximum reported mistakes in the structure of a file. Further mistakes are only counted."""
FINDINGS: Final = _FILES.add("reported problems, and warnings, of a file", 500, "problems")
"""Maximum reported problems, or warnings, of a file. Further ones are only counted."""
_FILES.add("unknown word for which a similar one is suggested", MAX_WORD_LENGTH, "characters")
_FILES.add("known words that are compared with it", MAX_KNOWN_WORDS, "words")
MEASURED_FILES: Final = _FILES.add("files that `measures` names", 100_000, "files")
MEASURED_BYTES: Final = _FILES.add("bytes of these files", 8_000_000_000, "bytes")
MEASURED_ENTRIES: Final = _FILES.add("files and folders that are searched for them", 1_000_000, "entries")
"""Maximum entries of folders: links can lead to the same ones again and again. Beyond a limit, every suite runs."""

_TOOLS: Final = _Section("Tool definitions")
REGISTRY_BYTES: Final = _TOOLS.add("file of tool definitions", 16_000_000, "bytes")
REGISTRY_VALUES: Final = _TOOLS.add("values in it", 250_000, "values")
SOURCE_BYTES: Final = _TOOLS.add("source file", 1_000_000, "bytes")
SOURCE_FILES: Final = _TOOLS.add("source files", 2_000, "files")
LITERAL_DEPTH: Final = _TOOLS.add("nesting of values in source", 60, "levels")
MCP_FILE_BYTES: Final = _TOOLS.add("file that describes MCP servers", 1_000_000, "bytes")
MCP_SERVERS: Final = _TOOLS.add("MCP servers in it", 20, "servers")
MCP_S: Final = _TOOLS.add("time for an MCP server to list its tools", 30.0, "seconds")
MCP_PROGRAM_S: Final = _TOOLS.add("the same for a server that is started first", 60.0, "seconds")
MCP_TOOLS: Final = _TOOLS.add("tools of an MCP server", 10_000, "tools")
MCP_BYTES: Final = _TOOLS.add("output of an MCP server that is started", 16_000_000, "bytes")
MCP_LINES: Final = _TOOLS.add("lines in this output", 10_000, "lines")

_RESPONSES: Final = _Section("Responses")
MAX_RESPONSE_BYTES: Final = _RESPONSES.add("response, uncompressed, and text of all turns", 10_000_000, "bytes")
"""Maximum size of an uncompressed response; the default for HTTP agents."""
RESPONSE_VALUES: Final = _RESPONSES.add("values in a response", 250_000, "values")
"""Maximum values in a response. One byte of JSON needs up to 60 bytes of memory."""
NUMBER_DIGITS: Final = _RESPONSES.add("whole number in a response", 300, "digits")
"""Maximum digits of a whole number: a longer one is outside every range, and calculations with it fail."""
MAX_COST_USD: Final = _RESPONSES.add("cost of a response", 1e9, "USD")
MAX_TOKENS: Final = _RESPONSES.add("tokens of a response", 10**15, "tokens")
MAX_DURATION_MS: Final = _RESPONSES.add("duration of a call", 1e12, "milliseconds")
"""Maximum duration of anything, in milliseconds (30 years)."""
RESPONSE_CALLS: Final = _RESPONSES.add("tool calls in a response, and in all turns", 10_000, "calls")
CALL_NAME: Final = _RESPONSES.add("name of a tool", 1_000, "characters")
RESPONSE_MESSAGES: Final = _RESPONSES.add("messages in a response", 10_000, "messages")
RESPONSE_EVENTS: Final = _RESPONSES.add("events in a trace", 100_000, "events")
PATH_CHARACTERS: Final = _RESPONSES.add("path into a response (`responsePath`)", 1_000, "characters")
ERROR_BYTES: Final = _RESPONSES.add("body of an HTTP error", 4_096, "bytes")
COMMAND_BYTES: Final = _RESPONSES.add("output of a command", 8_000_000, "bytes")
BATCH_BYTES: Final = _RESPONSES.add("output of a command for a batch", 64_000_000, "bytes")
CODEX_BYTES: Final = _RESPONSES.add(
    "output of Codex, or of a command with an `agentProtocol` or `events`", 32_000_000, "bytes"
)
VSCODE_BYTES: Final = _RESPONSES.add("response file of an editor's agent", 4_000_000, "bytes")
RECORDING_BYTES: Final = _RESPONSES.add("recording", 256_000_000, "bytes")
RECORDING_LINE_BYTES: Final = _RESPONSES.add("recorded response", 16_000_000, "bytes")

_DRAFTS: Final = _Section("Sources of drafts")
DRAFT_SOURCE_BYTES: Final = _DRAFTS.add("log or file of traces", 64_000_000, "bytes")
DRAFT_LINE_BYTES: Final = _DRAFTS.add("line of it", 16_000_000, "bytes")
DRAFT_RESPONSES_BYTES: Final = _DRAFTS.add("responses of drafts that are kept for the review", 100_000_000, "bytes")
_DRAFTS.add("values in a line, or in a file that is one document", DOCUMENT_VALUES, "values")
TRACE_SPANS: Final = _DRAFTS.add("spans and log records in traces", 200_000, "spans")
DRAFT_PROMPTS: Final = _DRAFTS.add("different questions in a source", 10_000, "questions")
DRAFT_EXECUTIONS: Final = _DRAFTS.add("executions of a question that are kept", 100, "executions")
"""Maximum executions of a question that are kept. Further ones are counted."""
DRAFT_PROMPT: Final = _DRAFTS.add("question, or message of a conversation before it", 100_000, "characters")
"""Maximum characters of a question, or of an earlier message of its conversation."""
DRAFT_FACTS: Final = _DRAFTS.add("numbers, names and words that a draft expects in a response", 30, "facts")
DRAFT_EARLIER_MESSAGES: Final = _DRAFTS.add("messages of a conversation before a question", 100, "messages")

_JUDGES: Final = _Section("LLM judges and graders")
VERDICT_CHARACTERS: Final = _JUDGES.add("reply of an LLM judge", 200_000, "characters")
GRADER_BYTES: Final = _JUDGES.add("output of a grader", 1_000_000, "bytes")
GRADER_S: Final = _JUDGES.add("default time for a grader", 120.0, "seconds")
USER_MESSAGE: Final = _JUDGES.add("message that a simulated user reads", 20_000, "characters")
PROGRAM_FILES: Final = _JUDGES.add("files of all graders and hooks that are compared", 50_000, "files")
PROGRAM_BYTES: Final = _JUDGES.add("bytes of these files", 8_000_000_000, "bytes")
PROGRAM_ENTRIES: Final = _JUDGES.add("such files that a run result lists one by one", 2_000, "files")
IGNORE_RULES_BYTES: Final = _JUDGES.add("file of git's ignore rules", 1_000_000, "bytes")

_WORKSPACES: Final = _Section("Workspaces of Agent Evals and AgentV")
SANDBOX_DEPTH: Final = _WORKSPACES.add("depth of folders in a workspace", 32, "levels")
SANDBOX_FILE_BYTES: Final = _WORKSPACES.add("file in a workspace", 1_000_000, "bytes")
SANDBOX_BYTES: Final = _WORKSPACES.add(
    "all files in it; in a kept `tmp/`, all that the agent wrote", 10_000_000, "bytes"
)
SANDBOX_ENTRIES: Final = _WORKSPACES.add("files and folders in it", 500, "entries")
SANDBOX_LISTED: Final = _WORKSPACES.add("entries of a folder in a kept `tmp/`", 10_000, "entries")
HOOK_PREPARATION_S: Final = _WORKSPACES.add("default time for a hook before cases", 60.0, "seconds")
HOOK_CLEANUP_S: Final = _WORKSPACES.add("default time for a hook after them", 30.0, "seconds")
"""Seconds for a hook before, and after, cases, if it sets no limit: as in AgentV."""
HOOK_BYTES: Final = _WORKSPACES.add("kept output of a hook", 64_000, "bytes")
WORKSPACE_CHANGES: Final = _WORKSPACES.add(
    "changes in the workspace of an AgentV case, for graders", 1_000_000, "characters"
)
"""Maximum characters of the changes in a workspace that graders receive: as in AgentV."""

_EXTERNAL: Final = _Section("External results")
EXTERNAL_BYTES: Final = _EXTERNAL.add("results that are read as a whole", 256_000_000, "bytes")
EXTERNAL_LINE_BYTES: Final = _EXTERNAL.add("line or case", 4_000_000, "bytes")
EXTERNAL_TEXT: Final = _EXTERNAL.add("prompt, response or error", 1_000_000, "characters")
EXTERNAL_FILES: Final = _EXTERNAL.add("files", 1_000, "files")
_EXTERNAL.add("cases", CASES, "cases")
_EXTERNAL.add("executions", 10 * CASES, "executions")
EXTERNAL_SCORES: Final = _EXTERNAL.add("scores, tool calls or tags of an execution", 10_000, "scores")
EXTERNAL_COLUMNS: Final = _EXTERNAL.add("columns of a table", 1_000, "columns")
EXTERNAL_DEPTH: Final = _EXTERNAL.add("nesting of JUnit XML", 50, "levels")
EXTERNAL_NEAR_KEYS: Final = _EXTERNAL.add(
    "unknown keys in own results that are compared with known ones", 20_000, "keys"
)

_STORED: Final = _Section("Stored results")
RESULT_BYTES: Final = _STORED.add("run result", 128_000_000, "bytes")
RESULT_VALUES: Final = _STORED.add("values in it", 6_000_000, "values")
"""Maximum values in a stored result: 100,000 cases without details, compared with a baseline, have 5 million."""
RUNS_READ: Final = _STORED.add("runs in a folder of runs", 50, "runs")
RUNS_SOUGHT: Final = _STORED.add("runs that are searched for one that passed", 1_000, "runs")
HISTORY_BYTES: Final = _STORED.add("history", 64_000_000, "bytes")
HISTORY_RUNS: Final = _STORED.add("runs in a history", 50, "runs")
HISTORY_PLACES: Final = _STORED.add("runs in a history with those that reused results", 100, "runs")
HISTORY_LEVELS: Final = _STORED.add("runs whose levels are kept for drift", 100, "runs")
HISTORY_EXECUTIONS: Final = _STORED.add("executions of a case in one run of a history", 100, "executions")
HISTORY_BEHAVIOURS: Final = _STORED.add("runs in a history whose behaviour is kept", 10, "runs")
"""Runs of a history whose behaviour is kept for each case: enough to see what varies by itself."""
BEHAVIOUR_EXECUTIONS: Final = _STORED.add("executions of a case in one of these runs", 4, "executions")
BEHAVIOUR_TOOLS: Final = _STORED.add("different tools of an execution whose behaviour is compared", 20, "tools")
BEHAVIOUR_PARAMETERS: Final = _STORED.add("parameters of its calls that are compared", 60, "parameters")
BEHAVIOUR_DEPTH: Final = _STORED.add("nesting of parameters that are compared one by one", 8, "levels")
"""Depth to which the members of a parameter are compared one by one."""
BEHAVIOUR_CHANGES: Final = _STORED.add("changed behaviours that a run result lists", 200, "changes")
METRIC_ROWS: Final = _STORED.add("evaluators and tags that a run result compares", 200, "rows")
METRIC_NAME: Final = _STORED.add("name of one of them", 200, "characters")
ARCHIVE_ENTRIES: Final = _STORED.add("entries of an archive", 10_000, "entries")

_KEPT: Final = _Section("What a run result keeps of a case")
STORED_PROMPT: Final = _KEPT.add("prompt", 4_000, "characters")
STORED_CHECKS: Final = _KEPT.add("lines of expectation", 20, "lines")
STORED_CHECK: Final = _KEPT.add("one such line", 300, "characters")
STORED_RESPONSE: Final = _KEPT.add("response, or message of a conversation", 20_000, "characters")
STORED_MODEL: Final = _KEPT.add("name of the model", 200, "characters")
TRACE_ID: Final = _KEPT.add("id of a trace", 200, "characters")
TRACE_ADDRESS: Final = _KEPT.add("address of a trace", 2_000, "characters")
STORED_CALLS: Final = _KEPT.add("tool calls of an execution", 100, "calls")
STORED_CALL: Final = _KEPT.add("arguments, or result, of a tool call, as JSON", 2_000, "characters")
STORED_FIELDS: Final = _KEPT.add("fields of the agent's JSON that a case checks", 50, "fields")
STORED_FIELD: Final = _KEPT.add("value of such a field, as JSON", 500, "characters")
STORED_MESSAGES: Final = _KEPT.add("messages of a conversation", 100, "messages")
STORED_TURNS: Final = _KEPT.add("turns of a conversation", TURNS, "turns")
STORED_CONVERSATION: Final = _KEPT.add("all messages, or all turns, together", 100_000, "characters")
"""Maximum characters of all messages of a conversation. The limit of one message is that of a response."""
STORED_GRADER_PROMPT: Final = _KEPT.add("prompt of an LLM judge", 20_000, "characters")
WORKSPACE_FILE: Final = _KEPT.add("workspace artifact of a failing case", 20_000, "characters")
WORKSPACE_CASE: Final = _KEPT.add("workspace artifacts of an execution", 200_000, "characters")
WORKSPACE_RUN: Final = _KEPT.add("workspace artifacts of a run", 20_000_000, "characters")
"""Maximum characters of workspace artifacts of failing cases: of a file, an execution and a run."""
OTHER_RESPONSE: Final = _KEPT.add("response of an execution that did not decide", 5_000, "characters")
"""Maximum characters of the response of an execution that is not decisive."""
OTHER_CALLS: Final = _KEPT.add("tool calls of such an execution", 20, "calls")
OTHER_CALL: Final = _KEPT.add("arguments, or result, of one of these calls", 500, "characters")

_GITHUB: Final = _Section("GitHub")
EVENT_BYTES: Final = _GITHUB.add("event of a workflow", 32_000_000, "bytes")
ARCHIVE_BYTES: Final = _GITHUB.add("artifact", 256_000_000, "bytes")
GITHUB_RESPONSE_S: Final = _GITHUB.add("response of GitHub", 60.0, "seconds")
GITHUB_S: Final = _GITHUB.add("call of GitHub with all retries", 180.0, "seconds")
TRANSFER_IDLE_S: Final = _GITHUB.add("transfer of an artifact without a byte", 60.0, "seconds")
TRANSFER_S: Final = _GITHUB.add("transfer of an artifact, or of a block of it", 300.0, "seconds")
GIT_OBJECT_BYTES: Final = _GITHUB.add("tree or file as git stores it", 64_000_000, "bytes")
"""Maximum size of a git object: a tree with a million entries has 40 MB."""
ISSUE_PAGES: Final = _GITHUB.add("pages of issues that are searched", 3, "pages")
COMMENT_PAGES: Final = _GITHUB.add("pages of comments that are searched for the gate's own", 100, "pages")
WAIVER_PAGES: Final = _GITHUB.add("pages of comments that are searched for waivers", 20, "pages")
COMMANDS: Final = _GITHUB.add("commands in a comment", 20, "commands")
COMMAND_CHARACTERS: Final = _GITHUB.add("command in a comment", 4_000, "characters")
COMMENT_LINES: Final = _GITHUB.add("lines of a comment that are read", 400, "lines")

_CI: Final = _Section("Other CI systems")
REVIEW_PAGES: Final = _CI.add("pages of comments that are searched for the gate's own", 20, "pages")
REVIEW_S: Final = _CI.add("response of the CI system", 20.0, "seconds")

_PROXY: Final = _Section("Recorded model calls")
PROXY_REPLY_BYTES: Final = _PROXY.add("calls of one execution, as the proxy reports them", 1_000_000, "bytes")


def in_range(value: object, most: float) -> float | None:
    """Return a number from 0 to `most`, or None for any other value, including true and false."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value <= most else None
