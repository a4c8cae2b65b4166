"""What came out: regret, statistics, figures."""
