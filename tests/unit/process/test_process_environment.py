"""What a foreign program sees of our environment."""

import pytest

from eval_gate.process.environment import filter_environment


def test_allowed__what_programs_need__passes() -> None:
    needed = {
        "PATH": "/bin",
        "HOME": "/home/a",
        "LANG": "C.UTF-8",
        "LC_TIME": "de_DE.UTF-8",
        "TZ": "UTC",
        "CI": "true",
        "https_proxy": "http://proxy:3128",
        "SSL_CERT_FILE": "/certs.pem",
        "VIRTUAL_ENV": "/venv",
        "RUNNER_TRACKING_ID": "github_2b6e",
    }
    assert filter_environment(needed) == needed


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "GITHUB_WORKSPACE",
        "ACTIONS_RUNTIME_TOKEN",
        "ACTIONS_ID_TOKEN_REQUEST_URL",
        "INPUT_GITHUB-TOKEN",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "SSH_AUTH_SOCK",
        "LD_PRELOAD",
        "SOMETHING",
    ],
)
def test_allowed__everything_else__stays_behind_unless_it_is_named(name) -> None:
    assert filter_environment({name: "x", "PATH": "/bin"}) == {"PATH": "/bin"}
    assert filter_environment({name: "x", "PATH": "/bin"}, {name: "y"}) == {"PATH": "/bin", name: "y"}


def test_allowed__given_by_name__wins() -> None:
    assert filter_environment({"PATH": "/bin"}, {"PATH": "/own"}) == {"PATH": "/own"}
