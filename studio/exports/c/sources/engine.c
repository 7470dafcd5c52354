/* One program for all models, made for WebAssembly: what the C file of a model has as code and tables, this reads from a
   file of the model. make_engine.py in assets/web compiles it; studio/exports/web/packing.py writes the files. */

#include <stddef.h>
#include <stdint.h>

/* libm, of which whoever runs this brings the functions that WebAssembly does not have. */
float cosf(float), erff(float), expf(float), logf(float), sinf(float), tanhf(float);
double cbrt(double), pow(double, double);
#define abs __builtin_abs
#define fabsf __builtin_fabsf
#define memcpy __builtin_memcpy
#define memset __builtin_memset
#define nearbyint __builtin_nearbyint
#define nearbyintf __builtin_nearbyintf
#define sqrt __builtin_sqrt
#define sqrtf __builtin_sqrtf

enum { MOST_AREA = 256 * 256, MOST_COLOURS = 4096, ALPHA_LEVELS = 256, ALIGNMENT = 16, WEIGHTS = 1, MEMORY = 1 };

typedef struct { int32_t rows, columns, is_int8; } part;

/* A file begins with this: how much there is of all, and where in the file, in bytes, each table begins. */
typedef struct {
    double last_from, guided_from, guided_to; /* of the solver */
    int32_t size, classes, outputs, colours, parts, weights, memory; /* the last two in floats */
    int32_t program_at, constants_at, parts_at, palette_at, colours_at, levels_at, packed_at;
} header;

static const header *model;
static const int32_t *program;
static float *constants, *weights, *memory;
static const part *parts;
static const uint8_t (*palette)[3], (*alpha_levels)[ALPHA_LEVELS];
static const int32_t *colours_of;

#define MODEL_SIZE (model->size)
#define MODEL_CLASSES (model->classes)
#define AREA (MODEL_SIZE * MODEL_SIZE)
#define COLOURS (model->colours)
#define PARTS ((size_t)model->parts)
#define LAST_FROM (model->last_from)
#define GUIDED_FROM (model->guided_from)
#define GUIDED_TO (model->guided_to)

typedef struct model_context model_context;

#include "operators.c"

/* What a program may call: how many words its arguments take, and what they are. The number of each is its place. */
#define OPERATIONS(X) \
    X(aten_add, 28, (AT(0), AT(1), AT(2), GRID(3))) \
    X(aten_sub, 28, (AT(0), AT(1), AT(2), GRID(3))) \
    X(aten_mul, 28, (AT(0), AT(1), AT(2), GRID(3))) \
    X(aten_div, 28, (AT(0), AT(1), AT(2), GRID(3))) \
    X(aten_maximum, 28, (AT(0), AT(1), AT(2), GRID(3))) \
    X(aten_minimum, 28, (AT(0), AT(1), AT(2), GRID(3))) \
    X(aten_copy, 27, (AT(0), AT(1), GRID(2))) \
    X(aten_fill, 3, (AT(0), REAL(1), p[2])) \
    X(aten_sigmoid, 3, (AT(0), AT(1), p[2])) \
    X(aten_tanh, 3, (AT(0), AT(1), p[2])) \
    X(aten_relu, 3, (AT(0), AT(1), p[2])) \
    X(aten_neg, 3, (AT(0), AT(1), p[2])) \
    X(aten_abs, 3, (AT(0), AT(1), p[2])) \
    X(aten_exp, 3, (AT(0), AT(1), p[2])) \
    X(aten_log, 3, (AT(0), AT(1), p[2])) \
    X(aten_sin, 3, (AT(0), AT(1), p[2])) \
    X(aten_cos, 3, (AT(0), AT(1), p[2])) \
    X(aten_sqrt, 3, (AT(0), AT(1), p[2])) \
    X(aten_rsqrt, 3, (AT(0), AT(1), p[2])) \
    X(aten_reciprocal, 3, (AT(0), AT(1), p[2])) \
    X(aten_erf, 3, (AT(0), AT(1), p[2])) \
    X(aten_clamp, 5, (AT(0), AT(1), REAL(2), REAL(3), p[4])) \
    X(aten_embedding, 4, (AT(0), AT(1), label, p[3])) \
    X(aten_sum, 4, (AT(0), AT(1), p[2], p[3])) \
    X(aten_mean, 4, (AT(0), AT(1), p[2], p[3])) \
    X(aten_softmax, 4, (AT(0), AT(1), p[2], p[3])) \
    X(aten_addmm, 7, (AT(0), AT(1), AT(2), AT(3), p[4], p[5], p[6])) \
    X(aten_mm, 6, (AT(0), AT(1), AT(2), p[3], p[4], p[5])) \
    X(aten_bmm, 7, (AT(0), AT(1), AT(2), p[3], p[4], p[5], p[6])) \
    X(aten_native_group_norm, 8, (AT(0), AT(1), AT(2), AT(3), p[4], p[5], p[6], REAL(7))) \
    X(aten_upsample_nearest2d, 7, (AT(0), AT(1), p[2], p[3], p[4], p[5], p[6])) \
    X(aten_avg_pool2d, 9, (AT(0), AT(1), p[2], p[3], p[4], p[5], p[6], p[7], p[8])) \
    X(aten_convolution, 17, (AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), *(const convolution *)(p + 6)))

