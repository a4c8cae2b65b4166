"""What is promised: optima, intervals, each paper's bounds, the Bernoulli factory."""
