"""The light and dark theme, each also in high contrast: colours, font sizes, stylesheet and icons.

Widgets with a paintEvent call `colours()` in it; widgets that store colours update them on
`QEvent.Type.PaletteChange` or `Theme.changed`.
"""

import string
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QByteArray, QDir, QObject, QPointF, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QIconEngine, QImage, QPainter, QPalette, QPixmap, QPixmapCache
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication, QStyleFactory, QWidget

from studio.core import curves, paths

Scheme = Literal["system", "light", "dark"]
Role = Literal[
    "title", "heading", "muted", "primary", "danger", "flat", "card", "error", "warning", "badge", "notice", ""
]
_EFFECTS = tuple(effect for effect in Qt.UIEffect if effect != Qt.UIEffect.UI_General)  # up to 250 ms where on
_ROLES = {"": QPalette.ColorRole.ButtonText, "on_accent": QPalette.ColorRole.HighlightedText}
_ROLES |= {"muted": QPalette.ColorRole.PlaceholderText, "accent": QPalette.ColorRole.Accent}


@dataclass(frozen=True)
class Colours:
    """The colours of a theme as '#rrggbb'."""

    dark: bool
    window: str
    surface: str  # background of fields, lists and plots
    border: str
    text: str
    muted: str  # captions and axes; contrast 4.5:1 against window and surface
    accent: str
    on_accent: str
    warn: str
    error: str
    good: str
    checker_a: str
    checker_b: str
    curves: tuple[str, ...]  # for curves in one plot; the first is the accent


# checker_a of the dark theme has a contrast of 3:1 against black outlines and shadows.
LIGHT = Colours(
    dark=False, window="#f7f7f9", surface="#ffffff", border="#e1e3e8", text="#1b1e24", muted="#616874",
    accent="#4f5bd5", on_accent="#ffffff", warn="#96600a", error="#c03434", good="#23784a",
    checker_a="#f4f5f7", checker_b="#e6e8ec", curves=curves.CURVE_COLOURS,
)  # fmt: skip
DARK = Colours(
    dark=True, window="#17191d", surface="#1e2126", border="#31353d", text="#e6e8ec", muted="#9aa1ad",
    accent="#8790f5", on_accent="#14161b", warn="#dba94a", error="#ef7b74", good="#62bd84",
    checker_a="#5e6470", checker_b="#545a66",
    curves=("#8790f5", "#e0a05e", "#5cbfb2", "#e088b2", "#b5c45a", "#6fb6e8", "#c99a82", "#a5a5b2"),
)  # fmt: skip
# For the system's high contrast. All texts have a contrast of at least 7:1, borders of at least 4.5:1.
LIGHT_CONTRAST = Colours(
    dark=False, window="#ffffff", surface="#ffffff", border="#5c5f66", text="#000000", muted="#33363b",
    accent="#2a35ad", on_accent="#ffffff", warn="#6a4200", error="#9c1414", good="#0c5430",
    checker_a="#f4f5f7", checker_b="#e6e8ec",
    curves=("#2a35ad", "#a4540a", "#14665c", "#9c2c61", "#5a6610", "#14608f", "#6e4030", "#55555e"),
)  # fmt: skip
DARK_CONTRAST = Colours(
    dark=True, window="#000000", surface="#000000", border="#9ea3ad", text="#ffffff", muted="#d6d9df",
    accent="#a9b1ff", on_accent="#000000", warn="#ffce6b", error="#ffa099", good="#84e0a4",
    checker_a="#5e6470", checker_b="#545a66",
    curves=("#a9b1ff", "#f0b878", "#74d6ca", "#f2a6cb", "#cadb72", "#8accf8", "#e0b6a0", "#c0c0cc"),
)  # fmt: skip
_BY_WINDOW = {found.window: found for found in (LIGHT, DARK, LIGHT_CONTRAST, DARK_CONTRAST)}


