"""How much of anything from outside is read: bytes, depth, values, numbers. docs/limits.md shows this table."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

from pydantic import Field

from eval_gate.errors import MAX_KNOWN_WORDS, MAX_WORD_LENGTH

DEPTH: Final = 200
"""Lists and mappings within each other, in whatever is read. Parsers recurse, and end the process where nobody stops
them."""
NUMBER_DIGITS: Final = 300
"""Digits of a whole number: more is beyond every range, and nothing can be computed with it."""
MAX_ANSWER_BYTES: Final = 10_000_000
"""One answer, unpacked; for an HTTP agent unless its target says otherwise."""
ANSWER_VALUES: Final = 250_000
"""Values of one answer. One byte of JSON costs up to sixty of memory."""
DOCUMENT_VALUES: Final = 1_000_000
"""Values of one JSON file."""
YAML_VALUES: Final = 50_000
"""Values of one YAML file, aliases written out: more is an alias bomb or not a file for a person. A larger suite is
several files, or JSON."""
SETTING_VALUES: Final = 50_000
"""Values of a JSON file with settings."""
REGISTRY_BYTES: Final = 16_000_000
"""A file of tool definitions."""
REGISTRY_VALUES: Final = 250_000
"""Values in a file of tool definitions."""
CASES: Final = 100_000
"""Cases of one eval file."""
RUBRIC_CHECKS: Final = 10_000
"""Checks of one rubric of AgentV."""
MISTAKES: Final = 1_000
"""Mistakes in the shape of one file that are named. Of more their number has to do."""
FINDINGS: Final = 500
"""Problems, or warnings, of one file that are named; the others are counted."""
MAX_COST_USD: Final = 1e9
MAX_TOKENS: Final = 10**15
MAX_DURATION_MS: Final = 1e12
"""Milliseconds that anything may have taken: thirty years."""

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
SCRIPT_BYTES: Final = 4_000_000
SCRIPT_FILES: Final = 200
SCRIPTS_LISTED: Final = 5_000
SCRIPTS_DEPTH: Final = 6
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
"""Values of a stored result: 100,000 cases without details, compared with a baseline, hold five million."""
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
RECORDING_BYTES: Final = 256_000_000
RECORDING_LINE_BYTES: Final = 16_000_000
ANSWER_CALLS: Final = 10_000
CALL_NAME: Final = 1_000
ANSWER_MESSAGES: Final = 10_000
ANSWER_EVENTS: Final = 100_000
PATH_CHARACTERS: Final = 1_000
ERROR_BYTES: Final = 4_096
COMMAND_BYTES: Final = 8_000_000
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
EVENT_BYTES: Final = 32_000_000
ARCHIVE_BYTES: Final = 256_000_000
ANSWER_S: Final = 60.0
TRANSFER_SILENCE_S: Final = 60.0
TRANSFER_S: Final = 300.0
GITHUB_S: Final = 180.0
GIT_OBJECT_BYTES: Final = 64_000_000
"""A tree of a million entries has 40 MB."""
GIT_INDEX_BYTES: Final = 200_000_000
ISSUE_PAGES: Final = 3
COMMENT_PAGES: Final = 100
WAIVER_PAGES: Final = 20

# of what the record of a run keeps
STORED_PROMPT: Final = 4_000
STORED_CHECKS: Final = 20
STORED_CHECK: Final = 300
STORED_RESPONSE: Final = 20_000
STORED_MODEL: Final = 200
"""Characters of the name by which an answer says which model gave it."""
STORED_CALLS: Final = 100
STORED_CALL: Final = 2_000
"""Characters of the JSON text of a call's arguments, and of its result."""
STORED_MESSAGES: Final = 100
STORED_CONVERSATION: Final = 100_000
"""Characters of all messages of one exchange; one message has as many as an answer."""
STORED_GRADER_PROMPT: Final = 20_000
WORKSPACE_FILE: Final = 20_000
WORKSPACE_CASE: Final = 200_000
WORKSPACE_RUN: Final = 20_000_000
"""Characters of what failing cases leave in their folders: of one file, of one execution, of all of a run."""
OTHER_RESPONSE: Final = 5_000
"""Of an execution that is not the one which the case shows."""
OTHER_CALLS: Final = 20
OTHER_CALL: Final = 500

Cost = Annotated[float, Field(ge=0, le=MAX_COST_USD)]
Tokens = Annotated[int, Field(ge=0, le=MAX_TOKENS)]


class LimitRow(NamedTuple):
    """One line of the table that people read."""

    what: str
    limit: float
    unit: str


