"""The window of the first start: asks once, shows progress and errors. tkinter, because Qt is not installed yet."""

from __future__ import annotations

import os
import shutil
import subprocess
import tkinter as tk
from collections.abc import Generator
from tkinter import ttk
from typing import NamedTuple

from studio.installing.environment import InstallError, Progress
from studio.installing.payload import APP
from studio.installing.setup import CLOSED, INSTALLED, LATER, Answer, Setup

_WIDTH = 560


class _Colours(NamedTuple):
    """The colours of a theme, close to the studio's colours."""

    window: str
    field: str
    border: str
    text: str
    muted: str
    accent: str
    on_accent: str
    error: str


_LIGHT = _Colours("#f7f7f9", "#ffffff", "#c4c7ce", "#1b1e24", "#616874", "#4f5bd5", "#ffffff", "#c03434")
_DARK = _Colours("#17191d", "#1e2126", "#4a4f59", "#e6e8ec", "#9aa1ad", "#8790f5", "#14161b", "#ef7b74")


class SetupWindow:
    """Offers a set-up. `ask` returns when the window closes."""

    def __init__(self, found: Setup) -> None:
        self._found = found
        self._answer: Answer = CLOSED
        self._steps: Generator[Progress, None, None] | None = None
        self._root = tk.Tk(className=APP)
        self._root.title(found.title)
        if found.payload.icon.is_file():
            self._icon = tk.PhotoImage(file=found.payload.icon)
            self._root.iconphoto(True, self._icon)
        self._scale = self._root.winfo_fpixels("1i") / 96
        self._root.minsize(self._px(_WIDTH), 0)
        self._root.resizable(width=False, height=False)
        self._root.protocol("WM_DELETE_WINDOW", self._on_close)
        self._root.bind("<Escape>", lambda event: self._on_close())
        self._build = tk.StringVar(self._root)
        self._show_details = tk.BooleanVar(self._root)
        self._colours = _DARK if _prefers_dark() else _LIGHT
        self._style()
        self._create()

    def ask(self) -> Answer:
        """Show the window until the user closes it or the set-up has finished."""
        self._root.mainloop()
        return self._answer

    def _style(self) -> None:
        c, px = self._colours, self._px
        self._root.configure(background=c.window)
        style = ttk.Style(self._root)
        style.theme_use("clam")
        style.configure(".", background=c.window, foreground=c.text, fieldbackground=c.field, bordercolor=c.border)
        for kind in ("TButton", "TCombobox", "TProgressbar"):  # the theme draws a bevel beside the border
            style.configure(kind, lightcolor=c.field, darkcolor=c.field)
        style.configure("TButton", background=c.field, padding=(px(12), px(5)), focuscolor=c.accent)
        style.map("TButton", background=[("active", c.window)], foreground=[("disabled", c.muted)])
        accent = {"background": c.accent, "lightcolor": c.accent, "darkcolor": c.accent, "bordercolor": c.accent}
        style.configure("Accent.TButton", **accent, foreground=c.on_accent, focuscolor=c.on_accent)
        style.map("Accent.TButton", background=[("disabled", c.field), ("active", c.accent)])
        style.map("Accent.TButton", lightcolor=[("disabled", c.field)], darkcolor=[("disabled", c.field)])
        style.map("Accent.TButton", bordercolor=[("disabled", c.border)])
        style.configure("TCombobox", background=c.field, arrowcolor=c.text, arrowsize=px(14), padding=px(3))
        style.configure("TCombobox", selectbackground=c.field, selectforeground=c.text)
        style.map("TCombobox", fieldbackground=[("readonly", c.field)], foreground=[("disabled", c.muted)])
        style.map("TCombobox", bordercolor=[("focus", c.accent)], lightcolor=[("focus", c.field)])
        style.configure("TCheckbutton", indicatorsize=px(12), indicatormargin=(0, 0, px(6), 0))
        style.configure("TCheckbutton", indicatorbackground=c.field, indicatorforeground=c.text)
        style.configure("TCheckbutton", upperbordercolor=c.muted, lowerbordercolor=c.muted, focuscolor=c.accent)
        style.map("TCheckbutton", background=[("active", c.window)], indicatorbackground=[("active", c.field)])
        style.configure("TProgressbar", background=c.accent, troughcolor=c.field, lightcolor=c.accent)
        style.configure("TProgressbar", darkcolor=c.accent, thickness=px(12))
        listed = {"background": c.field, "foreground": c.text, "selectBackground": c.accent}
        for option, colour in (listed | {"selectForeground": c.on_accent}).items():
            self._root.option_add(f"*TCombobox*Listbox.{option}", colour)

    def _px(self, size: int) -> int:
        """Return a size for 96 dots per inch in pixels of this screen."""
        return round(size * self._scale)

    def _create(self) -> None:
        c, px = self._colours, self._px
        frame = ttk.Frame(self._root, padding=px(20))
        frame.grid(sticky="nsew")
        frame.columnconfigure(1, weight=1)
        self._root.columnconfigure(0, weight=1)
        wrap = px(_WIDTH - 40)
        heading = ttk.Label(frame, text=self._found.title, font=("TkDefaultFont", 14, "bold"))
        self._problem = ttk.Label(frame, text=self._found.problem, foreground=c.error, wraplength=wrap)
        label = ttk.Label(frame, text="PyTorch for:")
        self._choice = ttk.Combobox(frame, state="readonly", textvariable=self._build)
        self._choice["values"] = [build.title for build in self._found.builds]
        advice = ttk.Label(frame, text=self._found.advice, foreground=c.muted, wraplength=wrap)
        self._about = ttk.Label(frame, wraplength=wrap)
        self._bar = ttk.Progressbar(frame, maximum=1)
        self._status = ttk.Label(frame, foreground=c.muted, wraplength=wrap)
        self._details = tk.Text(frame, height=8, width=10, state="disabled", wrap="word", font="TkFixedFont")
        self._details.configure(background=c.field, foreground=c.text, borderwidth=0, padx=px(6), pady=px(4))
        self._details.configure(highlightthickness=1, highlightbackground=c.border, highlightcolor=c.accent)
        details = ttk.Checkbutton(frame, text="Details", variable=self._show_details, command=self._on_details_toggled)
        self._later = ttk.Button(frame)
        self._go = ttk.Button(frame, text=self._found.verb, style="Accent.TButton", command=self._on_go)
        rows = (heading, self._problem, None, advice, self._about, self._bar, self._status, self._details, None)
        for row, widget in enumerate(rows):
            if widget is not None:
                widget.grid(row=row, column=0, columnspan=4, sticky="ew", pady=(0, px(10)))
        label.grid(row=2, column=0, sticky="w", pady=(0, px(10)))
        self._choice.grid(row=2, column=1, columnspan=3, sticky="ew", padx=(px(8), 0), pady=(0, px(10)))
        details.grid(row=8, column=0, sticky="w")
        self._later.grid(row=8, column=2, padx=px(8))
        self._go.grid(row=8, column=3)
        self._details.grid_remove()
        self._bar.grid_remove()
        self._status.grid_remove()
        self._choice.bind("<<ComboboxSelected>>", lambda event: self._show_question())
        suggested = self._found.suggested
        self._choice.current(self._found.builds.index(suggested) if suggested else -1)
        self._show_question()
        self._go.focus_set()
        self._go.bind("<Return>", lambda event: self._on_go())

    def _show_question(self) -> None:
        build = self._found.builds[self._choice.current()] if self._found.builds else None
        why_not = self._found.why_not(build)
        self._say(why_not or self._found.problem)
        self._about.configure(text=self._found.describe(build) if build else "")
        self._go.state(["disabled" if why_not else "!disabled"])
        self._choice.selection_clear()
        if self._found.older_version:
            self._later.configure(text=f"Start {self._found.older_version}", command=self._on_later)
        else:
            self._later.configure(text="Close", command=self._on_close)

    def _on_go(self) -> None:
        if self._steps is not None or self._go.instate(["disabled"]):
            return
        self._steps = self._found.run(self._found.builds[self._choice.current()])
        self._say("")
        self._bar.grid()
        self._go.state(["disabled"])
        self._choice.state(["disabled"])
        self._later.configure(text="Cancel", command=self._on_cancel)
        self._root.after(1, self._on_tick)

    def _on_tick(self) -> None:
        """Advance the installation, ten times a second."""
        if self._steps is None:
            return
        try:
            progress = next(self._steps, None)
        except InstallError as error:
            self._stop(str(error))
            return
        if progress is None:
            self._answer = INSTALLED
            self._root.destroy()
            return
        self._bar.configure(value=progress.share)
        self._status.configure(text=progress.text)
        self._status.grid()
        if self._show_details.get():
            self._update_details()
        self._root.after(1, self._on_tick)

    def _stop(self, problem: str) -> None:
        """Return to the question after an error or a cancel."""
        self._steps = None
        self._bar.grid_remove()
        self._status.grid_remove()
        self._choice.state(["!disabled"])
        self._show_question()
        self._go.configure(text="Try again")
        self._say(problem)
        self._update_details()

    def _on_cancel(self) -> None:
        self._close_steps()
        self._stop("Cancelled. What has been fetched is kept.")

    def _on_later(self) -> None:
        self._answer = LATER
        self._root.destroy()

    def _on_close(self) -> None:
        self._close_steps()
        self._root.destroy()

    def _close_steps(self) -> None:
        steps, self._steps = self._steps, None
        if steps is not None:
            steps.close()

    def _on_details_toggled(self) -> None:
        if self._show_details.get():
            self._details.grid()
            self._update_details()
        else:
            self._details.grid_remove()

    def _update_details(self) -> None:
        self._details.configure(state="normal")
        self._details.replace("1.0", "end", self._found.log() or "No output yet.")
        self._details.configure(state="disabled")
        self._details.see("end")

    def _say(self, problem: str) -> None:
        self._problem.configure(text=problem)
        if problem:
            self._problem.grid()
        else:
            self._problem.grid_remove()


def _prefers_dark() -> bool:
    """Return whether the desktop asks for dark windows: GNOME's setting, or GTK's theme."""
    if "dark" in os.environ.get("GTK_THEME", "").lower():
        return True
    if not shutil.which("gsettings"):
        return False
    command = ["gsettings", "get", "org.gnome.desktop.interface", "color-scheme"]
    try:
        return "dark" in subprocess.run(command, capture_output=True, text=True, timeout=2, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return False
