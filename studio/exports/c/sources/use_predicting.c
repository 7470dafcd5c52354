/* cc -std=c99 -O3 -march=native main.c "@FILE@" -lm */
#include <stdio.h>

#include "@STEM@.h"

int main(void)
{
    static uint8_t rgba[MODEL_SIZE * MODEL_SIZE * 4]; /* a sprite, straight alpha */
    float out[MODEL_OUTPUTS];
    model_context *context = model_open("@STEM@.bin");
    if (!context) return 1;
    model_predict(context, rgba, out);
    model_close(context);
    for (int i = 0; i < MODEL_OUTPUTS; i++) printf("%s %g\n", model_output_names[i], out[i]);
    return 0;
}
