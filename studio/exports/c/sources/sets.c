/* Completes sets: the network gives the odds of a palette's colours for each pixel of all cells. A few rounds draw the
   missing pixels and keep the most certain ones (MaskGIT, Chang et al. 2022). */

enum { ROUNDS = 16 };

#define MIRRORED 0.95f    /* share of training sets from which side views mirror each other */
#define LEAST_ODDS 1e-9f  /* before a logarithm */
#define UNUSED -2.0f      /* all channels of an unused palette entry */
#define NEW_HEAT 3.0f     /* of the certainty, in the first cell of a new set */
#define KNOWN 1e30f       /* certainty of a known pixel */
#define SET_PIXELS (CELLS * AREA)
#define ROOM ((size_t)SET_PIXELS * (size_t)(6 + 2 * ENTRIES + 2 * ROUNDS)) /* floats for the arrays below */

/* Working memory for a set. Entry 0 of the palette is transparent, `count` entries are used. */
typedef struct {
    int count, least; /* least: the network runs with at least so many entries */
    uint8_t palette[MOST_ENTRIES][4];
    int uses[MOST_ENTRIES];
    float entries[MOST_ENTRIES][4], logs[MOST_ENTRIES]; /* entries: premultiplied RGBA in [-1, 1] */
    float *index, *known, *mirror_index, *mirror_known, *certainty, *sorted; /* [CELLS][AREA] */
    float *odds, *mirror_odds;                                               /* [CELLS][ENTRIES][AREA] */
    float *chances;                                                          /* [ROUNDS][2][CELLS][AREA], uniform */
} completion;

static void open_completion(completion *s, float *room)
{
    float **const arrays[] = {&s->index, &s->known, &s->mirror_index, &s->mirror_known, &s->certainty, &s->sorted};
    s->least = 0;
    for (int i = 0; i < 6; i++, room += SET_PIXELS) *arrays[i] = room;
    s->odds = room;
    s->mirror_odds = s->odds + SET_PIXELS * ENTRIES;
    s->chances = s->mirror_odds + SET_PIXELS * ENTRIES;
}

/* Uniform random numbers of a seed: the standard normal distribution function of torch.randn's numbers. */
static void draw_chances(completion *s, int64_t seed)
{
    const int count = 2 * ROUNDS * SET_PIXELS;
    draw_noise(s->chances, count, seed);
    for (int i = 0; i < count; i++) s->chances[i] = (1 + erff(s->chances[i] / 1.41421356f)) / 2;
}

static uint32_t key_of(const uint8_t *rgba)
{
    return (uint32_t)rgba[0] << 24 | (uint32_t)rgba[1] << 16 | (uint32_t)rgba[2] << 8 | rgba[3];
}

/* Returns the palette entry of a pixel; `count` if there is none. */
static int entry_of(const completion *s, const uint8_t *rgba)
{
    if (!rgba[3]) return 0;
    int entry = 1;
    while (entry < s->count && key_of(s->palette[entry]) != key_of(rgba)) entry++;
    return entry;
}

/* Whether a colour comes before another in the palette: the most used first, then by red, green, blue, alpha. */
static int is_before(const completion *s, int uses, const uint8_t *rgba, int other)
{
    return uses != s->uses[other] ? uses > s->uses[other] : key_of(rgba) < key_of(s->palette[other]);
}

/* Takes the colours of the given cells as palette. Returns -1 if they are too many. */
static int take_colours(completion *s, const uint8_t *cells, const uint8_t *given)
{
    for (int i = 0; i < SET_PIXELS; i++) {
        const int entry = given[i / AREA] ? entry_of(s, cells + 4 * i) : 0;
        if (entry == ENTRIES) return -1;
        if (entry == s->count) {
            memcpy(s->palette[entry], cells + 4 * i, 4);
            s->uses[s->count++] = 0;
        }
        s->uses[entry]++;
    }
    for (int i = 2; i < s->count; i++) {
        const int uses = s->uses[i];
        uint8_t rgba[4];
        memcpy(rgba, s->palette[i], 4);
        int j = i;
        for (; j > 1 && is_before(s, uses, rgba, j - 1); j--) {
            s->uses[j] = s->uses[j - 1];
            memcpy(s->palette[j], s->palette[j - 1], 4);
        }
        s->uses[j] = uses;
        memcpy(s->palette[j], rgba, 4);
    }
    return 0;
}

