"""The runtime image on the real cluster: in launchers whose images know nothing of mpirt, or of anything."""
