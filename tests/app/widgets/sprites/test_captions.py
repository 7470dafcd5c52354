"""Short captions below sprites."""

from __future__ import annotations

from PySide6.QtGui import QFont, QFontMetrics
from PySide6.QtWidgets import QApplication

from studio.app.widgets.sprites.captions import elided_caption, short_captions


def test_captions_leave_out_folders_unless_two_would_be_equal() -> None:
    assert short_captions(["orcs/red/Mage", "orcs/Grunt", "gem"]) == ["Mage", "Grunt", "gem"]
    assert short_captions(["orcs/Mage", "elves/Mage", "elves/Archer"]) == ["orcs/Mage", "elves/Mage", "Archer"]
    assert short_captions(["✗ big orcs/Mage (is elves/Archer)"]) == ["✗ Mage (is Archer)"]
    assert short_captions([]) == []


def test_long_captions_keep_the_end_of_a_path_and_both_ends_of_a_name(qapp: QApplication) -> None:
    metrics = QFontMetrics(QFont())
    for caption, start in (("characters/Mage-Red", "…"), ("Assassin-Commander-Red", "A")):
        text = elided_caption(caption, metrics, metrics.horizontalAdvance(caption) - 10)
        assert text != caption and text.startswith(start) and text.endswith("Red")
