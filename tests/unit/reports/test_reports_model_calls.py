"""The sentence about an agent's model calls: a replay is never taken for a live run."""

from __future__ import annotations

import pytest

from eval_gate.model.model_recording import CallMode, ModelRecording, merge_model_recordings
from eval_gate.reports.wording.model_calls import describe_model_calls
from tests.support.results import make_run

OLD = {"recorded_at": "2026-11-09T10:00:00+00:00", "commit": "3f2c1ab0000", "digest": "0123456789abcdef"}
REPLAYED = "Model calls of the agent are replayed from `f.jsonl`, recorded 12 days ago at `3f2c1ab`"


@pytest.mark.parametrize(
    ("mode", "fields", "sentence"),
    [
        ("replay", {}, f"{REPLAYED}."),
        ("replay-or-live", {"live_calls": 1}, f"{REPLAYED}; made live because they are not in it: 1 call."),
        (
            "replay",
            {"recorded_at": "2026-11-21T09:59:00+00:00", "commit": None},
            "Model calls of the agent are replayed from `f.jsonl`, recorded less than a day ago.",
        ),
        (
            "replay",
            {"recorded_at": "yesterday"},
            "Model calls of the agent are replayed from `f.jsonl`.",
        ),
        (
            "record",
            {"live_calls": 2},
            "Model calls of the agent are live (2 calls). Successful answers are recorded in `f.jsonl`.",
        ),
    ],
)
def test_describe_model_calls__of_a_run__says_what_answered_them(mode, fields, sentence) -> None:
    recording = ModelRecording(mode=CallMode(mode), file="f.jsonl", calls=3, **OLD | fields)
    assert describe_model_calls(make_run({"a": "passed"}, model_recording=recording)) == sentence


def test_describe_model_calls__none_came_through__does_not_claim_a_replay() -> None:
    recording = ModelRecording(mode=CallMode.REPLAY, file="f`.jsonl", **OLD)
    sentence = describe_model_calls(make_run({"a": "passed"}, model_recording=recording))
    assert sentence is not None
    assert sentence.startswith("No model call of the agent came through the proxy")
    assert describe_model_calls(make_run({"a": "passed"})) is None


def test_merge_model_recordings__of_shards__adds_their_calls() -> None:
    one = ModelRecording(mode=CallMode.REPLAY, file="f", calls=3, live_calls=2)
    merged = merge_model_recordings([None, one, one])
    assert merged is not None
    assert (merged.calls, merged.live_calls) == (6, 4)
    assert merge_model_recordings([None]) is None
