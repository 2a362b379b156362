"""Datasets: the paper's files, generated and packaged data, and tables of one's own."""
