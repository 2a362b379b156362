"""Figures and tables, built as values."""
