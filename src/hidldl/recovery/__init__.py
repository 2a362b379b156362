"""Recoverers: one method per file."""
