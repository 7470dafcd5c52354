/* Predicting the outputs for a sprite. */

struct model_context {
    float weights[WEIGHTS], memory[MEMORY], x[4 * MOST_AREA];
};

static void prepare(model_context *m)
{
    memset(m->x, 0, sizeof m->x);
}

void model_predict(model_context *m, const uint8_t *rgba, float *out)
{
    for (int i = 0; i < 4 * AREA; i++) m->x[i] = (float)rgba[i] / 255;
    network(m->weights, m->memory, m->x, out);
}
