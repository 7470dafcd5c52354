"""Settings as frozen dataclasses: a field declares a setting once; forms, flags and JSON follow from the field.

@dataclass(frozen=True)
class Config(TrainingConfig):
width: int = setting(64, "Channels of the first level.", low=16, high=512)
"""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from studio.core.errors import UsageError

Value = int | float | bool | str
AUTO = "auto"  # the choice of a setting that the studio decides; users read 'Auto'


@dataclass(frozen=True)
class Setting:
    """Description of a config field: name, type, default, help and limits. `low` and `high` are inclusive."""

    name: str
    kind: type  # int, float, bool or str
    default: Value
    help: str
    label: str
    unit: str
    low: float | None
    high: float | None
    choices: tuple[str, ...]
    advanced: bool
    path: str  # "file" or "folder" if the text is a path that forms complete and browse for; else empty
    low_text: str  # name of the lowest value in forms, help and flags, such as "Auto"; empty for the number
    legacy_default: Value | None  # value of runs older than the setting; None: every run has the setting
    former_name: str  # still read from files and accepted as a hidden flag; empty if never renamed

    def check(self, value: object) -> Value:
        """Return `value` as this setting's type. Raises UsageError for a wrong type or a value out of range."""
        if self.kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not self.kind:
            raise UsageError(f"{self.label}: {value!r} is not {_KIND_NAMES[self.kind]}.", self.help)
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{self.label} must be a finite number.", self.help)
        if self.choices and value not in self.choices:
            raise UsageError(f"{self.label}: there is no {value!r}.", f"Choose one of: {', '.join(self.choices)}.")
        low, high = -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high
        if isinstance(value, int | float) and not low <= value <= high:
            raise UsageError(f"{self.label} must be {self.bounds()}, not {_format_bound(value)}.", self.help)
        return typing.cast(Value, value)

    def parse(self, text: str) -> Value:
        """Parse `text` as a value of this setting or the name of a value in forms; return the checked value.

        Raises UsageError.
        """
        named = text.strip().casefold()
        if self.low_text and self.low is not None and named == self.low_text.casefold():
            return self.check(self.kind(self.low))
        if named == AUTO and AUTO in self.choices:
            return AUTO
        try:
            value: Value = _PARSERS[self.kind](text.strip())
        except (ValueError, KeyError):
            raise UsageError(f"{self.label}: {text!r} is not {_KIND_NAMES[self.kind]}.", self.help) from None
        return self.check(value)

    def text(self, value: Value) -> str:
        """Return a value with its unit, or its name, as forms show it: '64 sprites', 'Auto', 'yes'."""
        if self.low_text and value == self.low:
            return self.low_text
        return f"{value_text(value)} {self.unit}".rstrip()

    def bounds(self) -> str:
        """Return the allowed range in words: 'from 1 to 512', 'at least 0', or ''."""
        if self.low is not None and self.high is not None:
            return f"from {_format_bound(self.low)} to {_format_bound(self.high)}"
        if self.low is not None:
            return f"at least {_format_bound(self.low)}"
        return f"at most {_format_bound(self.high)}" if self.high is not None else ""


def value_text(value: Value) -> str:
    """Return a setting's value as users read it: 'yes', '1,024', 'Auto' for 'auto', other texts unchanged."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else AUTO.capitalize() if value == AUTO else str(value)


def labelled_text(name: str, value: Value, known: Setting | None) -> tuple[str, str]:
    """Return a setting's label and value as texts. known: None for a setting without a description."""
    if known is not None:
        return known.label, known.text(value)
    return name.replace("_", " ").capitalize(), value_text(value)


def _format_bound(value: float) -> str:
    """Format a bound: 1e9 -> '1,000,000,000', 0.5 -> '0.5'."""
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


_KIND_NAMES = {int: "a whole number", float: "a number", bool: "yes or no", str: "a text"}
_TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_PARSERS: dict[type, typing.Callable[[str], Value]] = {
    int: int, float: float, str: str, bool: lambda text: _TRUTHS[text.lower()],
}  # fmt: skip


def setting(
    default: Value,
    help: str,  # noqa: A002 - the term of argparse
    *,
    label: str = "",
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    advanced: bool = False,
    path: Literal["", "file", "folder"] = "",
    low_text: str = "",
    legacy_default: Value | None = None,
    former_name: str = "",
    absent: Value | None = None,
) -> Any:
    """Declare a config field: default, one sentence of help, label and unit in forms, and limits.

    '{examples}' in texts becomes the config's noun for training examples: 'sprites', and '{Examples}' 'Sprites'.
    path: the text is a path of an existing file or folder.
    low_text: name of the lowest value, such as 'Auto': forms show it, flags accept it, and the help says both.
    legacy_default: value for runs that were written before the setting existed; their run.json lacks the setting.
    former_name: old name of a renamed setting. absent: old name of `legacy_default`, for plug-ins.
    """
    metadata = {
        "help": help, "label": label, "unit": unit, "low": low, "high": high, "choices": choices, "advanced": advanced,
        "path": path, "low_text": low_text, "legacy_default": absent if legacy_default is None else legacy_default,
        "former_name": former_name,
    }  # fmt: skip
    return dataclasses.field(default=default, metadata=metadata)


