/* Reading the weights file: tensors one after another, little-endian; int8 matrices follow their column scales. */

static uint32_t to_bits(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static float to_float(const uint8_t *bytes)
{
    const uint32_t bits = to_bits(bytes);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void unpack(float *weights, const uint8_t *bytes)
{
    for (size_t i = 0; i < PARTS; i++) {
        const int columns = parts[i].columns, count = parts[i].rows * columns;
        if (parts[i].is_int8) {
            const uint8_t *scales = bytes, *numbers = bytes + 4 * columns;
            for (int j = 0; j < count; j++) {
                const int number = numbers[j] < 128 ? numbers[j] : numbers[j] - 256;
                weights[j] = to_float(scales + 4 * (j % columns)) * (float)number;
            }
            bytes = numbers + count;
        } else {
            for (int j = 0; j < count; j++) weights[j] = to_float(bytes + 4 * j);
            bytes += 4 * count;
        }
        weights += (count + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
}
