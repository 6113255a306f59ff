"""Seconds of `Retry-After`, in both of its forms."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.text.retry_after import parse_retry_after


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7.0), ("1.5", 1.5), ("0", 0.0), ("-1", None), ("nan", None), ("inf", None), ("soon", None), ("", None)],
)
def test_parse_retry_after__number__is_read_if_it_can_be_waited_for(value, seconds) -> None:
    assert parse_retry_after(value) == seconds


def test_parse_retry_after__date__is_the_time_until_then() -> None:
    now = datetime.now(UTC)
    found = parse_retry_after(format_datetime(now + timedelta(seconds=90), usegmt=True))
    assert found is not None
    assert 80 < found <= 90
    assert parse_retry_after(format_datetime(now - timedelta(days=1), usegmt=True)) == 0.0


@given(st.text())
def test_parse_retry_after__any_text__is_seconds_or_none(text) -> None:
    found = parse_retry_after(text)
    assert found is None or found >= 0
