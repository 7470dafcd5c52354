/* Choosing values of attributes by name. */

static int is_value_of(int number, const char *attribute, size_t length)
{
    return strncmp(model_values[number], attribute, length) == 0 && model_values[number][length] == '=';
}

int model_choose(model_context *m, const char *attribute, const char *value)
{
    const size_t length = strlen(attribute);
    int is_known = 0, found = -1;
    for (int i = 0; i < MODEL_VALUES; i++) {
        if (!is_value_of(i, attribute, length)) continue;
        is_known = 1;
        if (strcmp(model_values[i] + length + 1, value) == 0) found = i;
    }
    if (!is_known || (found < 0 && *value)) return -1;
    for (int i = 0; i < MODEL_VALUES; i++) {
        if (is_value_of(i, attribute, length)) m->chosen[i] = i == found;
    }
    return 0;
}
