"""Templates are compiled once, and a process that finds them compiled needs no compiler."""

from pathlib import Path

import jinja2
import pytest
from jinja2 import nodes

from eval_gate.reports import markdown, templating
from eval_gate.reports.compiling import compile_templates
from eval_gate.reports.matrix import render as matrix
from eval_gate.reports.page import render as page

TEMPLATES = sorted(Path(templating.__file__).parent.rglob("*.j2"))


@pytest.fixture
def kept(tmp_path, monkeypatch) -> Path:
    """Another place for what is compiled, and nothing known of what was."""
    folder = tmp_path / "__pycache__"
    monkeypatch.setattr(templating, "KEPT", folder)
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    forget()
    yield folder
    forget()


def forget() -> None:
    for module in (markdown, page, matrix):
        module.engine.cache_clear()


def no_compiler(monkeypatch) -> None:
    def never(*_args, **_options):
        raise AssertionError("compiled once more")

    monkeypatch.setattr(jinja2.Environment, "_generate", never)


def test_compile_templates__once__is_there_for_all_templates_of_the_next_process(kept, monkeypatch) -> None:
    compile_templates()
    assert len(list(kept.iterdir())) == len(TEMPLATES)
    forget()
    no_compiler(monkeypatch)
    compile_templates()


def test_compile_templates__by_another_version__is_done_again(kept, monkeypatch) -> None:
    compile_templates()
    forget()
    monkeypatch.setattr("jinja2.__version__", "0.0.1")
    no_compiler(monkeypatch)
    with pytest.raises(AssertionError, match="compiled once more"):
        compile_templates()


@pytest.mark.parametrize("length", [0, 2, 20, 40, 80, 100, 1000, -1])
def test_compile_templates__what_was_kept_is_cut_off__is_done_again(kept, length) -> None:
    compile_templates()
    whole = {path: path.read_bytes() for path in kept.iterdir()}
    for path, content in whole.items():
        path.write_bytes(content[:length])
    forget()
    compile_templates()
    assert {path: len(path.read_bytes()) for path in kept.iterdir()} == {path: len(whole[path]) for path in whole}


def test_compile_templates__place_that_is_no_folder__keeps_nothing_and_works(kept) -> None:
    kept.write_text("in the way")
    compile_templates()
    assert kept.read_text() == "in the way"


def test_compile_templates__python_keeps_no_bytecode__keeps_nothing(kept, monkeypatch) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    compile_templates()
    assert not kept.exists()


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_template__filters__are_of_nothing_that_is_known_when_it_is_compiled(path) -> None:
    """Or its text would be kept, and another one of the filter's code not be seen by who works on it."""
    tree = jinja2.Environment().parse(path.read_text(), path.name)
    assert [one.lineno for one in tree.find_all(nodes.Filter) if isinstance(one.node, nodes.Const)] == []
