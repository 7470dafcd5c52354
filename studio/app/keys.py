"""Keyboard shortcuts: a table of commands with default keys, and the user's own keys."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from studio.app.state.settings import Settings
from studio.core import records

EVERYWHERE = "Everywhere"
_CHANGEABLE = {  # by context: name in the settings, default keys, title
    EVERYWHERE: (
        ("open_folder", "Ctrl+O", "Open a folder of sprites"),
        ("paste", "Ctrl+V", "Paste images, files or folders"),
        ("start", "Ctrl+R", "Start training"),
        ("pause", "Space", "Pause or resume"),
        ("stop", "Ctrl+.", "Stop and save"),
        ("save", "Ctrl+S", "Save the shown sprites"),
        ("export", "Ctrl+E", "Export the model"),
        ("undo", "Ctrl+Z", "Undo"),
        ("redo", "Ctrl+Shift+Z, Ctrl+Y", "Redo"),
        ("page_sprites", "Ctrl+1", "Show the Sprites page"),
        ("page_train", "Ctrl+2", "Show the Train page"),
        ("page_generate", "Ctrl+3", "Show the Generate page"),
        ("page_runs", "Ctrl+4", "Show the Runs page"),
        ("page_lab", "Ctrl+5", "Show the Lab page"),
        ("next_pane", "F6", "Focus the next part of the window"),
        ("previous_pane", "Shift+F6", "Focus the previous part of the window"),
        ("settings", "Ctrl+,", "Settings"),
        ("guide", "F1", "Guide on this page"),
        ("keys", "Ctrl+F1", "Keyboard shortcuts"),
        ("quit", "Ctrl+Q", "Quit; a running training is saved"),
    ),
    "Lists of sprites": (("copy", "Ctrl+C", "Copy the selected sprites"),),
    "Sprites page": (
        ("find", "Ctrl+F", "Search by name and class"),
        ("move_class", "M", "Move the selected sprites to another class"),
        ("set_attribute", "A", "Give the selected sprites an attribute"),
        ("exclude", "Del", "Exclude the selected sprites"),
    ),
    "Slicing": (("previous_sheet", "Ctrl+PgUp", "Previous sheet"), ("next_sheet", "Ctrl+PgDown", "Next sheet")),
    "Generate page": (
        ("keep", "K", "Keep the selected sprites"),
        ("reject", "X", "Reject the selected sprites"),
        ("edit", "E", "Edit the selected sprite"),
        ("draw_again", "R", "Generate again"),
        ("previous_batch", "Alt+Left", "Previous batch"),
        ("next_batch", "Alt+Right", "Next batch"),
    ),
    "Characters": (
        ("lock_cell", "K", "Lock or unlock the selected cells"),
        ("redraw_cell", "R", "Draw the selected cells again"),
        ("redraw_rest", "Shift+R", "Draw all unlocked cells again"),
        ("carry_over", "C", "Carry corrections over to the other cells"),
        ("use_as_given", "T", "Use the selected cells as given"),
        ("reject_character", "X", "Reject the selected characters"),
    ),
    "Editor": (
        ("pencil", "B", "Pencil"),
        ("eraser", "E", "Eraser"),
        ("line", "L", "Line"),
        ("rectangle", "M, U", "Rectangle"),
        ("bucket", "G", "Bucket"),
        ("wand", "W", "By colour"),
        ("move", "V", "Move"),
        ("eyedropper", "I", "Eyedropper"),
        ("switch_layer", "Q", "Switch between painting and selecting"),
        ("smaller_brush", "[", "Smaller brush"),
        ("larger_brush", "]", "Larger brush"),
        ("invert", "Ctrl+Shift+I", "Invert the selection"),
    ),
    "Runs page": (
        ("star", "Ctrl+D", "Star the selected runs"),
        ("trash", "Del", "Move the selected runs to the trash"),
        ("queue_up", "Alt+Up", "Move a run up in the queue"),
        ("queue_down", "Alt+Down", "Move a run down in the queue"),
    ),
}
_FIXED = {  # by context: keys that the user can't change, title
    "Lists of sprites": (
        ("Return, Enter", "View the sprite large"),
        ("Ctrl++, Ctrl+-", "Zoom in, zoom out"),
        ("Shift+F10", "Open the menu of the selected sprites"),
    ),
    "Large view": (
        ("Left, Right", "Previous and next sprite"),
        ("Home, End", "First and last sprite"),
        ("+, -, 0", "Zoom in, zoom out, fit to the window"),
        ("Esc", "Close the large view"),
    ),
    "Sprites page": (
        ("Esc", "Clear the search, then the chosen colour"),
        ("F2, Shift+F2", "Rename the view, or the frame, of a character's cell"),
    ),
    "Slicing": (
        ("Left, Right, Up, Down", "Scroll, or move the focused handle"),
        ("+, -", "Zoom in, zoom out"),
        ("Esc", "Go back without slicing"),
    ),
    "Characters": (("Return, Enter", "Open the cell in the editor"), ("Del", "Clear the selected given cells")),
    "Given tiles": (("Return, Enter", "Open a file for the place"), ("Del", "Clear the selected places")),
    "Lessons": (
        ("Return, Enter", "In the list: go to the lesson; at a choice: choose it, then measure"),
        ("Ctrl+Return", "Run the code, or check the exercise"),
    ),
    "Editor": (
        ("Left, Right, Up, Down", "Move the cursor; with Shift by 8 pixels"),
        ("Return, Enter", "Use the tool at the cursor; with Shift like the right button"),
        ("+, -, 0", "Zoom in, zoom out, fit to the window"),
    ),
    "Runs page": (("F2", "Rename the run"),),
    "Players": (("Left, Right", "Previous and next frame"), ("Home, End", "First and last frame")),
    "Plots": (
        ("Left, Right", "Move the crosshair"),
        ("PgUp, PgDown", "Move the crosshair by 20 values"),
        ("+, -, 0", "Zoom in, zoom out, show all"),
        ("Esc", "Hide the crosshair"),
    ),
    "Colours": (
        ("Left, Right, Up, Down", "Previous and next colour"),
        ("Return, Enter", "Choose the colour"),
    ),
    "Confusion matrix": (
        ("Left, Right, Up, Down", "Previous and next cell"),
        ("Return, Enter", "Show the sprites of the cell"),
    ),
    "Map of the sprites": (
        ("Left, Right, Up, Down", "Move the map"),
        ("+, -, Home", "Zoom in, zoom out, show all"),
        ("Return, Enter", "Select the sprite in the middle"),
    ),
}
_INCLUDED = {  # further contexts with active keys, by context
    "Sprites page": {"Lists of sprites"},
    "Generate page": {"Lists of sprites"},
    "Characters": {"Lists of sprites"},
    "Large view": {"Lists of sprites", "Sprites page", "Generate page"},
}
_SETTING = "keys"
_IN_TIP = re.compile(r"\{(\w+)\}")
_PORTABLE, _NATIVE = QKeySequence.SequenceFormat.PortableText, QKeySequence.SequenceFormat.NativeText


@dataclass(frozen=True)
class Command:
    """A command. keys: default keys in Qt's portable form, separated by ', '. is_fixed: the user can't change them."""

    context: str
    title: str
    keys: str
    is_fixed: bool


COMMANDS = {
    name: Command(context, title, keys, False) for context, of in _CHANGEABLE.items() for name, keys, title in of
}
COMMANDS |= {
    f"{context}, {keys}": Command(context, title, keys, True) for context, of in _FIXED.items() for keys, title in of
}


class KeyTable(QObject):
    """The current keys of all commands. Actions, shortcuts and tool tips made with this module follow changes."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._settings: Settings | None = None
        self._own: dict[str, str] = {}  # the user's keys by command name

    def load(self, settings: Settings) -> None:
        """Read the user's keys from the settings, and store later changes there."""
        self._settings = settings
        try:
            stored = records.parse(settings.text(_SETTING, "{}"), dict[str, str])
        except ValueError:
            stored = {}
        known = [name for name in stored if name in COMMANDS and not COMMANDS[name].is_fixed]
        self._set_own({name: stored[name] for name in known if QKeySequence(stored[name]).toString()})

    def sequences(self, name: str) -> list[QKeySequence]:
        """Return a command's keys."""
        own = self._own.get(name)
        return [QKeySequence(key) for key in ([own] if own else COMMANDS[name].keys.split(", "))]

    def text(self, name: str) -> str:
        """Return a command's keys in the notation of the platform."""
        return ", ".join(key.toString(_NATIVE) for key in self.sequences(name))

    def matches(self, name: str, event: QKeyEvent) -> bool:
        """Return whether the event presses a key of the command."""
        return QKeySequence(event.keyCombination()) in self.sequences(name)

    def sequences_beside(self, name: str, contexts: Collection[str]) -> list[QKeySequence]:
        """Return a command's keys without the keys of the commands in other contexts."""
        taken = [key for other in COMMANDS if COMMANDS[other].context in contexts for key in self.sequences(other)]
        return [key for key in self.sequences(name) if key not in taken]

    def is_default(self, name: str) -> bool:
        """Return whether a command has its default keys."""
        return name not in self._own

    def own(self) -> dict[str, str]:
        """Return the user's keys by command name, for `restore`."""
        return dict(self._own)

    def set_key(self, name: str, key: QKeySequence) -> str:
        """Replace a command's keys. On a conflict, change nothing and return a sentence about the conflict; else ''."""
        own = key.toString(_PORTABLE)
        return self._replace(name, {**self._own, name: own} if own != COMMANDS[name].keys else self._without(name))

    def reset(self, name: str) -> str:
        """Restore a command's default keys. On a conflict, change nothing and return a sentence; else ''."""
        return self._replace(name, self._without(name))

    def restore(self, own: dict[str, str]) -> None:
        """Return to an earlier result of `own`; {} restores all default keys."""
        self._set_own(own)
        self._store()

    def _without(self, name: str) -> dict[str, str]:
        return {other: key for other, key in self._own.items() if other != name}

    def _replace(self, name: str, own: dict[str, str]) -> str:
        before, self._own = self._own, own
        reason, self._own = self._conflict(name), before
        if not reason:
            self._set_own(own)
            self._store()
        return reason

    def _conflict(self, name: str) -> str:
        """Return a sentence about another command with the same key in the same context; '' without a conflict."""
        keys, context = self.sequences(name), COMMANDS[name].context
        for other, command in COMMANDS.items():
            if other != name and _are_active_together(context, command.context):
                for key in self.sequences(other):
                    if key in keys:
                        return f"{key.toString(_NATIVE)} is used already: {command.title} ({command.context})."
        return ""

    def _set_own(self, own: dict[str, str]) -> None:
        """Apply the user's keys and update the tool tips of enabled controls; others give a reason."""
        if own == self._own:
            return
        self._own = own
        self.changed.emit()
        for widget in QApplication.allWidgets():
            owners: tuple[QWidget | QAction, ...] = (widget, *widget.actions())
            for owner in owners:
                template = owner.property("tip")
                if template and "{" in template and owner.isEnabled():
                    owner.setToolTip(tip(template))

    def _store(self) -> None:
        if self._settings is not None:
            self._settings.set_text(_SETTING, json.dumps(self._own))


