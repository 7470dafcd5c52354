/* Arguments: the weights file, an output file, an input file, and a variety. The input file has the smallest palette of
   the network, int32, chances, float32, the cells and which are given for each set. Writes the drawn cells, or with a
   negative variety the network's odds, float32 [CELLS][ENTRIES][AREA]. */
int main(int count, char **texts)
{
    static uint8_t cells[4 * SET_PIXELS], given[CELLS];
    int32_t least;
    model_context *context = count > 4 ? model_open(texts[1]) : NULL;
    FILE *out = context ? fopen(texts[2], "wb") : NULL, *in = context ? fopen(texts[3], "rb") : NULL;
    if (!out || !in) return 2;
    const float variety = strtof(texts[4], NULL);
    completion *s = &context->set;
    while (fread(&least, sizeof least, 1, in) == 1) {
        if (fread(s->chances, sizeof *s->chances, 2 * ROUNDS * SET_PIXELS, in) != 2 * ROUNDS * SET_PIXELS) return 3;
        if (fread(cells, sizeof cells, 1, in) != 1 || fread(given, sizeof given, 1, in) != 1) return 3;
        s->least = least;
        if (variety < 0) {
            if (take_set(s, cells, given) < 0) return 5;
            look(s, context->weights, context->memory, s->index, s->known, s->odds);
            if (fwrite(s->odds, sizeof *s->odds, SET_PIXELS * ENTRIES, out) != SET_PIXELS * ENTRIES) return 4;
        } else {
            if (complete_set(s, context->weights, context->memory, cells, given, variety, cells) != 0) return 5;
            if (fwrite(cells, sizeof cells, 1, out) != 1) return 4;
        }
    }
    model_close(context);
    fclose(in);
    return fclose(out);
}
