"""GPUTasks: one pod for each, planned by a planner of its own. Pure: no I/O, no clock."""
