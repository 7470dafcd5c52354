/* Creates a context from a weights file, or from its bytes. Returns NULL if the weights can't be read, belong to
   another C file, or don't fit into memory. Drawing allocates no memory. Each thread needs its own context. */
model_context *model_open(const char *path);
model_context *model_open_bytes(const void *bytes, size_t count);
void model_close(model_context *context);

/* Draws the missing cells of a set. `cells` [MODEL_CELLS][MODEL_SIZE][MODEL_SIZE][4]: straight alpha, in the order of
   model_cell_names; missing cells are ignored. `given` [MODEL_CELLS]: 1 for cells to keep, 0 for cells to draw.
   Writes all cells to `drawn`, which may equal `cells`. Given cells stay as they are; drawn cells have their colours.
   Without a given cell, a new set is drawn in the colours of a training set. variety: 0 draws the most likely colours
   of given cells, for every seed the same; 1 draws colours as often as they are likely; usually 0.5. From given cells,
   variety 0 draws the first candidate of Sprite Training Studio; its next candidates for a seed have
   seed + 1000003, seed + 2000006, ... Returns 0, or -1 if the given cells have more than MODEL_COLOURS colours. */
int model_complete(model_context *context, const uint8_t *cells, const uint8_t *given, int64_t seed, float variety,
                   uint8_t *drawn);
