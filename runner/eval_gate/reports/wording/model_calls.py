"""Wording for the agent's model calls: whether they were replayed, from which recording, and how old it is."""

from __future__ import annotations

from typing import Final

from eval_gate.model.model_recording import CallMode, ModelRecording
from eval_gate.model.result import RunResult
from eval_gate.reports.wording.numbers import quote_in_backticks
from eval_gate.results.run_times import parse_timestamp
from eval_gate.targets.model.proxied_providers import ADDRESS_HINT
from eval_gate.text.escape import format_count

MAX_FILE: Final = 100
_NO_CALLS: Final = (
    "No model call of the agent came through the proxy (`modelProxy`), so it is unknown what answered them"
)


def describe_model_calls(run: RunResult) -> str | None:
    """Describe what answered the agent's model calls; None if they do not go through a proxy."""
    recording = run.model_recording
    if recording is None:
        return None
    if not recording.calls:
        return f"{_NO_CALLS}: {ADDRESS_HINT}."
    live, file = format_count(recording.live_calls, "call"), quote_in_backticks(recording.file, MAX_FILE)
    if recording.mode is CallMode.RECORD:
        return f"Model calls of the agent are live ({live}). Successful answers are recorded in {file}."
    rest = f"; made live because they are not in it: {live}" if recording.live_calls else ""
    return f"Model calls of the agent are replayed from {file}{_describe_origin(recording, run.timestamp)}{rest}."


def _describe_origin(recording: ModelRecording, timestamp: str) -> str:
    """Describe the age at the time of the run, and the commit, of the oldest call; empty if a time is unknown."""
    recorded_at, run_at = parse_timestamp(recording.recorded_at or ""), parse_timestamp(timestamp)
    if recorded_at is None or run_at is None:
        return ""
    days = max((run_at - recorded_at).days, 0)
    age = f"{format_count(days, 'day')} ago" if days else "less than a day ago"
    return f", recorded {age}{f' at {quote_in_backticks(recording.commit[:7], 7)}' if recording.commit else ''}"
