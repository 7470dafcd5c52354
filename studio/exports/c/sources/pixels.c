/* Snaps a drawn sprite to pixel art: a few colours of the palette, as many as sprites of its class have, and discrete
   alpha levels. Colours are clustered by median cut and k-means in OKLab (Ottosson 2020). */

enum { MOST_GROUPS = 64 };

#define ORPHAN_REACH 0.05 /* in OKLab: a lone pixel closer than this to a neighbour's colour takes that colour */

typedef struct { double l, a, b; } oklab;

/* Working memory for snapping. */
typedef struct {
    oklab palette[MOST_COLOURS], colours[MOST_AREA];
    uint8_t coarse[MOST_AREA][3]; /* OKLab in three bytes for every visible pixel */
    uint8_t order[MOST_GROUPS][MOST_GROUPS];
    int pixels[MOST_AREA];        /* visible pixels, grouped by box */
    int group[MOST_AREA], place[MOST_AREA];
    int field[MOST_AREA]; /* palette index of each pixel, -1 if transparent */
} canvas;

typedef struct { int first, count; } box;

static double linear(uint8_t level)
{
    const double share = level / 255.0;
    return share <= 0.04045 ? share / 12.92 : pow((share + 0.055) / 1.055, 2.4);
}

static oklab to_oklab(const uint8_t *rgb)
{
    const double red = linear(rgb[0]), green = linear(rgb[1]), blue = linear(rgb[2]);
    const double l = cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue);
    const double m = cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue);
    const double s = cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue);
    const oklab found = {
        0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
        1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
        0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s,
    };
    return found;
}

static double distance(oklab x, oklab y)
{
    const double l = x.l - y.l, a = x.a - y.a, b = x.b - y.b;
    return l * l + a * a + b * b;
}

static uint8_t to_byte(double value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : nearbyint(value));
}

/* Converts a sprite [4][AREA], premultiplied RGBA in [-1, 1], to RGBA bytes [AREA][4], straight alpha. */
static void to_rgba(uint8_t *rgba, const float *sprite)
{
    for (int i = 0; i < AREA; i++, rgba += 4) {
        float value[4];
        for (int c = 0; c < 4; c++) {
            const float x = sprite[c * AREA + i];
            value[c] = ((x < -1 ? -1 : x > 1 ? 1 : x) + 1) / 2;
        }
        const int is_seen = value[3] > 0.02f; /* colours of nearly transparent pixels are noise */
        for (int c = 0; c < 3; c++) {
            const float colour = is_seen ? value[c] / value[3] : 0;
            rgba[c] = (uint8_t)nearbyintf((colour > 1 ? 1 : colour) * 255);
        }
        rgba[3] = (uint8_t)nearbyintf((is_seen ? value[3] : 0) * 255);
    }
}

static uint8_t nearest_alpha(uint8_t alpha, int label)
{
    int best = 0;
    for (int i = 0; i < ALPHA_LEVELS; i++) {
        const int level = alpha_levels[label][i];
        if (abs(alpha - level) < abs(alpha - best)) best = level;
    }
    return (uint8_t)(255 - alpha < abs(alpha - best) ? 255 : best);
}

/* Minimum and maximum of a box along one axis of OKLab. */
static void extent(const canvas *c, box b, int axis, int *low, int *high)
{
    *low = 255, *high = 0;
    for (int i = b.first; i < b.first + b.count; i++) {
        const int level = c->coarse[c->pixels[i]][axis];
        *low = level < *low ? level : *low;
        *high = level > *high ? level : *high;
    }
}

/* Splits a box at the median of its perceptually longest axis; the upper pixels come first. Returns whether the box
   could be split. */
static int cut(canvas *c, box whole, box *upper, box *lower)
{
    static const int weight[3] = {77, 150, 29};
    int axis = -1, low = 0, high = 0, longest = 0;
    for (int i = 0; i < 3; i++) {
        int from, to;
        extent(c, whole, i, &from, &to);
        if ((to - from) * weight[i] > longest) longest = (to - from) * weight[i], axis = i, low = from, high = to;
    }
    if (axis < 0) return 0;
    int counts[256] = {0}, least = high, above;
    for (int i = whole.first; i < whole.first + whole.count; i++) counts[c->coarse[c->pixels[i]][axis]]++;
    for (above = counts[high]; above * 2 <= whole.count; above += counts[least]) least--;
    if (above == whole.count) least = low + 1; /* all pixels were above: split off the lowest level */
    int end = whole.first;
    for (int i = whole.first; i < whole.first + whole.count; i++) {
        const int pixel = c->pixels[i];
        if (c->coarse[pixel][axis] >= least) c->pixels[i] = c->pixels[end], c->pixels[end++] = pixel;
    }
    upper->first = whole.first, upper->count = end - whole.first;
    lower->first = end, lower->count = whole.count - upper->count;
    return 1;
}

