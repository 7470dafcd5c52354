/* Noise as torch.randn draws it on a CPU from a generator with a seed: the Mersenne Twister (Matsumoto & Nishimura
   1998), then Box and Muller's transform in blocks of sixteen. */

enum { STATE = 624, SHIFT = 397, BLOCK = 16 };

typedef struct { uint32_t state[STATE]; int next; } generator;

static void seed_generator(generator *g, uint32_t seed)
{
    g->state[0] = seed;
    for (uint32_t i = 1; i < STATE; i++) {
        g->state[i] = UINT32_C(1812433253) * (g->state[i - 1] ^ (g->state[i - 1] >> 30)) + i;
    }
    g->next = STATE;
}

static uint32_t random_bits(generator *g)
{
    if (g->next == STATE) {
        for (int i = 0; i < STATE; i++) {
            const uint32_t joined = (g->state[i] & 0x80000000u) | (g->state[(i + 1) % STATE] & 0x7fffffffu);
            g->state[i] = g->state[(i + SHIFT) % STATE] ^ (joined >> 1) ^ (joined & 1 ? 0x9908b0dfu : 0);
        }
        g->next = 0;
    }
    uint32_t bits = g->state[g->next++];
    bits ^= bits >> 11;
    bits ^= (bits << 7) & 0x9d2c5680u;
    bits ^= (bits << 15) & 0xefc60000u;
    return bits ^ (bits >> 18);
}

/* Evenly distributed in [0, 1), in steps of 2^-24. */
static float uniform(generator *g)
{
    return (float)(random_bits(g) & 0xffffffu) * (1.0f / 16777216);
}

/* Sixteen uniform numbers become standard normal ones: the first eight give radii, the others angles. */
static void make_normal(float *block)
{
    for (int i = 0; i < BLOCK / 2; i++) {
        const float radius = sqrtf(-2 * logf(1 - block[i])), angle = 6.283185307179586f * block[i + BLOCK / 2];
        block[i] = radius * cosf(angle);
        block[i + BLOCK / 2] = radius * sinf(angle);
    }
}

/* As torch.randn(count, generator=torch.Generator().manual_seed(seed)), from 16 numbers on. */
static void draw_noise(float *noise, int count, int64_t seed)
{
    generator g;
    seed_generator(&g, (uint32_t)seed);
    for (int i = 0; i < count; i++) noise[i] = uniform(&g);
    for (int i = 0; i + BLOCK <= count; i += BLOCK) make_normal(noise + i);
    if (count % BLOCK) { /* the last sixteen are drawn anew */
        noise += count - BLOCK;
        for (int i = 0; i < BLOCK; i++) noise[i] = uniform(&g);
        make_normal(noise);
    }
}
