/* Makes what is needed to draw from a file of weights, or from its bytes. NULL: it can't be read, it is not the one that
   belongs to this file, or there is no memory. Nothing is allocated later; each thread needs a context of its own. */
model_context *model_open(const char *path);
model_context *model_open_bytes(const void *bytes, size_t count);
void model_close(model_context *context);

/* Draws a sprite of a class (-1: any) into `rgba` [MODEL_SIZE][MODEL_SIZE][4], straight alpha: the one that Sprite
   Training Studio, computing in fp32, draws first for this seed; its next one is that of seed + 1000003, and so on.
   guidance: 1.5 is usual; 1 takes the class as it was learnt, more what sets it apart. steps: 10 are usual. Returns 0,
   or -1 for a class or a number of steps that there is not. */
int model_draw(model_context *context, int label, int64_t seed, float guidance, int steps, uint8_t *rgba);

/* The three parts of drawing: the noise of a seed; from noise to a sprite as it is drawn, both [4][MODEL_SIZE]
   [MODEL_SIZE], premultiplied, in [-1, 1]; and from that to pixels of the palette. */
void model_noise(int64_t seed, float *noise);
int model_draw_from(model_context *context, int label, const float *noise, float guidance, int steps, float *sprite);
int model_finish(model_context *context, int label, const float *sprite, uint8_t *rgba);
