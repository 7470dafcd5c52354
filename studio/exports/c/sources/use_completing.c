/* cc -std=c99 -O3 -march=native main.c "@FILE@" -lm */
#include <stdio.h>

#include "@STEM@.h"

int main(void)
{
    static uint8_t cells[MODEL_CELLS * MODEL_SIZE * MODEL_SIZE * 4]; /* all cells, one below the other */
    static uint8_t given[MODEL_CELLS]; /* given[0] = 1 after loading the first cell into `cells` */
    model_context *context = model_open("@STEM@.bin");
    if (!context) return 1;
    if (model_complete(context, cells, given, 1, 0.5f, cells) != 0) return 1; /* seed 1, variety 0.5 */
    model_close(context);

    FILE *picture = fopen("set.pam", "wb");
    if (!picture) return 1;
    fprintf(picture, "P7\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n", MODEL_SIZE,
            MODEL_CELLS * MODEL_SIZE);
    fwrite(cells, 1, sizeof cells, picture);
    return fclose(picture);
}
