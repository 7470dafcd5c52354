/* Creates a context from a weights file, or from its bytes. Returns NULL if the weights can't be read, belong to
   another C file, or don't fit into memory. Predicting allocates no memory. Each thread needs its own context. */
model_context *model_open(const char *path);
model_context *model_open_bytes(const void *bytes, size_t count);
void model_close(model_context *context);

/* Writes @WHAT@ of the sprite `rgba` [MODEL_SIZE][MODEL_SIZE][4], straight alpha, to `out` [MODEL_OUTPUTS], in
   the order of model_output_names. */
void model_predict(model_context *context, const uint8_t *rgba, float *out);
