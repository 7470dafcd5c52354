"""Settings as frozen dataclasses: each field is declared once, and forms, flags and JSON are made from it.

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
from typing import Any, Self

from studio.core.errors import UsageError

Value = int | float | bool | str


@dataclass(frozen=True)
class Setting:
    """One field of a config, as a form or a parser needs it. `low` and `high` are inclusive."""

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
    legacy_default: Value | None  # value of runs older than the setting; None: every run has the setting
    former_name: str  # still read from files and accepted as a hidden flag; empty if never renamed

    def check(self, value: object) -> Value:
        """Return `value` as this setting's type. Raises UsageError when it has another type or is out of bounds."""
        if self.kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not self.kind:
            raise UsageError(f"{self.label}: {value!r} is not {_KIND_NAMES[self.kind]}.", self.help)
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{self.label} must be a finite number.", self.help)
        if self.choices and value not in self.choices:
            raise UsageError(f"{self.label}: there is no {value!r}.", f"Choose one of: {', '.join(self.choices)}.")
        if isinstance(value, int | float) and self._out_of_bounds(value):
            raise UsageError(f"{self.label} must be {self.bounds()}, not {_in_words(value)}.", self.help)
        return typing.cast(Value, value)

    def parse(self, text: str) -> Value:
        """Return the value that `text` spells, checked. Raises UsageError."""
        try:
            value: Value = _PARSERS[self.kind](text.strip())
        except (ValueError, KeyError):
            raise UsageError(f"{self.label}: {text!r} is not {_KIND_NAMES[self.kind]}.", self.help) from None
        return self.check(value)

    def bounds(self) -> str:
        """The bounds in words: 'from 1 to 512', 'at least 0', or an empty text."""
        if self.low is not None and self.high is not None:
            return f"from {_in_words(self.low)} to {_in_words(self.high)}"
        if self.low is not None:
            return f"at least {_in_words(self.low)}"
        return f"at most {_in_words(self.high)}" if self.high is not None else ""

    def _out_of_bounds(self, value: float) -> bool:
        return (self.low is not None and value < self.low) or (self.high is not None and value > self.high)


def _in_words(value: float) -> str:
    """1e9 -> '1,000,000,000', 0.5 -> '0.5'."""
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


_KIND_NAMES = {int: "a whole number", float: "a number", bool: "yes or no", str: "a text"}
_TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_PARSERS: dict[type, typing.Callable[[str], Value]] = {
    int: int,
    float: float,
    str: str,
    bool: lambda text: _TRUTHS[text.lower()],
}


def setting(
    default: Value,
    help: str,  # noqa: A002 - the word that forms and parsers use for it
    *,
    label: str = "",
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    advanced: bool = False,
    legacy_default: Value | None = None,
    former_name: str = "",
    absent: Value | None = None,
) -> Any:
    """Declare a config field: its default, one sentence of help, and the values that it accepts.

    legacy_default: value for runs that were written before the setting existed; their run.json lacks the setting.
    former_name: old name of a renamed setting. absent: old name of `legacy_default`, for plug-ins.
    """
    metadata = {
        "help": help, "label": label, "unit": unit, "low": low, "high": high, "choices": choices, "advanced": advanced,
        "legacy_default": absent if legacy_default is None else legacy_default, "former_name": former_name,
    }  # fmt: skip
    return dataclasses.field(default=default, metadata=metadata)


def with_default(owner: type[Config], name: str, default: Value) -> Any:
    """Redeclare a setting of `owner`, in a config that extends it, with another default and all else the same."""
    known = {field.name: field for field in dataclasses.fields(owner)}
    return dataclasses.field(default=default, metadata=known[name].metadata)


