"""One file per format that sprites are saved in; `base` says what such a format is. No torch here."""
