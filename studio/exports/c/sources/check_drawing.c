/* Arguments: the weights file, an output file, then for each sprite 'attribute=value', if there are attributes, class,
   seed, guidance and steps. Writes the sprites before snapping, float32. */
int main(int count, char **texts)
{
    static float noise[NUMBERS], sprite[NUMBERS];
    model_context *context = count > 2 ? model_open(texts[1]) : NULL;
    FILE *out = context ? fopen(texts[2], "wb") : NULL;
    if (!out) return 2;
    for (int i = 3; i + 3 < count; i += 4) {
#ifdef MODEL_VALUES
        for (char *equals; i + 4 < count && (equals = strchr(texts[i], '=')); i++) {
            *equals = 0;
            if (model_choose(context, texts[i], equals + 1)) return 5;
        }
#endif
        model_noise(strtoll(texts[i + 1], NULL, 10), noise);
        if (model_draw_from(context, atoi(texts[i]), noise, strtof(texts[i + 2], NULL), atoi(texts[i + 3]), sprite)) return 3;
        if (fwrite(sprite, sizeof sprite, 1, out) != 1) return 4;
    }
    model_close(context);
    return fclose(out);
}
