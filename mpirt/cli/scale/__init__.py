"""`mpirt scale`: more or fewer workers of an elastic job, and what becomes of each until that is done."""
