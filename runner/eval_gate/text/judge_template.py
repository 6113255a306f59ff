"""The variables of a judge's own prompt template: which there are, and which a template has to show.

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
"""What an own template may show."""
ANSWERS: Final = ("candidate_answer", "output_messages", "expected_messages")
"""One of these has to be in a template, or it says nothing about the answer (behaviour 6.1)."""
VARIABLE: Final = re.compile(r"\{\{\s*+(\w++)\s*+\}\}")
"""A variable in a template; its name is the first group."""


def names_in(template: str) -> tuple[str, ...]:
    """Every name in double braces, each once, in the order of the text."""
    return tuple(dict.fromkeys(match[1] for match in VARIABLE.finditer(template)))


def template_problem(template: str) -> str | None:
    """Why this template cannot be used, in one sentence; None when it can."""
    if any(name in ANSWERS for name in names_in(template)):
        return None
    wanted = ", ".join(f"{{{{ {name} }}}}" for name in ANSWERS)
    return f"the prompt template shows the judge no answer: it needs one of {wanted}"


def unknown_variables(template: str) -> tuple[str, ...]:
    """Names in double braces that are no variable: they stay as they are."""
    return tuple(name for name in names_in(template) if name not in VARIABLES)
