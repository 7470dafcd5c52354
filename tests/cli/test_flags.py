"""Command-line flags made from settings."""

from __future__ import annotations

import argparse

import pytest

from studio.cli.flags import add_setting_flags, typed_settings
from studio.core.config import TrainingConfig
from studio.data.options import ImportOptions
from studio.engine.sampling.settings import GenerateSettings
from studio.recipes.generator import GeneratorConfig


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_setting_flags(parser, GeneratorConfig, "settings")
    return parser


@pytest.mark.parametrize(
    ("flags", "values"),
    [
        (["--filling", "0.5"], {"inpaint_share": 0.5}),
        (["--label-drop", "0.2"], {"class_dropout": 0.2}),
        (["--watch-layers"], {"log_layer_stats": True}),
        (["--no-watch-layers"], {"log_layer_stats": False}),
        (["--inpaint-share", "0.5"], {"inpaint_share": 0.5}),
    ],
)
def test_flags_of_former_names_are_accepted(
    parser: argparse.ArgumentParser, flags: list[str], values: dict[str, object]
) -> None:
    assert typed_settings(parser.parse_args(flags), GeneratorConfig) == values


def test_help_lists_no_flag_of_a_former_name(parser: argparse.ArgumentParser) -> None:
    shown = parser.format_help()
    assert "--inpaint-share" in shown and "--log-layer-stats" in shown
    assert not any(former in shown for former in ("--filling", "--label-drop", "watch-layers"))


def test_a_bad_value_of_a_former_flag_names_the_setting(
    parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parser.parse_args(["--filling", "2"])
    assert "Inpaint share must be from 0 to 1" in capsys.readouterr().err


def test_other_configs_have_no_flag_of_the_generator() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_setting_flags(parser, TrainingConfig, "settings")
    with pytest.raises(SystemExit):
        parser.parse_args(["--filling", "0.5"])


def test_flags_accept_and_list_the_names_that_forms_show() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_setting_flags(parser, ImportOptions, "import")
    words = ["--size", "auto", "--margin-top", "Same as left", "--merge-colours", "off", "--shrink", "auto"]
    typed = typed_settings(parser.parse_args(words), ImportOptions)
    assert typed == {"size": 0, "margin_top": -1, "merge_colours": 0.0, "shrink": 0}
    shown = " ".join(parser.format_help().split())
    assert "(default: Auto (0), from 0 to 256)" in shown and "(default: 1, from 0 to 16, or Auto (0))" in shown


def test_a_repeated_flag_joins_its_texts() -> None:
    parser = argparse.ArgumentParser()
    add_setting_flags(parser, GenerateSettings, "generation", {"attributes": "attribute"}, repeated=("attributes",))
    args = parser.parse_args(["--attribute", "element=fire", "--attribute", "kind=shield, round"])
    assert typed_settings(args, GenerateSettings) == {"attributes": 'element=fire,"kind=shield, round"'}
