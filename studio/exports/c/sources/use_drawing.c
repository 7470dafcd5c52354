/* cc -std=c99 -O3 -march=native main.c "@FILE@" -lm */
#include <stdio.h>

#include "@STEM@.h"

int main(void)
{
    static uint8_t rgba[MODEL_SIZE * MODEL_SIZE * 4];
    model_context *context = model_open("@STEM@.bin");
    if (!context) return 1;
@DRAW@    model_close(context);

    FILE *picture = fopen("sprite.pam", "wb");
    if (!picture) return 1;
    fprintf(picture, "P7\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n", MODEL_SIZE, MODEL_SIZE);
    fwrite(rgba, 1, sizeof rgba, picture);
    return fclose(picture);
}
