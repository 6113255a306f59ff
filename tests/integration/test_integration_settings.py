"""What is wrong with settings is said at once, each mistake where its author wrote it and in their spelling."""

import pytest

from tests.integration.test_integration_run import gate, write_suite

THREE_MISTAKES = """\
evals: [evals]
failOn: [regressions, sometimes]
minPassRate: 90
reports:
  - html
  - mdd=report.md
"""
FAIL_ON = (
    'eval-gate.yaml:2: failOn[1]: "sometimes" is not known; allowed: failures, regressions, never, stale, flaky,'
    " removed, changed, new-failures"
)
OTHERS = [
    "eval-gate.yaml:3: minPassRate: must be <= 1.0, got the number 90",
    (
        'eval-gate.yaml:6: reports[1]: "mdd=report.md" is not known (did you mean "md"?); FORMAT or FORMAT=FILE with'
        " FORMAT one of md, html, junit, console, json"
    ),
]


def problems(stderr: str) -> list[str]:
    """The lines of the one error's problems."""
    assert stderr.count("error[") == 1, stderr
    head, *lines = stderr.splitlines()
    assert head == "error[invalid-configuration]: the configuration is not valid"
    return [line.strip().removeprefix("- ") for line in lines if not line.strip().startswith("hint:")]


@pytest.mark.parametrize("command", ["run", "validate"])
def test_settings__three_mistakes_in_a_file__are_one_error_that_names_all(tmp_path, command) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "eval-gate.yaml").write_text(THREE_MISTAKES)
    done = gate(tmp_path, command)
    assert (done.returncode, done.stdout) == (2, "")
    assert sorted(problems(done.stderr)) == [FAIL_ON, *OTHERS]


def test_settings__mistakes_in_file_flags_and_variables__each_in_its_authors_spelling(tmp_path) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "eval-gate.yaml").write_text("exports: [agentv]\n")
    done = gate(tmp_path, "run", "--fail-on", "regresion", "--trials", "0", EVAL_GATE_REPORTS="md,pdf")
    assert done.returncode == 2
    said = problems(done.stderr)
    assert [line.split(" is ")[0].split(" must ")[0].split(" names ")[0] for line in sorted(said)] == [
        '--fail-on[0]: "regresion"',
        "--trials:",
        'EVAL_GATE_REPORTS[1]: "pdf"',
        'eval-gate.yaml:1: exports[0]: "agentv"',
    ]


def test_settings__outputs_without_their_file__are_told_that_it_is_missing(tmp_path) -> None:
    write_suite(tmp_path, 1)
    done = gate(tmp_path, "run", "--export", "jsonl", "--export", "agentv=", "--report", "junit=", "--report", "agentv")
    assert done.returncode == 2
    assert sorted(problems(done.stderr)) == [
        '--export[0]: "jsonl" names no file: jsonl=FILE',
        '--export[1]: "agentv=" names no file: agentv=FILE',
        '--report[0]: "junit=" names no file: junit=FILE, or junit for its usual place in the run\'s folder',
        '--report[1]: "agentv" is no report but an export: `exports` (--export) asks for it',
    ]


def test_settings__never_with_another_word__is_said_of_the_key(tmp_path) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "eval-gate.yaml").write_text("failOn: [never, stale]\n")
    done = gate(tmp_path, "validate")
    assert done.returncode == 2
    assert "eval-gate.yaml:1: failOn: never stands alone: leave out never, or everything else" in done.stderr
