"""Whether the agent was told something else than in the baseline, as far as the two records show it."""

from __future__ import annotations

from collections import Counter
from typing import Final

from eval_gate.model.execution import CaseDetails
from eval_gate.model.result import RunResult
from eval_gate.reports.difference import difference
from eval_gate.reports.words.numbers import count, in_backticks

MAX_WORDS: Final = 120


def prompt_words(run: RunResult) -> str | None:
    """The system prompt's first difference as half a sentence, in backticks; None where none is known.

    It is known where we led the conversation with a model, of cases that are not as they were, and where answers are
    kept. What an agent behind an address or a command tells its model is never known.
    """
    if run.comparison is None:
        return None
    here = run.by_key()
    pairs: Counter[tuple[str, str]] = Counter()
    for change in run.comparison.changes:
        if change.before is not None and change.key in here:
            then, now = _system(change.before.details), _system(here[change.key].details)
            if then is not None and now is not None and then != now:
                pairs[then, now] += 1
    if not pairs:
        return None
    (then, now), _ = pairs.most_common(1)[0]
    found = difference(then, now).pieces
    gone, new = (
        next((in_backticks(one.text, MAX_WORDS) for one in found if one.sign == sign), "nothing") for sign in "-+"
    )
    more = f", and {count(len(pairs) - 1, 'other')}" if len(pairs) > 1 else ""
    return f"{gone} → {new}{more}"


def _system(details: CaseDetails) -> str | None:
    """What the model was told at first; None where no conversation is kept."""
    first = details.conversation[0] if details.conversation else None
    return str(first.content) if first is not None and first.role == "system" else None
