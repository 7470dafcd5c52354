"""A config form: round trip, typed values and errors."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QCheckBox, QComboBox, QLabel, QLineEdit, QSpinBox, QWidget
from pytestqt.qtbot import QtBot

from studio.app.widgets.config_form import ConfigForm, NumberBox
from studio.app.widgets.factory import FieldError
from studio.core.config import Config, TrainingConfig, setting, settings_of
from studio.core.errors import UsageError
from studio.data.options import ImportOptions
from studio.engine.sampling.settings import GenerateSettings


@dataclass(frozen=True)
class Mixed(Config):
    count: int = setting(3, "How many.", unit="px")
    rate: float = setting(0.5, "How fast.", low=0.0)
    name: str = setting("a", "What it is called.")


def make_form(qtbot: QtBot, config: Config | None = None) -> ConfigForm:
    form = ConfigForm(config or TrainingConfig())
    qtbot.addWidget(form)
    return form


def spin(form: ConfigForm, name: str) -> QAbstractSpinBox:
    found = form.findChild(QAbstractSpinBox, name)
    assert found is not None
    return found


def type_in(box: QAbstractSpinBox, text: str) -> None:
    box.selectAll()
    QTest.keyClicks(box.lineEdit(), text)


def test_every_setting_has_a_labelled_control(qtbot: QtBot) -> None:
    form = make_form(qtbot)
    for item in settings_of(TrainingConfig):
        control = form.findChild(QWidget, item.name)
        assert control is not None, item.name
        assert control.toolTip() == item.help
        assert control.accessibleName().startswith(item.label)
    kinds = {"batch_size": QSpinBox, "learning_rate": NumberBox, "precision": QComboBox, "flip": QCheckBox}
    for name, kind in kinds.items():
        assert isinstance(form.findChild(QWidget, name), kind)


def test_a_combo_box_shows_auto_like_a_spin_box(qtbot: QtBot) -> None:
    form = make_form(qtbot)
    boxes = [form.findChild(QComboBox, name) for name in ("precision", "data_on_device")]
    form.set_config(TrainingConfig(threads=0))
    shown = [box.currentText() for box in boxes if isinstance(box, QComboBox)]
    assert shown == ["Auto", "Auto"] == [spin(form, "threads").text()] * 2
    config = form.config()
    assert isinstance(config, TrainingConfig) and config.precision == config.data_on_device == "auto"


_FAR = TrainingConfig(
    minutes=0.05, steps=1_000_000_000, learning_rate=1e-7, precision="bf16", flip=True, seed=2**31 - 1,
    holdout=1 / 3, clip_grad_norm=1e6, ema_halflife_sprites=0, weight_decay=0.1 + 0.2,
)  # fmt: skip


@hypothesis_settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(TrainingConfig())
@example(_FAR)
@given(
    st.builds(
        TrainingConfig,
        learning_rate=st.floats(1e-7, 1.0),
        minutes=st.floats(0.05, 1e5),
        seed=st.integers(0, 2**31 - 1),
        flip=st.booleans(),
    )
)
def test_config_round_trip(qtbot: QtBot, config: TrainingConfig) -> None:
    form = ConfigForm(TrainingConfig())
    form.set_config(config)
    assert form.config() == config
    form.deleteLater()


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0015, "0.0015"), (1e-7, "1e-7"), (2.5e-5, "2.5e-5"), (20.0, "20"), (1e6, "1000000"), (0.05, "0.05")],
)
def test_number_format(qtbot: QtBot, value: float, text: str) -> None:
    box = NumberBox()
    qtbot.addWidget(box)
    box.setRange(0, 1e6)
    box.setValue(value)
    assert box.text() == text and box.value() == value


def test_steps_follow_the_magnitude(qtbot: QtBot) -> None:
    box = NumberBox()
    qtbot.addWidget(box)
    box.setRange(1e-7, 1e6)
    for start, up in ((0.0015, "0.0016"), (1e-5, "1.1e-5"), (20.0, "21"), (9.9, "10"), (0.0099, "0.01")):
        box.setValue(start)
        box.stepUp()
        assert box.text() == up
        box.stepDown()
        assert box.value() == pytest.approx(start, rel=1e-9)


def test_only_user_edits_emit_changed(qtbot: QtBot) -> None:
    form = make_form(qtbot)
    seen: list[str] = []
    form.changed.connect(lambda: seen.append("changed"))
    form.set_config(TrainingConfig(steps=7, flip=True, precision="fp32"))
    assert not seen
    type_in(spin(form, "learning_rate"), "2e-3")
    assert seen
    assert form.config() == TrainingConfig(steps=7, flip=True, precision="fp32", learning_rate=2e-3)
    for name in ("learning_rate", "steps"):
        seen.clear()
        spin(form, name).stepUp()
        assert seen == ["changed"]
    for control, change in ((QCheckBox, "flip"), (QComboBox, "precision")):
        seen.clear()
        found = form.findChild(QWidget, change)
        assert isinstance(found, control)
        found.setChecked(False) if isinstance(found, QCheckBox) else found.setCurrentIndex(0)
        assert seen == ["changed"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("learning_rate", "7", "Learning rate must be from 1e-07 to 1, not 7."),
        ("learning_rate", "1e-", "Learning rate: '1e-' is not a number."),
        ("batch_size", "0", "Batch size must be from 1 to 65,536, not 0."),
        ("minutes", "0", "Minutes must be from 0.05 to 100,000, not 0."),
    ],
)
def test_invalid_values_are_marked(qtbot: QtBot, name: str, text: str, words: str) -> None:
    form = make_form(qtbot)
    box = spin(form, name)
    with qtbot.waitSignal(form.changed):
        type_in(box, text)
    assert form.problem() == words
    assert box.property("invalid") is True and box.toolTip() == words
    (reason,) = [label for label in form.findChildren(FieldError) if not label.isHidden()]
    assert reason.text() == words
    with pytest.raises(UsageError):
        form.config()
    form.set_config(TrainingConfig())
    assert form.problem() == "" and box.property("invalid") is False and reason.isHidden()
    assert form.config() == TrainingConfig()


def test_config_errors_mark_the_field(qtbot: QtBot) -> None:
    form = ConfigForm(GenerateSettings())
    qtbot.addWidget(form)
    outline = form.findChild(QLineEdit, "outline")
    assert outline is not None
    outline.setText("banana")
    (reason,) = [label for label in form.findChildren(FieldError) if not label.isHidden()]
    assert reason.text() == form.problem() == "Outline: 'banana' is not a colour."
    assert outline.property("invalid") is True
    outline.setText("dark")
    assert reason.isHidden() and outline.property("invalid") is False and form.problem() == ""


def test_decimal_comma_and_fixup(qtbot: QtBot) -> None:
    form = make_form(qtbot)
    box = spin(form, "learning_rate")
    type_in(box, "0,0025")
    assert form.config() == TrainingConfig(learning_rate=0.0025)
    type_in(box, "7")
    QTest.keyClick(box, Qt.Key.Key_Return)
    assert form.problem() == "" and form.config() == TrainingConfig(learning_rate=1.0)


def test_excluded_settings_keep_their_values(qtbot: QtBot) -> None:
    form = ConfigForm(TrainingConfig(seed=4), exclude=("seed",))
    qtbot.addWidget(form)
    assert form.findChild(QWidget, "seed") is None
    assert form.config() == TrainingConfig(seed=4)
    form.set_config(TrainingConfig(seed=9, steps=3))
    assert form.config() == TrainingConfig(seed=9, steps=3)


def test_long_texts_and_open_bounds(qtbot: QtBot) -> None:
    names = ";".join(f"item/potion_{number:05d}.png" for number in range(2_000))
    assert len(names) > 32_767  # where Qt would truncate
    assert make_form(qtbot, Mixed(name=names)).config() == Mixed(name=names)
    form = make_form(qtbot, Mixed())
    form.set_config(Mixed(count=-(2**31) + 1, rate=1e9, name="b"))
    assert form.config() == Mixed(count=-(2**31) + 1, rate=1e9, name="b")
    field = form.findChild(QLineEdit, "name")
    assert field is not None
    with qtbot.waitSignal(form.changed):
        QTest.keyClicks(field, "c")
    assert form.config() == Mixed(count=-(2**31) + 1, rate=1e9, name="bc")


def test_locked_controls_are_read_only(qtbot: QtBot) -> None:
    form = make_form(qtbot)
    form.set_locked("The weights fix this.", ("steps", "seed"))
    controls = {item.name: form.findChild(QWidget, item.name) for item in settings_of(TrainingConfig)}
    locked = [name for name, control in controls.items() if control is None or not control.isEnabled()]
    assert sorted(locked) == ["seed", "steps"]
    assert all(label.isEnabled() for label in form.findChildren(QLabel))
    form.set_config(TrainingConfig(steps=7))
    assert spin(form, "steps").toolTip().endswith(": the weights fix this.")
    form.set_locked("", ("steps", "seed"))
    assert spin(form, "steps").isEnabled() and spin(form, "seed").isEnabled()
    assert "weights" not in spin(form, "steps").toolTip()


def test_wheel_needs_focus(qtbot: QtBot) -> None:
    form = make_form(qtbot)
    box = spin(form, "batch_size")
    event = QWheelEvent(
        QPointF(5, 5), QPointF(5, 5), QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(box, event)
    assert form.config() == TrainingConfig()
    assert not event.isAccepted()


def test_low_text_replaces_the_lowest_value(qtbot: QtBot) -> None:
    form = ConfigForm(ImportOptions())
    qtbot.addWidget(form)
    size = form.findChild(QSpinBox, "size")
    assert size is not None and size.text() == "Auto" and form.config() == ImportOptions()
    size.selectAll()
    QTest.keyClicks(size, "24")
    assert form.config() == ImportOptions(size=24)
    form.set_config(ImportOptions())
    assert size.text() == "Auto" and not form.problem()


def test_low_text_replaces_the_lowest_float(qtbot: QtBot) -> None:
    form = ConfigForm(ImportOptions())
    qtbot.addWidget(form)
    box = form.findChild(NumberBox, "merge_colours")
    assert box is not None and box.text() == "Off" and not form.problem()
    box.stepUp()
    assert form.config() == ImportOptions(merge_colours=0.001)
    box.stepDown()
    assert box.text() == "Off" and form.config() == ImportOptions()
    box.selectAll()
    QTest.keyClicks(box, "off")
    box.interpretText()
    assert box.text() == "Off" and form.config() == ImportOptions()
