"""Which keys may be near to one of ours: told by their letters, and never otherwise than comparing them tells."""

from hypothesis import given
from hypothesis import strategies as st

from eval_gate.errors import format_suggestion
from eval_gate.external_results.jsonl import KnownKeys, LineCall, LineCheck, ResultLine

PARTS = (ResultLine, LineCheck, LineCall)
NAMES = sorted({name for part in PARTS for name in part.model_fields})
LETTERS = st.text(st.sampled_from("".join(NAMES) + "SCORE_1ßİ"), max_size=35)


@st.composite
def mistyped(draw):
    """One of ours with some letters more, fewer or others."""
    name = draw(st.sampled_from(NAMES))
    begin, end = sorted((draw(st.integers(0, len(name))), draw(st.integers(0, len(name)))))
    return name[:begin] + draw(LETTERS) + name[end:]


@given(st.sampled_from(PARTS), mistyped() | LETTERS)
def test_alike__of_any_word__leaves_what_comparing_with_all_would_find(part, word) -> None:
    alike = KnownKeys(part.model_fields).find_similar(word)
    assert format_suggestion(word, alike) == format_suggestion(word, part.model_fields)


def test_alike__of_whoevers_own__is_mostly_nothing_to_compare() -> None:
    keys = KnownKeys(ResultLine.model_fields)
    assert keys.find_similar("column_17") == []
    assert keys.find_similar("temperature of run 12") == []
    assert "score" in keys.find_similar("Scor")
