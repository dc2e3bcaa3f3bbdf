"""TrainingJobs on a real cluster: elastic Horovod by the controller, scaled, drained and disturbed."""
