"""Read .ase and .aseprite files: file.py parses a file, frames.py renders its frames, blend.py has the blend modes."""
