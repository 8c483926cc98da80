"""The paper's baselines and ablations, and other methods that users compare with."""
