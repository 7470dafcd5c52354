"""Training from sprites that are streamed against training from those on the device: the same set, in turn, in pairs.

    python -m tests.bench.bench_streaming [--count 100000] [--steps 40] [--pairs 5] [--recipe generator] [--width 0]

Prints sprites/s of both and their ratio. The first steps, in which buffers are made, are not counted. Each side of a
pair comes first as often as the other.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from studio.core.process import prepare_for_training
from tests.bench.many_sprites import mapped_sprites
from tests.bench.tools import configured, say, training_command_line


def main() -> None:
    """Run the pairs and print what they gave."""
    parser = training_command_line(__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--device", default="auto")
    chosen = parser.parse_args()
    prepare_for_training()
    from studio.engine.devices.detection import choose_device, probe_devices
    from tests.bench.bench_loop import WARM_UP_STEPS, engine_rate

    device = choose_device(probe_devices(), chosen.device)
    recipe, config = configured(chosen, steps=WARM_UP_STEPS + chosen.steps)
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        sprites = mapped_sprites(Path(folder), chosen.count)
        for number in range(chosen.pairs):
            rates = {}
            for setting in ("yes", "no") if number % 2 else ("no", "yes"):
                rates[setting] = engine_rate(sprites, recipe, config.replace(data_on_device=setting), device)
            ratios.append(rates["no"] / rates["yes"])
            yes, no = (f"{rates[setting]:8.1f} sprites/s" for setting in ("yes", "no"))
            say(f"on the device {yes}   streamed {no}   x {ratios[-1]:.3f}")
    spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
    say(f"{chosen.count:,} sprites, {device.name}: median {statistics.median(ratios):.3f} ({spread})")


if __name__ == "__main__":
    main()
