"""Bytes within bounds: nothing is lost below the bound, head and tail stay above it."""

from hypothesis import given
from hypothesis import strategies as st

from eval_gate.process.captured_output import CapturedOutput, OutputCapture


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(0, 60))
def test_capture__any_chunks__keeps_all_or_head_and_tail(chunks, limit) -> None:
    capture, whole = OutputCapture(limit), b"".join(chunks)
    for chunk in chunks:
        capture.add(chunk)
    kept = capture.get_output()
    assert kept.total == len(whole)
    assert capture.is_full == kept.is_truncated == (len(whole) > limit)
    if not kept.is_truncated:
        assert kept.data == whole
    else:
        tail = len(kept.data) - kept.seam
        assert len(kept.data) == limit
        assert whole.startswith(kept.data[: kept.seam])
        assert tail == 0 or whole.endswith(kept.data[-tail:])


def test_capture__without_end__stays_within_its_memory() -> None:
    capture = OutputCapture(1000)
    for _ in range(1000):
        capture.add(b"x" * 700)
        assert len(capture._kept) + len(capture._tail or b"") <= 1500 + 700


def test_text__all_there__is_the_text() -> None:
    assert CapturedOutput("grün\0".encode(), 6).to_text() == "grün\0"
    assert CapturedOutput("grün".encode(), 5).to_text(4) == "grün"
    assert CapturedOutput(b"a\xffb", 3).to_text() == "a\ufffdb"


def test_text__something_missing__says_so_where() -> None:
    assert CapturedOutput(b"headtail", 5_000, 4).to_text() == "head\n[… cut: 5,000 bytes in all …]\ntail"


def test_text__limit__keeps_head_and_tail_of_it() -> None:
    assert CapturedOutput(b"abcdefghij", 10).to_text(5) == "abc\n[… cut: 10 bytes in all …]\nij"
    assert CapturedOutput(b"abcdefghij", 99, 5).to_text(5) == "abc\n[… cut: 99 bytes in all …]\nij"
    assert CapturedOutput(b"abcdefghij", 10).to_text(1) == "a\n[… cut: 10 bytes in all …]\n"
    assert CapturedOutput(b"abcdefghij", 10).to_text(0) == "\n[… cut: 10 bytes in all …]\n"


def test_last_words__long__are_the_end_on_one_line() -> None:
    assert CapturedOutput(b" a\n\tb ", 6).format_last_line(10) == "a b"
    assert CapturedOutput(b"one two three", 13).format_last_line(6) == "…three"
    assert CapturedOutput(b" \n ", 3).format_last_line(10) == ""
