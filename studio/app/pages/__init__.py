"""The five pages and the export dialog. Each reads the session and calls it; none reaches through another."""
