"""Pictures of many sprites: telling them from whole sprites, finding their grids, cutting them."""
