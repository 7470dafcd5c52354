from __future__ import annotations

from studio.engine.steps.timing import Speedometer


def test_speed_is_that_of_the_last_seconds() -> None:
    speed = Speedometer(batch_size=4, window_s=5.0)
    assert speed.sprites_per_s() == 0
    for steps, found in ((1, 4.0), (2, 8.0)):
        for _ in range(10):
            speed.add(steps, 1.0)
        assert speed.sprites_per_s() == found  # nothing is left of the speed before
