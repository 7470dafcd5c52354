/* Started with the paths of the weights, of a file to write and of one to read: sprites, float32 in [0, 1]. Writes what
   the model says of each, float32. */
int main(int count, char **texts)
{
    static float x[4 * AREA], said[MODEL_OUTPUTS];
    model_context *context = count > 3 ? model_open(texts[1]) : NULL;
    FILE *out = context ? fopen(texts[2], "wb") : NULL, *in = context ? fopen(texts[3], "rb") : NULL;
    if (!out || !in) return 2;
    while (fread(x, sizeof x, 1, in) == 1) {
        network(context->weights, context->memory, x, said);
        if (fwrite(said, sizeof said, 1, out) != 1) return 4;
    }
    model_close(context);
    fclose(in);
    return fclose(out);
}