/* Takes the palette of a training set, chosen by a random number. */
static void take_training_palette(completion *s)
{
    const int number = (int)(s->chances[SET_PIXELS] * (float)PALETTES);
    const uint8_t *from = palettes + 4 * ENTRIES * (number < PALETTES ? number : PALETTES - 1);
    memcpy(s->palette, from, 4 * (size_t)ENTRIES);
    for (int i = 1; i < ENTRIES; i++) s->count = s->palette[i][3] ? i + 1 : s->count;
}

/* Sets the network's inputs: the palette, and which pixels are known. Returns the number of missing pixels, or -1 if
   the given cells have too many colours. */
static int take_set(completion *s, const uint8_t *cells, const uint8_t *given)
{
    int missing = 0, any = 0;
    s->count = 1;
    s->uses[0] = 0;
    memset(s->palette[0], 0, 4);
    for (int cell = 0; cell < CELLS; cell++) any |= given[cell];
    if (any && take_colours(s, cells, given) != 0) return -1;
    if (!any) take_training_palette(s);
    for (int i = 0; i < ENTRIES; i++) {
        const float alpha = s->palette[i][3] / 255.0f;
        const int is_unused = i >= s->count || (i > 0 && !s->palette[i][3]);
        for (int c = 0; c < 4; c++) {
            const float value = c < 3 ? s->palette[i][c] / 255.0f * alpha : alpha;
            s->entries[i][c] = is_unused ? UNUSED : value * 2 - 1;
        }
    }
    for (int i = 0; i < SET_PIXELS; i++) {
        const int is_given = given[i / AREA] != 0;
        s->index[i] = is_given ? (float)entry_of(s, cells + 4 * i) : 0;
        s->known[i] = (float)is_given;
        missing += !is_given;
    }
    return missing;
}

/* Runs the network; returns the number of entries P of its odds [CELLS][P][AREA]. */
static int look(completion *s, const float *weights, float *memory, const float *index, const float *known, float *odds)
{
    const int entries = s->count > s->least ? s->count : s->least;
    return set_network(weights, memory, entries, index, s->entries[0], known, odds);
}

/* Finds the odds of all pixels, averaged over the set and its mirror image. Returns P. */
static int find_odds(completion *s, const float *weights, float *memory)
{
    const int entries = look(s, weights, memory, s->index, s->known, s->odds);
    int any = 0;
    for (int i = 0; i < SET_PIXELS; i++) {
        const int cell = i / AREA, x = i % MODEL_SIZE, partner = partners[cell];
        const int from = partner * AREA + i % AREA - x + MODEL_SIZE - 1 - x;
        s->mirror_index[i] = partner < 0 ? 0 : s->index[from];
        s->mirror_known[i] = partner < 0 ? 0 : s->known[from];
        any |= partner >= 0;
    }
    if (!any) return entries;
    look(s, weights, memory, s->mirror_index, s->mirror_known, s->mirror_odds);
    for (int i = 0; i < SET_PIXELS * entries; i++) {
        const int cell = i / AREA / entries, x = i % MODEL_SIZE, partner = partners[cell];
        const int from = i + (partner - cell) * entries * AREA + MODEL_SIZE - 1 - 2 * x;
        if (partner >= 0) s->odds[i] = (s->odds[i] + s->mirror_odds[from]) / 2;
    }
    return entries;
}

/* Draws the colour of a pixel. odds: of the entries, `step` floats apart. temperature 0 takes the most likely colour.
   Returns the entry, and its certainty: the logarithm of its odds plus random numbers times `heat`. */
static int draw_colour(completion *s, const float *odds, int step, float temperature, float heat, const float *chances,
                       float *certainty)
{
    const float heated = temperature > 1e-3f ? temperature : 1e-3f;
    float sum = 0, weights = 0, below = 0;
    int best = 0, drawn = 0;
    for (int i = 0; i < s->count; i++) best = odds[i * step] > odds[best * step] ? i : best;
    if (temperature <= 0) return best;
    for (int i = 0; i < s->count; i++) {
        const float own = odds[i * step] > LEAST_ODDS ? odds[i * step] : LEAST_ODDS;
        s->logs[i] = logf(own);
        sum += own;
    }
    for (int i = 0; i < s->count; i++) weights += expf((s->logs[i] - s->logs[best]) / heated);
    for (int i = 0; i < s->count - 1; i++) {
        below += expf((s->logs[i] - s->logs[best]) / heated) / weights;
        drawn += below < chances[0];
    }
    float chance = chances[SET_PIXELS] > 1e-6f ? chances[SET_PIXELS] : 1e-6f;
    if (chance > 1 - 1e-6f) chance = 1 - 1e-6f;
    *certainty = s->logs[drawn] - logf(sum) - heat * logf(-logf(chance));
    return drawn;
}

