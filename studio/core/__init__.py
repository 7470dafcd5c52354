"""Plain Python that every layer may use: settings, events, errors, files. No torch, no Qt."""