def with_default(owner: type[Config], name: str, default: Value) -> Any:
    """Redeclare a setting of `owner` in a subclass, with another default."""
    known = {field.name: field for field in dataclasses.fields(owner)}
    return dataclasses.field(default=default, metadata=known[name].metadata)


@dataclass(frozen=True)
class Config:
    """Base of all configs. Checks its values on creation; converts to and from JSON."""

    noun: typing.ClassVar[str] = "sprite"  # for a training example, in the texts of settings

    def __post_init__(self) -> None:
        for item in settings_of(type(self)):
            object.__setattr__(self, item.name, item.check(getattr(self, item.name)))

    def to_json(self) -> dict[str, Value]:
        """Return all settings by name."""
        return dataclasses.asdict(self)

    def changed(self) -> dict[str, Value]:
        """Return the settings that differ from their defaults, by name."""
        return {
            item.name: value for item in settings_of(type(self)) if (value := getattr(self, item.name)) != item.default
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Create a config from the settings that `to_json` returned, in this or an older version of the studio.

        Raises UsageError for an unknown name, a missing setting or an invalid value.
        """
        given = legacy_defaults(cls) | with_current_names(cls, values)
        unknown = sorted(set(given) - {item.name for item in settings_of(cls)})
        if unknown:
            hint = "The file may be from a newer version of the studio: update the studio."
            raise UsageError(f"There is no setting named {', '.join(unknown)}.", hint)
        missing = [item.name for item in settings_of(cls) if item.name not in given]
        if missing:
            raise UsageError(f"There is no value for {', '.join(missing)}.", "The file was changed by another program.")
        return cls(**given)

    def replace(self, **changes: Value) -> Self:
        """Return a checked copy with some settings changed."""
        return dataclasses.replace(self, **changes)


_settings: dict[tuple[type[Config], str], tuple[Setting, ...]] = {}  # a cache: every new config reads them


def settings_of(config_type: type[Config], noun: str = "") -> tuple[Setting, ...]:
    """Return the settings of a config class, in the order of their declaration.

    noun: for a training example; '' for the config's own.
    """
    noun = noun or config_type.noun
    if (config_type, noun) in _settings:
        return _settings[config_type, noun]
    kinds = typing.get_type_hints(config_type)
    found = []
    for field in dataclasses.fields(config_type):
        about = dict(field.metadata)
        about["label"] = about["label"] or field.name.replace("_", " ").capitalize()
        for text in ("help", "label", "unit"):
            about[text] = _with_noun(about[text], noun)
        default = typing.cast(Value, field.default)
        found.append(Setting(name=field.name, kind=kinds[field.name], default=default, **about))
    return _settings.setdefault((config_type, noun), tuple(found))


def _with_noun(text: str, noun: str) -> str:
    """Return a text with the noun for training examples: '{Examples} per step' -> 'Sprites per step'."""
    return text.replace("{examples}", f"{noun}s").replace("{Examples}", f"{noun}s".capitalize())


def legacy_defaults(config_type: type[Config]) -> dict[str, Value]:
    """Return, by setting name, values that reproduce the behaviour of runs from before the setting existed."""
    return {item.name: item.legacy_default for item in settings_of(config_type) if item.legacy_default is not None}


def with_current_names(config_type: type[Config], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the settings `values`, with former names of settings replaced by current names."""
    current = {item.former_name: item.name for item in settings_of(config_type) if item.former_name}
    return {current.get(name, name): value for name, value in values.items()}


LENGTH_SETTINGS = frozenset({"minutes", "steps", "epochs"})  # settings for the length of a training


@dataclass(frozen=True)
class TrainingConfig(Config):
    """Training settings shared by all recipes (kinds of models). Each recipe adds settings in a subclass."""

    minutes: float = setting(10.0, "Training time without pauses.", unit="min", low=0.05, high=100_000.0)
    steps: int = setting(
        0, "Number of training steps; replaces the minutes.", low=0, high=1_000_000_000, low_text="Not set"
    )
    epochs: int = setting(
        0,
        "Number of passes over the training {examples}; replaces the minutes. With steps, the first limit counts.",
        low=0, high=1_000_000, low_text="Not set", legacy_default=0,
    )  # fmt: skip
    stop_early: bool = setting(
        False,
        "End training once measurements have advised 'good enough' or 'starting to copy' for a while, after a tenth "
        "of the time at the earliest. The loss alone never ends training. Ending before the learning rate decays may "
        "cost a little quality.",
        legacy_default=False, label="Early stopping",
    )  # fmt: skip
    batch_size: int = setting(64, "{Examples} per training step.", unit="{examples}", low=1, high=65_536)
    learning_rate: float = setting(1e-3, "Peak learning rate of the optimizer.", low=1e-7, high=1.0)
    optimizer: str = setting(
        "muon",
        "muon (with adamw for all but convolutions) learns more per step than adamw alone; adam has no weight decay, "
        "as in many tutorials.",
        choices=("muon", "adamw", "adam"), advanced=True, legacy_default="adamw",
    )  # fmt: skip
    precision: str = setting(
        "auto",
        "Number format for matrix products and convolutions. Auto: bf16 where the device supports it well or is "
        "faster with it, fp16 on a GPU that is only faster with fp16, else fp32. fp16 needs a GPU.",
        choices=("auto", "fp32", "bf16", "fp16"),
    )  # fmt: skip
    flip: bool = setting(
        False, "Also train on mirrored {examples}. Leave off if left and right differ in meaning.",
        label="Mirror",
    )  # fmt: skip
    shift_px: int = setting(
        0,
        "Also train on {examples} shifted by up to this many pixels.",
        unit="px",
        low=0,
        high=16,
        label="Shift",
        low_text="Off",
    )
    seed: int = setting(
        0, "Equal seed, data, settings and precision repeat a run exactly on a CPU.", low=0, high=2**31 - 1
    )
    holdout: float = setting(
        0.05, "Share of the {examples} held out of training to validate the model.",
        low=0.0, high=0.5, label="Validation", low_text="None",
    )  # fmt: skip
    lr_warmup_steps: int = setting(
        100, "Steps over which the learning rate rises to its peak.",
        unit="steps", low=0, high=1_000_000, advanced=True, label="Warm-up", low_text="Off",
    )  # fmt: skip
    lr_decay_share: float = setting(
        0.4, "Share of the training, at its end, over which the learning rate falls to zero.",
        low=0.0, high=1.0, advanced=True, label="LR decay (last part)", low_text="Off",
    )  # fmt: skip
    weight_decay: float = setting(
        0.01, "Pulls the weights towards zero.", low=0.0, high=1.0, advanced=True, low_text="Off"
    )
    clip_grad_norm: float = setting(
        1.0, "Largest gradient norm; larger gradients are scaled down.",
        low=0.001, high=1e6, advanced=True, label="Gradient clipping",
    )  # fmt: skip
    ema_halflife_sprites: int = setting(
        20_000, "{Examples} after which the share of old weights in the averaged (EMA) model has halved.",
        unit="{examples}", low=0, high=1_000_000_000, advanced=True, label="EMA half-life", low_text="Off",
    )  # fmt: skip
    threads: int = setting(
        0, "CPU threads for training on the CPU. Auto: one per core, fewer while other programs use the cores.",
        low=0, high=1024, advanced=True, label="CPU threads", low_text="Auto",
    )  # fmt: skip
    data_on_device: str = setting(
        "auto",
        "Keep all {examples} in the device's memory (yes) or load each batch in the background (no). Auto: load "
        "batches if the {examples} would leave too little memory. The result is the same.",
        choices=("auto", "yes", "no"), advanced=True, legacy_default="auto", label="Data on the device",
    )  # fmt: skip
    log_layer_stats: bool = setting(
        False,
        "Record, from time to time, each layer's weight change per step, gradient norm and dead units, for 'Layers' "
        "in the Lab. Costs less than 1 % of the time and changes no result.",
        advanced=True, legacy_default=False, label="Log layer statistics", former_name="watch_layers",
    )  # fmt: skip
    sample_every_s: float = setting(
        10.0,
        "Shortest time between live samples. Drawing takes at most 4 % of the time: slow samples come later.",
        label="Sample every", unit="s", low=0.1, high=86_400.0, advanced=True,
    )  # fmt: skip
    checkpoint_every_s: float = setting(
        60.0, "Time between checkpoints: the most work that a crash can cost.",
        label="Checkpoint every", unit="s", low=1.0, high=86_400.0, advanced=True,
    )  # fmt: skip

    def with_changed_minutes(self, before: TrainingConfig) -> Self:
        """Return these settings; with `steps` and `epochs` 0 if the user changed only `minutes` of `before`."""
        lengths = [(one.steps, one.epochs) for one in (before, self)]
        is_new = self.minutes != before.minutes and lengths[0] == lengths[1]
        return self.replace(steps=0, epochs=0) if is_new else self

    def budget_steps(self, sprites: int) -> int:
        """Return the smaller limit of `steps` and `epochs`, in steps, for `sprites` training sprites; 0 for none."""
        by_epochs = math.ceil(self.epochs * sprites / self.batch_size)
        return min(filter(None, (self.steps, by_epochs)), default=0)

    def budget_share(self, steps: int, elapsed_s: float, sprites: int) -> float:
        """Return the used share of the training budget, 0 to 1. sprites: number of training sprites."""
        if budget := self.budget_steps(sprites):
            return min(1.0, steps / budget)
        return min(1.0, elapsed_s / (60 * self.minutes))
