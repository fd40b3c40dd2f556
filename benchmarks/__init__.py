"""What README quotes: `make bench`, or `python -m benchmarks`."""
