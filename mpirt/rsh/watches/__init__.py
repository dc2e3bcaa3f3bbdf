"""What the API server tells of pods: a watch on one of them, or one watch on the pods of many sessions."""
