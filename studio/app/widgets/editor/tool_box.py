"""The editor's tools, and whether they select or paint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QSpinBox

from studio.app.widgets import factory
from studio.data.pixels.editing import Tool

Layer = Literal["mark", "paint"]  # select pixels, or paint pixels
AnyTool = Tool | Literal["move", "eyedropper"]

_TOOLS: dict[AnyTool, tuple[str, str]] = {  # `keys.COMMANDS` has the same names
    "pencil": ("Pencil", "Draw pixels"),
    "eraser": ("Eraser", "Erase pixels, or deselect pixels"),
    "line": ("Line", "Draw a straight line"),
    "rectangle": ("Rectangle", "Fill a rectangle"),
    "bucket": ("Bucket", "Fill a connected area of a colour"),
    "wand": ("By colour", "All pixels of a colour"),
    "move": ("Move", "Move the selected pixels, or the whole sprite without a selection"),
    "eyedropper": ("Eyedropper", "Pick a colour; Alt+click works with all tools"),
}
_WITH_BRUSH = ("pencil", "eraser", "line")
_WITH_TWO_ENDS = ("line", "rectangle", "move")  # by keyboard: Enter begins and ends
_LAYERS: dict[Layer, tuple[str, str]] = {
    "mark": ("Select", "Select pixels to redraw; the right button deselects. ({switch_layer})"),
    "paint": ("Paint", "Paint rough colours; the right button erases. ({switch_layer})"),
}
_WIDEST_BRUSH = 8


class ToolBox(QObject):
    """The buttons of the tools, Select and Paint, and the brush size. The editor places them."""

    tool_chosen = Signal()
    layer_chosen = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.brush = QSpinBox()
        self.brush.setRange(1, _WIDEST_BRUSH)
        self.brush.setSuffix(" px")
        factory.pad_spin_box(self.brush)
        factory.set_name_and_tip(self.brush, "Brush", "Brush size. ({smaller_brush} and {larger_brush})")
        self._tool_group, self._layer_group = QButtonGroup(self), QButtonGroup(self)
        self.buttons = {
            tool: factory.tool_button(tool, title, f"{tip}. ({{{tool}}})") for tool, (title, tip) in _TOOLS.items()
        }
        self.layer_buttons = {layer: factory.toggle(*texts) for layer, texts in _LAYERS.items()}
        for button in self.buttons.values():
            button.setCheckable(True)
            self._tool_group.addButton(button)
        for button in self.layer_buttons.values():
            self._layer_group.addButton(button)
        self.buttons["pencil"].setChecked(True)
        self.layer_buttons["mark"].setChecked(True)
        self._tool_group.buttonClicked.connect(self._on_tool_clicked)
        self._layer_group.buttonClicked.connect(self.layer_chosen)
        self._on_tool_clicked()

    def tool(self) -> AnyTool:
        return next(tool for tool, button in self.buttons.items() if button.isChecked())

    def needs_two_ends(self) -> bool:
        """Return whether the keyboard begins and ends a use of the tool with an Enter each."""
        return self.tool() in _WITH_TWO_ENDS

    def layer(self) -> Layer:
        """Return whether the tools select or paint."""
        return "mark" if self.layer_buttons["mark"].isChecked() else "paint"

    def choose_layer(self, layer: Layer) -> None:
        """Switch to selecting or to painting."""
        self.layer_buttons[layer].setChecked(True)
        self.layer_chosen.emit()

    @Slot()
    def switch_layer(self) -> None:
        """Switch from selecting to painting, or back."""
        self.choose_layer("paint" if self.layer() == "mark" else "mark")

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands by their names in `keys.COMMANDS`."""
        tools: dict[str, Callable[[], object]] = {tool: button.click for tool, button in self.buttons.items()}
        return tools | {
            "smaller_brush": self.brush.stepDown,
            "larger_brush": self.brush.stepUp,
            "switch_layer": self.switch_layer,
        }

    @Slot()
    def _on_tool_clicked(self) -> None:
        has_brush = self.tool() in _WITH_BRUSH
        factory.set_enabled(self.brush, "" if has_brush else "The size is for pencil, eraser and line.")
        self.tool_chosen.emit()