/* A heap of boxes with the largest box on top. Ties are resolved as in Pillow. */
static void push(box *heap, int *count, box b)
{
    int k = ++*count;
    for (; k > 1 && b.count > heap[k / 2].count; k /= 2) heap[k] = heap[k / 2];
    heap[k] = b;
}

static box pop(box *heap, int *count)
{
    const box top = heap[1], last = heap[(*count)--];
    int k = 1;
    for (int child = 2; child <= *count; child = 2 * k) {
        if (child < *count && heap[child].count < heap[child + 1].count) child++;
        if (last.count > heap[child].count) break;
        heap[k] = heap[child];
        k = child;
    }
    heap[k] = last;
    return top;
}

static void sort_by_place(box *boxes, int count)
{
    for (int i = 1; i < count; i++) {
        const box moved = boxes[i];
        int j = i;
        for (; j > 0 && boxes[j - 1].first > moved.first; j--) boxes[j] = boxes[j - 1];
        boxes[j] = moved;
    }
}

/* Median cut (Heckbert 1982): splits the largest box until there are `most` boxes. Returns the number of boxes. */
static int median_cut(canvas *c, int seen, int most, box *boxes)
{
    box heap[MOST_GROUPS + 2];
    int waiting = 0, done = 0;
    const box all = {0, seen};
    push(heap, &waiting, all);
    while (waiting && done + waiting < most) {
        const box whole = pop(heap, &waiting);
        box upper, lower;
        if (cut(c, whole, &upper, &lower)) {
            push(heap, &waiting, upper);
            push(heap, &waiting, lower);
        } else {
            boxes[done++] = whole;
        }
    }
    while (waiting) boxes[done++] = pop(heap, &waiting);
    sort_by_place(boxes, done);
    return done;
}

/* Rounded mean of each group; 0 for an empty group. */
static void find_centres(const canvas *c, int seen, int groups, int centres[][3])
{
    int sums[MOST_GROUPS][3] = {{0}}, counts[MOST_GROUPS] = {0};
    for (int i = 0; i < seen; i++) {
        const int group = c->group[i];
        for (int axis = 0; axis < 3; axis++) sums[group][axis] += c->coarse[i][axis];
        counts[group]++;
    }
    for (int group = 0; group < groups; group++) {
        for (int axis = 0; axis < 3; axis++) {
            centres[group][axis] = counts[group] ? (int)(0.5 + (double)sums[group][axis] / counts[group]) : 0;
        }
    }
}

static int coarse_distance(const int *x, const int *y)
{
    const int l = x[0] - y[0], a = x[1] - y[1], b = x[2] - y[2];
    return l * l + a * a + b * b;
}

/* Sorts, for each group, all groups by distance. After the first rounds each round does one pass of insertion by
   neighbours only, like Pillow, which the studio uses: a group that moved far is out of order for some rounds. */
static void order_groups(canvas *c, int groups, int centres[][3], int is_new)
{
    for (int group = 0; group < groups; group++) {
        uint8_t *order = c->order[group];
        for (int i = 0; is_new && i < groups; i++) order[i] = (uint8_t)i;
        for (int i = 1; i < groups; i++) {
            const uint8_t moved = order[i];
            int j = i;
            for (; j > 0; j--) {
                const int *after = centres[is_new ? moved : order[j]], *before = centres[order[j - 1]];
                if (coarse_distance(centres[group], before) <= coarse_distance(centres[group], after)) break;
                order[j] = order[j - 1];
            }
            order[j] = moved;
        }
    }
}

/* Assigns each pixel to the nearest centre; ties keep the current group. Returns the number of changes. */
static int assign(canvas *c, int seen, int groups, int centres[][3])
{
    int changed = 0;
    for (int i = 0; i < seen; i++) {
        const int own = c->group[i], pixel[3] = {c->coarse[i][0], c->coarse[i][1], c->coarse[i][2]};
        int best = own, least = coarse_distance(pixel, centres[own]);
        const int reach = 4 * least; /* triangle inequality: centres farther from the current centre can't be nearer */
        for (int j = 0; j < groups; j++) {
            const int other = c->order[own][j];
            if (coarse_distance(centres[own], centres[other]) > reach) break;
            const int found = coarse_distance(pixel, centres[other]);
            if (found < least) least = found, best = other;
        }
        changed += best != own;
        c->group[i] = best;
    }
    return changed;
}

