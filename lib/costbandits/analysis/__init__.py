"""What came out: regret, statistics, figures, the ledger of claims."""
