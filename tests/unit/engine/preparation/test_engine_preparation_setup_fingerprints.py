"""What a case is measured with, of what stands outside of its eval file: by content, bounded, without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_gate.config.loader import load_config
from eval_gate.engine.judge_targets import Judges
from eval_gate.engine.preparation.program_files import ProgramFiles
from eval_gate.engine.preparation.setup_fingerprints import build_evaluation_setup, build_setup_fingerprints
from eval_gate.model.case import CaseKey, EvalCase, EvalSuite, Location
from eval_gate.model.policy import ComparedFile, ComparedProgram, ComparedPrograms, EvaluationSetup
from eval_gate.model.result import CaseFingerprints
from eval_gate.model.specs.evaluator import (
    CodeAggregator,
    CodeJudge,
    Composite,
    EvaluatorSpec,
    JudgeAggregator,
    LlmJudge,
    ParamCheck,
    ResponseContains,
    ToolParams,
)
from eval_gate.results.merge import merge_runs
from eval_gate.text.tokens import TokenData
from tests.support.results import make_run, make_suite_result


def stick(root: Path, *specs: EvaluatorSpec, tokens: TokenData | None = None) -> CaseFingerprints:
    case = EvalCase(
        id="a", suite="e", messages=(), evaluators=specs, location=Location(file="e", line=1), fingerprint="f"
    )
    suite = EvalSuite(file="e", format="agentv", tool_name="t", tier=None, file_hash="h", cases=(case,))
    return build_setup_fingerprints([suite], Judges(), tokens or TokenData(), ProgramFiles(root))[CaseKey("e", "a")]


def graded_by(root: Path, command: str | tuple[str, ...], cwd: Path | None = None) -> str | None:
    return stick(root, CodeJudge(command=command, cwd=str(cwd or root))).grader


@pytest.mark.contract("case.same-expectation")
def test_grader__script_with_other_line_endings__is_the_same(tmp_path) -> None:
    script = tmp_path / "judge.py"
    script.write_bytes(b"strict\nvery\n")
    before = graded_by(tmp_path, "python3 judge.py")
    script.write_bytes(b"strict\r\nvery\r\n")
    assert graded_by(tmp_path, "python3 judge.py") == before


@pytest.mark.parametrize(
    "command",
    [
        "python3 judge.py --strict",
        ("python3", "judge.py"),
        "cd . && python3 ./judge.py",
        "cat x|python3 'judge.py';true",
        "tool --config=judge.py",
        "./judge.py",
        "sh -c 'python3 judge.py'",
        'python3 "$(pwd)/judge.py"',
        "python3 -m judge",
        "cd . && exec env X=1 python3 -u ${PWD}/judge.py | tee out",
    ],
)
def test_grader__script_that_a_command_names__counts_by_its_content(tmp_path, command) -> None:
    script = tmp_path / "judge.py"
    script.write_text("strict")
    before = graded_by(tmp_path, command)
    assert graded_by(tmp_path, command) == before
    script.write_text("kind")
    assert graded_by(tmp_path, command) != before


@pytest.mark.parametrize("command", ["true", "python3 'judge.py", "", "x\0y", "a" * 5_000, "nowhere.py", "/etc/passwd"])
def test_grader__words_that_name_no_file_of_ours__are_only_words(tmp_path, command) -> None:
    assert graded_by(tmp_path, command or ("x",)) is not None


def test_grader__file_outside_or_behind_a_link__is_not_read(tmp_path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    outside = tmp_path / "secret"
    (root / "link.py").symlink_to(outside)
    found = []
    for text in ("one", "two"):
        outside.write_text(text)
        found.append((graded_by(root, "python3 ../secret"), graded_by(root, "python3 link.py")))
    assert found[0] == found[1]


def test_grader__same_repository_elsewhere__is_the_same(tmp_path) -> None:
    found = set()
    for name in ("one", "two"):
        folder = tmp_path / name / "checks"
        folder.mkdir(parents=True)
        (folder / "judge.py").write_text("strict")
        found.add(graded_by(tmp_path / name, "python3 judge.py", folder))
    assert len(found) == 1


def test_grader__prompts_and_members__count_and_what_has_none_does_not(tmp_path) -> None:
    assert stick(tmp_path, LlmJudge(), ResponseContains(values=("x",))).grader is None
    assert stick(tmp_path, LlmJudge(prompt="a")).grader != stick(tmp_path, LlmJudge(prompt="b")).grader
    made = [
        Composite(members=(LlmJudge(),)),
        Composite(members=(LlmJudge(prompt="a"),)),
        Composite(members=(LlmJudge(),), aggregator=JudgeAggregator(prompt="a")),
        Composite(members=(LlmJudge(),), aggregator=CodeAggregator(command="x", cwd=str(tmp_path))),
    ]
    graders = [stick(tmp_path, one).grader for one in made]
    assert graders[0] is None
    assert len({*graders}) == 4


def test_values__tokens_of_a_case__count_by_what_they_stand_for() -> None:
    specs = (
        ResponseContains(values=("{{seed:a}} and {{snapshot:b}}",)),
        ToolParams(checks=(ParamCheck(tool="t", param_name="p", assertion="oneOf", value=["{{seed:c}}"]),)),
    )
    base = TokenData(seed={"a": 1, "c": [1]}, snapshot={"b": 2})
    first = stick(Path(), *specs, tokens=base)
    others = stick(Path(), *specs, tokens=TokenData(seed={"a": 1, "c": [1], "unused": 9}, snapshot={"b": 3}))
    assert (first.seeds, first.snapshot != others.snapshot) == (others.seeds, True)
    for seed in ({"a": 2, "c": [1]}, {"a": 1, "c": [2]}, {"a": 1}):
        assert stick(Path(), *specs, tokens=TokenData(seed=seed, snapshot={"b": 2})).seeds != first.seeds
    assert stick(Path(), ResponseContains(values=("no tokens",))) == CaseFingerprints()


def measured(root: Path, **settings: object) -> EvaluationSetup:
    return build_evaluation_setup(load_config(settings, {}, None), ProgramFiles(root))


def test_measuring__snapshot__is_named_without_what_is_secret(tmp_path) -> None:
    (tmp_path / "now.py").write_text("1")
    url = measured(tmp_path, snapshotPath="https://me:secret@x.test/now?key=secret")
    assert (url.snapshot, url.snapshot_is_file) == ("https://x.test/now", False)
    command = measured(tmp_path, snapshotCommand="python3 now.py && curl https://me:secret@x.test/now")
    assert command.snapshot == "python3 now.py && curl https://***@x.test/now"
    file = measured(tmp_path, snapshotPath="now.json")
    assert (file.snapshot, file.snapshot_is_file, file.snapshot_program) == ("now.json", True, None)
    assert measured(tmp_path, snapshotPath="now.json", snapshotEnabled=False).snapshot is None
    (tmp_path / "now.py").write_text("2")
    again = measured(tmp_path, snapshotCommand="python3 now.py && curl https://me:secret@x.test/now")
    assert (again.snapshot_program, again.programs != command.programs) == (command.snapshot_program, True)


def test_merge__parts_measured_alike__keep_it_and_others_do_not() -> None:
    def part(number: int, trials: int):
        return make_run(
            make_suite_result({f"c{number}": "passed"}, eval_file=f"e{number}"),
            setup=EvaluationSetup(trials=trials),
        )

    assert merge_runs([part(1, 3), part(2, 3)], "joined").setup == EvaluationSetup(trials=3)
    assert merge_runs([part(1, 3), part(2, 1)], "joined").setup is None


def test_merge__parts_with_programs_of_their_own_cases__has_all_of_them() -> None:
    def part(number: int):
        name = f"checks/{number}"
        programs = ComparedPrograms(
            files=(ComparedFile(path="checks/shared", digest="0"), ComparedFile(path=name, digest="1")),
            programs=(ComparedProgram(key=f"k{number}", places=(name, "checks/shared")),),
        )
        suite = make_suite_result({f"c{number}": "passed"}, eval_file=f"e{number}")
        return make_run(suite, setup=EvaluationSetup(trials=1, programs=programs))

    setup = merge_runs([part(2), part(1)], "joined").setup
    assert setup is not None
    assert setup.programs is not None
    assert [file.path for file in setup.programs.files] == ["checks/1", "checks/2", "checks/shared"]
    assert setup.programs.get_files(["k2"]) == {"checks/2": "1", "checks/shared": "0"}
