"""Short captions below sprites."""

from __future__ import annotations

from PySide6.QtGui import QFont, QFontMetrics
from PySide6.QtWidgets import QApplication

from studio.app.widgets.sprites.captions import fitting_caption, short_captions


def test_captions_leave_out_folders_unless_two_would_be_equal() -> None:
    assert short_captions(["orcs/red/Mage", "orcs/Grunt", "gem"]) == ["Mage", "Grunt", "gem"]
    assert short_captions(["orcs/Mage", "elves/Mage", "elves/Archer"]) == ["orcs/Mage", "elves/Mage", "Archer"]
    assert short_captions(["✗ big orcs/Mage (is elves/Archer)"]) == ["✗ Mage (is Archer)"]
    assert short_captions(["big orcs/Mage, looks like elves/Archer"]) == ["Mage, looks like Archer"]
    assert short_captions([]) == []


def test_captions_are_whole_then_short_then_elided(qapp: QApplication) -> None:
    metrics = QFontMetrics(QFont())
    whole, short = "characters/Mage-Red", "Mage-Red"
    assert fitting_caption(whole, short, metrics, metrics.horizontalAdvance(whole)) == whole
    assert fitting_caption(whole, short, metrics, metrics.horizontalAdvance(whole) - 1) == short
    room = metrics.horizontalAdvance("armour/art")
    texts = [fitting_caption(caption, caption, metrics, room) for caption in ("armour/artefact", "weapon/artefact")]
    assert [text[:3] for text in texts] == ["arm", "wea"]
    assert all("…" in text and text.endswith("act") for text in texts)
