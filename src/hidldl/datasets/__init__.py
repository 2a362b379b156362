"""Datasets: the paper's files, generated data and packaged data."""
