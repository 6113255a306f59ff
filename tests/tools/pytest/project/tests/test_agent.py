"""The team's tests: as pytest names them when parameters hold anything."""

import pytest
from agent import answer

ORDERS = [
    pytest.param("Where is order 12?", "on its way", id="where"),
    pytest.param("Refund order 4711", "4711 is refunded", id="refund für 4711 [a/b::c] $HOME 'x'"),
]


@pytest.mark.parametrize(("question", "wanted"), ORDERS)
def test_order(question: str, wanted: str) -> None:
    said = answer(question)
    print(said)
    assert wanted in said


class TestHours:
    def test_open(self) -> None:
        assert "9 to 18" in answer("When are you open?")

    @pytest.mark.xfail(reason="it says nothing about Sundays yet")
    def test_sunday(self) -> None:
        assert "Sunday" in answer("When are you open?")
