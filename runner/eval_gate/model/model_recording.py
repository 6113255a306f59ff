"""Recorded model calls of an agent: what the proxy replays, and what passed it during an execution."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from eval_gate.model.base import Record
from eval_gate.struct import replace


class CallMode(StrEnum):
    """How the proxy answers a model call of the agent."""

    RECORD = "record"
    """From the provider; every answer is recorded."""
    REPLAY = "replay"
    """From the recording; a call that it does not have is an error."""
    REPLAY_OR_LIVE = "replay-or-live"
    """From the recording, or from the provider where it does not have the call, which is then recorded."""


class ModelRecording(Record, kw_only=True):
    """Recording of the agent's model calls, as the proxy describes it, and the number of calls of a run."""

    mode: CallMode
    file: Annotated[str, Meta(max_length=4_096)]
    digest: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")] | None = None
    """Digest of the recorded requests and responses before the run; None if none are replayed."""
    recorded_at: Annotated[str, Meta(max_length=100)] | None = None
    """Time of the oldest call that is replayed; None if none are replayed."""
    commit: Annotated[str, Meta(max_length=100)] | None = None
    """Commit at which that call was recorded; None if unknown."""
    providers: Annotated[tuple[Annotated[str, Meta(max_length=50)], ...], Meta(max_length=20)] = ()
    """Providers whose calls are replayed."""
    calls: Annotated[int, Meta(ge=0)] = 0
    """Calls in executions of this run."""
    live_calls: Annotated[int, Meta(ge=0)] = 0
    """Those of them that the provider answered."""


def merge_model_recordings(parts: Iterable[ModelRecording | None]) -> ModelRecording | None:
    """Merge the recordings of the parts of one run: the calls of all of them, and the first description."""
    recordings = [one for one in parts if one is not None]
    if not recordings:
        return None
    live_calls = sum(one.live_calls for one in recordings)
    return replace(recordings[0], calls=sum(one.calls for one in recordings), live_calls=live_calls)


class ExecutionCalls(Record, kw_only=True):
    """Model calls of one execution."""

    calls: Annotated[int, Meta(ge=0)] = 0
    live_calls: Annotated[int, Meta(ge=0)] = 0
    miss: str | None = None
    """Why the first call without an answer has none: it is not in the recording, or belongs to no execution."""
