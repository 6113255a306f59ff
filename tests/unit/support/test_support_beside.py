"""The comparison with bare clients fails where it has become worse by a third, and says by how much."""

import json

from benchmarks.beside import BARE, OURS, REFERENCES, Row, worse


def row(key: str, ours: float) -> Row:
    return Row(key, f"what {key} is about", {BARE: 2.0, OURS: ours}, "s")


def test_worse__a_third_more_than_the_reference__is_said() -> None:
    said = worse([row("case", 6.0), row("start", 5.3), row("share-200", 100.0)], {"case": 2.0, "start": 2.0})
    assert said == ["what case is about: 3.00 times the bare client's, where it was 2.00"]


def test_references__are_what_is_compared_with() -> None:
    kept = json.loads(REFERENCES.read_text())
    assert kept.keys() >= {"start", "case", "wall-200", "processor-200", "memory-200"}
    assert all(value > 0 for value in kept.values())
    assert len(worse([row(key, 1000.0) for key in kept], kept)) == len(kept)
