"""Noise in C beside torch's."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch

from studio.exports.c import source
from tests.exports.c.tools import library, needs_compiler, pointer

EXPORTS = """
void uniforms(float *out, int count, int64_t seed);
void normals(float *out, int count, int64_t seed);

void uniforms(float *out, int count, int64_t seed)
{
    generator g;
    seed_generator(&g, (uint32_t)seed);
    for (int i = 0; i < count; i++) out[i] = uniform(&g);
}

void normals(float *out, int count, int64_t seed)
{
    draw_noise(out, count, seed);
}
"""
SEEDS = (0, 1, 1_000_003, 2**31, 2**32 - 1, 2**40 + 5, 2**62, -1)

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("noise") / "noise.c"
    path.write_text("#include <stdint.h>\n" + source.includes("noise.h") + source.read("noise.c", "model") + EXPORTS)
    path.with_name("noise.h").touch()
    return library(path)


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_numbers_are_torchs_to_the_last_bit(made: ctypes.CDLL, seed: int) -> None:
    found = np.zeros(5000, np.float32)  # the generator's state is used up eight times
    made.uniforms(pointer(found), len(found), ctypes.c_int64(seed))
    expected = torch.rand(len(found), generator=torch.Generator().manual_seed(seed))
    assert np.array_equal(found, expected.numpy())


@pytest.mark.parametrize("count", [16, 17, 31, 32, 33, 100, 255, 256, 1023, 4096])
def test_normal_numbers_are_torchs(made: ctypes.CDLL, count: int) -> None:
    """As exact as the logarithm and the sine of a machine are; odd numbers of them draw the last ones anew."""
    for seed in SEEDS:
        found = np.zeros(count, np.float32)
        made.normals(pointer(found), count, ctypes.c_int64(seed))
        expected = torch.randn(count, generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-5, atol=2e-6)
