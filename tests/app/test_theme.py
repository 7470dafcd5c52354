"""The light and dark theme: contrast, stylesheet, and icons that follow the theme."""

from __future__ import annotations

import gc
import re
import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import QFileInfo, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QImage, QPalette
from PySide6.QtWidgets import QApplication, QCheckBox, QComboBox, QLabel, QMenu, QPushButton, QStyle, QWidget
from pytestqt.qtbot import QtBot

from studio.app import theme
from studio.app.widgets import factory
from studio.core import paths

SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])
STYLE = Path(theme.__file__).parent / "widgets" / "style"


def _parts(colour: str) -> tuple[int, int, int]:
    chosen = QColor(colour)
    return chosen.red(), chosen.green(), chosen.blue()


def _luminance(colour: str) -> float:
    """After WCAG 2.2."""
    shares = [part / 255 for part in _parts(colour)]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return float(0.2126 * red + 0.7152 * green + 0.0722 * blue)


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("colours", "least"),
    [(theme.LIGHT, 4.5), (theme.DARK, 4.5), (theme.LIGHT_CONTRAST, 7), (theme.DARK_CONTRAST, 7)],
    ids=["light", "dark", "light contrast", "dark contrast"],
)
def test_texts_can_be_read(colours: theme.Colours, least: float) -> None:
    for ground in (colours.window, colours.surface):
        for text in (colours.text, colours.muted, colours.error, colours.warn, colours.good):
            assert _contrast(text, ground) >= least, (text, ground)
        assert all(_contrast(curve, ground) >= (2.5 if least < 7 else 4.5) for curve in colours.curves)
        assert least < 7 or _contrast(colours.border, ground) >= 4.5
    assert _contrast(colours.on_accent, colours.accent) >= least
    assert colours.curves[0] == colours.accent
    for level, colour in theme.level_colours(colours).items():
        strip = theme.notice_background(colours, level)
        assert _contrast(colours.text, strip) >= 4.5 and _contrast(colours.muted, strip) >= 4.5
        assert _contrast(colour, strip) >= 3  # the sign


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_black_outlines_show_on_the_checkerboard(colours: theme.Colours) -> None:
    assert all(_contrast("#000000", ground) >= 3 for ground in (colours.checker_a, colours.checker_b))


@SCHEMES
def test_a_theme_changes_palette_and_stylesheet_and_signals_only_changes(
    qapp: QApplication, qtbot: QtBot, scheme: theme.Scheme
) -> None:
    made = theme.apply(qapp, "dark" if scheme == "light" else "light")
    label = QLabel("quiet")
    qtbot.addWidget(label)
    theme.set_role(label, "muted")
    label.show()
    with qtbot.waitSignal(made.changed):
        made.set_scheme(scheme)
    with qtbot.assertNotEmitted(made.changed):
        made.set_scheme(scheme)
    assert theme.apply(qapp, scheme) is made  # there is one
    chosen = theme.colours()
    assert chosen is (theme.DARK if scheme == "dark" else theme.LIGHT) and made.scheme() == scheme
    assert qapp.palette().color(QPalette.ColorRole.Window).name() == chosen.window
    label.setStyleSheet(made.stylesheet())
    assert chosen.accent in made.stylesheet() and "$" not in made.stylesheet()
    assert label.palette().color(QPalette.ColorRole.WindowText).name() == chosen.muted