class Theme(QObject):
    """The theme of the application."""

    changed = Signal()  # the colours changed; widgets also receive PaletteChange

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self.setObjectName("studio-theme")
        self._app = app
        self._scheme: Scheme = "system"
        self._shown: Colours | None = None
        self._native_dark = app.palette().color(QPalette.ColorRole.Window).lightness() < 128
        app.setStyle(QStyleFactory.create("Fusion"))
        for effect in _EFFECTS:
            app.setEffectEnabled(effect, False)
        self._hints = app.styleHints()  # PySide loses `accessibility` with its temporary owner
        self._hints.colorSchemeChanged.connect(self._refresh)
        self._hints.accessibility().contrastPreferenceChanged.connect(self._refresh)

    def scheme(self) -> Scheme:
        """Return the chosen colour scheme; 'system' follows the desktop."""
        return self._scheme

    def stylesheet(self) -> str:
        """Return the stylesheet for a window.

        Set it after the widgets are in place: with a stylesheet of the application, Qt styles each widget again at
        every change of its parent, and a window takes three times as long to create.
        """
        return _stylesheet(colours(), self._app.font().pointSizeF())

    def set_scheme(self, scheme: Scheme) -> None:
        """Switch to the light theme, the dark theme, or the desktop's."""
        self._scheme = scheme
        wanted = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}.get(scheme, Qt.ColorScheme.Unknown)
        self._hints.setColorScheme(wanted)  # for title bars and system dialogs
        self._refresh()

    def _wants_dark(self) -> bool:
        if self._scheme != "system":
            return self._scheme == "dark"
        hint = self._hints.colorScheme()
        return self._native_dark if hint == Qt.ColorScheme.Unknown else hint == Qt.ColorScheme.Dark

    def _wants_contrast(self) -> bool:
        return self._hints.accessibility().contrastPreference() == Qt.ContrastPreference.HighContrast

    @Slot()
    def _refresh(self) -> None:
        pair = (LIGHT_CONTRAST, DARK_CONTRAST) if self._wants_contrast() else (LIGHT, DARK)
        chosen = pair[self._wants_dark()]
        if chosen is not self._shown:
            self._shown = chosen
            self._app.setPalette(_palette(chosen))
            self.changed.emit()


def apply(app: QApplication, scheme: Scheme = "system") -> Theme:
    """Apply the theme to `app` and return it; later calls only switch its colour scheme."""
    theme = app.findChild(Theme, "studio-theme") or Theme(app)
    theme.set_scheme(scheme)
    return theme


def colours() -> Colours:
    """Return the colours of the application's palette."""
    window = QGuiApplication.palette().color(QPalette.ColorRole.Window)
    return _BY_WINDOW.get(window.name()) or (DARK if window.lightness() < 128 else LIGHT)


def icon(name: str, colour: str = "") -> QIcon:
    """Return an icon of assets/icons. colour: '#rrggbb', 'on_accent', 'accent' or 'muted'; '' for the text colour."""
    return QIcon(SvgIconEngine(paths.assets() / "icons" / f"{name}.svg", colour))


def set_role(widget: QWidget, role: Role) -> None:
    """Set the widget's role, which decides how the stylesheet styles a label, button or frame."""
    widget.setProperty("role", role)
    widget.style().unpolish(widget)
    widget.style().polish(widget)


def level_colours(c: Colours) -> dict[str, str]:
    return {"info": c.accent, "warning": c.warn, "error": c.error}


def notice_background(c: Colours, level: str) -> str:
    return mix(c.surface, level_colours(c)[level], 0.1)


