"""Those who race in tests.bench.race: each trains on a folder of sprites and draws new ones after so many minutes.

    python -m tests.bench.racers NAME FOLDER OUTPUT --minutes 2 5 10 --count 256 [--prototype SCRIPT] [--pace STEPS]

Writes OUTPUT/<minutes>.npy, uint8 [count, 32, 32, 4]. Time is wall time from the first step's preparation on, what a
racer compiles counted in; imports, reading the folder and drawing are not counted. Where an hour of quiet can't be had,
--pace takes as many steps for a minute as a short race showed, whatever the clock says.
"""

from __future__ import annotations

import copy
import importlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from studio.core.generators import run_to_end
from studio.core.process import prepare_for_training
from tests.bench.tools import command_line

Report = Callable[[float, np.ndarray], None]
SIZE = 32


def studio(folder: Path, minutes: Sequence[float], count: int, report: Report, options: dict[str, Any]) -> None:
    """The studio as users get it: a run of its own for each budget, true pixels and guidance at their defaults."""
    prepare_for_training()
    from studio.engine import catalog
    from studio.engine.control.control import Control
    from studio.engine.devices.detection import choose_device, probe_devices
    from studio.engine.models.loading import load_model
    from studio.engine.quality.evaluate import sample_classes
    from studio.engine.sampling.generate import draw
    from studio.engine.sampling.settings import GenerateSettings
    from studio.engine.training.loop import train_new
    from tests.data.making import imported

    sprites, recipe, device = (
        imported(folder).sprites,
        catalog.recipe("generator"),
        choose_device(probe_devices(), "cpu"),
    )
    labels = sample_classes(sprites, count, seed=0)
    for budget in minutes:
        with tempfile.TemporaryDirectory() as scratch:
            config = recipe.Config(minutes=budget, steps=round(budget * options["pace"]))
            for _ in train_new(Path(scratch) / "run", sprites, recipe, config, device, Control()):
                pass
            model = load_model(Path(scratch) / "run", "last", device)
            report(budget, run_to_end(draw(model, labels, GenerateSettings())))


def loop(folder: Path, minutes: Sequence[float], count: int, report: Report, options: dict[str, Any]) -> None:
    """The tutorials' loop around the studio's network: ImageFolder, DataLoader, fp32, AdamW at one rate, no average."""
    import torch

    from studio.engine.steps.batches import to_rgba
    from studio.recipes.base import Spec
    from studio.recipes.generator import Generator, GeneratorConfig
    from tests.bench.bench_loop import tutorial_data, tutorial_steps

    data, recipe, config = tutorial_data(folder), Generator(), GeneratorConfig()
    torch.manual_seed(0)
    network = recipe.build(config, Spec(SIZE, tuple(data.classes)))
    labels = np.random.default_rng(0).choice(data.targets, count)

    def draw() -> np.ndarray:
        drawn = []
        with torch.no_grad():
            for start in range(0, count, 64):
                part = torch.from_numpy(labels[start : start + 64])
                *_, x = recipe.draw(network.eval(), part, 1.5, 20, 0, start)
                drawn.append(to_rgba(x).numpy())
        network.train()
        return np.concatenate(drawn)

    clock = _Clock(minutes, report, options["pace"])
    for _ in tutorial_steps(data, network, recipe, config, rate=1e-3, clip=None):
        if not clock.tick(draw):
            return


def prototype(folder: Path, minutes: Sequence[float], count: int, report: Report, options: dict[str, Any]) -> None:
    """A script of its own that trains for so many seconds and saves what it draws; see --prototype."""
    if options["pace"]:
        sys.exit("The prototype goes by the clock: leave out --pace.")
    for budget in minutes:
        with tempfile.TemporaryDirectory() as scratch:
            output = Path(scratch) / "samples.npy"
            numbers = ["--seconds", str(60 * budget), "--count", str(count), "--out", str(output)]
            subprocess.run([sys.executable, options["script"], str(folder), *numbers], check=True, stdout=sys.stderr)
            report(budget, np.load(output))


def denoising_diffusion(
    folder: Path, minutes: Sequence[float], count: int, report: Report, options: dict[str, Any]
) -> None:
    """denoising-diffusion-pytorch's Trainer over the folder, at its README's settings or with a network of our size.

    Its README's call, but 4 channels, and drawing takes 50 steps of DDIM instead of 250 so that it ends.
    """
    import torch

    peer = importlib.import_module("denoising_diffusion_pytorch")
    network = peer.Unet(dim=options["dim"], dim_mults=options["dim_mults"], channels=4)
    diffusion = peer.GaussianDiffusion(network, image_size=SIZE, timesteps=1000, sampling_timesteps=50)
    with tempfile.TemporaryDirectory() as scratch:
        trainer = peer.Trainer(
            diffusion, str(folder), train_batch_size=32, train_lr=8e-5, train_num_steps=700_000,
            gradient_accumulate_every=2, ema_decay=0.995, amp=False, calculate_fid=False, convert_image_to="RGBA",
            save_and_sample_every=10**9, results_folder=scratch,
        )  # fmt: skip
        clock, update = _Clock(minutes, report, options["pace"]), trainer.ema.update

        def draw() -> np.ndarray:
            with torch.inference_mode():
                parts = [trainer.ema.ema_model.eval().sample(batch_size=64) for _ in range(0, count, 64)]
            return _from_unit(torch.cat(parts)[:count])

        def update_and_look_at_the_clock() -> None:
            update()
            if not clock.tick(draw):
                trainer.train_num_steps = trainer.step

        trainer.ema.update = update_and_look_at_the_clock
        trainer.train()