TABLE: Final = (
    LimitRow("lists and mappings within each other, in whatever is read", DEPTH, "levels"),
    LimitRow("a whole number in an answer", NUMBER_DIGITS, "digits"),
    LimitRow("one answer, unpacked", MAX_ANSWER_BYTES, "bytes"),
    LimitRow("values of one answer", ANSWER_VALUES, "values"),
    LimitRow("the cost of one answer", MAX_COST_USD, "USD"),
    LimitRow("tokens of one answer", MAX_TOKENS, "tokens"),
    LimitRow("the duration of one call", MAX_DURATION_MS, "milliseconds"),
    LimitRow("values of one JSON file", DOCUMENT_VALUES, "values"),
    LimitRow("values of one YAML file, aliases written out", YAML_VALUES, "values"),
    LimitRow("values of a JSON file with settings", SETTING_VALUES, "values"),
    LimitRow("cases of one eval file", CASES, "cases"),
    LimitRow("checks of one rubric of AgentV", RUBRIC_CHECKS, "checks"),
    LimitRow("a file of tool definitions", REGISTRY_BYTES, "bytes"),
    LimitRow("values in it", REGISTRY_VALUES, "values"),
    LimitRow("mistakes in the shape of one file that are named", MISTAKES, "mistakes"),
    LimitRow("problems, or warnings, of one file that are named", FINDINGS, "problems"),
    LimitRow("a word for which a near one is looked for", MAX_WORD_LENGTH, "characters"),
    LimitRow("words among which it is looked for", MAX_KNOWN_WORDS, "words"),
    LimitRow("the configuration file", CONFIG_BYTES, "bytes"),
    LimitRow("a file of targets", TARGETS_BYTES, "bytes"),
    LimitRow("an eval file, of any format", EVAL_FILE_BYTES, "bytes"),
    LimitRow("a number in a file of ours", FILE_DIGITS, "digits"),
    LimitRow("a file that an AgentV case attaches", ATTACHED_BYTES, "bytes"),
    LimitRow("an AgentV case with all that it attaches", CASE_BYTES, "bytes"),
    LimitRow("an AgentV file with all that it attaches", SUITE_BYTES, "bytes"),
    LimitRow("evaluators within each other", EVALUATORS_DEPTH, "levels"),
    LimitRow("a snapshot", SNAPSHOT_BYTES, "bytes"),
    LimitRow("the command or address of a snapshot", SNAPSHOT_S, "seconds"),
    LimitRow("a grader's script, of which the hash is kept", SCRIPT_BYTES, "bytes"),
    LimitRow("files of one grading command, those that it imports among them", SCRIPT_FILES, "files"),
    LimitRow("files that are looked through for those that a grading command names", SCRIPTS_LISTED, "files"),
    LimitRow("folders within each other that are looked through for them", SCRIPTS_DEPTH, "levels"),
    LimitRow("a source file of tool definitions", SOURCE_BYTES, "bytes"),
    LimitRow("source files of tool definitions", SOURCE_FILES, "files"),
    LimitRow("values within each other in source", LITERAL_DEPTH, "levels"),
    LimitRow("an MCP server that lists its tools", MCP_S, "seconds"),
    LimitRow("tools of an MCP server", MCP_TOOLS, "tools"),
    LimitRow("an MCP server that is started, until it has listed its tools", MCP_PROGRAM_S, "seconds"),
    LimitRow("what such a server prints", MCP_BYTES, "bytes"),
    LimitRow("messages and other lines among that", MCP_LINES, "lines"),
    LimitRow("a file that describes MCP servers", MCP_FILE_BYTES, "bytes"),
    LimitRow("MCP servers in it", MCP_SERVERS, "servers"),
    LimitRow("the file of accepted failures", WAIVERS_BYTES, "bytes"),
    LimitRow("entries of each of its lists", WAIVERS, "entries"),
    LimitRow("the file with what is known of judges", JUDGES_BYTES, "bytes"),
    LimitRow("judges in it", JUDGES, "entries"),
    LimitRow("commands in one comment", COMMANDS, "commands"),
    LimitRow("one command in a comment", COMMAND_CHARACTERS, "characters"),
    LimitRow("lines of a comment that are looked at", COMMENT_LINES, "lines"),
    LimitRow("a stored result", RESULT_BYTES, "bytes"),
    LimitRow("values in it", RESULT_VALUES, "values"),
    LimitRow("results of another tool that are read as a whole", EXTERNAL_BYTES, "bytes"),
    LimitRow("one line or case of such results", EXTERNAL_LINE_BYTES, "bytes"),
    LimitRow("one question, answer or error in them", EXTERNAL_TEXT, "characters"),
    LimitRow("files of such results", EXTERNAL_FILES, "files"),
    LimitRow("elements of JUnit XML within each other", EXTERNAL_DEPTH, "levels"),
    LimitRow("scores, tool calls or tags of one execution in such results", EXTERNAL_SCORES, "scores"),
    LimitRow("columns of a table of such results", EXTERNAL_COLUMNS, "columns"),
    LimitRow("keys of one file of your own that look like ours and are compared with them", EXTERNAL_NEAR_KEYS, "keys"),
    LimitRow("cases of such results", CASES, "cases"),
    LimitRow("executions of all of them", 10 * CASES, "executions"),
    LimitRow("entries of an archive", ARCHIVE_ENTRIES, "entries"),
    LimitRow("runs of a folder of runs", RUNS_READ, "runs"),
    LimitRow("runs among which one that passed is looked for", RUNS_SOUGHT, "runs"),
    LimitRow("a ledger", HISTORY_BYTES, "bytes"),
    LimitRow("runs of a ledger", HISTORY_RUNS, "runs"),
    LimitRow("runs of a ledger whose levels are kept", HISTORY_LEVELS, "runs"),
    LimitRow("executions of a case in one run of a ledger", HISTORY_EXECUTIONS, "executions"),
    LimitRow("a file of recorded answers", RECORDING_BYTES, "bytes"),
    LimitRow("one recorded answer", RECORDING_LINE_BYTES, "bytes"),
    LimitRow("tool calls of one answer", ANSWER_CALLS, "calls"),
    LimitRow("the name of a tool that was called", CALL_NAME, "characters"),
    LimitRow("messages of one answer", ANSWER_MESSAGES, "messages"),
    LimitRow("events of one trace", ANSWER_EVENTS, "events"),
    LimitRow("a path into an agent's answer", PATH_CHARACTERS, "characters"),
    LimitRow("the body of an HTTP error", ERROR_BYTES, "bytes"),
    LimitRow("what a command prints", COMMAND_BYTES, "bytes"),
    LimitRow("what a command prints for a batch", BATCH_BYTES, "bytes"),
    LimitRow("what Codex prints, or a command with a preset", CODEX_BYTES, "bytes"),
    LimitRow("an answer that an editor's agent writes", VSCODE_BYTES, "bytes"),
    LimitRow("a system prompt", PROMPT_BYTES, "bytes"),
    LimitRow("the template of an editor's agent", SUBAGENT_BYTES, "bytes"),
    LimitRow("a judge's answer", VERDICT_CHARACTERS, "characters"),
    LimitRow("what a grader prints", GRADER_BYTES, "bytes"),
    LimitRow("a grader, where its case says nothing", GRADER_S, "seconds"),
    LimitRow("a pattern of an eval file", PATTERN_CHARACTERS, "characters"),
    LimitRow("a text that patterns are held against", MATCHED_CHARACTERS, "characters"),
    LimitRow("one pattern", PATTERN_S, "seconds"),
    LimitRow("folders within each other in an agent's sandbox", SANDBOX_DEPTH, "levels"),
    LimitRow("one file in it", SANDBOX_FILE_BYTES, "bytes"),
    LimitRow("all files in it; in a `tmp/` that stays, all that the agent has written", SANDBOX_BYTES, "bytes"),
    LimitRow("files and folders in it, counted alike", SANDBOX_ENTRIES, "entries"),
    LimitRow("one folder of a `tmp/` that stays", SANDBOX_LISTED, "entries"),
    LimitRow("the event that started a workflow", EVENT_BYTES, "bytes"),
    LimitRow("an artifact", ARCHIVE_BYTES, "bytes"),
    LimitRow("one answer of GitHub, however slowly it comes", ANSWER_S, "seconds"),
    LimitRow("an artifact on its way, without a byte", TRANSFER_SILENCE_S, "seconds"),
    LimitRow("an artifact on its way, or a block of it", TRANSFER_S, "seconds"),
    LimitRow("one call of GitHub with all its repetitions", GITHUB_S, "seconds"),
    LimitRow("a tree or file of the repository as git stores it", GIT_OBJECT_BYTES, "bytes"),
    LimitRow("git's list of the files it tracks", GIT_INDEX_BYTES, "bytes"),
    LimitRow("pages of issues, where ours is looked for", ISSUE_PAGES, "pages"),
    LimitRow("pages of comments, where ours is looked for", COMMENT_PAGES, "pages"),
    LimitRow("pages of comments that may accept a failure", WAIVER_PAGES, "pages"),
    LimitRow("a question in the record of a run", STORED_PROMPT, "characters"),
    LimitRow("the lines that say what a case expects", STORED_CHECKS, "lines"),
    LimitRow("one of them", STORED_CHECK, "characters"),
    LimitRow("an answer in the record, and one message of an exchange", STORED_RESPONSE, "characters"),
    LimitRow("the model that an answer says it is from", STORED_MODEL, "characters"),
    LimitRow("tool calls of one execution in the record", STORED_CALLS, "calls"),
    LimitRow("arguments, or result, of one of them, as JSON text", STORED_CALL, "characters"),
    LimitRow("messages of one exchange in the record", STORED_MESSAGES, "messages"),
    LimitRow("all of them together", STORED_CONVERSATION, "characters"),
    LimitRow("a judge's prompt in the record", STORED_GRADER_PROMPT, "characters"),
    LimitRow("one file that a failing case of Agent Evals left", WORKSPACE_FILE, "characters"),
    LimitRow("all files that one execution left", WORKSPACE_CASE, "characters"),
    LimitRow("all that failing cases of a run left", WORKSPACE_RUN, "characters"),
    LimitRow("an answer of an execution that did not decide its case", OTHER_RESPONSE, "characters"),
    LimitRow("tool calls of such an execution", OTHER_CALLS, "calls"),
    LimitRow("arguments, or result, of one of these, as JSON text", OTHER_CALL, "characters"),
)
"""What docs/limits.md shows."""


def in_range(value: object, most: float) -> float | None:
    """Return a number from 0 to `most`, or None for any other value, including true and false."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value <= most else None