def mix(first: str, second: str, share: float) -> str:
    """Mix two colours. share: 0 returns the first, 1 the second."""
    pairs = zip(bytes.fromhex(first[1:]), bytes.fromhex(second[1:]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def _palette(c: Colours) -> QPalette:
    """Return the palette, for widgets that the stylesheet does not style, like system dialogs."""
    role, disabled = QPalette.ColorRole, QPalette.ColorGroup.Disabled
    roles = {
        role.Window: c.window, role.WindowText: c.text, role.Base: c.surface, role.AlternateBase: c.window,
        role.Text: c.text, role.Button: c.surface, role.ButtonText: c.text, role.BrightText: c.error,
        role.Highlight: c.accent, role.HighlightedText: c.on_accent, role.Accent: c.accent, role.Link: c.accent,
        role.LinkVisited: c.accent, role.ToolTipBase: c.surface, role.ToolTipText: c.text,
        role.PlaceholderText: c.muted, role.Light: mix(c.surface, c.text, 0.04), role.Midlight: c.border,
        role.Mid: mix(c.border, c.text, 0.15), role.Dark: mix(c.border, c.text, 0.3), role.Shadow: "#000000",
    }  # fmt: skip
    palette = QPalette()
    for name, colour in roles.items():
        palette.setColor(name, QColor(colour))
    for name in (role.WindowText, role.Text, role.ButtonText, role.HighlightedText):
        palette.setColor(disabled, name, QColor(mix(c.muted, c.window, 0.4)))
    palette.setColor(disabled, role.Highlight, QColor(mix(c.muted, c.window, 0.6)))
    return palette


def _stylesheet(c: Colours, points: float) -> str:
    """Return the stylesheet for these colours. points: size of the system font, which other sizes derive from."""
    folder = Path(__file__).parent / "widgets" / "style"
    derived = {
        "raised": mix(c.surface, c.text, 0.04) if c.dark else c.surface,
        "border_strong": mix(c.border, c.text, 0.18),
        "hover": mix(c.window, c.text, 0.06),
        "pressed": mix(c.window, c.text, 0.11),
        "track": mix(c.window, c.text, 0.12),
        "handle": mix(c.surface, "#ffffff", 0.75) if c.dark else c.surface,
        "scroll": mix(c.window, c.text, 0.25),
        "disabled": mix(c.muted, c.window, 0.4),
        "selection": mix(c.surface, c.accent, 0.28 if c.dark else 0.16),
        **{f"{level}_strip": notice_background(c, level) for level in level_colours(c)},
        "accent_fill": mix(c.accent, "#2a2f8f", 0.35) if c.dark else c.accent,  # background of a white check mark
        "accent_hover": mix(c.accent, "#ffffff", 0.12),
        "accent_pressed": mix(c.accent, "#000000", 0.12),
        "size_text": f"{points:.1f}",
        "size_title": f"{points * 1.6:.1f}",
        "size_heading": f"{points * 1.08:.1f}",
        "size_small": f"{points * 0.9:.1f}",
    }
    QDir.setSearchPaths("glyphs", [str(folder)])  # in a stylesheet, Qt can't read a path with an umlaut
    template = string.Template((folder / "studio.qss").read_text(encoding="utf-8"))
    return template.substitute({**asdict(c), **derived})


class SvgIconEngine(QIconEngine):
    """Draws a one-colour SVG (stroke="currentColor") in the current colours, so that icons follow the theme.

    `clone` is missing on purpose: Qt only calls it when a shared icon is edited (addPixmap, addFile), which the studio
    does not do, and a clone made in Python would be deleted with its wrapper.
    """

    def __init__(self, path: Path, colour: str = "") -> None:
        super().__init__()
        self._path, self._colour = path, colour

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        """Draw the icon centred in `rect`, in device pixels."""
        ratio = painter.device().devicePixelRatioF()
        painter.drawPixmap(QPointF(rect.topLeft()), self.scaledPixmap(rect.size(), mode, state, ratio))

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        """Return the icon at a device pixel ratio of 1."""
        return self.scaledPixmap(size, mode, state, 1.0)

    def scaledPixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State, scale: float) -> QPixmap:
        """Return the icon in `size` logical pixels at a device pixel ratio of `scale`."""
        group = QPalette.ColorGroup.Disabled if mode == QIcon.Mode.Disabled else QPalette.ColorGroup.Active
        role = _ROLES.get(self._colour)
        colour = QGuiApplication.palette().color(group, role).name() if role is not None else self._colour
        key = f"studio/{self._path}/{colour}/{size.width()}x{size.height()}@{scale}"
        found = QPixmap()
        if not QPixmapCache.find(key, found):
            found = _render(self._path, colour, size, scale)
            QPixmapCache.insert(key, found)
        return found


@lru_cache(maxsize=128)
def _source(path: Path) -> str:
    """Read an SVG file; return an empty drawing if the file is missing."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"/>'


def _render(path: Path, colour: str, size: QSize, scale: float) -> QPixmap:
    side = max(1, round(min(size.width(), size.height()) * scale))
    image = QImage(round(size.width() * scale), round(size.height() * scale), QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    renderer = QSvgRenderer(QByteArray(_source(path).replace("currentColor", colour).encode()))
    renderer.render(painter, QRectF((image.width() - side) // 2, (image.height() - side) // 2, side, side))
    painter.end()
    image.setDevicePixelRatio(scale)
    return QPixmap.fromImage(image)
