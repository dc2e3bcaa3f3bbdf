"""The parts of the switchboard that only compute."""
