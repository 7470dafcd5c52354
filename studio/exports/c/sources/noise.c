/* The noise of torch.randn on a CPU with a seeded generator: the Mersenne Twister (Matsumoto & Nishimura 1998),
   followed by the Box-Muller transform in blocks of 16. */

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

/* Uniform in [0, 1), a multiple of 2^-24. */
static float uniform(generator *g)
{
    return (float)(random_bits(g) & 0xffffffu) * (1.0f / 16777216);
}

/* Turns 16 uniform numbers into standard normal numbers: the first 8 give radii, the last 8 give angles. */
static void make_normal(float *block)
{
    for (int i = 0; i < BLOCK / 2; i++) {
        const float radius = sqrtf(-2 * logf(1 - block[i])), angle = 6.283185307179586f * block[i + BLOCK / 2];
        block[i] = radius * cosf(angle);
        block[i + BLOCK / 2] = radius * sinf(angle);
    }
}

/* Equals torch.randn(count, generator=torch.Generator().manual_seed(seed)) for count >= 16. */
static void draw_noise(float *noise, int count, int64_t seed)
{
    generator g;
    seed_generator(&g, (uint32_t)seed);
    for (int i = 0; i < count; i++) noise[i] = uniform(&g);
    for (int i = 0; i + BLOCK <= count; i += BLOCK) make_normal(noise + i);
    if (count % BLOCK) { /* like torch, draw the last 16 numbers again */
        noise += count - BLOCK;
        for (int i = 0; i < BLOCK; i++) noise[i] = uniform(&g);
        make_normal(noise);
    }
}
