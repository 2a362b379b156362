"""Learners: one method per file."""