#define NUMBER(NAME, WORDS, ARGUMENTS) NUMBER_OF_##NAME,
enum { OPERATIONS(NUMBER) END };

/* A tensor is one word: what it lies in, in four bits, and how many floats from its beginning. */
#define AT(I) (bases[(uint32_t)p[I] >> 28] + ((uint32_t)p[I] & 0x0fffffffu))
#define GRID(I) (*(const grid *)(p + (I)))
#define REAL(I) (*(const float *)(p + (I)))
#define CALL(NAME, WORDS, ARGUMENTS) \
    case NUMBER_OF_##NAME: \
        NAME ARGUMENTS; \
        p += WORDS; \
        break;

static void network(const float *unused_weights, float *unused_memory, const float *x, const float *t, int label,
                    float *out)
{
    float *const bases[] = {weights, memory, constants, (float *)x, (float *)t, out};
    (void)unused_weights, (void)unused_memory;
    for (const int32_t *p = program;;) {
        switch (*p++) {
            OPERATIONS(CALL)
            default: return;
        }
    }
}

#include "weights.c"
#include "noise.c"
#include "pixels.c"
#include "drawing.c"

static model_context context;
static uint8_t pixels[4 * MOST_AREA];
extern uint8_t __heap_base;

/* The next free bytes. What was given before is not given back: there is one model at a time. */
static uint8_t *taken_until;

static void *take(size_t bytes)
{
    enum { PAGE = 65536, LINE = 64 };
    uint8_t *start = (uint8_t *)(((uintptr_t)taken_until + LINE - 1) / LINE * LINE);
    const size_t end = (size_t)start + bytes, have = __builtin_wasm_memory_size(0) * PAGE;
    if (end > have && __builtin_wasm_memory_grow(0, (end - have + PAGE - 1) / PAGE) == SIZE_MAX) return NULL;
    taken_until = start + bytes;
    return start;
}

/* Where the file of a model is to be put, which takes the place of the one before; NULL where there is no room. */
uint8_t *engine_room(size_t bytes)
{
    taken_until = &__heap_base;
    return take(bytes);
}

/* Takes the file that was put there. Returns 0, or -1 where there is no room. */
int engine_open(uint8_t *file)
{
    model = (const header *)file;
    program = (const int32_t *)(file + model->program_at);
    constants = (float *)(file + model->constants_at);
    parts = (const part *)(file + model->parts_at);
    palette = (const uint8_t (*)[3])(file + model->palette_at);
    colours_of = (const int32_t *)(file + model->colours_at);
    alpha_levels = (const uint8_t (*)[ALPHA_LEVELS])(file + model->levels_at);
    weights = take((size_t)model->weights * sizeof *weights);
    memory = take((size_t)model->memory * sizeof *memory);
    if (!weights || !memory) return -1;
    unpack(weights, file + model->packed_at);
    prepare(&context);
    return 0;
}

/* The side of a sprite in pixels, and how many numbers a model says of one. */
int engine_size(void)
{
    return model->size;
}

int engine_outputs(void)
{
    return model->outputs;
}

/* The noise of a seed, [4][size][size]: what engine_draw begins with, if nothing else was written there since. */
float *engine_noise(uint32_t seed)
{
    model_noise(seed, context.noise);
    return context.noise;
}

/* From noise to a sprite as it is drawn, [4][size][size], premultiplied, in [-1, 1]. NULL for a class that there is not. */
float *engine_draw(int label, float guidance, int steps)
{
    return model_draw_from(&context, label, context.noise, guidance, steps, context.sprite) ? NULL : context.sprite;
}

/* That sprite as pixel art, RGBA [size][size][4], straight alpha. */
uint8_t *engine_finish(int label)
{
    model_finish(&context, label, context.sprite, pixels);
    return pixels;
}

/* Where a sprite is put to be looked at: RGBA [size][size][4] in [0, 1], straight alpha. */
float *engine_input(void)
{
    return context.sprite;
}

/* What a model says of it: [outputs]. */
float *engine_predict(void)
{
    network(NULL, NULL, context.sprite, NULL, 0, context.now);
    return context.now;
}
