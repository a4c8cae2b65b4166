"""What is played: laws of rewards and costs, bandits, random instances, the geometry of arms, the ad data."""