/* Returns the value with `rank` smaller values (quickselect, Hoare 1961). Reorders the values. */
static float value_at(float *values, int count, int rank)
{
    int low = 0, high = count - 1;
    while (low < high) {
        const float middle = values[(low + high) / 2];
        int i = low, j = high;
        while (i <= j) {
            while (values[i] < middle) i++;
            while (values[j] > middle) j--;
            if (i > j) break;
            const float moved = values[i];
            values[i++] = values[j];
            values[j--] = moved;
        }
        if (rank <= j) high = j;
        else if (rank >= i) low = i;
        else break;
    }
    return values[rank];
}

/* Draws the missing pixels in rounds, from the odds of the pixels that are known so far. missing: number of pixels. In a
   new set all are missing: the rounds draw its first cell, the last round the other cells from it. */
static void draw_rounds(completion *s, const float *weights, float *memory, int missing, float variety)
{
    const int is_new = missing == SET_PIXELS, rounds = is_new || variety > 0 ? ROUNDS : 1;
    const int waiting = is_new ? SET_PIXELS - AREA : 0;
    for (int round = 0; round < rounds; round++) {
        const int is_last = round == rounds - 1, entries = find_odds(s, weights, memory);
        const float temperature = is_new ? !is_last : variety;
        const float heat = (is_new ? NEW_HEAT : variety) * (1 - (float)round / ROUNDS);
        for (int i = 0; i < SET_PIXELS; i++) {
            const int waits = is_new && i >= AREA;
            s->certainty[i] = waits ? -KNOWN : KNOWN;
            if (s->known[i] != 0 || (waits && !is_last)) continue;
            const float *odds = s->odds + i / AREA * entries * AREA + i % AREA;
            const float *chances = s->chances + 2 * round * SET_PIXELS + i;
            s->index[i] = (float)draw_colour(s, odds, AREA, temperature, heat, chances, s->certainty + i);
        }
        if (is_last) break;
        const float share = cosf(1.57079633f * (float)(round + 1) / (float)(is_new ? ROUNDS - 1 : ROUNDS));
        memcpy(s->sorted, s->certainty, (size_t)SET_PIXELS * sizeof *s->sorted);
        const float least = value_at(s->sorted, SET_PIXELS, waiting + (int)((float)(missing - waiting) * share));
        for (int i = 0; i < SET_PIXELS; i++) s->known[i] = s->certainty[i] >= least;
    }
}

/* Whether a drawn cell becomes the mirror image of its partner, as in the training sets. */
static int follows_partner(const uint8_t *given, int cell)
{
    const int partner = partners[cell];
    if (given[cell] || partner < 0 || partner == cell || mirrored[cell] < MIRRORED) return 0;
    return given[partner] || partner < cell;
}

/* Completes a set, with the random numbers in `chances`. Writes all cells to `drawn`, which may equal `cells`. Returns 0,
   or -1 if the given cells have too many colours. */
static int complete_set(completion *s, const float *weights, float *memory, const uint8_t *cells, const uint8_t *given,
                        float variety, uint8_t *drawn)
{
    const int missing = take_set(s, cells, given);
    if (missing < 0) return -1;
    if (missing > 0) draw_rounds(s, weights, memory, missing, variety);
    for (int i = 0; i < SET_PIXELS; i++) {
        const int cell = i / AREA;
        const uint8_t *from = given[cell] ? cells + 4 * i : s->palette[(int)s->index[i]];
        if (from != drawn + 4 * i) memcpy(drawn + 4 * i, from, 4);
    }
    for (int i = 0; i < SET_PIXELS; i++) {
        const int cell = i / AREA, x = i % MODEL_SIZE;
        if (!follows_partner(given, cell)) continue;
        const uint8_t *from = drawn + 4 * (i + (partners[cell] - cell) * AREA + MODEL_SIZE - 1 - 2 * x);
        if (from[3]) memcpy(drawn + 4 * i, from, 4);
        else memset(drawn + 4 * i, 0, 4);
    }
    return 0;
}
