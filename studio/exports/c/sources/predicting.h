/* Makes what is needed to predict from a file of weights, or from its bytes. NULL: it can't be read, it is not the one
   that belongs to this file, or there is no memory. Nothing is allocated later; each thread needs a context of its own. */
model_context *model_open(const char *path);
model_context *model_open_bytes(const void *bytes, size_t count);
void model_close(model_context *context);

/* Looks at a sprite `rgba` [MODEL_SIZE][MODEL_SIZE][4], straight alpha, and writes @WHAT@ into `out`
   [MODEL_OUTPUTS], in the order of model_output_names. */
void model_predict(model_context *context, const uint8_t *rgba, float *out);