def diffusers(folder: Path, minutes: Sequence[float], count: int, report: Report, options: dict[str, Any]) -> None:
    """diffusers' UNet2DModel as its unconditional example trains it, or with a network of our size.

    4 channels; drawing takes 250 steps of DDPM instead of 1,000 so that it ends. (DDIM draws little but noise with it.)
    """
    import torch
    from torch.utils.data import DataLoader
    from torchvision import transforms
    from torchvision.datasets import ImageFolder

    from tests.bench.bench_loop import forever, load_rgba

    peer = importlib.import_module("diffusers")
    training = importlib.import_module("diffusers.training_utils")
    scheduling = importlib.import_module("diffusers.optimization")
    torch.manual_seed(0)
    network = peer.UNet2DModel(
        sample_size=SIZE, in_channels=4, out_channels=4, layers_per_block=2, **options["network"]
    ).train()
    steps = transforms.Compose(
        [transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize([0.5], [0.5])]
    )
    loader = DataLoader(ImageFolder(str(folder), transform=steps, loader=load_rgba), batch_size=16, shuffle=True)
    noise_schedule = peer.DDPMScheduler(num_train_timesteps=1000, beta_schedule="linear")
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, betas=(0.95, 0.999), weight_decay=1e-6, eps=1e-8)
    rates = scheduling.get_scheduler(
        "cosine", optimizer=optimizer, num_warmup_steps=500, num_training_steps=100 * len(loader)
    )
    average = training.EMAModel(
        network.parameters(), decay=0.9999, use_ema_warmup=True, inv_gamma=1.0, power=0.75,
        model_cls=peer.UNet2DModel, model_config=network.config,
    )  # fmt: skip

    def draw() -> np.ndarray:
        averaged = copy.deepcopy(network).eval()
        average.copy_to(averaged.parameters())
        sampler = peer.DDPMScheduler.from_config(noise_schedule.config)
        sampler.set_timesteps(250)
        rng = torch.Generator().manual_seed(0)
        x = torch.randn(count, 4, SIZE, SIZE, generator=rng)
        with torch.no_grad():
            for t in sampler.timesteps:
                guess = torch.cat([averaged(part, t).sample for part in x.split(64)])
                x = sampler.step(guess, t, x, generator=rng).prev_sample
        return _from_unit(x / 2 + 0.5)

    clock = _Clock(minutes, report, options["pace"])
    for clean, _ in forever(loader):
        noise, t = torch.randn_like(clean), torch.randint(0, 1000, (len(clean),))
        loss = torch.nn.functional.mse_loss(network(noise_schedule.add_noise(clean, noise, t), t).sample, noise)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        rates.step()
        optimizer.zero_grad()
        average.step(network.parameters())
        loss.detach().item()
        if not clock.tick(draw):
            return


class _Clock:
    """Calls `report` with what `draw` gives whenever the next mark is reached; drawing takes none of the time.

    pace: steps that count as a minute; 0 goes by the clock.
    """

    def __init__(self, minutes: Sequence[float], report: Report, pace: float) -> None:
        self._marks, self._report, self._pace = sorted(minutes), report, pace
        self._start_s, self._steps = time.perf_counter(), 0

    def tick(self, draw: Callable[[], np.ndarray]) -> bool:
        """After each step: False when the last mark is behind."""
        now_s, self._steps = time.perf_counter(), self._steps + 1
        passed = self._steps / self._pace if self._pace else (now_s - self._start_s) / 60
        if passed >= self._marks[0]:
            sys.stderr.write(f"{self._steps} steps\n")
            self._report(self._marks.pop(0), draw())
            self._start_s += time.perf_counter() - now_s
        return bool(self._marks)


def _from_unit(x: Any) -> np.ndarray:
    """float [N, 4, S, S] in [0, 1], straight alpha -> uint8 [N, S, S, 4]."""
    rgba: np.ndarray = (x.clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).numpy()
    return rgba


_WIDE = {
    "block_out_channels": (128, 128, 256, 256, 512, 512),
    "down_block_types": ("DownBlock2D",) * 4 + ("AttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "AttnUpBlock2D") + ("UpBlock2D",) * 4,
}
_SLIM = {
    "block_out_channels": (32, 64, 64),
    "norm_num_groups": 16,
    "down_block_types": ("DownBlock2D", "DownBlock2D", "AttnDownBlock2D"),
    "up_block_types": ("AttnUpBlock2D", "UpBlock2D", "UpBlock2D"),
}
RACERS: dict[str, tuple[Callable[..., None], dict[str, Any]]] = {
    "studio": (studio, {}),
    "loop": (loop, {}),
    "prototype": (prototype, {}),
    "denoising-diffusion": (denoising_diffusion, {"dim": 64, "dim_mults": (1, 2, 4, 8)}),
    "denoising-diffusion-slim": (denoising_diffusion, {"dim": 24, "dim_mults": (1, 2, 2)}),
    "diffusers": (diffusers, {"network": _WIDE}),
    "diffusers-slim": (diffusers, {"network": _SLIM}),
}


def main() -> None:
    """Run one racer."""
    parser = command_line(__doc__)
    parser.add_argument("name", choices=RACERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--minutes", type=float, nargs="+", required=True)
    parser.add_argument("--count", type=int, default=256)
    parser.add_argument("--prototype", default="", help="the script that races as 'prototype'")
    parser.add_argument("--pace", type=float, default=0.0, help="steps that count as a minute")
    chosen = parser.parse_args()

    def report(minutes: float, sprites: np.ndarray) -> None:
        np.save(chosen.output / f"{minutes:g}.npy", sprites)
        sys.stderr.write(f"{chosen.name}: {minutes:g} minutes\n")

    race, options = RACERS[chosen.name]
    told = {"script": chosen.prototype, "pace": chosen.pace}
    race(chosen.folder, chosen.minutes, chosen.count, report, {**options, **told})


if __name__ == "__main__":
    main()
