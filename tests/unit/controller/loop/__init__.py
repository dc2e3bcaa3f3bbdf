"""The rooms of the controller, each tested beside its name."""
