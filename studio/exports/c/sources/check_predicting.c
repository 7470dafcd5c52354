/* Arguments: the weights file, an output file, and an input file with sprites, float32 in [0, 1]. Writes the outputs
   for each sprite, float32. */
int main(int count, char **texts)
{
    static float x[4 * AREA], outputs[MODEL_OUTPUTS];
    model_context *context = count > 3 ? model_open(texts[1]) : NULL;
    FILE *out = context ? fopen(texts[2], "wb") : NULL, *in = context ? fopen(texts[3], "rb") : NULL;
    if (!out || !in) return 2;
    while (fread(x, sizeof x, 1, in) == 1) {
        network(context->weights, context->memory, x, outputs);
        if (fwrite(outputs, sizeof outputs, 1, out) != 1) return 4;
    }
    model_close(context);
    fclose(in);
    return fclose(out);
}
