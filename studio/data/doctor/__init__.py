"""What deserves a look among sprites, and the mending of it that an import's options ask for."""