/* Clusters the visible pixels into at most `most` groups, some may be empty. Returns the number of groups. */
static int gather(canvas *c, int seen, int most)
{
    enum { MOST_ROUNDS = 1000 }; /* rounded means may cycle forever */
    box boxes[MOST_GROUPS];
    int centres[MOST_GROUPS][3];
    for (int i = 0; i < seen; i++) {
        c->coarse[i][0] = to_byte(c->colours[i].l * 255);
        c->coarse[i][1] = to_byte((c->colours[i].a + 0.4) * 318);
        c->coarse[i][2] = to_byte((c->colours[i].b + 0.4) * 318);
        c->pixels[i] = i;
    }
    const int groups = median_cut(c, seen, most, boxes);
    for (int group = 0; group < groups; group++) {
        for (int i = 0; i < boxes[group].count; i++) c->group[c->pixels[boxes[group].first + i]] = group;
    }
    for (int round = 0; round < MOST_ROUNDS; round++) { /* k-means (Lloyd 1982) */
        find_centres(c, seen, groups, centres);
        order_groups(c, groups, centres, round < 2);
        if (!assign(c, seen, groups, centres)) break;
    }
    return groups;
}

/* Chooses the palette colour nearest to the mean of each group. */
static void choose_colours(const canvas *c, int seen, int groups, int chosen[])
{
    oklab sums[MOST_GROUPS] = {{0, 0, 0}};
    int counts[MOST_GROUPS] = {0};
    for (int i = 0; i < seen; i++) {
        oklab *sum = &sums[c->group[i]];
        sum->l += c->colours[i].l, sum->a += c->colours[i].a, sum->b += c->colours[i].b;
        counts[c->group[i]]++;
    }
    for (int group = 0; group < groups; group++) {
        if (!counts[group]) continue;
        const double n = counts[group];
        const oklab mean = {sums[group].l / n, sums[group].a / n, sums[group].b / n};
        int best = 0;
        for (int i = 1; i < COLOURS; i++) {
            if (distance(mean, c->palette[i]) < distance(mean, c->palette[best])) best = i;
        }
        chosen[group] = best;
    }
}

/* Returns the colour of a pixel. A pixel that differs from all 8 neighbours takes the most similar neighbour colour, if
   it is closer than ORPHAN_REACH. */
static int without_orphan(const canvas *c, int y, int x)
{
    const int own = c->field[y * MODEL_SIZE + x];
    int best = -1;
    double least = 0;
    for (int v = y - 1; v <= y + 1; v++) {
        for (int u = x - 1; u <= x + 1; u++) {
            if ((v == y && u == x) || v < 0 || u < 0 || v == MODEL_SIZE || u == MODEL_SIZE) continue;
            const int other = c->field[v * MODEL_SIZE + u];
            if (other < 0) continue;
            if (other == own) return own;
            const double found = distance(c->palette[other], c->palette[own]);
            if (best < 0 || found < least) best = other, least = found;
        }
    }
    return best >= 0 && sqrt(least) < ORPHAN_REACH ? best : own;
}

static void open_canvas(canvas *c)
{
    for (int i = 0; i < COLOURS; i++) c->palette[i] = to_oklab(palette[i]);
}

/* Snaps RGBA pixels [AREA][4] to the style of a class, or of all classes (label MODEL_CLASSES). */
static void snap(canvas *c, uint8_t *rgba, int label)
{
    int seen = 0, chosen[MOST_GROUPS] = {0};
    if (!COLOURS) return;
    for (int i = 0; i < AREA; i++) {
        c->field[i] = -1;
        rgba[4 * i + 3] = nearest_alpha(rgba[4 * i + 3], label);
        if (!rgba[4 * i + 3]) continue;
        c->place[seen] = i;
        c->colours[seen++] = to_oklab(rgba + 4 * i);
    }
    if (seen) choose_colours(c, seen, gather(c, seen, colours_of[label]), chosen);
    for (int i = 0; i < seen; i++) c->field[c->place[i]] = chosen[c->group[i]];
    for (int i = 0; i < AREA; i++) {
        const int colour = c->field[i] < 0 ? -1 : without_orphan(c, i / MODEL_SIZE, i % MODEL_SIZE);
        for (int channel = 0; channel < 3; channel++) rgba[4 * i + channel] = colour < 0 ? 0 : palette[colour][channel];
    }
}
