"""The window of the first start: asks once, shows progress and errors. tkinter, because Qt is not installed yet."""

from __future__ import annotations

import os
import shutil
import subprocess
import tkinter as tk
from collections.abc import Generator
from tkinter import ttk

from studio.installing.environment import InstallError, Progress
from studio.installing.payload import APP
from studio.installing.setup import CLOSED, INSTALLED, LATER, Answer, Setup

# Window, field, text, muted text, accent, text on accent, error: the colours of the studio's own themes.
_LIGHT = ("#f7f7f9", "#ffffff", "#1b1e24", "#616874", "#4f5bd5", "#ffffff", "#c03434")
_DARK = ("#17191d", "#1e2126", "#e6e8ec", "#9aa1ad", "#8790f5", "#14161b", "#ef7b74")
_WIDTH = 560


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
        self._root.minsize(round(_WIDTH * self._scale), 0)
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
        window, field, text, muted, accent, on_accent, _ = self._colours
        self._root.configure(background=window)
        style = ttk.Style(self._root)
        style.theme_use("clam")
        style.configure(".", background=window, foreground=text, fieldbackground=field, bordercolor=muted)
        style.configure("TButton", background=field, padding=(12, 5), focuscolor=accent)
        style.map("TButton", background=[("active", window)], foreground=[("disabled", muted)])
        style.configure("Accent.TButton", background=accent, foreground=on_accent, focuscolor=on_accent)
        style.map("Accent.TButton", background=[("disabled", field), ("active", accent)])
        style.configure("TCombobox", arrowcolor=text, selectbackground=field, selectforeground=text)
        style.map("TCombobox", fieldbackground=[("readonly", field)], foreground=[("disabled", muted)])
        style.map("TCheckbutton", background=[("active", window)])
        style.configure("TProgressbar", background=accent, troughcolor=field, bordercolor=muted)
        colours = {"background": field, "foreground": text, "selectBackground": accent, "selectForeground": on_accent}
        for option, colour in colours.items():
            self._root.option_add(f"*TCombobox*Listbox.{option}", colour)

    def _create(self) -> None:
        muted, error = self._colours[3], self._colours[6]
        frame = ttk.Frame(self._root, padding=round(20 * self._scale))
        frame.grid(sticky="nsew")
        frame.columnconfigure(1, weight=1)
        self._root.columnconfigure(0, weight=1)
        wrap = round((_WIDTH - 40) * self._scale)
        heading = ttk.Label(frame, text=self._found.title, font=("TkDefaultFont", 14, "bold"))
        self._problem = ttk.Label(frame, text=self._found.problem, foreground=error, wraplength=wrap)
        label = ttk.Label(frame, text="PyTorch for:")
        self._choice = ttk.Combobox(frame, state="readonly", textvariable=self._build)
        self._choice["values"] = [build.title for build in self._found.builds]
        advice = ttk.Label(frame, text=self._found.advice, foreground=muted, wraplength=wrap)
        self._about = ttk.Label(frame, wraplength=wrap)
        self._bar = ttk.Progressbar(frame, maximum=1)
        self._status = ttk.Label(frame, foreground=muted, wraplength=wrap)
        self._details = tk.Text(frame, height=10, width=10, state="disabled", wrap="char", font="TkFixedFont")
        self._details.configure(background=self._colours[1], foreground=self._colours[2], borderwidth=1)
        details = ttk.Checkbutton(frame, text="Details", variable=self._show_details, command=self._on_details_toggled)
        self._later = ttk.Button(frame)
        self._go = ttk.Button(frame, text=self._found.verb, style="Accent.TButton", command=self._on_go)
        rows = (heading, self._problem, None, advice, self._about, self._bar, self._status, self._details, None)
        for row, widget in enumerate(rows):
            if widget is not None:
                widget.grid(row=row, column=0, columnspan=4, sticky="ew", pady=(0, round(10 * self._scale)))
        label.grid(row=2, column=0, sticky="w", pady=(0, 10))
        self._choice.grid(row=2, column=1, columnspan=3, sticky="ew", padx=(8, 0), pady=(0, 10))
        details.grid(row=8, column=0, sticky="w")
        self._later.grid(row=8, column=2, padx=8)
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
