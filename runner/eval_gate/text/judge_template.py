"""Variables of a custom LLM judge prompt: which exist, and which a template must use.

Source: agentv behaviour 6.1, 6.4. Formats check templates when they read them, evaluators fill them.
"""

from __future__ import annotations

import re
from typing import Final

VARIABLES: Final = (
    "candidate_answer",
    "reference_answer",
    "expected_outcome",
    "question",
    "input_messages",
    "expected_messages",
    "output_messages",
)
RESPONSE_VARIABLES: Final = ("candidate_answer", "output_messages", "expected_messages")
"""One of these has to be in a template, or the judge does not see the response (behaviour 6.1)."""
FILE_CHANGES: Final = "agentv_file_changes"
AGENTV_VARIABLES: Final = {
    "output": "candidate_answer",
    "expected_output": "reference_answer",
    "criteria": "expected_outcome",
    "input": "question",
    "tool_calls": "agentv_tool_calls",
    "metadata": "agentv_metadata",
    "metadata_json": "agentv_metadata_json",
    "file_changes": FILE_CHANGES,
}
"""The variables of today's AgentV, and the names by which evaluators know what they stand for."""
UNSUPPORTED_VARIABLES: Final = ("rubrics", "rubrics_json")
"""Variables without a value here."""
CRITERIA_TEMPLATE: Final = """\
Grade how well candidate_answer meets criteria as an answer to question. Where there is a reference_answer it shows a \
good answer: candidate_answer may say it in other words, but has to hold what matters in it.

[[ ## criteria ## ]]
%s

[[ ## question ## ]]
{{ question }}

[[ ## reference_answer ## ]]
{{ reference_answer }}

[[ ## candidate_answer ## ]]
{{ candidate_answer }}"""
"""The template around a prompt that shows nothing itself (today's AgentV)."""
CHANGES_SECTION: Final = f"\n\n[[ ## file_changes ## ]]\n{{{{ {FILE_CHANGES} }}}}"
"""What is added to it for a case with a workspace."""
RESULTS_VARIABLE: Final = "EVALUATOR_RESULTS_JSON"
"""The variable of an aggregator's prompt."""
VARIABLE_PATTERN: Final = re.compile(r"\{\{\s*+(\w++)\s*+\}\}")
"""A variable in a template; its name is the first group."""


def list_variables(template: str) -> tuple[str, ...]:
    """List the names in double braces, each once, in the order of the text."""
    return tuple(dict.fromkeys(match[1] for match in VARIABLE_PATTERN.finditer(template)))


def find_aggregator_problem(template: str) -> str | None:
    """Find why an aggregator's prompt cannot be used, in one sentence; None if it can."""
    if RESULTS_VARIABLE in list_variables(template):
        return None
    return f"the aggregator's prompt does not show the results to the judge: add {{{{ {RESULTS_VARIABLE} }}}}"


def find_template_problem(template: str) -> str | None:
    """Find why a template cannot be used, in one sentence; None if it can."""
    if any(name in RESPONSE_VARIABLES for name in list_variables(template)):
        return None
    variables = ", ".join(f"{{{{ {name} }}}}" for name in RESPONSE_VARIABLES)
    return f"the prompt template does not show the response to the judge: add one of {variables}"


def find_unknown_variables(template: str) -> tuple[str, ...]:
    """Find names in double braces that are no variable: they stay as they are."""
    return tuple(
        name for name in list_variables(template) if name not in VARIABLES and name not in AGENTV_VARIABLES.values()
    )


def convert_agentv_prompt(prompt: str, *, bare: bool, has_workspace: bool = False) -> tuple[str, str | None]:
    """Convert a prompt of today's AgentV to a template with the variable names of this program.

    Returns the template, and the reason why it cannot be used, or None. `bare`: a prompt without any variable
    is not a template, but says what the LLM judge has to look for. `has_workspace`: the case has files that change.
    """
    names = list_variables(prompt)
    if "file_changes" in names and not has_workspace:
        return prompt, "`{{ file_changes }}` is not supported here: the case has no workspace"
    unsupported = next((name for name in names if name in UNSUPPORTED_VARIABLES), None)
    if unsupported is not None:
        return prompt, f"`{{{{ {unsupported} }}}}` is not supported: it has no value"
    if bare and not any(name in AGENTV_VARIABLES for name in names):
        changes = CHANGES_SECTION if has_workspace else ""
        return CRITERIA_TEMPLATE % VARIABLE_PATTERN.sub(
            lambda match: match[0].replace("{{", "{ {"), prompt
        ) + changes, None
    if "output" not in names:
        return prompt, "the prompt does not show the response to the judge: add {{ output }}"
    return VARIABLE_PATTERN.sub(lambda match: f"{{{{ {AGENTV_VARIABLES.get(match[1], match[1])} }}}}", prompt), None
