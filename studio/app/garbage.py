"""Python's cyclic garbage, collected in the main thread alone.

Left to itself the collector runs in whatever thread allocates: a window that is let go there is taken apart while the
main thread waits for it, and both wait for ever.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer, Slot

_INTERVAL_MS = 50  # more seldom, and a young generation has become so large that walking it is felt


class MainThreadCollector(QObject):
    """Switches automatic collection off and, once begun, collects by the same thresholds, from a timer."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        gc.disable()
        self._timer = QTimer(self)
        self._timer.setInterval(_INTERVAL_MS)
        self._timer.timeout.connect(self.collect_due)
        self._oldest = 2  # generation to be walked

    @Slot()
    def begin(self) -> None:
        """Collect from now on, but never what is there already: torch's modules alone take 30 ms to walk."""
        if not self._timer.isActive():
            gc.freeze()
            self._timer.start()

    @Slot()
    def spare_the_old(self) -> None:
        """Much is coming that stays: leave the oldest generation alone, walking which takes ever longer."""
        self._oldest = 1

    def settle(self, *, for_good: bool) -> None:
        """What was coming is there. for_good: it is never walked, nor anything else that there is by now."""
        self._oldest = 2
        if for_good and self._timer.isActive():
            gc.freeze()

    def end(self) -> None:
        """Collect no more; what was left out is freed in order when the program ends."""
        self._timer.stop()
        gc.unfreeze()

    @Slot()
    def collect_due(self) -> None:
        """Collect the oldest generation whose threshold is passed."""
        counts, thresholds = gc.get_count(), gc.get_threshold()
        for generation in range(self._oldest, -1, -1):
            if counts[generation] > thresholds[generation]:
                gc.collect(generation)
                return
