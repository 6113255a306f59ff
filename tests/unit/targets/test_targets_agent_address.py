"""Whether two URLs lead to the same agent."""

from __future__ import annotations

import socket

import pytest

from eval_gate.targets.agent_address import ContainerProbe, is_this_machine, parse_agent_address

HERE = "http://127.0.0.1:8000/chat"
THERE = "https://agent.test/chat"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (HERE, "http://localhost:8000", True),
        (HERE, "https://[::1]:8000/base", True),
        (HERE, "http://2130706433:8000/chat", True),
        (HERE, f"http://{socket.gethostname()}:8000/", True),
        (HERE, "http://desk.localhost:8000/chat", True),
        (HERE, "http://127.0.0.1:8001/chat", False),
        (HERE, "http://agent.invalid:8000/chat", False),
        (THERE, "https://AGENT.test.:443//x/../chat/", True),
        (THERE, "https://agent.test/%63hat?key=a#b", True),
        (THERE, "https://agent.test/base/chat", False),
        (THERE, "https://agent.test:8443/chat", False),
        (THERE, "https://base.agent.test/chat", False),
        ("https://bücher.test/", "https://xn--bcher-kva.test", True),
    ],
)
def test_agent_address__another_spelling__is_the_same_agent(one, other, same) -> None:
    first, second = parse_agent_address(one), parse_agent_address(other)
    assert first.is_same_agent(second, ContainerProbe(())) is same
    assert second.is_same_agent(first, ContainerProbe(())) is same


def test_is_this_machine__gateway_of_a_container__is_the_machine_it_runs_on(tmp_path) -> None:
    table, mark = tmp_path / "route", tmp_path / "mark"
    table.write_text("Iface Destination Gateway\neth0 00000000 017100CB\n")
    assert not is_this_machine("203.0.113.1", ContainerProbe((mark,), table))
    mark.touch()
    assert is_this_machine("203.0.113.1", ContainerProbe((mark,), table))
