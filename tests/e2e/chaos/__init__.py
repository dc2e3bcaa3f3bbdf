"""Commands in random weather: outages, harmed connections and real deaths, by the number of a seed."""
