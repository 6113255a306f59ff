"""Words that look as if they were new in every run, and others that only look a little like them."""

from __future__ import annotations

import pytest

from eval_gate.text.volatile_words import iter_volatile_words, replace_volatile_words
from tests.support.bounds import within_cpu


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("id 1e7b580b-a5cc-46d2-9199-08f32dfa16cb.", "id <id>."),
        ("thread_abc123DEF456ghi789jkl012 asks", "thread_<id> asks"),
        ("9f8e7d6c5b4a3f2e1d0c", "<id>"),
        ("on 2026-11-27 at 10:15", "on <date> at <time>"),
        ("2026-11-27T10:15:30.123+01:00", "<date>T<time>"),
        ("20261127T101530Z", "<date>"),
        ("20261127", "<date>"),
        ("27.11.2026, 11/27/2026", "<date>, <date>"),
        ("Friday, November 27, 2026 at 9:05 AM", "<date> at <time>"),
        ("27 Nov 2026", "<date>"),
        ("1732700000 and 1732700000.25 and 1732700000123", "<time> and <time> and <time>"),
    ],
)
def test_replace__what_is_new_in_every_run__is_its_kind(text, replaced) -> None:
    assert replace_volatile_words(text) == replaced


@pytest.mark.parametrize(
    "text",
    [
        "Refund order 4711, please.",
        "order 204711 of 2026",
        "gpt-4o-mini and claude-sonnet-4-5",
        "get_current_weather_forecast",
        "internationalization12345678",
        "+49 170 1234567",
        "192.168.100.200",
        "a ratio of 3:100",
        "ISO 8601-1:2019",
        "1.732700000",
    ],
)
def test_iter__what_people_write__is_none(text) -> None:
    assert [*iter_volatile_words(text)] == []


@pytest.mark.parametrize("piece", ["a", "1", "a1", "20", "Nov ", "-", "1:", "12-", "Friday, "])
def test_replace__long_text__takes_no_longer_than_its_length(piece) -> None:
    with within_cpu(2.0):
        replace_volatile_words(piece * 100_000)
