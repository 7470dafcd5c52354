/* A WebAssembly engine that runs every model. It reads from a model file what an exported C file has as code and
   tables. assets/web/make_engine.py compiles it; studio/exports/c/packing.py writes model files. */

#include <stddef.h>
#include <stdint.h>

/* Functions of libm that WebAssembly lacks; the host provides them. */
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

enum { MOST_AREA = 256 * 256, MOST_COLOURS = 4096, MOST_ENTRIES = 256, ALPHA_LEVELS = 256, ALIGNMENT = 16 };
enum { MOST_VALUES = 1 << 15, MOST_LABELS = 1 << 16 }; /* of attributes; with classes */
enum { WEIGHTS = 1, MEMORY = 1 }; /* of a context; the engine has its own arrays */

typedef struct { int32_t rows, columns, is_int8; } part;

/* A program for palettes of up to so many entries, for sets. start: in words. */
typedef struct { int32_t entries, start; } variant;

/* Start of a model file: sizes, and the offset of each table in bytes. */
typedef struct {
    double last_from, guided_from, guided_to; /* solver constants */
    int32_t size, classes, values, outputs, colours, parts, weights, memory; /* weights, memory: in floats */
    int32_t cells, entries, palettes;                                /* of sets, else 0 */
    int32_t program_at, constants_at, parts_at, palette_at, colours_at, levels_at, packed_at;
    int32_t variants_at, palettes_at, partners_at, mirrored_at;
} header;

static const header *model;
static const int32_t *program;
static float *constants, *weights, *memory;
static const part *parts;
static const uint8_t (*palette)[3], (*alpha_levels)[ALPHA_LEVELS];
static const int32_t *colours_of;
static const variant *variants;
static const uint8_t *palettes;
static const int32_t *partners;
static const float *mirrored;

#define MODEL_SIZE (model->size)
#define MODEL_CLASSES (model->classes)
#define MODEL_VALUES (model->values) /* of all attributes */
#define AREA (MODEL_SIZE * MODEL_SIZE)
#define COLOURS (model->colours)
#define CELLS (model->cells)
#define ENTRIES (model->entries)
#define PALETTES (model->palettes)
#define PARTS ((size_t)model->parts)
#define LAST_FROM (model->last_from)
#define GUIDED_FROM (model->guided_from)
#define GUIDED_TO (model->guided_to)

typedef struct model_context model_context;

#include "operators.c"

/* The operations of a program: function, number of argument words, arguments. The opcode is the index in this list. */
#define OPERATIONS(X) \
    X(aten_add, 28, (AT(0), AT(1), AT(2), GRID(3))) \
    X(aten_sub, 28, (AT(0), AT(1), AT(2), GRID(3))) \
    X(aten_mul, 28, (AT(0), AT(1), AT(2), GRID(3))) \
    X(aten_div, 28, (AT(0), AT(1), AT(2), GRID(3))) \
    X(aten_maximum, 28, (AT(0), AT(1), AT(2), GRID(3))) \
    X(aten_minimum, 28, (AT(0), AT(1), AT(2), GRID(3))) \
    X(aten_eq, 28, (AT(0), AT(1), AT(2), GRID(3))) \
    X(aten_gather, 29, (AT(0), AT(1), AT(2), GRID(3), p[28])) \
    X(aten_scatter_add, 29, (AT(0), AT(1), AT(2), GRID(3), p[28])) \
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
    X(aten_native_group_norm, 9, (AT(0), AT(1), AT(2), AT(3), p[4], p[5], p[6], p[7], REAL(8))) \
    X(aten_upsample_nearest2d, 7, (AT(0), AT(1), p[2], p[3], p[4], p[5], p[6])) \
    X(aten_upsample_bilinear2d, 5, (AT(0), AT(1), p[2], p[3], p[4])) \
    X(aten_avg_pool2d, 9, (AT(0), AT(1), p[2], p[3], p[4], p[5], p[6], p[7], p[8])) \
    X(aten_convolution, 18, (AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), *(const convolution *)(p + 6)))

#define NUMBER(NAME, WORDS, ARGUMENTS) NUMBER_OF_##NAME,
enum { OPERATIONS(NUMBER) END };

/* A tensor is one word: 4 bits for the base (weights, memory, ...), 28 bits for the offset in floats. */
#define AT(I) (bases[(uint32_t)p[I] >> 28] + ((uint32_t)p[I] & 0x0fffffffu))
#define GRID(I) (*(const grid *)(p + (I)))
#define REAL(I) (*(const float *)(p + (I)))
#define CALL(NAME, WORDS, ARGUMENTS) \
    case NUMBER_OF_##NAME: \
        NAME ARGUMENTS; \
        p += WORDS; \
        break;

static void run(const int32_t *p, float *const bases[], int label)
{
    for (;;) {
        switch (*p++) {
            OPERATIONS(CALL)
            default: return;
        }
    }
}

/* label: as the program takes it, shares of classes and values [classes + values + 1]; NULL for other models. */
static void network(const float *unused_weights, float *unused_memory, const float *x, const float *t,
                    const float *label, float *out)
{
    float *const bases[] = {weights, memory, constants, (float *)x, (float *)t, out, (float *)label};
    int only = 0; /* the label of a model without attributes */
    (void)unused_weights, (void)unused_memory;
    while (label && only < MODEL_CLASSES && label[only] == 0) only++;
    run(program, bases, only);
}

