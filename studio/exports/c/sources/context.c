/* Creating contexts from a weights file, the only memory allocation. */

static uint32_t crc32_of(const uint8_t *bytes, size_t count)
{
    uint32_t table[256], sum = UINT32_MAX;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++) table[i] = (table[i] >> 1) ^ (table[i] & 1 ? 0xedb88320u : 0);
    }
    for (size_t i = 0; i < count; i++) sum = (sum >> 8) ^ table[(sum ^ bytes[i]) & 255];
    return ~sum;
}

model_context *model_open_bytes(const void *bytes, size_t count)
{
    static const uint8_t magic[8] = MAGIC;
    const uint8_t *start = bytes, *data = start + sizeof magic + 4;
    if (count != WEIGHTS_BYTES || memcmp(start, magic, sizeof magic) != 0) return NULL;
    if (to_bits(start + sizeof magic) != WEIGHTS_CRC) return NULL;
    if (crc32_of(data, count - sizeof magic - 4) != WEIGHTS_CRC) return NULL;
    model_context *m = malloc(sizeof *m);
    if (!m) return NULL;
    unpack(m->weights, data);
    prepare(m);
    return m;
}

model_context *model_open(const char *path)
{
    model_context *m = NULL;
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(WEIGHTS_BYTES);
    if (file && bytes && fread(bytes, 1, WEIGHTS_BYTES, file) == WEIGHTS_BYTES) m = model_open_bytes(bytes, WEIGHTS_BYTES);
    free(bytes);
    if (file) fclose(file);
    return m;
}

void model_close(model_context *m)
{
    free(m);
}