@SCHEMES
def test_the_theme_follows_the_contrast_of_the_system(
    qapp: QApplication, qtbot: QtBot, scheme: theme.Scheme, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, hints = theme.apply(qapp, scheme), qapp.styleHints()
    usual = theme.colours()
    for is_high in (True, False):
        monkeypatch.setattr(theme.Theme, "_wants_contrast", lambda _, is_high=is_high: is_high)
        with qtbot.waitSignal(made.changed):
            hints.accessibility().contrastPreferenceChanged.emit(Qt.ContrastPreference.HighContrast)
        high = theme.DARK_CONTRAST if scheme == "dark" else theme.LIGHT_CONTRAST
        assert theme.colours() is (high if is_high else usual)
        assert theme.colours().text in made.stylesheet()


def test_nothing_is_animated(qapp: QApplication, qtbot: QtBot) -> None:
    made, button = theme.apply(qapp, "light"), QPushButton("Start")
    qtbot.addWidget(button)
    button.setStyleSheet(made.stylesheet())
    hint = QStyle.StyleHint.SH_Widget_Animation_Duration
    assert button.style().styleHint(hint, None, button) == 0
    assert not any(QApplication.isEffectEnabled(effect) for effect in Qt.UIEffect)


def test_a_role_can_be_given_later(qapp: QApplication, qtbot: QtBot) -> None:
    button = QPushButton("Start")
    button.setStyleSheet(theme.apply(qapp, "light").stylesheet())
    qtbot.addWidget(button)
    button.ensurePolished()
    plain = button.sizeHint().height()
    theme.set_role(button, "primary")
    assert button.sizeHint().height() > plain


@pytest.mark.parametrize("entries", [2, 3, 6])
@pytest.mark.parametrize("is_focused", [False, True])
def test_an_opened_list_shows_all_its_entries(qapp: QApplication, qtbot: QtBot, entries: int, is_focused: bool) -> None:
    page, box, other = QWidget(), QComboBox(), QPushButton("Other")
    page.setLayout(factory.column(other, box))
    box.addItems([f"Entry {number}" for number in range(entries)])
    page.setStyleSheet(theme.apply(qapp, "light").stylesheet())
    qtbot.addWidget(page)
    with qtbot.waitActive(page):
        page.show()
    closed = box.sizeHint().height()
    (box if is_focused else other).setFocus()
    assert box.hasFocus() == is_focused
    box.showPopup()
    qapp.processEvents()
    rows = sum(box.view().sizeHintForRow(row) for row in range(entries))
    assert box.view().viewport().height() >= rows
    opened = box.view().parentWidget()
    assert opened is not None
    parts = [part for part in opened.children() if isinstance(part, QWidget) and part.isVisible()]
    assert parts == [box.view()]  # else Qt's arrows for scrolling lie over the entries
    box.hidePopup()
    assert box.sizeHint().height() == closed


@pytest.mark.parametrize(("share", "expected"), [(0.0, "#000000"), (0.5, "#800040"), (1.0, "#ff0080")])
def test_mixing(share: float, expected: str) -> None:
    assert theme.mix("#000000", "#ff0080", share) == expected


def test_the_arrow_of_a_menu_button_is_as_large_as_that_of_a_combo_box(qapp: QApplication, qtbot: QtBot) -> None:
    window, button, box = QWidget(), QPushButton("Save"), QComboBox()
    button.setMenu(QMenu(button))
    window.setLayout(factory.column(button, box))
    window.setStyleSheet(theme.apply(qapp, "light").stylesheet())
    window.resize(200, 100)
    qtbot.addWidget(window)
    with qtbot.waitExposed(window):
        window.show()
    assert _arrow(button) == _arrow(box)


def _arrow(widget: QWidget) -> QSize:
    """Return the size of the arrow at the right end of a widget, in device pixels."""
    picture = widget.grab().toImage()
    end = int(24 * picture.devicePixelRatio())
    middle = range(picture.height() // 4, 3 * picture.height() // 4)  # without the frame
    ground = picture.pixel(picture.width() - end, picture.height() // 2)
    columns = range(picture.width() - end, picture.width() - end // 6)
    inked = [(x, y) for x in columns for y in middle if picture.pixel(x, y) != ground]
    xs, ys = zip(*inked, strict=True)
    return QSize(max(xs) - min(xs), max(ys) - min(ys))


def test_every_picture_of_the_stylesheet_exists(qapp: QApplication) -> None:
    pictures = re.findall(r"url\(([^)]+)\)", theme.apply(qapp, "light").stylesheet())
    assert pictures and all(Path(QFileInfo(picture).absoluteFilePath()).parent == STYLE for picture in pictures)
    assert all(QFileInfo(picture).isFile() for picture in pictures)


def test_the_stylesheet_is_read_in_a_folder_with_an_umlaut(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, style = QCheckBox("Log"), theme.apply(qapp, "light")
    box.setChecked(True)
    box.setStyleSheet(style.stylesheet())
    usual = box.grab().toImage()
    folder = tmp_path / "Jörg (山田) 'a'" / "widgets" / "style"
    shutil.copytree(STYLE, folder)
    monkeypatch.setattr(theme, "__file__", str(folder.parents[1] / "theme.py"))
    box.setStyleSheet("")
    box.setStyleSheet(style.stylesheet())
    assert box.grab().toImage() == usual
    monkeypatch.undo()
    style.stylesheet()  # names the usual folder again


def _main_colour(icon: QIcon, mode: QIcon.Mode = QIcon.Mode.Normal, ratio: float = 1.0) -> str:
    """The colour of the most opaque pixel."""
    image = icon.pixmap(QSize(24, 24), ratio, mode).toImage().convertToFormat(QImage.Format.Format_ARGB32)
    assert image.width() == 24 * ratio
    points = ((x, y) for x in range(image.width()) for y in range(image.height()))
    strongest = max(points, key=lambda point: image.pixelColor(*point).alpha())
    colour = image.pixelColor(*strongest)
    assert colour.alpha() > 200
    return colour.name()


def _alike(one: str, other: str) -> bool:
    """Nearly: pixels with alpha have lost a little."""
    return all(abs(a - b) <= 3 for a, b in zip(_parts(one), _parts(other), strict=True))


@pytest.mark.parametrize("ratio", [1.0, 2.0])
def test_an_icon_follows_the_scheme(qapp: QApplication, ratio: float) -> None:
    theme.apply(qapp, "light")
    icons = {name: theme.icon("save", name) for name in ("", "on_accent", "muted", "accent", "#ff0000")}
    for scheme, chosen in (("light", theme.LIGHT), ("dark", theme.DARK)):
        theme.apply(qapp, scheme)  # type: ignore[arg-type]
        expected = ("text", "on_accent", "muted", "accent")
        for name, field in zip(("", "on_accent", "muted", "accent"), expected, strict=True):
            assert _alike(_main_colour(icons[name], ratio=ratio), getattr(chosen, field)), (scheme, name)
        assert _alike(_main_colour(icons["#ff0000"], ratio=ratio), "#ff0000")
        assert not _alike(_main_colour(icons[""], QIcon.Mode.Disabled), chosen.text)


def test_icons_outlive_their_engines(qapp: QApplication, qtbot: QtBot) -> None:
    theme.apply(qapp, "light")
    button = QPushButton()
    qtbot.addWidget(button)
    button.setIcon(theme.icon("folder"))
    copies = [QIcon(button.icon()) for _ in range(50)]
    gc.collect()
    button.grab()
    assert all(_alike(_main_colour(copy), theme.LIGHT.text) for copy in copies)


def test_every_used_icon_exists() -> None:
    root = Path(theme.__file__).parent
    asked = set()
    for path in root.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        asked |= set(re.findall(r"theme\.icon\(\"([a-z-]+)\"", text)) | set(
            re.findall(r"parts\.tool\(\s*\"([a-z-]+)\"", text)
        )
    assert len(asked) > 3
    assert [name for name in sorted(asked) if not (paths.assets() / "icons" / f"{name}.svg").is_file()] == []
