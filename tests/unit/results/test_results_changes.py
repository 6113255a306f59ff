"""What changed among files: seen by any write, joined while they go on, and never waited for for ever."""

from __future__ import annotations

import os

from eval_gate.files import changes
from eval_gate.files.changes import changed, stamps_of, wait_for_change


def test_changed__written_new_and_gone__are_named_in_order_and_the_rest_is_not(tmp_path) -> None:
    files = [tmp_path / name for name in "abcd"]
    for file in files[:3]:
        file.write_text("x")
    before = stamps_of(files)
    assert changed(before, stamps_of(files)) == ()
    files[0].write_text("longer")
    files[1].unlink()
    files[3].write_text("new")
    assert changed(before, stamps_of(files)) == (files[0], files[1], files[3])


def test_changed__same_size_and_time_but_another_file__is_seen(tmp_path) -> None:
    """As editors write: a new file that takes the old one's name."""
    file, other = tmp_path / "a", tmp_path / "b"
    file.write_text("one")
    before = stamps_of([file])
    other.write_text("two")
    os.utime(other, ns=(0, file.stat().st_mtime_ns))
    other.replace(file)
    assert changed(before, stamps_of([file])) == (file,)


def test_wait__several_in_a_row__are_one_and_a_stream_without_end_is_not_waited_for(monkeypatch) -> None:
    looks = iter([{}, {}, {"a": (1,)}, {"a": (1,), "b": (1,)}, {"a": (1,), "b": (1,)}])
    monkeypatch.setattr(changes.time, "sleep", lambda _: None)
    assert wait_for_change(lambda: next(looks), {}) == ("a", "b")
    number = iter(range(1_000))
    assert wait_for_change(lambda: {"a": (next(number),)}, {}) == ("a",)
    assert next(number) < 20
