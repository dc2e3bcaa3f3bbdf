"""The reconcile loop: which job is reconciled next, and what happens to its plan."""
