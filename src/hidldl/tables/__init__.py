"""Whole tables: read, recovered and summarised, chunk by chunk."""