@dataclass(frozen=True)
class Config:
    """Base of every config: checks its values when made, and goes to JSON and back."""

    def __post_init__(self) -> None:
        for item in settings_of(type(self)):
            object.__setattr__(self, item.name, item.check(getattr(self, item.name)))

    def to_json(self) -> dict[str, Value]:
        """Every setting by name."""
        return dataclasses.asdict(self)

    def changed(self) -> dict[str, Value]:
        """The settings that are not at their defaults, by name."""
        return {
            item.name: value for item in settings_of(type(self)) if (value := getattr(self, item.name)) != item.default
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the config that `to_json` wrote, in this version of the studio or an older one.

        Raises UsageError for an unknown name, a missing setting or an invalid value.
        """
        given = legacy_defaults(cls) | with_current_names(cls, values)
        unknown = sorted(set(given) - {item.name for item in settings_of(cls)})
        if unknown:
            raise UsageError(
                f"There is no setting named {', '.join(unknown)}.",
                "A file made by a newer version of the studio may hold settings that this one does not know.",
            )
        missing = [item.name for item in settings_of(cls) if item.name not in given]
        if missing:
            raise UsageError(
                f"There is no value for {', '.join(missing)}.", "The file was changed since it was written."
            )
        return cls(**given)

    def replace(self, **changes: Value) -> Self:
        """A copy with some settings changed, checked anew."""
        return dataclasses.replace(self, **changes)


def settings_of(config_type: type[Config]) -> tuple[Setting, ...]:
    """The settings of a config class, in the order of their declaration."""
    if config_type not in _settings:  # every config that is made asks for them
        _settings[config_type] = _read_settings(config_type)
    return _settings[config_type]


_settings: dict[type[Config], tuple[Setting, ...]] = {}


def legacy_defaults(config_type: type[Config]) -> dict[str, Value]:
    """Return the values of settings that runs older than the setting used, by name."""
    return {item.name: item.legacy_default for item in settings_of(config_type) if item.legacy_default is not None}


def with_current_names(config_type: type[Config], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values`, settings by name as an older version wrote them, under the current names of the settings."""
    current = {item.former_name: item.name for item in settings_of(config_type) if item.former_name}
    return {current.get(name, name): value for name, value in values.items()}


def _read_settings(config_type: type[Config]) -> tuple[Setting, ...]:
    kinds = typing.get_type_hints(config_type)
    found = []
    for field in dataclasses.fields(config_type):
        about = dict(field.metadata)
        about["label"] = about["label"] or field.name.replace("_", " ").capitalize()
        default = typing.cast(Value, field.default)
        found.append(Setting(name=field.name, kind=kinds[field.name], default=default, **about))
    return tuple(found)


LENGTH_SETTINGS = frozenset({"minutes", "steps", "epochs"})  # settings that say how long a training is


@dataclass(frozen=True)
class TrainingConfig(Config):
    """What every recipe trains with; a recipe's own config adds to it and may change the defaults."""

    minutes: float = setting(
        10.0, "How long to train. Time spent paused does not count.", unit="min", low=0.05, high=100_000.0
    )
    steps: int = setting(
        0, "Train for this many steps instead of the minutes; 0 lets the minutes decide.", low=0, high=1_000_000_000
    )
    epochs: int = setting(
        0,
        "Train until each sprite was seen this often, instead of the minutes; with steps, what comes first counts.",
        low=0,
        high=1_000_000,
        legacy_default=0,
    )
    stop_early: bool = setting(
        False,
        "End once the advice by measured sprites has been 'good enough' or 'starting to copy' for a while, after a "
        "tenth of the time at the earliest; the loss alone ends nothing. A model that ends before its learning rate "
        "falls may be a little worse.",
        legacy_default=False,
        label="Stop when good enough or copying",
    )
    batch_size: int = setting(64, "Sprites per training step.", unit="sprites", low=1, high=65_536)
    learning_rate: float = setting(1e-3, "Size of the optimizer's steps at its peak.", low=1e-7, high=1.0)
    optimizer: str = setting(
        "muon",
        "What moves the weights: muon, with adamw for all but convolutions, learns more from a step than adamw alone; "
        "adam is the tutorials' own, without weight decay.",
        choices=("muon", "adamw", "adam"),
        advanced=True,
        legacy_default="adamw",
    )
    precision: str = setting(
        "auto",
        "Number format of the heavy arithmetic: auto takes bf16 where the device is made for it or faster with it, "
        "fp16 on a GPU that is faster with that alone. fp16 can be had nowhere else.",
        choices=("auto", "fp32", "bf16", "fp16"),
    )
    flip: bool = setting(
        False,
        "Also learn from mirrored sprites. Leave off where left and right mean something.",
        label="Mirror sprites",
    )
    shift_px: int = setting(
        0, "Also learn from sprites moved by up to this many pixels.", unit="px", low=0, high=16, label="Shift sprites"
    )
    seed: int = setting(
        0, "The same seed, data, settings and precision give the same run on a CPU.", low=0, high=2**31 - 1
    )
    holdout: float = setting(
        0.05,
        "Share of the sprites kept aside to check on what the model has not seen.",
        low=0.0,
        high=0.5,
        label="Held out",
    )
    lr_warmup_steps: int = setting(
        100,
        "Steps over which the learning rate rises to its peak.",
        unit="steps",
        low=0,
        high=1_000_000,
        advanced=True,
        label="Warm-up",
    )
    lr_decay_share: float = setting(
        0.4,
        "Last share of the budget over which the learning rate falls to zero.",
        low=0.0,
        high=1.0,
        advanced=True,
        label="Decay share",
    )
    weight_decay: float = setting(0.01, "Pull of the weights towards zero.", low=0.0, high=1.0, advanced=True)
    clip_grad_norm: float = setting(
        1.0,
        "Longest gradient that is applied as it is; longer ones are shortened.",
        low=0.001,
        high=1e6,
        advanced=True,
        label="Longest gradient",
    )
    ema_halflife_sprites: int = setting(
        20_000,
        "Sprites after which a weight's share in the averaged model has halved.",
        unit="sprites",
        low=0,
        high=1_000_000_000,
        advanced=True,
        label="Averaging half-life",
    )
    threads: int = setting(
        0,
        "CPU threads for training on the CPU; 0 takes one per core, and fewer while other programs keep them busy.",
        low=0,
        high=1024,
        advanced=True,
        label="CPU threads",
    )
    data_on_device: str = setting(
        "auto",
        "Keep all sprites in the device's memory, or load each batch in the background; auto does that where they "
        "would not leave the device enough room. Either way the same is learnt.",
        choices=("auto", "yes", "no"),
        advanced=True,
        legacy_default="auto",
        label="Data on the device",
    )
    log_layer_stats: bool = setting(
        False,
        "Now and then, note for each layer how far a step moves its weights, how long its gradient is and how many of "
        "its units are dead, for 'Layers' in the Lab. Costs less than 1 % of the time; the same is learnt.",
        advanced=True,
        legacy_default=False,
        label="Log layer statistics",
        former_name="watch_layers",
    )
    sample_every_s: float = setting(
        10.0,
        "Shortest time between live samples. Drawing may use 4 % of the training time; slow samples come less often.",
        label="Sample every",
        unit="s",
        low=0.1,
        high=86_400.0,
        advanced=True,
    )
    checkpoint_every_s: float = setting(
        60.0,
        "Longest time of work that a crash can cost.",
        label="Checkpoint every",
        unit="s",
        low=1.0,
        high=86_400.0,
        advanced=True,
    )

    def as_typed(self, before: TrainingConfig) -> Self:
        """These settings, which were `before` until somebody changed them: minutes that are new decide from now on."""
        lengths = [(one.steps, one.epochs) for one in (before, self)]
        is_meant = self.minutes != before.minutes and lengths[0] == lengths[1]
        return self.replace(steps=0, epochs=0) if is_meant else self

    def budget_steps(self, sprites: int) -> int:
        """Steps after which a training on so many sprites ends: by `steps` or `epochs`, whichever comes first.

        0: its minutes decide.
        """
        by_epochs = math.ceil(self.epochs * sprites / self.batch_size)
        return min(filter(None, (self.steps, by_epochs)), default=0)

    def budget_share(self, steps: int, elapsed_s: float, sprites: int) -> float:
        """Return the share of the budget, 0 to 1, that a training has used up. sprites: how many it trains on."""
        if budget := self.budget_steps(sprites):
            return min(1.0, steps / budget)
        return min(1.0, elapsed_s / (60 * self.minutes))
