"""Number formats that all reports share: counts, percentages, durations, costs and scores."""

from __future__ import annotations

import math
import re
from typing import Final

from eval_gate.model.comparison import PassCount
from eval_gate.reports.run_statistics import PassCounts
from eval_gate.text.escape import format_count, to_one_line, truncate_text

MINUS = "−"
_DAY: Final = re.compile(r"(\d{4}-\d\d-\d\d)T")
_DIFFERENCE_DIGITS = 6
"""Decimals of a difference above which it is 0."""


def quote_in_backticks(text: str, most: int) -> str:
    """Quote a name or value of at most `most` characters in backticks, and replace backticks in it."""
    return f"`{truncate_text(to_one_line(text.replace('`', chr(39)), most), most) or ' '}`"


def format_percent(share: float | None) -> str:
    """`92.5 %`; a dash without a share. A share below 1 or above 0 never looks like 100 % or 0 %: `99.96 %`."""
    if share is None or not 0 < share < 1:
        return "–" if share is None else f"{share * 100:.1f} %"
    forms = (f"{share * 100:.{digits}f}" for digits in range(1, 17))
    return f"{next((text for text in forms if 0 < float(text) < 100), '0.0')} %"


def format_points(baseline: float, current: float) -> str:
    """`+1.7 pp`, `−1.7 pp`; `+0.04 pp` if one digit would make it 0."""
    difference = round((current - baseline) * 100, _DIFFERENCE_DIGITS)
    sign = MINUS if difference < 0 else "+" if difference > 0 else ""
    digits = next((n for n in range(1, _DIFFERENCE_DIGITS) if round(difference, n)), 1)
    return f"{sign}{abs(difference):.{digits}f} pp"


def format_signed(number: int) -> str:
    """`+2`, `−1`, `0`."""
    return f"{MINUS if number < 0 else '+' if number > 0 else ''}{abs(number)}"


def format_seconds(milliseconds: float) -> str:
    """`120 ms`, `1.5 s`, `214 s`."""
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.1f} s" if milliseconds < 100_000 else f"{milliseconds / 1000:.0f} s"


def format_money(dollars: float) -> str:
    """`$0.84`, `$0.0042`: two significant digits."""
    return f"${dollars:.2f}" if dollars >= 0.1 or not dollars else f"${dollars:.4f}"


def format_score(value: float, least: float = 1.0) -> str:
    """`0.67`; with more digits if two would make it look like 1, or like the required `least`."""
    if not 0.0 <= value <= 1.0:
        return f"{value:.6g}"  # an untrusted score may have three hundred digits
    for digits in (2, 3, 4, 5):
        text = f"{value:.{digits}f}"
        if all((float(text) >= limit) == (value >= limit) for limit in (least, 1.0)):
            return text
    return f"{math.floor(value * 100_000) / 100_000:.5f}"


def format_score_change(change: float | None) -> str:
    """` (−0.23)`, ` (+0.10)`; empty if it is zero or unknown."""
    rounded = round(change or 0.0, 2)
    return f" ({MINUS if rounded < 0 else '+'}{abs(rounded):.2f})" if rounded else ""


def format_tally(tally: PassCount | None) -> str | None:
    """`2 of 3 pass` for several executions, else `pass` or `fail`."""
    if tally is None:
        return None
    if tally.executions > 1:
        return format_passes(tally.passes, tally.executions)
    return "pass" if tally.passes else "fail"


def format_passes(passes: int, executions: int) -> str:
    """`2 of 3 pass`."""
    return f"{passes} of {executions} pass"


def format_pass_counts(counts: PassCounts) -> str:
    """`52 of 60 pass`, and with a comparable baseline `52 of 60 pass (baseline: 60 of 60)`."""
    if not counts.ran:
        return "no case ran"
    baseline = f" (baseline: {counts.baseline.passed} of {counts.baseline.ran})" if counts.baseline else ""
    return f"{format_passes(counts.passed, counts.ran)}{baseline}"


def extract_day(timestamp: str) -> str | None:
    """Extract the date, such as `2026-11-21`, from a timestamp; return None if it has none."""
    match = _DAY.match(timestamp)
    return match and match[1]


def format_age(days: float | None) -> str | None:
    """`2 days old`, `5 hours old`."""
    if days is None:
        return None
    return (
        f"{format_count(round(days), 'day')} old"
        if days >= 1
        else f"{format_count(max(round(days * 24), 0), 'hour')} old"
    )
