
/* Chooses the value of an attribute for the sprites that this context draws from now on: "element", "fire"; "" for any
   value. Draw with class -1 to let the values decide alone. Returns 0, or -1 for an attribute or a value that is not in
   model_values. */
int model_choose(model_context *context, const char *attribute, const char *value);
