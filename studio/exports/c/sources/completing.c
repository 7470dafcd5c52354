/* Completing a set. */

struct model_context {
    float weights[WEIGHTS], memory[MEMORY], room[ROOM];
    completion set;
};

static void prepare(model_context *m)
{
    open_completion(&m->set, m->room);
}

int model_complete(model_context *m, const uint8_t *cells, const uint8_t *given, int64_t seed, float variety,
                   uint8_t *drawn)
{
    draw_chances(&m->set, seed);
    return complete_set(&m->set, m->weights, m->memory, cells, given, variety, drawn);
}
