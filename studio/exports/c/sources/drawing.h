/* Creates a context from a weights file, or from its bytes. Returns NULL if the weights can't be read, belong to
   another C file, or don't fit into memory. Drawing allocates no memory. Each thread needs its own context. */
model_context *model_open(const char *path);
model_context *model_open_bytes(const void *bytes, size_t count);
void model_close(model_context *context);

/* Draws a sprite of a class (-1: any) into `rgba` [MODEL_SIZE][MODEL_SIZE][4], straight alpha. The result equals the
   first sprite that Sprite Training Studio draws with this seed in fp32; the studio's next sprite has seed + 1000003,
   and so on. guidance: scale of classifier-free guidance, usually 1.5; 1 means none. steps: usually 10. Returns 0, or
   -1 for an invalid class or number of steps. */
int model_draw(model_context *context, int label, int64_t seed, float guidance, int steps, uint8_t *rgba);

/* The three stages of model_draw: the noise of a seed; the sprite drawn from noise, both [4][MODEL_SIZE][MODEL_SIZE],
   premultiplied RGBA in [-1, 1]; and the sprite snapped to the palette. */
void model_noise(int64_t seed, float *noise);
int model_draw_from(model_context *context, int label, const float *noise, float guidance, int steps, float *sprite);
int model_finish(model_context *context, int label, const float *sprite, uint8_t *rgba);
