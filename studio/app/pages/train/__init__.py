"""The Train page: settings at the left, the training's curves, samples and readings at the right."""
