"""What can be told from values alone: no socket, no cluster, no clock but one that is handed in."""
