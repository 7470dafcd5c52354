from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.core.config import Config, TrainingConfig, labelled_text, setting, settings_of, value_text, with_default
from studio.core.errors import UsageError


@dataclass(frozen=True)
class Example(Config):
    count: int = setting(3, "How many.", low=1, high=10)
    rate: float = setting(0.5, "How fast.", unit="px/s", low=0.0)
    on: bool = setting(False, "Whether.")
    mode: str = setting("a", "Which.", label="The mode", choices=("a", "b"), advanced=True)


@dataclass(frozen=True)
class Named(Config):
    top: int = setting(-1, "Space above.", low=-1, high=9, low_text="Same as left")
    limit: float = setting(0.5, "Limit.", unit="px/s", low=0.0, low_text="Off")


def test_settings_have_the_values_of_their_declaration() -> None:
    count, rate, on, mode = settings_of(Example)
    assert (count.name, count.kind, count.default, count.low, count.high) == ("count", int, 3, 1, 10)
    assert (rate.unit, on.kind, mode.label, mode.advanced) == ("px/s", bool, "The mode", True)
    assert count.label == "Count" and count.bounds() == "from 1 to 10" and rate.bounds() == "at least 0"


def test_name_of_the_lowest_value_is_parsed() -> None:
    by_name = {item.name: item for item in settings_of(Named)}
    assert by_name["top"].parse("same as left") == -1 and by_name["top"].parse("-1") == -1
    assert [by_name["top"].text(value) for value in (-1, 0)] == ["Same as left", "0"]
    assert [by_name["limit"].text(value) for value in (0.0, 2.5)] == ["Off", "2.5 px/s"]
    limit = by_name["limit"].parse(" Off ")
    assert limit == 0.0 and isinstance(limit, float)
    with pytest.raises(UsageError, match="'auto' is not a number"):
        by_name["limit"].parse("auto")


def test_auto_is_a_word_that_users_read_and_may_type() -> None:
    (precision,) = (item for item in settings_of(TrainingConfig) if item.name == "precision")
    assert [precision.text(choice) for choice in precision.choices] == ["Auto", "fp32", "bf16", "fp16"]
    assert precision.parse("Auto") == precision.parse("auto") == "auto" == TrainingConfig().to_json()["precision"]
    with pytest.raises(UsageError, match="there is no"):
        precision.parse("automatic")
    assert labelled_text("precision", "auto", precision) == ("Precision", "Auto")
    assert labelled_text("edge_levels", "auto", None) == ("Edge levels", "Auto")
    assert [value_text(value) for value in (True, False, 1024, 0.5, "bf16")] == ["yes", "no", "1,024", "0.5", "bf16"]


def test_bounds_in_words() -> None:
    with pytest.raises(UsageError, match=r"from 0 to 1,000,000,000, not 1,234,567,890\."):
        TrainingConfig(steps=1_234_567_890)
    with pytest.raises(UsageError, match=r"Learning rate must be from 1e-07 to 1, not 1\.5\."):
        TrainingConfig(learning_rate=1.5)


def test_config_survives_json() -> None:
    config = Example(count=7, rate=2, on=True, mode="b")
    assert config.rate == 2.0 and isinstance(config.rate, float)
    assert Example.from_json(config.to_json()) == config
    assert config.replace(count=1).count == 1


@pytest.mark.parametrize(
    "values",
    [
        {"count": 0}, {"count": 11}, {"count": 2.0}, {"count": True}, {"rate": -1.0}, {"rate": math.nan},
        {"rate": math.inf}, {"rate": "1"}, {"on": 1}, {"mode": "c"}, {"mode": None}, {"unheard_of": 1},
    ],
)  # fmt: skip
def test_invalid_values_raise_a_usage_error(values: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        Example.from_json({**Example().to_json(), **values})
    assert caught.value.title.endswith(".") and "Traceback" not in caught.value.title


@settings(max_examples=50)
@given(st.text(max_size=20))
def test_parsing_any_text_gives_a_value_in_bounds_or_a_usage_error(text: str) -> None:
    for item in settings_of(Example):
        try:
            value = item.parse(text)
        except UsageError:
            continue
        assert type(value) is item.kind and item.check(value) == value


def test_written_defaults_can_be_parsed() -> None:
    for config_type in (Example, TrainingConfig):
        for item in settings_of(config_type):
            assert item.parse(str(item.default)) == item.default


def test_missing_setting_gets_its_legacy_default() -> None:
    @dataclass(frozen=True)
    class Grown(Example):
        speed: str = setting("fast", "How fast.", choices=("fast", "slow"), legacy_default="slow")

    assert Grown().speed == "fast" and Grown.from_json(Example().to_json()).speed == "slow"
    assert Grown.from_json(Grown().to_json()) == Grown()
    with pytest.raises(UsageError, match="no value for count, mode"):
        Grown.from_json({"rate": 1.0, "on": False})


def test_legacy_default_is_accepted_under_its_former_name() -> None:
    @dataclass(frozen=True)
    class Plugin(Example):
        speed: int = setting(3, "How fast.", absent=0)

    assert Plugin.from_json(Example().to_json()).speed == 0


def test_former_name_of_a_setting_is_still_read() -> None:
    before = TrainingConfig(log_layer_stats=True).to_json()
    before["watch_layers"] = before.pop("log_layer_stats")
    assert TrainingConfig.from_json(before) == TrainingConfig(log_layer_stats=True)


def test_run_older_than_muon_keeps_adamw() -> None:
    kept = {name: value for name, value in TrainingConfig().to_json().items() if name != "optimizer"}
    assert TrainingConfig().optimizer == "muon" and TrainingConfig.from_json(kept).optimizer == "adamw"


@pytest.mark.parametrize(
    ("changes", "sprites", "steps"),
    [
        ({}, 100, 0),  # the minutes decide
        ({"steps": 7}, 100, 7),
        ({"epochs": 3, "batch_size": 8}, 100, 38),  # 37.5 batches
        ({"epochs": 3, "batch_size": 8, "steps": 37}, 100, 37),
        ({"epochs": 3, "batch_size": 8, "steps": 39}, 100, 38),
        ({"epochs": 1, "batch_size": 64}, 5, 1),
    ],
)
def test_steps_or_epochs_end_a_training(changes: dict[str, int], sprites: int, steps: int) -> None:
    assert TrainingConfig().replace(**changes).budget_steps(sprites) == steps


def test_with_default_changes_only_the_default() -> None:
    @dataclass(frozen=True)
    class Other(Example):
        count: int = with_default(Example, "count", 8)

    (before, *_), (after, *_) = settings_of(Example), settings_of(Other)
    assert after.default == 8 and Other().count == 8
    assert (after.help, after.low, after.high, after.label) == (before.help, before.low, before.high, before.label)


def test_a_setting_of_a_plugin_may_have_the_former_name_of_another() -> None:
    @dataclass(frozen=True)
    class Own(Config):
        label_drop: float = setting(0.1, "Share of sprites shown without their class.", low=0.0, high=1.0)

    assert Own.from_json({"label_drop": 0.5}) == Own(label_drop=0.5)


def test_texts_name_the_training_examples() -> None:
    @dataclass(frozen=True)
    class OfCharacters(TrainingConfig):
        noun = "character"

    for config_type, noun in ((TrainingConfig, "sprite"), (OfCharacters, "character")):
        size = next(item for item in settings_of(config_type) if item.name == "batch_size")
        assert size.text(16) == f"16 {noun}s" and size.help == f"{noun.capitalize()}s per training step."
        assert not [item.name for item in settings_of(config_type) if "{" in f"{item.help}{item.unit}{item.label}"]
