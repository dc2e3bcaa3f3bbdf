"""`mpirt`, the person's own command. Launchers start nothing of this room, so it may cost some start-up."""
