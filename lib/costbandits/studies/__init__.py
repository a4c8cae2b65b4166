"""Many runs: replications, their results, the store that keeps them, the workers that share them."""
