"""What the agent inside VS Code is told about handing over its answer (agentv behaviour 5.5)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def request_text(document: str, unfinished: Path, response: Path) -> str:
    """One request: the prompt document, and the two files by which the answer is handed over."""
    return f"""\
[[ ## task ## ]]

{document.strip()}

[[ ## response ## ]]

Hand over your answer as a file, in these two steps:

1. Write the complete answer to `{unfinished}`.
2. When that file is complete, and not before, rename it to `{response}`.

Only this file is read. What you say in the chat, and any other file you make, is not.
"""


def orchestrator_text(requests: Sequence[Path], responses: Sequence[Path]) -> str:
    """Several requests in one chat: each goes to a subagent that knows nothing of the others."""
    listed = "\n".join(f"{number}. `messages/{path.name}`" for number, path in enumerate(requests, start=1))
    awaited = "\n".join(f"* `messages/{path.name}`" for path in responses)
    return f"""\
Every file in this list is a request of its own. Give each one to a new subagent with the #runSubagent tool: pass it
the file's path only, and do not open the files yourself, so that no request sees another.

{listed}

The work is done when all of these files exist:

{awaited}
"""