/* Runs the smallest program for `entries` palette entries; returns the entries of its output. */
static int set_network(const float *unused_weights, float *unused_memory, int entries, const float *index,
                       const float *palette_entries, const float *known, float *out)
{
    float *const bases[] = {weights, memory, constants, (float *)index, (float *)palette_entries, out, (float *)known};
    const variant *v = variants;
    (void)unused_weights, (void)unused_memory;
    while (v->entries < entries) v++;
    run(program + v->start, bases, 0);
    return v->entries;
}

#include "weights.c"
#include "noise.c"
#include "pixels.c"
#include "drawing.c"
#include "sets.c"

static model_context context;
static completion set;
static uint8_t *set_cells, *set_given;
static uint8_t pixels[4 * MOST_AREA];
extern uint8_t __heap_base;

/* Bump allocator. Memory is never freed, because only one model is loaded at a time. */
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

/* Allocates memory for a model file, and discards the previous model. Returns NULL if there is not enough memory. */
uint8_t *engine_room(size_t bytes)
{
    taken_until = &__heap_base;
    return take(bytes);
}

/* Opens the model file at this address. Returns 0, or -1 if there is not enough memory. */
int engine_open(uint8_t *file)
{
    model = (const header *)file;
    program = (const int32_t *)(file + model->program_at);
    constants = (float *)(file + model->constants_at);
    parts = (const part *)(file + model->parts_at);
    palette = (const uint8_t (*)[3])(file + model->palette_at);
    colours_of = (const int32_t *)(file + model->colours_at);
    alpha_levels = (const uint8_t (*)[ALPHA_LEVELS])(file + model->levels_at);
    variants = (const variant *)(file + model->variants_at);
    palettes = file + model->palettes_at;
    partners = (const int32_t *)(file + model->partners_at);
    mirrored = (const float *)(file + model->mirrored_at);
    weights = take((size_t)model->weights * sizeof *weights);
    memory = take((size_t)model->memory * sizeof *memory);
    if (!weights || !memory) return -1;
    unpack(weights, file + model->packed_at);
    prepare(&context);
    if (!CELLS) return 0;
    float *room = take(ROOM * sizeof *room);
    set_cells = take(4 * (size_t)SET_PIXELS);
    set_given = take((size_t)CELLS);
    if (!room || !set_cells || !set_given) return -1;
    open_completion(&set, room);
    return 0;
}

/* Pixels per side of a sprite, and number of outputs of a predicting model. */
int engine_size(void)
{
    return model->size;
}

int engine_outputs(void)
{
    return model->outputs;
}

/* Writes the noise of a seed, [4][size][size], from which engine_draw starts. */
float *engine_noise(uint32_t seed)
{
    model_noise(seed, context.noise);
    return context.noise;
}

/* Address for the chosen values of attributes, [values], in the order of the attributes: 1 if chosen, else 0. */
float *engine_values(void)
{
    return context.chosen;
}

/* Draws a sprite, [4][size][size], premultiplied RGBA in [-1, 1], from the noise. Returns NULL for an invalid class. */
float *engine_draw(int label, float guidance, int steps)
{
    return model_draw_from(&context, label, context.noise, guidance, steps, context.sprite) ? NULL : context.sprite;
}

/* Snaps the drawn sprite to pixel art: RGBA [size][size][4], straight alpha. */
uint8_t *engine_finish(int label)
{
    model_finish(&context, label, context.sprite, pixels);
    return pixels;
}

/* Address for the input of engine_predict: RGBA [size][size][4] in [0, 1], straight alpha. */
float *engine_input(void)
{
    return context.sprite;
}

/* Predicts the outputs [outputs] for the input. */
float *engine_predict(void)
{
    network(NULL, NULL, context.sprite, NULL, NULL, context.now);
    return context.now;
}

/* Address for the cells of a set, RGBA [cells][size][size][4], straight alpha. */
uint8_t *engine_cells(void)
{
    return set_cells;
}

/* Address for which cells are given, [cells]: 1 for cells to keep, 0 for cells to draw. */
uint8_t *engine_given(void)
{
    return set_given;
}

/* Writes the random numbers of a seed, from which engine_complete draws. */
void engine_seed(uint32_t seed)
{
    draw_chances(&set, seed);
}

/* Address for other random numbers: uniform, [rounds][2][cells][size][size]. */
float *engine_chances(void)
{
    return set.chances;
}

/* Draws the missing cells. least: smallest palette to run the network with, or 0. Returns NULL if the given cells have
   too many colours. */
uint8_t *engine_complete(float variety, int least)
{
    set.least = least;
    return complete_set(&set, NULL, NULL, set_cells, set_given, variety, set_cells) ? NULL : set_cells;
}

/* The network's odds for the cells, without the average over the mirror image: [cells][entries][size][size] for a
   palette of up to `least` entries. Returns NULL if the given cells have too many colours. */
float *engine_odds(int least)
{
    set.least = least;
    if (take_set(&set, set_cells, set_given) < 0) return NULL;
    look(&set, NULL, NULL, set.index, set.known, set.odds);
    return set.odds;
}
