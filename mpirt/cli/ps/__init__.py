"""`mpirt ps`: the commands of a launcher, as a table, live, or as data."""