@functools.cache
def table() -> KeyTable:
    """Return the key table of the application."""
    return KeyTable()


def tip(template: str) -> str:
    """Fill keys into a tool tip: 'Start training. ({start})' becomes 'Start training. (Ctrl+R)'."""

    def fill(found: re.Match[str]) -> str:
        return table().text(found[1]).replace(", ", " or ") if found[1] in COMMANDS else found[0]

    return _IN_TIP.sub(fill, template)


def bind(target: QAction | QShortcut | QAbstractButton, name: str) -> None:
    """Trigger an action, a shortcut or a button by a command's keys."""
    _Binding(target, name)


def shortcut(
    name: str,
    widget: QWidget,
    slot: Callable[[], object],
    context: Qt.ShortcutContext = Qt.ShortcutContext.WidgetWithChildrenShortcut,
    *,
    yields_to: Collection[str] = (),
) -> QShortcut:
    """Call `slot` on a command's keys while `widget`, or by default one of its children, has the focus.

    yields_to: contexts whose commands keep the keys that they share with this command.
    """
    made = QShortcut(widget)
    made.setContext(context)
    made.activated.connect(slot)
    _Binding(made, name, yields_to)
    return made


def fixed_shortcut(key: str, widget: QWidget, slot: Callable[[], object]) -> None:
    """Call `slot` on an unchangeable key while `widget` or one of its children has the focus."""
    made = QShortcut(QKeySequence(key), widget)
    made.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
    made.activated.connect(slot)


class _Binding(QObject):
    """Sets a command's keys now and after each change."""

    def __init__(
        self, target: QAction | QShortcut | QAbstractButton, name: str, yields_to: Collection[str] = ()
    ) -> None:
        super().__init__(target)
        self._target, self._name, self._yields_to = target, name, yields_to
        table().changed.connect(self._apply)
        self._apply()

    @Slot()
    def _apply(self) -> None:
        keys = table().sequences_beside(self._name, self._yields_to)
        if isinstance(self._target, QAction):
            self._target.setShortcuts(keys)
        elif isinstance(self._target, QShortcut):
            self._target.setKeys(keys)
        else:
            self._target.setShortcut(keys[0])


def _are_active_together(context: str, other: str) -> bool:
    """Return whether keys of both contexts can be active at once."""
    is_included = other in _INCLUDED.get(context, ()) or context in _INCLUDED.get(other, ())
    return context == other or is_included or EVERYWHERE in (context, other)
