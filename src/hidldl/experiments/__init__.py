"""What is run on data: methods side by side on the same hidden rows."""
