/* Flow matching: the network gives the velocity of a state x at time t, and an ODE solver follows it from noise (t = 0)
   to a sprite (t = 1). */

#define NUMBERS (4 * AREA) /* floats in a state */

struct model_context {
    float weights[WEIGHTS], memory[MEMORY];
    float noise[4 * MOST_AREA], sprite[4 * MOST_AREA];
    float now[4 * MOST_AREA], before[4 * MOST_AREA], without[4 * MOST_AREA]; /* velocities */
    canvas canvas;
#ifdef MODEL_VALUES
    float chosen[MOST_VALUES], label[MOST_LABELS + 1]; /* 1 for each chosen value; the label of the network */
#endif
};

static void prepare(model_context *m)
{
    open_canvas(&m->canvas);
#ifdef MODEL_VALUES
    memset(m->chosen, 0, sizeof m->chosen);
#endif
}

#ifdef MODEL_VALUES
/* The network's label: 1 for a class and for each chosen value; without either 1 at its end. -1: any class;
   MODEL_CLASSES: any class and any value. */
static const float *label_of(model_context *m, int label)
{
    float *out = m->label;
    memset(out, 0, (MODEL_CLASSES + MODEL_VALUES + 1) * sizeof *out);
    if (label < MODEL_CLASSES) memcpy(out + MODEL_CLASSES, m->chosen, MODEL_VALUES * sizeof *out);
    if (label >= 0 && label < MODEL_CLASSES) out[label] = 1;
    for (int i = 0; i < MODEL_CLASSES + MODEL_VALUES; i++) {
        if (out[i] > 0) return out;
    }
    out[MODEL_CLASSES + MODEL_VALUES] = 1;
    return out;
}
#define LABEL(m, label) label_of(m, label)
#else
#define LABEL(m, label) ((label) < 0 ? MODEL_CLASSES : (label))
#endif

/* Start time of a step. Steps get longer; the last step starts at LAST_FROM, the step before it at GUIDED_TO. */
static double moment(int step, int steps)
{
    if (step == 0 || step == steps) return step == 0 ? 0 : 1;
    if (step == steps - 1) return LAST_FROM;
    return GUIDED_TO * step / (step + 4 * (steps - 2 - step));
}

/* Velocity towards a class, -1 for any, with classifier-free guidance (Ho & Salimans 2022); a guidance of 1 means none. */
static void velocity_at(model_context *m, float *velocity, const float *x, double t, int label, float guidance)
{
    const float time = (float)t;
    float *without = m->without;
    network(m->weights, m->memory, x, &time, LABEL(m, label), velocity);
    if (guidance == 1 || t < GUIDED_FROM || t >= GUIDED_TO) return;
    network(m->weights, m->memory, x, &time, LABEL(m, MODEL_CLASSES), without);
    for (int i = 0; i < NUMBERS; i++) velocity[i] = without[i] + guidance * (velocity[i] - without[i]);
}

static int is_class(int label)
{
    return label >= -1 && label < MODEL_CLASSES;
}

void model_noise(int64_t seed, float *noise)
{
    draw_noise(noise, NUMBERS, seed);
}

/* Second-order Adams-Bashforth method: extrapolates the velocity from the current and the previous step. */
int model_draw_from(model_context *m, int label, const float *noise, float guidance, int steps, float *sprite)
{
    float *now = m->now, *before = m->before;
    if (!is_class(label) || steps < 1) return -1;
    memcpy(sprite, noise, NUMBERS * sizeof *sprite);
    for (int step = 0; step < steps; step++) {
        const double t = moment(step, steps), length = moment(step + 1, steps) - t;
        velocity_at(m, now, sprite, t, label, guidance);
        if (step == 0 || step == steps - 1) {
            for (int i = 0; i < NUMBERS; i++) sprite[i] += (float)length * now[i];
        } else {
            const float change = (float)(length / 2 / (t - moment(step - 1, steps)));
            for (int i = 0; i < NUMBERS; i++) sprite[i] += (float)length * (now[i] + change * (now[i] - before[i]));
        }
        memcpy(before, now, NUMBERS * sizeof *before);
    }
    return 0;
}

int model_finish(model_context *m, int label, const float *sprite, uint8_t *rgba)
{
    if (!is_class(label)) return -1;
    to_rgba(rgba, sprite);
    snap(&m->canvas, rgba, label < 0 ? MODEL_CLASSES : label);
    return 0;
}

int model_draw(model_context *m, int label, int64_t seed, float guidance, int steps, uint8_t *rgba)
{
    model_noise(seed, m->noise);
    if (model_draw_from(m, label, m->noise, guidance, steps, m->sprite) != 0) return -1;
    return model_finish(m, label, m->sprite, rgba);
}
