"""The options of `run` and the configuration are one table, held together here."""

import pytest
import typer
from typer.main import get_command

from eval_gate.cli import options
from eval_gate.cli.runs.run import run
from eval_gate.config.settings import SETTINGS
from eval_gate.errors import GateError


def option_names() -> dict[str, set[str]]:
    """Flags by parameter of `run`."""
    app = typer.Typer()
    app.command()(options.with_options(run, SETTINGS))
    return {parameter.name: {*parameter.opts} for parameter in get_command(app).params}


def test_run__every_configuration_key__is_also_a_flag() -> None:
    flags = {flag for names in option_names().values() for flag in names} | {"PATHS"}
    missing = {row.key for row in SETTINGS.values() if row.option and row.flag not in flags}
    assert missing == set()


def test_run__own_option_of_a_setting__is_left_as_it_is() -> None:
    assert option_names()["target"] == {"--target"}
    app = typer.Typer()
    app.command()(options.with_options(run, SETTINGS))
    (target,) = (parameter for parameter in get_command(app).params if parameter.name == "target")
    assert target.multiple, "several targets are compared side by side"


def test_given_settings__settings__are_those_with_a_value() -> None:
    assert options.select_given_settings({"evals": [], "trials": None, "strict": False, "maxErrors": 0}) == {
        "strict": False,
        "maxErrors": 0,
    }


@pytest.mark.parametrize(
    ("given", "globs"),
    [(["a,b", " c "], ("a", "b", "c")), (["a,,"], ("a",)), (None, ())],
)
def test_split_commas__given__are_all_globs(given, globs) -> None:
    assert options.split_commas(given) == globs


@pytest.mark.parametrize("given", [[""], ["a", " , "]])
def test_split_commas__nothing__is_refused(given) -> None:
    with pytest.raises(GateError, match="names no case"):
        options.split_commas(given)
