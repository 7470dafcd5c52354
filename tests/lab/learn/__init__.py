"""Tests of `studio.lab.learn`."""
