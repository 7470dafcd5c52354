/* The operators of the network, named like PyTorch's ATen operators. Tensors are float32 and contiguous, unless a grid
   gives their strides. Outputs never overlap inputs. Loops are simple, so that the compiler can vectorise them. */

/* A loop over tensors: extent of each axis, and strides of the output and both inputs. */
typedef struct { int rank, size[6], out[6], a[6], b[6]; } grid;

typedef void row_function(float *out, const float *a, const float *b, int count, int out_step, int a_step, int b_step);

static void each_row(float *out, const float *a, const float *b, const grid *g, int axis, row_function *row)
{
    if (axis == g->rank - 1) {
        row(out, a, b, g->size[axis], g->out[axis], g->a[axis], g->b[axis]);
        return;
    }
    for (int i = 0; i < g->size[axis]; i++) {
        each_row(out + i * g->out[axis], a + i * g->a[axis], b + i * g->b[axis], g, axis + 1, row);
    }
}

/* An operator on two tensors, with fast paths for contiguous rows and for a row and a scalar. */
#define BINARY(NAME, VALUE) \
    static void NAME##_row(float *restrict out, const float *restrict a, const float *restrict b, int count, \
                           int out_step, int a_step, int b_step) \
    { \
        if (out_step == 1 && a_step == 1 && b_step == 1) { \
            for (int i = 0; i < count; i++) { const float x = a[i], y = b[i]; out[i] = VALUE; } \
        } else if (out_step == 1 && a_step == 1 && b_step == 0) { \
            const float y = *b; \
            for (int i = 0; i < count; i++) { const float x = a[i]; out[i] = VALUE; } \
        } else { \
            for (int i = 0; i < count; i++) { \
                const float x = a[i * a_step], y = b[i * b_step]; \
                out[i * out_step] = VALUE; \
            } \
        } \
    } \
    static void NAME(float *out, const float *a, const float *b, grid g) { each_row(out, a, b, &g, 0, NAME##_row); }

BINARY(aten_add, x + y)

BINARY(aten_sub, x - y)

BINARY(aten_mul, x * y)

BINARY(aten_div, x / y)

BINARY(aten_maximum, x > y ? x : y)

BINARY(aten_minimum, x < y ? x : y)

BINARY(aten_eq, x == y)

/* Copies rows; also used for cat, constant_pad_nd, expand and flip. */
static void copy_row(float *restrict out, const float *restrict a, const float *restrict b, int count, int out_step,
                     int a_step, int b_step)
{
    (void)b, (void)b_step;
    if (out_step == 1 && a_step == 1) {
        memcpy(out, a, (size_t)count * sizeof *out);
        return;
    }
    for (int i = 0; i < count; i++) out[i * out_step] = a[i * a_step];
}

static void aten_copy(float *out, const float *a, grid g)
{
    each_row(out, a, a, &g, 0, copy_row);
}

static void aten_fill(float *out, float value, int count)
{
    for (int i = 0; i < count; i++) out[i] = value;
}

#define UNARY(NAME, VALUE) \
    static void NAME(float *restrict out, const float *restrict a, int count) \
    { \
        for (int i = 0; i < count; i++) { const float x = a[i]; out[i] = VALUE; } \
    }

UNARY(aten_sigmoid, 1 / (1 + expf(-x)))

UNARY(aten_tanh, tanhf(x))

UNARY(aten_relu, x > 0 ? x : 0)

UNARY(aten_neg, -x)

UNARY(aten_abs, fabsf(x))

UNARY(aten_exp, expf(x))

UNARY(aten_log, logf(x))

UNARY(aten_sin, sinf(x))

UNARY(aten_cos, cosf(x))

UNARY(aten_sqrt, sqrtf(x))

UNARY(aten_rsqrt, 1 / sqrtf(x))

UNARY(aten_reciprocal, 1 / x)

UNARY(aten_erf, erff(x))

static void aten_clamp(float *restrict out, const float *restrict a, float low, float high, int count)
{
    for (int i = 0; i < count; i++) {
        const float x = a[i] < low ? low : a[i];
        out[i] = x > high ? high : x;
    }
}

static void aten_embedding(float *restrict out, const float *restrict table, int row, int width)
{
    memcpy(out, table + (size_t)row * (size_t)width, (size_t)width * sizeof *out);
}

/* Reads elements at an index along one axis. step: stride of this axis in `a`; the grid's strides of `a` skip it. */
static void gather_from(float *out, const float *a, const float *index, const grid *g, int axis, int step)
{
    if (axis == g->rank) *out = a[(int)*index * step];
    for (int i = 0; axis < g->rank && i < g->size[axis]; i++) {
        gather_from(out + i * g->out[axis], a + i * g->a[axis], index + i * g->b[axis], g, axis + 1, step);
    }
}

static void aten_gather(float *out, const float *a, const float *index, grid g, int step)
{
    gather_from(out, a, index, &g, 0, step);
}

/* Adds elements at an index along one axis. step: stride of this axis in `out`; the grid's strides of `out` skip it. */
static void add_at(float *out, const float *a, const float *index, const grid *g, int axis, int step)
{
    if (axis == g->rank) out[(int)*index * step] += *a;
    for (int i = 0; axis < g->rank && i < g->size[axis]; i++) {
        add_at(out + i * g->out[axis], a + i * g->a[axis], index + i * g->b[axis], g, axis + 1, step);
    }
}

static void aten_scatter_add(float *out, const float *a, const float *index, grid g, int step)
{
    add_at(out, a, index, &g, 0, step);
}

/* Sums in 16 lanes, because a compiler must not reorder float additions to vectorise them. */
static float sum_of(const float *restrict a, int count)
{
    enum { LANES = 16 };
    float lanes[LANES] = {0}, total = 0;
    int i = 0;
    for (; i + LANES <= count; i += LANES) {
        for (int lane = 0; lane < LANES; lane++) lanes[lane] += a[i + lane];
    }
    for (; i < count; i++) total += a[i];
    for (int lane = 0; lane < LANES; lane++) total += lanes[lane];
    return total;
}

static void aten_sum(float *restrict out, const float *restrict a, int rows, int count)
{
    for (int row = 0; row < rows; row++) out[row] = sum_of(a + row * count, count);
}

static void aten_mean(float *restrict out, const float *restrict a, int rows, int count)
{
    for (int row = 0; row < rows; row++) out[row] = sum_of(a + row * count, count) / (float)count;
}

static void aten_softmax(float *restrict out, const float *restrict a, int rows, int count)
{
    for (int row = 0; row < rows; row++, a += count, out += count) {
        float largest = a[0];
        for (int i = 1; i < count; i++) largest = a[i] > largest ? a[i] : largest;
        for (int i = 0; i < count; i++) out[i] = expf(a[i] - largest);
        const float scale = 1 / sum_of(out, count);
        for (int i = 0; i < count; i++) out[i] *= scale;
    }
}

/* out [batch, rows, columns] = a [batch, rows, inner] times b [batch, inner, columns], plus a bias for each column. */
static void products(float *restrict out, const float *restrict a, const float *restrict b,
                     const float *restrict bias, int batch, int rows, int inner, int columns)
{
    for (int i = 0; i < batch; i++, b += inner * columns) {
        for (int row = 0; row < rows; row++, a += inner, out += columns) {
            for (int j = 0; j < columns; j++) out[j] = bias ? bias[j] : 0;
            for (int k = 0; k < inner; k++) {
                const float x = a[k], *restrict y = b + k * columns;
                for (int j = 0; j < columns; j++) out[j] += x * y[j];
            }
        }
    }
}

static void aten_addmm(float *out, const float *bias, const float *a, const float *b, int rows, int inner, int columns)
{
    products(out, a, b, bias, 1, rows, inner, columns);
}

static void aten_mm(float *out, const float *a, const float *b, int rows, int inner, int columns)
{
    products(out, a, b, NULL, 1, rows, inner, columns);
}

static void aten_bmm(float *out, const float *a, const float *b, int batch, int rows, int inner, int columns)
{
    products(out, a, b, NULL, batch, rows, inner, columns);
}

static void aten_native_group_norm(float *restrict out, const float *restrict a, const float *restrict weight,
                                   const float *restrict bias, int images, int channels, int area, int groups,
                                   float epsilon)
{
    const int members = channels / groups, count = members * area;
    for (int number = 0; number < images * groups; number++, a += count, out += count) {
        const int group = number % groups;
        const float mean = sum_of(a, count) / (float)count;
        for (int i = 0; i < count; i++) out[i] = (a[i] - mean) * (a[i] - mean);
        const float scale = 1 / sqrtf(sum_of(out, count) / (float)count + epsilon);
        for (int member = 0; member < members; member++) {
            const int channel = group * members + member;
            const float slope = scale * weight[channel], shift = bias[channel] - mean * slope;
            const float *restrict from = a + member * area;
            float *restrict to = out + member * area;
            for (int i = 0; i < area; i++) to[i] = from[i] * slope + shift;
        }
    }
}

static void aten_upsample_nearest2d(float *restrict out, const float *restrict a, int channels, int height, int width,
                                    int out_height, int out_width)
{
    for (int channel = 0; channel < channels; channel++, a += height * width) {
        for (int y = 0; y < out_height; y++) {
            const float *restrict row = a + y * height / out_height * width;
            for (int x = 0; x < out_width; x++) *out++ = row[x * width / out_width];
        }
    }
}

/* Twice as large. A pixel takes 9/16 from the nearest pixel, the rest from the next ones; borders repeat. */
static void aten_upsample_bilinear2d(float *restrict out, const float *restrict a, int channels, int height, int width)
{
    for (int channel = 0; channel < channels; channel++, a += height * width) {
        for (int y = 0; y < 2 * height; y++) {
            const int v = y / 2, beside = y % 2 ? (v + 1 < height ? v + 1 : v) : (v > 0 ? v - 1 : v);
            const float *restrict row = a + v * width, *restrict next = a + beside * width;
            for (int x = 0; x < 2 * width; x++) {
                const int u = x / 2, other = x % 2 ? (u + 1 < width ? u + 1 : u) : (u > 0 ? u - 1 : u);
                *out++ = 0.75f * (0.75f * row[u] + 0.25f * row[other]) + 0.25f * (0.75f * next[u] + 0.25f * next[other]);
            }
        }
    }
}

/* Without padding. A window at the border may be cut off; its mean is over the remaining pixels. */
static void aten_avg_pool2d(float *restrict out, const float *restrict a, int channels, int height, int width,
                            int out_height, int out_width, int kernel, int stride)
{
    for (int channel = 0; channel < channels; channel++, a += height * width) {
        for (int y = 0; y < out_height; y++) {
            const int top = y * stride, bottom = top + kernel < height ? top + kernel : height;
            for (int x = 0; x < out_width; x++) {
                const int left = x * stride, right = left + kernel < width ? left + kernel : width;
                float total = 0;
                for (int v = top; v < bottom; v++) {
                    for (int u = left; u < right; u++) total += a[v * width + u];
                }
                *out++ = total / (float)((bottom - top) * (right - left));
            }
        }
    }
}

/* A convolution of images [inputs, height, width] to [outputs, out_height, out_width]. */
typedef struct {
    int images, inputs, height, width, outputs, out_height, out_width, kernel_height, kernel_width, stride, padding, dilation;
} convolution;

enum { PIXELS = 4, BLOCK_OUTPUTS = 64 }; /* computed together */

/* Gathers the inputs under the kernel (im2col) for PIXELS output pixels: patch [rows][PIXELS]. */
static void gather_patch(float *restrict patch, const float *restrict a, const int *places, const convolution *c,
                         int plane, int line)
{
    for (int i = 0; i < c->inputs; i++, a += plane) {
        for (int v = 0; v < c->kernel_height; v++) {
            for (int u = 0; u < c->kernel_width; u++) {
                const float *restrict from = a + c->dilation * (v * line + u);
                for (int p = 0; p < PIXELS; p++) *patch++ = from[places[p]];
            }
        }
    }
}

/* Multiplies a patch [rows][PIXELS] by a block of the weights [rows, columns], two rows at a time. */
static void sum_block(float sums[PIXELS][BLOCK_OUTPUTS], const float *restrict patch, const float *restrict weight,
                      const float *restrict bias, int rows, int columns, int outputs)
{
    float *restrict s0 = sums[0], *restrict s1 = sums[1], *restrict s2 = sums[2], *restrict s3 = sums[3];
    for (int o = 0; o < outputs; o++) s0[o] = s1[o] = s2[o] = s3[o] = bias[o];
    for (int row = 0; row < rows; row += 2, patch += 2 * PIXELS) {
        const float *restrict x = weight + row * columns, *restrict y = x + columns, *restrict next = patch + PIXELS;
        for (int o = 0; o < outputs; o++) {
            s0[o] += patch[0] * x[o] + next[0] * y[o];
            s1[o] += patch[1] * x[o] + next[1] * y[o];
            s2[o] += patch[2] * x[o] + next[2] * y[o];
            s3[o] += patch[3] * x[o] + next[3] * y[o];
        }
    }
}

static void convolve(float *restrict out, const float *restrict a, const float *restrict weight,
                     const float *restrict bias, float *restrict padded, float *restrict patch, convolution c)
{
    const int line = c.width + 2 * c.padding, plane = (c.height + 2 * c.padding) * line;
    const int taps = c.inputs * c.kernel_height * c.kernel_width, rows = taps + taps % 2;
    const int area = c.out_height * c.out_width;
    if (c.padding) {
        memset(padded, 0, (size_t)(c.inputs * plane) * sizeof *padded);
        for (int row = 0; row < c.inputs * c.height; row++) {
            float *to = padded + row / c.height * plane + (row % c.height + c.padding) * line + c.padding;
            memcpy(to, a + row * c.width, (size_t)c.width * sizeof *to);
        }
    }
    memset(patch, 0, (size_t)(rows * PIXELS) * sizeof *patch);
    for (int pixel = 0; pixel < area; pixel += PIXELS) {
        const int pixels = area - pixel < PIXELS ? area - pixel : PIXELS;
        int places[PIXELS];
        for (int p = 0; p < PIXELS; p++) {
            const int place = pixel + (p < pixels ? p : 0);
            places[p] = (place / c.out_width * line + place % c.out_width) * c.stride;
        }
        gather_patch(patch, c.padding ? padded : a, places, &c, plane, line);
        for (int first = 0; first < c.outputs; first += BLOCK_OUTPUTS) {
            const int outputs = c.outputs - first < BLOCK_OUTPUTS ? c.outputs - first : BLOCK_OUTPUTS;
            float sums[PIXELS][BLOCK_OUTPUTS];
            sum_block(sums, patch, weight + first, bias + first, rows, c.outputs, outputs);
            for (int o = 0; o < outputs; o++) {
                for (int p = 0; p < pixels; p++) out[(first + o) * area + pixel + p] = sums[p][o];
            }
        }
    }
}

/* weight: [rows, outputs], a row per input channel and kernel position, plus a row of zeros if their number is odd.
   padded: buffer for a padded image. patch: buffer [rows][PIXELS]. */
static void aten_convolution(float *out, const float *a, const float *weight, const float *bias, float *padded,
                             float *patch, convolution c)
{
    for (int image = 0; image < c.images; image++) {
        convolve(out, a, weight, bias, padded, patch, c);
        out += c.outputs * c.out_height * c.out_width, a += c.inputs * c.height * c.width;
    }
}
